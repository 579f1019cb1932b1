#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;

use super::*;
use crate::du::residency::Method;
use crate::du::residency::More;
use crate::du::residency::Residency;
use crate::du::residency::Unknown;
use crate::du::totals::Totals;

const MORE: More = More { dirty: 3, writeback: 1, evicted: 40, recently_evicted: 4 };

fn counted(pages: u64, cached: u64, more: Option<More>) -> Totals {
    let size = pages * rustix::param::page_size() as u64;
    let method = if more.is_some() { Method::Cachestat } else { Method::Mincore };
    Totals::of_file(size, size, Ok(&Residency { size, pages, cached, more, method }))
}

fn rows() -> Vec<Row> {
    let file = |path: &OsStr, totals, why| Row::new(Kind::File, path.into(), 0, totals, why);
    let refused = Totals::of_file(8192, 8192, Err(Unknown::NotPermitted));
    let mut dir = Totals { dirs: 2, disk: 4096, ..Totals::default() };
    dir.add(&counted(100, 50, Some(MORE)));
    dir.add(&refused);
    let mut total = dir;
    total.add(&counted(7, 7, None));
    let mut closed = Totals { dirs: 1, disk: 4096, ..Totals::default() };
    closed.add(&Totals::of_unread());
    vec![
        file(OsStr::new("half"), counted(100, 50, Some(MORE)), None),
        file(OsStr::new("by\tmincore"), counted(7, 7, None), None),
        file(OsStr::new("none of many"), counted(1 << 28, 1, Some(More::default())), None),
        file(OsStr::from_bytes(b"empty\xff"), Totals { files: 1, ..Totals::default() }, None),
        file(OsStr::new("not mine"), refused, Some(Unknown::NotPermitted)),
        Row::new(Kind::Directory, "dir".into(), 0, dir, None),
        Row::new(Kind::Total, "".into(), 0, total, None),
        Row::new(Kind::Directory, "closed".into(), 0, closed, None),
        Row::new(Kind::Total, "".into(), 0, Totals::of_file(0, 0, Err(Unknown::Vanished)), None),
    ]
}

#[test]
fn files() {
    insta::assert_snapshot!("files", text(&rows(), Layout::Files, &Shape::default()));
}

#[test]
fn tree() {
    insta::assert_snapshot!("tree", text(&rows(), Layout::Tree, &Shape::default()));
}

#[test]
fn comma_separated() {
    let mut text = csv_names(&Shape::default()).unwrap();
    csv(&rows(), &Shape::default(), &mut text).unwrap();
    insta::assert_snapshot!("csv", String::from_utf8_lossy(&text));
}

#[test]
fn json_lines() {
    let lines: Vec<_> = rows().iter().map(|r| json(r).to_string()).collect();
    insta::assert_snapshot!("json", lines.join("\n"));
}

#[test]
fn what_rows_are_sorted_by_is_shown() {
    let titles = |sorted, width| {
        let shown = super::tree(&rows(), width, &Shape { sorted, ..Shape::default() });
        shown.lines().next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for width in [None, Some(80)] {
        let plain = titles(None, width);
        assert!(!plain.contains(&"DIRTY".to_owned()));
        assert_eq!(titles(Some("cached"), width), plain);
        for (id, title) in [("dirty", "DIRTY"), ("disk_bytes", "DISK")] {
            let with = titles(Some(id), width);
            assert_eq!((with.len(), with.iter().filter(|t| *t == title).count()), (plain.len() + 1, 1));
        }
    }
    let requested = ["cached".to_owned()];
    let shape = Shape { columns: &requested, sorted: Some("dirty"), ..Shape::default() };
    assert!(!super::tree(&rows(), None, &shape).contains("DIRTY"), "who names columns gets these");
}

#[test]
fn requested_columns_without_titles() {
    let columns = ["files", "cached"].map(String::from);
    let shape = Shape { columns: &columns, no_header: true, unit: Some(Unit::Bytes), sorted: None };
    let shown = text(&rows(), Layout::Tree, &shape);
    assert!(shown.lines().next().is_some_and(|l| l.split_whitespace().eq(["200.0K", "half"])), "{shown}");
    assert!(shown.contains("2  200.0K+  dir/\n") && shown.lines().count() == rows().len(), "{shown}");
    let titled = Shape { no_header: false, ..shape };
    let mut text = csv_names(&titled).unwrap();
    csv(&rows(), &titled, &mut text).unwrap();
    let csv = String::from_utf8(text).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[..2], ["type,files,cached,partial,reason,path", "file,1,50,false,,half"]);
    assert!(csv.contains("\ndirectory,2,50,true,,dir\n"), "{csv}");
    assert!(csv_names(&shape).unwrap().is_empty());
}
