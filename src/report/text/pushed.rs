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
/// Columns that whose they were, or the file, has at least.
const OWNER: usize = 8;

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
        // Those for which there was no room are not one row.
        let others = rest.iter().filter(|row| row.other).count();
        let more = more(rest.len() - others, "row", others > 0);
        page.line(&format!("  {out:>10} {back:>10} {again:>10}  {more}"));
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

/// `in 97 more rows, and (other) (--json)`.
fn more(n: usize, what: &str, other: bool) -> String {
    let s = if n == 1 { "" } else { "s" };
    match (n, other) {
        (0, _) => "in (other)".into(),
        (n, true) => format!("in {} more {what}{s}, and (other) (--json)", count(n as u64)),
        (n, false) => format!("in {} more {what}{s} (--json)", count(n as u64)),
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

/// Of which files it brought pages in again; with the rest, rows are together what the lines above say.
fn files(pushed: &Pushed, shown: usize, page: &mut Page) {
    let came = |f: &FileRow| f.again_pages.is_some_and(|n| n > 0);
    if !pushed.files.iter().any(came) {
        return;
    }
    page.line(&format!("  {:>10} {:>10} {:>10}  {:<11}  FILE <- BY WHOM", "OUT", "AGAIN", "WAITED", "HOW"));
    let named: Vec<&FileRow> = pushed.files.iter().filter(|f| !f.other).collect();
    let told: Vec<&FileRow> = named.iter().copied().filter(|f| came(f)).take(shown).collect();
    for file in &told {
        let room = page.style.width.saturating_sub(BEFORE + " <- ".len());
        let path = foreign::or(file.path.as_ref(), "(no name)");
        let by = file.by.called_in(file.own, file.how, room.saturating_sub(path.chars().count().min(OWNER)));
        let name = ending(&path, room.saturating_sub(by.chars().count()).max(OWNER));
        let how = file.how.unwrap_or("-");
        page.line(&format!("{}  {how:<11}  {name} <- {by}", cells(&[*file], page)));
    }
    // Also those of which nothing was brought in again: they left, and are in the sums.
    let rest: Vec<&FileRow> =
        named.into_iter().filter(|f| !told.iter().any(|t| std::ptr::eq(*t, *f))).collect();
    if !rest.is_empty() {
        let what = more(rest.len(), "file", false);
        page.line(&format!("{}  {what}", cells(&rest, page)));
    }
    let other: Vec<&FileRow> = pushed.files.iter().filter(|f| f.other).collect();
    if !other.is_empty() {
        page.line(&format!("{}  {:<11}  (other files)", cells(&other, page), "-"));
    }
}

/// What is in front of the names of files, of all of these together.
fn cells(files: &[&FileRow], page: &Page) -> String {
    let out = amount(Some(files.iter().map(|f| f.out_pages).sum()), page);
    let again = amount(files.iter().map(|f| f.again_pages).sum(), page);
    let waited = files.iter().map(|f| f.waited_s).sum::<Option<f64>>();
    let waited = waited.map_or_else(|| "-".into(), |s| format!("{s:.3} s"));
    format!("  {out:>10} {again:>10} {waited:>10}")
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
            let owner = foreign::or(row.owner.as_ref(), "-");
            let room = page.style.width.saturating_sub(BEFORE + " <- ".len());
            let by = by(row, room.saturating_sub(owner.chars().count().min(OWNER)));
            format!("{} <- {by}", ending(&owner, room.saturating_sub(by.chars().count()).max(OWNER)))
        }
    };
    let how = row.how.unwrap_or("-");
    page.line(&format!("  {out:>10} {back:>10} {again:>10}  {how:<11}  {who}"));
}

/// Who did it, in so many columns; whose limit it was as far as there is room.
fn by(row: &Row, room: usize) -> String {
    const LIMIT: &str = ", limit of ";
    let by = row.by.called_in(row.own, row.how, room);
    let left = room.saturating_sub(by.chars().count() + LIMIT.len());
    match &row.limit_of {
        Some(of) if row.by.cgroup.as_ref() != Some(of) && left >= OWNER => {
            format!("{by}{LIMIT}{}", ending(&of.to_string(), left))
        }
        _ => by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::pushed::By;
    use crate::text::numbers::Unit;

    fn shown(pushed: Pushed, width: usize) -> String {
        let run = Run { number: 1, blame: Some(pushed), ..Run::default() };
        let mut page =
            Page::new(crate::report::text::Style { width, unit: Unit::Pages, ..Default::default() });
        show(&run, false, &mut page);
        page.out
    }

    fn by(cgroup: &str, process: &str) -> By {
        By { cgroup: Some(cgroup.into()), process: Some(process.into()) }
    }

    fn row(by: By, own: bool, other: bool) -> Row {
        Row {
            how: Some("direct").filter(|_| !other),
            kind: None,
            owner: Some("/victim/of/somebody".into()),
            by,
            limit_of: None,
            own,
            other,
            out_pages: 10,
            back_pages: Some(4),
            again_pages: Some(4),
            waited_s: Some(0.0),
        }
    }

    fn file(path: &str, again: u64, other: bool) -> FileRow {
        FileRow {
            path: Some(path.into()).filter(|_| !other),
            how: Some("direct").filter(|_| !other),
            by: by("/process_api/048b2c4d9f20", "dd"),
            own: false,
            other,
            out_pages: 100,
            again_pages: Some(again),
            waited_s: Some(0.0),
        }
    }

    #[test]
    fn who_did_it_is_not_cut_off() {
        let rows = vec![
            row(by("/process_api/048b2c4d9f20", "dd"), false, false),
            row(by("/process_api/048b2c4d9f20", "combined"), true, false),
        ];
        let text =
            shown(Pushed { rows, files: vec![file("/srv/a/long/name", 1, false)], ..Pushed::default() }, 80);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert_eq!(text.matches(" (dd)\n").count(), 2, "{text}");
        assert!(text.contains("(combined)\n"), "{text}");
        let wide = by("/process_api/048b2c4d9f20", "dd");
        assert_eq!(wide.called_in(false, None, 40), "/process_api/048b2c4d9f20 (dd)");
        assert_eq!(wide.called_in(false, None, 15), "…b2c4d9f20 (dd)");
        assert_eq!(By::default().called_in(false, Some("kswapd"), 3), "kswapd");
    }

    #[test]
    fn rows_of_files_are_together_what_left() {
        let mut files: Vec<FileRow> = (0..8).map(|n| file("/f", 8 - n, false)).collect();
        files.extend([file("/never/back", 0, false), file("", 5, true)]);
        let rows = (0..5).map(|n| row(by("/g", "dd"), false, n > 3)).collect();
        let text = shown(Pushed { rows, files, ..Pushed::default() }, 100);
        let sum = |text: &str| -> u64 {
            text.lines().filter_map(|l| l.split_whitespace().next()?.parse::<u64>().ok()).sum()
        };
        let files = text.split("FILE <- BY WHOM").nth(1).unwrap_or_default();
        assert_eq!(sum(files), 1000, "{text}");
        assert!(files.contains("in 6 more files (--json)") && files.contains("(other files)"), "{text}");
        assert!(text.contains("in 1 more row, and (other) (--json)"), "{text}");
    }
}
