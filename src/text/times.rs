//! Lengths of time as people write them.

use std::time::Duration;

/// The shortest interval: below this the ticks themselves would be what is measured.
pub const SHORTEST: Duration = Duration::from_millis(10);
/// The longest interval: a year.
pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Units that a number may have, and seconds in each. `ms` stands before what it ends in.
const UNITS: &[(&str, f64)] = &[("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

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
        Ok(_) if seconds > 0.0 => Err("it is too short; the shortest time is 0.01 seconds".into()),
        _ => Err("it must be more than 0 seconds".into()),
    }
}

/// Reads a length of time, from 10 ms to a year: seconds (`2`, `0.5`), or a number with a unit (`500ms`, `1s`, `2m`, `1h`).
///
/// # Errors
/// Why it is none.
pub fn read(text: &str) -> Result<Duration, String> {
    // A unit stands behind a digit or a point: 'h' is no time, and 'nan' no number of minutes.
    let unit = UNITS.iter().find_map(|(unit, scale)| {
        let number = text.strip_suffix(unit)?;
        number.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some((number, *scale))
    });
    let (number, scale) = unit.unwrap_or((text, 1.0));
    let Ok(number) = number.parse::<f64>() else {
        let hint = if text.contains(',') { "; write fractions with a point: 0.5" } else { "" };
        return Err(format!("it is not a number of seconds, or one with ms, s, m or h{hint}"));
    };
    // What is divided comes out as it is written; multiplied by a thousandth, 29ms would be a little more.
    interval(if scale < 1.0 { number / scale.recip() } else { number * scale })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn seconds_or_a_number_with_a_unit() {
        for (text, millis) in [
            ("10s", 10_000),
            ("0.5", 500),
            (".5s", 500),
            ("2.s", 2000),
            ("20ms", 20),
            ("29ms", 29),
            ("2m", 120_000),
            ("1.5min", 90_000),
            ("1h", 3_600_000),
            ("8760h", 31_536_000_000),
            ("1e3ms", 1000),
            ("+3s", 3000),
        ] {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_says_why() {
        for (text, part) in [
            ("", "not a number"),
            ("s", "not a number"),
            ("ms", "not a number"),
            ("h", "not a number"),
            ("1d", "ms, s, m or h"),
            ("1us", "ms, s, m or h"),
            ("1S", "not a number"),
            ("1 s", "not a number"),
            ("1 0", "not a number"),
            ("1m30s", "not a number"),
            ("1s ", "not a number"),
            ("0,5s", "with a point"),
            ("nan", "not a number"),
            ("nans", "not a number"),
            ("infs", "not a number"),
            ("inf", "longer than a year"),
            ("1e308", "longer than a year"),
            ("1e308h", "longer than a year"),
            ("1e400ms", "longer than a year"),
            ("8761h", "longer than a year"),
            ("0", "more than 0"),
            ("0s", "more than 0"),
            ("-0ms", "more than 0"),
            ("-1s", "more than 0"),
            ("-1e308h", "more than 0"),
            ("1e-400h", "more than 0"),
            ("1ms", "too short"),
            ("9.99ms", "too short"),
            ("0.0001m", "too short"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
