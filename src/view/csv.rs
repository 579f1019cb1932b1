//! CSV for spreadsheets and scripts: exact numbers under the names that `--columns` takes.
//!
//! `time` (universal, RFC 3339) and `interval_s` always come first, then, with `--by`, what rows are
//! about (`pid`, `uid` and `comm` of processes; empty on the line of the interval itself, and but for `(other)` in place
//! of the name on that of the rest; a name that is empty is `\0`), then the columns requested. Sizes are in bytes,
//! ratios are fractions from 0 to 1, and what is not known is an empty field. Names are escaped as in text, and one
//! that a spreadsheet would take for a formula has an apostrophe before it; `--json` has them as they are.

use super::View;
use crate::columns::Column;
use crate::columns::Line;
use crate::columns::Value;
use crate::figures;
use crate::figures::Figure;
use crate::model::Interval;
use crate::pivot::By;
use crate::pivot::OTHER;
use crate::pivot::Who;
use crate::pivot::label;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;

/// CSV for spreadsheets and scripts.
pub struct Csv {
    columns: Vec<&'static Column>,
    unit: Unit,
    page_size: u64,
    by: Option<By>,
}

impl Csv {
    /// CSV with these columns; `by` is what rows stand for, `None` for no rows.
    #[must_use]
    pub fn new(columns: Vec<&'static Column>, unit: Unit, page_size: u64, by: Option<By>) -> Self {
        // It leads every line already.
        let columns = columns.into_iter().filter(|c| c.id != "interval_s").collect();
        Self { columns, unit, page_size, by }
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

    fn line(&self, interval: &Interval, line: &Line<'_>, who: &Who, out: &mut String) {
        let lead = [super::utc(interval.time), format!("{:.6}", interval.seconds)];
        let who = keys(self.by).iter().map(|(key, cell)| match *key == naming(self.by) {
            true if who.other => OTHER.into(),
            true => label(&cell(who)).into_owned(),
            false => cell(who),
        });
        let cells = self.columns.iter().map(|c| self.cell(c.value(line)));
        record(lead.into_iter().chain(who).chain(cells), out);
    }
}

/// A field that says what a row is about: its name, and how it is had.
type Field = (&'static str, fn(&Who) -> String);

const PID: Field = ("pid", |w| number(w.pid));
const TID: Field = ("tid", |w| number(w.tid));
const UID: Field = ("uid", |w| number(w.uid));
const USER: Field = ("user", |w| text(&w.user));
const COMM: Field = ("comm", |w| text(&w.comm));
const CGROUP: Field = ("cgroup", |w| text(&w.cgroup));
const CONTAINER: Field = ("container", |w| text(&w.container));
const UNIT: Field = ("unit", |w| text(&w.unit));
const PATH: Field = ("path", |w| text(&w.path));
const DEVICE: Field = ("device", |w| text(&w.device));
const INODE: Field = ("inode", |w| number(w.inode));
const HOW: Field = ("how", |w| w.how.unwrap_or_default().into());
const OWNER: Field = ("owner", |w| text(&w.owner));
const LIMIT_OF: Field = ("limit_of", |w| text(&w.limit_of));
const MOUNT: Field = ("mount", |w| text(&w.mount));

fn number(n: Option<impl ToString>) -> String {
    n.map_or_else(String::new, |n| n.to_string())
}

/// A name that is empty is not the empty field of the interval's own line. Nobody has this one: a backslash in a name is doubled.
const EMPTY: &str = "\\0";

fn text(t: &Option<Foreign>) -> String {
    t.as_ref()
        .map(Foreign::cell)
        .map_or_else(String::new, |cell| if cell.is_empty() { EMPTY.into() } else { cell })
}

const fn keys(by: Option<By>) -> &'static [Field] {
    match by {
        None => &[],
        Some(By::Process) => &[PID, UID, COMM],
        Some(By::Thread) => &[PID, TID, UID, COMM],
        Some(By::Comm) => &[COMM],
        Some(By::User) => &[UID, USER],
        Some(By::Cgroup) => &[CGROUP, CONTAINER, UNIT],
        Some(By::File) => &[PATH, DEVICE, INODE, MOUNT],
        Some(By::Mount) => &[MOUNT, DEVICE],
        Some(By::Device) => &[DEVICE],
        Some(By::Evictor) => &[HOW, OWNER, CGROUP, COMM, LIMIT_OF],
    }
}

/// The field that the rest is named in.
const fn naming(by: Option<By>) -> &'static str {
    match by {
        None => "",
        Some(By::Process | By::Thread | By::Comm) => "comm",
        Some(By::User) => "user",
        Some(By::Cgroup) => "cgroup",
        Some(By::File) => "path",
        Some(By::Mount) => "mount",
        Some(By::Device) => "device",
        Some(By::Evictor) => "owner",
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
        let who = keys(self.by).iter().map(|(name, _)| *name);
        let names = self.columns.iter().map(|c| self.name(c));
        record(lead.chain(who).map(String::from).chain(names), out);
    }

    fn interval(&mut self, interval: &Interval, out: &mut String) {
        self.line(interval, &Line::from(interval), &Who::default(), out);
        for row in interval.rows.iter().filter(|_| self.by.is_some()) {
            self.line(interval, &Line::from(row), &row.who, out);
        }
    }
}
