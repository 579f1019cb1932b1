//! `--tree`: rows below each other as directories are in each other, with the share of the cache as a bar.

use std::collections::HashMap;
use std::path::Path;

use ratatui::text::Line;

use super::Column;
use super::Layout;
use super::Shape;
use super::name;
use super::shown;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::text::numbers::Unit;

/// The columns where none are requested.
const IDS: &[&str] = &["size_bytes", "cached", "cached_ratio", "evicted", "files"];
/// The number of the first of them that are on narrow terminals, and how wide others are at least.
const NARROW: (usize, usize) = (3, 90);
/// Cells of a bar.
const BAR: usize = 10;
/// Columns that names have, however narrow the terminal.
const LEAST: usize = 16;

/// What stands in one line.
struct Shown {
    cells: Vec<String>,
    name: String,
}

/// The tree of the rows, whose order among those of the same directory stays. What has nothing cached is folded into a
/// line for each directory. Names are cut where lines are to have no more columns than `width`.
#[must_use]
pub fn tree(rows: &[Row], width: Option<usize>, shape: &Shape<'_>) -> String {
    let narrow = width.is_some_and(|width| width < NARROW.1);
    let columns = shape.told(if narrow { &IDS[..NARROW.0] } else { IDS });
    let unit = shape.unit.unwrap_or(Unit::Bytes);
    let by_path: HashMap<&Path, usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, r)| r.kind == Kind::Directory)
        .map(|(i, r)| (&*r.path, i))
        .collect();
    let mut below: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let above = row.path.parent().filter(|_| row.depth > 0 && row.kind != Kind::Total);
        match above.and_then(|above| by_path.get(above)) {
            Some(above) => below.entry(*above).or_default().push(i),
            None => roots.push(i),
        }
    }
    // The share is one of all that is looked at, where all of it is known.
    let total = rows.iter().find(|r| r.kind == Kind::Total);
    let all = total.or_else(|| rows.iter().find(|r| r.depth == 0)).filter(|r| !r.totals.partial());
    let all = all.map(|r| r.totals.cached).filter(|n| *n > 0);
    let titles = columns.iter().map(|c| c.title).chain(["SHARE"]);
    let mut lines = vec![Shown { cells: titles.map(str::to_owned).collect(), name: "NAME".to_owned() }];
    // Not by recursion: trees are as deep as somebody makes them.
    let mut rest: Vec<Next> = Vec::new();
    push(&mut rest, rows, &roots, 0);
    while let Some(next) = rest.pop() {
        match next {
            Next::Row(i, level) => {
                let row = &rows[i];
                let mut cells: Vec<_> =
                    columns.iter().map(|c| shown((c.cell)(row), Layout::Tree, unit)).collect();
                cells.push(row.totals.cached().zip(all).map_or(String::new(), |(n, all)| bar(n, all)));
                let whole = level == 0 || !by_path.contains_key(above(row));
                lines.push(Shown { cells, name: indent(level) + &named(row, whole) });
                if let Some(below) = below.get(&i) {
                    push(&mut rest, rows, below, level + 1);
                }
            }
            Next::Folded(count, level) => {
                let zero = |c: &&Column| if c.id == "cached" { "0" } else { "" };
                let cells = columns.iter().map(zero).chain([""]).map(str::to_owned).collect();
                lines.push(Shown { cells, name: format!("{}({count} with nothing cached)", indent(level)) });
            }
        }
    }
    if let Some(width) = width {
        let cells: usize = (0..=columns.len())
            .map(|c| 2 + lines.iter().map(|l| l.cells[c].chars().count()).max().unwrap_or(0))
            .sum();
        let room = width.saturating_sub(cells).max(LEAST);
        lines.iter_mut().for_each(|l| l.name = cut(&l.name, room));
    }
    let (cells, names): (Vec<_>, Vec<_>) = lines.into_iter().map(|l| (l.cells, l.name)).unzip();
    shape.table(&cells, &names)
}

/// What is still to be shown, and how far to the right.
enum Next {
    Row(usize, usize),
    Folded(usize, usize),
}

/// Rows beside each other, the first on top of the stack; those with nothing cached become one.
fn push(rest: &mut Vec<Next>, rows: &[Row], some: &[usize], level: usize) {
    let nothing = |i: &&usize| rows[**i].totals.cached() == Some(0) && level > 0;
    let none = some.iter().filter(nothing).count();
    if none > 1 {
        rest.push(Next::Folded(none, level));
    }
    rest.extend(some.iter().rev().filter(|i| none < 2 || !nothing(i)).map(|i| Next::Row(*i, level)));
}

fn above(row: &Row) -> &Path {
    row.path.parent().unwrap_or(Path::new(""))
}

/// Deeper than this, lines move no further to the right: the name is what is to be seen.
const DEEPEST: usize = 20;

