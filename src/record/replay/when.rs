//! Points in time as people write them.

use jiff::SignedDuration;
use jiff::Timestamp;
use jiff::civil;

use crate::record::numbers::since_1970;
use crate::text::times;
use crate::text::zone;

/// A point in time that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// A date and a time.
    At(Timestamp),
    /// A time of day: the first since the recording began.
    Clock(civil::Time),
    /// So long before now.
    Ago(SignedDuration),
}

impl When {
    /// Reads `14:00`, `14:00:30`, `2026-11-23 14:00`, `2026-11-23T14:00:00Z`, `3m ago`.
    ///
    /// # Errors
    /// What can be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(length) = text.strip_suffix("ago") {
            let length = times::read(length.trim())?;
            return SignedDuration::try_from(length).map(When::Ago).map_err(|e| e.to_string());
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(When::At(at));
        }
        // Without a date, a date is nothing that jiff would guess.
        if text.contains('-') {
            if let Ok(local) = text.parse::<civil::DateTime>() {
                let zoned = local.to_zoned(zone::local()).map_err(|e| e.to_string())?;
                return Ok(When::At(zoned.timestamp()));
            }
        } else if let Ok(time) = text.parse::<civil::Time>() {
            return Ok(When::Clock(time));
        }
        Err("it is no time: write 14:00, 14:00:30, '2026-11-23 14:00', 2026-11-23T14:00:00Z or '3m ago'"
            .into())
    }

    /// In nanoseconds since 1970, for a recording that began then.
    pub(super) fn nanos(&self, began: i64) -> i64 {
        let time = match self {
            When::At(at) => *at,
            When::Ago(length) => Timestamp::now().saturating_sub(*length).unwrap_or(Timestamp::MIN),
            When::Clock(time) => {
                let began = Timestamp::from_nanosecond(began.into()).unwrap_or(Timestamp::UNIX_EPOCH);
                let zoned = began.to_zoned(zone::local());
                let day = |date: civil::Date| date.to_datetime(*time).to_zoned(zone::local()).ok();
                let whole_second = zoned.timestamp().as_second();
                let today = day(zoned.date()).filter(|at| at.timestamp().as_second() >= whole_second);
                let next = || zoned.date().tomorrow().ok().and_then(day);
                today.or_else(next).unwrap_or(zoned).timestamp()
            }
        };
        since_1970(time)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_are_read_or_it_is_said_how() {
        assert_eq!(When::parse("14:00").unwrap(), When::Clock(civil::time(14, 0, 0, 0)));
        assert_eq!(When::parse("14:00:30").unwrap(), When::Clock(civil::time(14, 0, 30, 0)));
        assert_eq!(When::parse("3m ago").unwrap(), When::Ago(SignedDuration::from_secs(180)));
        let at: Timestamp = "2026-11-23T14:00:00Z".parse().unwrap();
        assert_eq!(When::parse("2026-11-23T14:00:00Z").unwrap(), When::At(at));
        assert!(matches!(When::parse("2026-11-23 14:00"), Ok(When::At(_))));
        for wrong in ["", "yesterday", "25:00", "ago", "-1m ago", "2026-13-01"] {
            assert!(When::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_first_since_the_recording_began() {
        let nanos = |t: Timestamp| i64::try_from(t.as_nanosecond()).unwrap();
        let zone = zone::local();
        let noon = civil::date(2026, 11, 23).at(12, 0, 0, 500).to_zoned(zone).unwrap();
        let then = |h| {
            Timestamp::from_nanosecond(
                When::Clock(civil::time(h, 0, 0, 0)).nanos(nanos(noon.timestamp())).into(),
            )
        };
        assert_eq!(then(14).unwrap().as_second() - noon.timestamp().as_second(), 2 * 3600);
        assert_eq!(then(11).unwrap().as_second() - noon.timestamp().as_second(), 23 * 3600);
        assert_eq!(then(12).unwrap().as_second(), noon.timestamp().as_second());
    }
}
