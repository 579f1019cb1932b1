//! Who pushed whose pages out while a run lasted.

use super::page::Page;
use crate::report::data::Run;
use crate::report::pushed::FileRow;
use crate::report::pushed::Pushed;
use crate::report::pushed::Row;
use crate::report::units::count;
use crate::text::foreign;
use crate::text::width::ending;

/// Rows that are shown, and with -v.
const ROWS: [usize; 2] = [3, 20];
/// Columns of a row before the names, as many as there are in a row of a file.
const BEFORE: usize = 49;

/// The section; nothing where nobody asked.
pub(super) fn show(run: &Run, many: bool, page: &mut Page) {
    let Some(pushed) = &run.blame else { return };
    page.gap();
    let of = if many { format!(" (run {})", run.number) } else { String::new() };
    page.line(&format!("who pushed out whose pages{of}"));
    page.wrapped("  ", &sentence(pushed, page));
    if pushed.again_pages.is_none() {
        page.note_unknown("what came back into the cache");
    }
    let shown = ROWS[usize::from(page.style.verbose)];
    if !pushed.rows.is_empty() {
        page.line(&format!(
            "  {:>10} {:>10} {:>10}  {:<11}  WHOSE <- BY WHOM",
            "OUT", "BACK", "AGAIN", "HOW"
        ));
    }
    for row in pushed.rows.iter().take(shown) {
        line(row, page);
    }
    let rest = &pushed.rows[shown.min(pushed.rows.len())..];
    if !rest.is_empty() {
        let known = |of: fn(&Row) -> Option<u64>| rest.iter().map(of).sum::<Option<u64>>();
        let cells = [
            amount(Some(rest.iter().map(|row| row.out_pages).sum()), page),
            amount(known(|row| row.back_pages), page),
            amount(known(|row| row.again_pages), page),
        ];
        let [out, back, again] = cells;
        page.line(&format!(
            "  {out:>10} {back:>10} {again:>10}  in {} more rows (--json)",
            count(rest.len() as u64)
        ));
    }
    files(pushed, shown, page);
    if pushed.unknown_pages > 0 {
        let text = format!(
            "There was no room for all rows: of {} that left it is not known who pushed them out.",
            page.amount(pushed.unknown_pages)
        );
        page.wrapped("  ", &text);
    }
    if pushed.forgotten_pages > 0 {
        let text = format!(
            "{} that left were forgotten for want of room: whether they came back is not known.",
            page.amount(pushed.forgotten_pages)
        );
        page.wrapped("  ", &text);
    }
}

/// What it comes to.
fn sentence(pushed: &Pushed, page: &Page) -> String {
    let known = |n: Option<u64>| n.map(|n| page.amount(n));
    let again = match known(pushed.again_pages) {
        Some(_) if pushed.again_pages == Some(0) => {
            "nothing that left the cache meanwhile was brought in again by it".into()
        }
        Some(n) => format!("{n} left the cache while it ran and were brought in again by it (AGAIN)"),
        None => "what it brought in again is not known".to_owned(),
    };
    let own = match (pushed.own_out_pages, known(pushed.own_back_pages)) {
        (0, _) => "it pushed out nothing itself".into(),
        (n, None) => format!("it pushed out {} itself", page.amount(n)),
        (n, Some(back)) => format!("it pushed out {} itself, of which {back} came back", page.amount(n)),
    };
    // Of whatever the run brought in again.
    let waited = pushed.files.iter().map(|f| f.waited_s).sum::<Option<f64>>().filter(|s| *s >= 0.001);
    let waited = waited.map_or_else(String::new, |s| format!(", and it waited {s:.3} s for them"));
    format!("{again}{waited}; {own}.")
}

/// Of which files it brought pages in again.
fn files(pushed: &Pushed, shown: usize, page: &mut Page) {
    let again: Vec<&FileRow> =
        pushed.files.iter().filter(|f| !f.other && f.again_pages.is_some_and(|n| n > 0)).collect();
    if again.is_empty() {
        return;
    }
    page.line(&format!("  {:>10} {:>10} {:>10}  {:<11}  FILE <- BY WHOM", "OUT", "AGAIN", "WAITED", "HOW"));
    for file in again.iter().take(shown) {
        let (out, again) = (amount(Some(file.out_pages), page), amount(file.again_pages, page));
        let waited = file.waited_s.map_or_else(|| "-".into(), |s| format!("{s:.3} s"));
        let by = file.by.called(file.own, file.how);
        let room = page.style.width.saturating_sub(BEFORE + " <- ".len() + by.chars().count()).max(8);
        let name = ending(&foreign::or(file.path.as_ref(), "(no name)"), room);
        let how = file.how.unwrap_or("-");
        page.line(&format!("  {out:>10} {again:>10} {waited:>10}  {how:<11}  {name} <- {by}"));
    }
    let rest = &again[shown.min(again.len())..];
    if !rest.is_empty() {
        let (out, back) = (rest.iter().map(|f| f.out_pages).sum(), rest.iter().map(|f| f.again_pages).sum());
        let (out, back) = (amount(Some(out), page), amount(back, page));
        let waited = rest.iter().map(|f| f.waited_s).sum::<Option<f64>>();
        let waited = waited.map_or_else(|| "-".into(), |s| format!("{s:.3} s"));
        let more = count(rest.len() as u64);
        page.line(&format!("  {out:>10} {back:>10} {waited:>10}  in {more} more files (--json)"));
    }
}

fn amount(pages: Option<u64>, page: &Page) -> String {
    pages.map_or_else(|| "-".into(), |n| page.pages(n))
}

fn line(row: &Row, page: &mut Page) {
    let out = amount(Some(row.out_pages), page);
    let (back, again) = (amount(row.back_pages, page), amount(row.again_pages, page));
    let who = match (row.other, row.own) {
        (true, true) => "(all else that it pushed out itself)".to_owned(),
        (true, false) => "(all else that others pushed out)".to_owned(),
        _ => {
            // Who did it matters more than whose it was: of that, the end of the path.
            let (by, owner) = (by(row), foreign::or(row.owner.as_ref(), "-"));
            let room = page.style.width.saturating_sub(BEFORE + " <- ".len() + by.chars().count()).max(8);
            format!("{} <- {by}", ending(&owner, room))
        }
    };
    let how = row.how.unwrap_or("-");
    page.line(&format!("  {out:>10} {back:>10} {again:>10}  {how:<11}  {who}"));
}

/// Who did it, in words.
fn by(row: &Row) -> String {
    let limit = match &row.limit_of {
        Some(of) if row.by.cgroup.as_ref() != Some(of) => format!(", limit of {of}"),
        _ => String::new(),
    };
    row.by.called(row.own, row.how) + &limit
}
