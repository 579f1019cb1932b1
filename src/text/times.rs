//! Lengths of time as people write them.

use std::time::Duration;

/// The shortest interval: below this the ticks themselves would be what is measured.
pub const SHORTEST: Duration = Duration::from_millis(10);
/// The longest interval: a year.
pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// An interval of so many seconds.
///
/// # Errors
/// Why it cannot be one.
pub fn interval(seconds: f64) -> Result<Duration, String> {
    if seconds.is_nan() {
        return Err("it is not a number of seconds".into());
    }
    if seconds > LONGEST.as_secs_f64() {
        return Err(format!("it is longer than a year ({} seconds)", LONGEST.as_secs()));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= SHORTEST => Ok(interval),
        Ok(_) if seconds > 0.0 => Err("it is too short; the shortest interval is 0.01 seconds".into()),
        _ => Err("it must be more than 0 seconds".into()),
    }
}
