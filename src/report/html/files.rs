//! The files of a run as a table that sorts; on a phone a file is a card, and the titles of the columns sort all the same.

use std::fmt::Write as _;

use super::escape;
use crate::report::data::FileRow;
use crate::report::data::Residency;
use crate::report::data::Run;
use crate::report::share;
use crate::report::units::bytes;
use crate::report::units::count;
use crate::report::units::percent;

/// Rows that are shown until all are asked for; the style knows it as well.
const SHOWN: usize = 20;

/// What stands in a cell, and what it is sorted by; `None` is not known.
type Cell = Option<(String, f64)>;

/// Title, and value of a file.
type Column = (&'static str, fn(&FileRow) -> Cell);

#[allow(clippy::unnecessary_wraps, clippy::cast_precision_loss)]
fn number(n: u64) -> Cell {
    Some((count(n), n as f64))
}

fn cached(r: Option<&Residency>) -> Cell {
    let r = r.filter(|r| r.pages > 0)?;
    let share = share(r.cached, r.pages);
    Some((percent(share, 0), share))
}

#[allow(clippy::cast_precision_loss)]
const COLUMNS: &[Column] = &[
    ("hits", |f| number(f.hits)),
    ("read ahead", |f| number(f.readahead_hits)),
    ("misses", |f| number(f.misses)),
    ("faults", |f| number(f.fault_misses + f.fault_hits)),
    ("writes", |f| f.writes().and_then(number)),
    ("dirtied", |f| number(f.dirtied)),
    ("direct", |f| f.direct().map(|n| (bytes(n), n as f64))),
    ("cached before", |f| cached(f.before.as_ref())),
    ("cached after", |f| cached(f.after.as_ref())),
];

pub(super) fn table(run: &Run, out: &mut String) {
    let files: Vec<_> = run.files.iter().filter(|f| f.weight() > 0).collect();
    if files.is_empty() {
        return;
    }
    out.push_str("<h3>Files</h3>\n<p class=\"about\">In pages, but for direct I/O; the busiest first.");
    let rest = run.files_seen.saturating_sub(files.len() as u64);
    if rest > 0 {
        let _ = write!(out, " These are {} of {} files.", count(files.len() as u64), count(run.files_seen));
    }
    out.push_str("</p>\n");
    if files.len() > SHOWN {
        let (id, all) = (format!("all-{}", run.number), files.len());
        let _ = writeln!(
            out,
            "<input type=\"checkbox\" class=\"all\" id=\"{id}\"><label for=\"{id}\">all {all}, not {SHOWN}</label>"
        );
    }
    out.push_str("<table class=\"files\">\n<thead><tr>");
    for title in std::iter::once("file").chain(COLUMNS.iter().map(|(title, _)| *title)) {
        let _ = write!(out, "<th scope=\"col\"><button type=\"button\">{title}</button></th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for f in files {
        let path = crate::text::foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode));
        let _ = write!(out, "<tr><td><code>{}</code></td>", escape(&path));
        for (title, value) in COLUMNS {
            match value(f) {
                Some((text, n)) => {
                    let _ = write!(out, "<td data-t=\"{title}\" data-n=\"{n}\">{}</td>", escape(&text));
                }
                None => {
                    let _ = write!(out, "<td data-t=\"{title}\">-</td>");
                }
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
}
