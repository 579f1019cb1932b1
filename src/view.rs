//! From an [`Interval`] to bytes: one writer for each output format.
//!
//! A view has no outside world: it appends to a string, and [`crate::run`] writes that string in one go.

pub mod bcc;
pub mod csv;
pub mod json;
pub mod text;

use crate::model::Interval;
use crate::options::Format;
use crate::run::options::Options;
use crate::run::options::Set;

/// One output format.
pub trait View {
    /// What comes before the first interval; written as soon as counting has begun.
    fn begin(&mut self, out: &mut String) {
        let _ = out;
    }

    /// One interval.
    fn interval(&mut self, interval: &Interval, out: &mut String);

    /// The user requested the end; comes before the part interval.
    fn interrupted(&mut self, out: &mut String) {
        let _ = out;
    }

    /// The figures of the whole run.
    fn total(&mut self, total: &Interval, out: &mut String) {
        let _ = (total, out);
    }
}

/// What views need to know of the machine and the terminal.
pub struct Surroundings {
    /// The time zone of `-T`.
    pub zone: jiff::tz::TimeZone,
    /// Bytes in a page.
    pub page_size: u64,
    /// Lines and columns of the terminal now, `None` where the output is no terminal.
    pub screen: Box<dyn Fn() -> Option<(u16, u16)>>,
}

impl Surroundings {
    /// Those of this process and its standard output.
    #[must_use]
    pub fn here() -> Self {
        Self {
            zone: crate::text::zone::local(),
            page_size: rustix::param::page_size() as u64,
            // Asked anew each time, so that a resized window counts from the next line on.
            screen: Box::new(|| {
                let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
                Some((size.ws_row, size.ws_col))
            }),
        }
    }
}

/// Time of day, as `-T` writes it.
pub(crate) struct Clock {
    zone: jiff::tz::TimeZone,
    millis: bool,
}

impl Clock {
    /// A clock that shows milliseconds where intervals need them.
    pub(crate) fn new(zone: jiff::tz::TimeZone, interval: std::time::Duration) -> Self {
        Self { zone, millis: interval.subsec_nanos() != 0 }
    }

    /// Time of day.
    pub(crate) fn show(&self, time: jiff::Timestamp) -> String {
        let format = if self.millis { "%H:%M:%S%.3f" } else { "%H:%M:%S" };
        time.to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    /// Its width.
    pub(crate) const fn width(&self) -> usize {
        if self.millis { 12 } else { 8 }
    }
}

/// Universal time for machines, to the millisecond.
pub(crate) fn utc(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The view for these options.
#[must_use]
pub fn new(options: &Options, here: Surroundings) -> Box<dyn View> {
    let clock = Clock::new(here.zone, options.interval);
    let clock = options.timestamp.then_some(clock);
    let by = options.by;
    match options.format {
        Format::Json => Box::new(json::Json { pids: options.chosen.pids(), by }),
        Format::Csv => Box::new(csv::Csv::new(options.columns(), options.unit, here.page_size, by)),
        Format::Text if options.set == Set::Bcc => Box::new(bcc::Bcc { clock }),
        Format::Text => Box::new(text::Text::new(
            options.columns(),
            text::Numbers { unit: options.unit, page_size: here.page_size },
            clock,
            by,
            here.screen,
        )),
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests;