fn indent(level: usize) -> String {
    "  ".repeat(level.min(DEEPEST))
}

/// What a row is called: by its last name below the row of its directory.
fn named(row: &Row, whole_path: bool) -> String {
    let path = match row.path.file_name() {
        Some(last) if !whole_path => Path::new(last),
        _ => row.path.as_path(),
    };
    let text = match row.kind {
        Kind::Total => "total".to_owned(),
        Kind::Directory if path.as_os_str() != "/" => format!("{}/", name(path)),
        _ => name(path),
    };
    row.why.map_or_else(|| text.clone(), |why| format!("{text}  ({why})"))
}

/// Something is never drawn as nothing, and less than all never as all.
pub(in crate::du) fn bar(part: u64, all: u64) -> String {
    let cells = u128::from(part) * BAR as u128;
    let rounded = usize::try_from((cells + u128::from(all) / 2) / u128::from(all).max(1)).unwrap_or(BAR);
    let most = if part < all { BAR - 1 } else { BAR };
    let full = rounded.clamp(usize::from(part > 0), most);
    format!("{}{}", "#".repeat(full), ".".repeat(BAR - full))
}

/// The beginning of a text that fits so many columns of a terminal.
fn cut(text: &str, width: usize) -> String {
    if Line::raw(text).width() <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += Line::raw(c.to_string()).width();
        if used > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::du::totals::Totals;

    fn row(kind: Kind, path: &str, depth: usize, cached: u64) -> Row {
        let page = rustix::param::page_size() as u64;
        let totals = Totals { files: 1, size: 1000 * page, pages: 1000, cached, ..Totals::default() };
        Row::new(kind, path.into(), depth, totals, None)
    }

    fn rows() -> Vec<Row> {
        vec![
            row(Kind::Directory, "/srv/top", 0, 800),
            row(Kind::Directory, "/srv/top/big", 1, 600),
            row(Kind::File, "/srv/top/big/one", 2, 599),
            row(Kind::Directory, "/srv/top/small", 1, 1),
            row(Kind::File, "/srv/top/big/\u{1b}[2J世界世界世界世界世界世界世界世界世界", 2, 1),
            row(Kind::Directory, "/srv/top/none", 1, 0),
            row(Kind::File, "/srv/top/nothing", 1, 0),
            row(Kind::File, "/srv/top/small/zero", 2, 0),
            // Its directory has no row, as with --top.
            row(Kind::File, "/srv/top/gone/alone", 2, 7),
        ]
    }

    #[test]
    fn directories_stand_in_each_other() {
        insta::assert_snapshot!("tree_80", tree(&rows(), Some(80), &Shape::default()));
        insta::assert_snapshot!("tree_100", tree(&rows(), Some(100), &Shape::default()));
        insta::assert_snapshot!("tree_narrow", tree(&rows(), Some(60), &Shape::default()));
        insta::assert_snapshot!("tree_unbounded", tree(&rows(), None, &Shape::default()));
        for width in [0, 1, 47, 53, 60, 80, 200] {
            let text = tree(&rows(), Some(width), &Shape::default());
            let most = text.lines().map(|l| Line::raw(l).width()).max();
            assert!(most.is_some_and(|most| most <= width.max(60)) && !text.contains('\u{1b}'), "{text}");
        }
    }

    #[test]
    fn no_share_of_what_is_not_known() {
        let mut rows = rows();
        rows[0].totals.unknown = 1;
        let text = tree(&rows, None, &Shape::default());
        assert!(!text.contains('#') && text.lines().nth(1).is_some_and(|l| l.contains(" -  ")), "{text}");
        assert_eq!(
            (bar(0, 9), bar(1, 1 << 40), bar(9, 9)),
            ("..........".into(), "#.........".into(), "##########".into())
        );
        assert_eq!(bar(u64::MAX - 1, u64::MAX), "#########.");
    }

    #[test]
    fn many_rows_and_deep_ones() {
        let mut rows = vec![row(Kind::Directory, "/d", 0, 5)];
        rows.extend((0..100_000).map(|i| row(Kind::File, &format!("/d/f{i}"), 1, 0)));
        let mut deep = String::from("/d");
        for depth in 1..2000 {
            deep += "/x";
            rows.push(row(Kind::Directory, &deep, depth, 5));
        }
        let bad = OsStr::from_bytes(b"/d/\xff\n").into();
        rows.push(Row::new(
            Kind::File,
            bad,
            1,
            Totals { files: 1, pages: 1, cached: 1, ..Totals::default() },
            None,
        ));
        let text = tree(&rows, Some(80), &Shape::default());
        assert_eq!(text.lines().count(), 1 + 1 + 1999 + 2);
        assert!(text.contains("(100000 with nothing cached)") && text.contains(r"\xff\n"));
    }
}
