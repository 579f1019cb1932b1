//! CSV for spreadsheets and scripts: exact numbers under the names that `--columns` takes.
//!
//! `time` (universal, RFC 3339) and `interval_s` always come first, then, with `--by process`, `pid`, `uid`
//! and `comm` (empty on the line of the interval itself), then the columns asked for. Sizes are in bytes,
//! ratios are fractions from 0 to 1, and what is not known is an empty field.

use super::View;
use crate::cli::Unit;
use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::figures;
use crate::figures::Figure;
use crate::model::Interval;

/// CSV for spreadsheets and scripts.
pub struct Csv {
    columns: Vec<&'static Column>,
    unit: Unit,
    page_size: u64,
    rows: Option<usize>,
}

impl Csv {
    /// CSV with these columns; `rows` is the number of rows below each interval, `None` for no rows.
    #[must_use]
    pub fn new(columns: Vec<&'static Column>, unit: Unit, page_size: u64, rows: Option<usize>) -> Self {
        // It leads every line already.
        let columns = columns.into_iter().filter(|c| c.id != "interval_s").collect();
        Self { columns, unit, page_size, rows }
    }

    fn name(&self, column: &Column) -> String {
        let in_pages =
            column.figure().map(Figure::unit) == Some(figures::Unit::Pages) || column.counts_pages();
        if in_pages && self.unit == Unit::Bytes { format!("{}_bytes", column.id) } else { column.id.into() }
    }

    fn cell(&self, value: Value) -> String {
        match value {
            Value::Unknown => String::new(),
            Value::Pages(n) if self.unit == Unit::Bytes => n.saturating_mul(self.page_size).to_string(),
            Value::SignedPages(n) if self.unit == Unit::Bytes => {
                n.saturating_mul(i64::try_from(self.page_size).unwrap_or(i64::MAX)).to_string()
            }
            Value::SignedPages(n) => n.to_string(),
            Value::Pages(n) | Value::Events(n) | Value::Bytes(n) | Value::Size(n) => n.to_string(),
            Value::Ratio(x) | Value::Seconds(x) => format!("{x:.6}"),
        }
    }

    fn line(&self, interval: &Interval, line: &Line<'_>, who: [String; 3], out: &mut String) {
        let lead = [super::utc(interval.time), format!("{:.6}", interval.seconds)];
        let who = who.into_iter().filter(|_| self.rows.is_some());
        let cells = self.columns.iter().map(|c| self.cell(c.value(line)));
        record(lead.into_iter().chain(who).chain(cells), out);
    }
}

fn record(fields: impl Iterator<Item = String>, out: &mut String) {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory text that is valid UTF-8 cannot fail; were it to, the line would be missing.
    if writer.write_record(fields.map(String::into_bytes)).is_ok() {
        if let Some(text) = writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
            out.push_str(&text);
        }
    }
}

impl View for Csv {
    fn begin(&mut self, out: &mut String) {
        let lead = ["time", "interval_s"].into_iter();
        let who = ["pid", "uid", "comm"].into_iter().filter(|_| self.rows.is_some());
        let names = self.columns.iter().map(|c| self.name(c));
        record(lead.chain(who).map(String::from).chain(names), out);
    }

    fn interval(&mut self, interval: &Interval, out: &mut String) {
        self.line(interval, &Line::from(interval), Default::default(), out);
        for row in interval.rows.iter().take(self.rows.unwrap_or(0)) {
            let who = [row.pid.to_string(), row.uid.to_string(), row.comm.clone()];
            self.line(interval, &Line::from(row), who, out);
        }
    }
}
