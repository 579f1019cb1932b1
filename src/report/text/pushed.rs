//! Who pushed whose pages out while a run lasted.

use super::page::Page;
use crate::report::data::Run;
use crate::report::pushed::Pushed;
use crate::report::pushed::Row;
use crate::report::units::count;
use crate::text::foreign;
use crate::text::width::ending;

/// Rows that are shown, and with -v.
const ROWS: [usize; 2] = [3, 20];
/// Columns of a row before the names.
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
    format!("{again}; {own}.")
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
    let Some(process) = &row.by.process else { return "kswapd".into() };
    let limit = match &row.limit_of {
        Some(of) if row.by.cgroup.as_ref() != Some(of) => format!(", limit of {of}"),
        _ => String::new(),
    };
    let whose = if row.own { "the command".to_owned() } else { foreign::or(row.by.cgroup.as_ref(), "-") };
    format!("{whose} ({process}){limit}")
}
