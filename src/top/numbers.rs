//! Numbers that always fit a narrow column.

use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::live::snapshot::Show;
use crate::text::numbers::Unit;
use crate::text::numbers::binary;
use crate::text::numbers::decimal;
use crate::text::numbers::percent;
use crate::text::numbers::seconds;

/// How numbers are written.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Pages as pages or as bytes.
    pub unit: Unit,
    /// Bytes in a page.
    pub page_size: u64,
    /// Counts or rates.
    pub show: Show,
    /// Length of the interval, for rates.
    pub seconds: f64,
    /// Length of the interval that the counts are of, where it is another one.
    pub counted: Option<f64>,
}

impl Numbers {
    /// The cell of a column for a line.
    #[must_use]
    pub fn cell(&self, column: &Column, line: &Line<'_>) -> String {
        self.write(column.value(line))
    }

    /// A value; `-` for what is not known.
    #[must_use]
    pub fn write(&self, value: Value) -> String {
        let page = self.page_size as f64;
        match value {
            Value::Unknown => "-".into(),
            Value::Ratio(x) => percent(x),
            Value::Size(n) => binary(n as f64),
            Value::Bytes(n) => binary(self.rate(n as f64)),
            Value::Events(n) => decimal(self.rate(n as f64)),
            Value::Seconds(x) => seconds(self.rate(x)),
            Value::Pages(n) if self.unit == Unit::Bytes => binary(self.rate(n as f64 * page)),
            Value::Pages(n) => decimal(self.rate(n as f64)),
            Value::SignedPages(n) => {
                let sign = if n < 0 { "-" } else { "" };
                format!("{sign}{}", self.write(Value::Pages(n.unsigned_abs())))
            }
        }
    }

    /// The height of a bar: the same number, or rate, without its unit; `None` for what is not known.
    #[must_use]
    pub fn height(&self, value: Value) -> Option<f64> {
        match value {
            Value::Unknown => None,
            Value::Ratio(x) => Some(x),
            Value::Pages(n) | Value::Events(n) | Value::Bytes(n) | Value::Size(n) => {
                Some(self.rate(n as f64))
            }
            Value::SignedPages(n) => Some(self.rate(n as f64)),
            Value::Seconds(x) => Some(self.rate(x)),
        }
    }

    fn rate(&self, x: f64) -> f64 {
        let counted = self.counted.unwrap_or(self.seconds);
        match self.show {
            Show::Rate if counted > 0.0 => x / counted,
            // What was counted in an interval of another length would be more, or less, than what stands beside it.
            Show::Count if counted > 0.0 && differ(counted, self.seconds) => x / counted * self.seconds,
            _ => x,
        }
    }

    /// The same for counts of an interval of another length.
    #[must_use]
    pub const fn over(self, counted: Option<f64>) -> Self {
        Self { counted, ..self }
    }
}

/// Whether two lengths differ by more than beats do.
#[must_use]
pub fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > b / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_counts_and_not_of_ratios() {
        let numbers =
            Numbers { unit: Unit::Pages, page_size: 4096, show: Show::Rate, seconds: 5.0, counted: None };
        assert_eq!(numbers.write(Value::Pages(1000)), "200");
        assert_eq!(numbers.write(Value::Pages(1)), "0.2");
        assert_eq!(numbers.write(Value::Bytes(5 << 20)), "1.0M");
        assert_eq!(numbers.write(Value::Ratio(0.5)), "50.00%");
        assert_eq!(numbers.write(Value::Size(1 << 20)), "1.0M");
        assert_eq!(numbers.write(Value::Unknown), "-");
        let bytes = Numbers { unit: Unit::Bytes, show: Show::Count, ..numbers };
        assert_eq!(bytes.write(Value::Pages(3)), "12.0K");
        assert_eq!(bytes.write(Value::SignedPages(-3)), "-12.0K");
        // A row of an interval of ten seconds beside those of five.
        let (rate, count) =
            (numbers.over(Some(10.0)), Numbers { show: Show::Count, ..numbers }.over(Some(10.0)));
        assert_eq!(
            (rate.write(Value::Pages(1000)), count.write(Value::Pages(1000))),
            ("100".into(), "500".into())
        );
        assert_eq!(count.over(Some(5.01)).write(Value::Pages(1000)), "1000");
    }
}
