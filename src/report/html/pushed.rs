//! Who pushed whose pages out while a run lasted, as tables that sort.

use std::fmt::Write as _;

use super::escape::escape;
use super::table;
use super::table::Cell;
use crate::report::data::Run;
use crate::report::pushed::By;
use crate::report::units;
use crate::report::units::count;
use crate::text::foreign;
use crate::text::numbers::Unit;

fn pages(n: Option<u64>, unit: Unit) -> Cell {
    let shown = |n| if unit == Unit::Pages { count(n) } else { units::of_pages(n) };
    n.map_or(Cell::Unknown, |n| Cell::Number(shown(n), n as f64))
}

fn seconds(s: Option<f64>) -> Cell {
    s.map_or(Cell::Unknown, |s| Cell::Number(format!("{s:.3} s"), s))
}

/// Who did it, in words.
fn by(by: &By, own: bool, other: bool, how: Option<&str>) -> Cell {
    Cell::Text(match (own, other) {
        (true, true) => "the command, all else".into(),
        (false, true) => "all else".into(),
        _ => by.called(own, how),
    })
}

/// The section; nothing where nobody asked.
pub(super) fn show(run: &Run, out: &mut String) {
    let Some(pushed) = &run.blame else { return };
    out.push_str("<h3>Who pushed out whose pages</h3>\n");
    if pushed.rows.is_empty() {
        out.push_str("<p>Nothing that concerns it left the cache while it ran.</p>\n");
    } else {
        out.push_str(
            "<p class=\"about\">Pages that left the cache while it ran, what of them came back for whomever, and what it \
             brought in again itself; waiting is of all threads, for such pages while they were being read.</p>\n",
        );
        let row = |r: &crate::report::pushed::Row| {
            let text = |name: Option<&foreign::Foreign>| Cell::Text(foreign::or(name, "-"));
            vec![
                by(&r.by, r.own, r.other, r.how),
                Cell::Text(r.how.unwrap_or("-").into()),
                text(r.owner.as_ref()),
                text(r.limit_of.as_ref()),
                pages(Some(r.out_pages), run.unit),
                pages(r.back_pages, run.unit),
                pages(r.again_pages, run.unit),
                seconds(r.waited_s),
            ]
        };
        let rows: Vec<_> = pushed.rows.iter().map(row).collect();
        let titles = ["by whom", "how", "whose", "limit of", "out", "back", "again", "waited"];
        table::show("pushed", &titles, &rows, out);
    }
    if !pushed.files.is_empty() {
        out.push_str("<p class=\"about\">Of which files; waiting is of the command alone.</p>\n");
        let row = |f: &crate::report::pushed::FileRow| {
            let name = if f.other { "all else" } else { "(no name)" };
            vec![
                Cell::Code(foreign::or(f.path.as_ref(), name)),
                by(&f.by, f.own, f.other, f.how),
                Cell::Text(f.how.unwrap_or("-").into()),
                pages(Some(f.out_pages), run.unit),
                pages(f.again_pages, run.unit),
                seconds(f.waited_s),
            ]
        };
        let rows: Vec<_> = pushed.files.iter().map(row).collect();
        table::show("pushed", &["file", "by whom", "how", "out", "again", "waited"], &rows, out);
    }
    for (pages, what) in [
        (pushed.unknown_pages, "left, and there was no room for a row to say who pushed them out"),
        (
            pushed.forgotten_pages,
            "left and were forgotten for want of room: whether they came back is not known",
        ),
    ] {
        if pages > 0 {
            let _ = writeln!(out, "<p class=\"about\">{} {what}.</p>", escape(&run.volume(pages)));
        }
    }
}
