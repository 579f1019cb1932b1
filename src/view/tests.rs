#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::fixtures;
use super::*;
use crate::cli::Args;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::sample::Lost;

/// The view for a command line, on a machine in UTC with pages of 4 KiB.
fn view(options: &str, screen: Option<u16>) -> Box<dyn View> {
    let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
    let screen = Box::new(move || screen.map(|lines| (lines, 80)));
    new(&args.options(), Surroundings { zone: jiff::tz::TimeZone::UTC, page_size: 4096, screen })
}

/// What is printed for these intervals, and then for the total.
fn printed(options: &str, intervals: &[Interval]) -> String {
    let mut out = String::new();
    let mut view = view(options, None);
    view.begin(&mut out);
    for interval in intervals {
        view.interval(interval, &mut out);
    }
    view.interrupted(&mut out);
    view.total(&intervals[0], &mut out);
    out
}

/// Nothing happened.
fn idle() -> Interval {
    fixtures::interval(fixtures::figures(&[]))
}

/// A kernel that can tell hits and misses of reads, and nothing else.
fn poor() -> Interval {
    let mut total = Figures::unknown();
    for (figure, n) in [
        (Figure::Accesses, 3),
        (Figure::Hits, 2),
        (Figure::ReadAheadHits, 0),
        (Figure::Misses, 1),
        (Figure::ReadBytes, 12288),
    ] {
        total.set(figure, Some(n));
    }
    fixtures::interval(total)
}

#[test]
fn text() {
    let all = [fixtures::busy(), idle(), poor()];
    insta::assert_snapshot!("text_default", printed("", &all));
    insta::assert_snapshot!("text_time", printed("-T", &all));
    insta::assert_snapshot!("text_time_fraction", printed("-T 0.5", &all));
    insta::assert_snapshot!("text_wide", printed("-x", &all));
    insta::assert_snapshot!("text_bytes", printed("--unit bytes", &all));
    insta::assert_snapshot!("text_columns", printed("--columns lost,misses,stall_s,interval_s", &all));
}

#[test]
fn rows() {
    let all = [fixtures::with_rows(), idle()];
    insta::assert_snapshot!("rows_text", printed("-T --by process", &all));
    insta::assert_snapshot!("rows_csv", printed("--csv --by process --top 2", &all));
    insta::assert_snapshot!("rows_json", printed("--json --by process --top 2", &all));
}

#[test]
fn machine_formats() {
    let all = [fixtures::busy(), idle(), poor()];
    insta::assert_snapshot!("json", printed("--json", &all));
    insta::assert_snapshot!("csv", printed("--csv", &all));
    insta::assert_snapshot!(
        "csv_bytes",
        printed("--csv --unit bytes --columns interval_s,hits,read_bytes", &all)
    );
    insta::assert_snapshot!("csv_wide", printed("--csv -x", &all));
}

#[test]
fn bcc_prints_what_bcc_prints() {
    let of = |hits, ahead, misses, dirtied| {
        fixtures::interval(fixtures::figures(&[
            (Figure::Accesses, hits + ahead + misses),
            (Figure::Hits, hits),
            (Figure::ReadAheadHits, ahead),
            (Figure::Misses, misses),
            (Figure::Dirtied, dirtied),
        ]))
    };
    // A cold sequential read, the same warm, a third of it cold beside a write, nothing, a poor kernel.
    let all = [of(0, 8128, 64, 0), of(8192, 0, 0, 0), of(2, 1, 0, 8192), of(0, 0, 0, 0), poor()];
    insta::assert_snapshot!("bcc", printed("--bcc", &all));
    insta::assert_snapshot!("bcc_time", printed("--bcc -T", &all));
}

#[test]
fn numbers_wider_than_their_column_shift_no_more_than_they_must() {
    let mut wide = fixtures::busy();
    wide.total.set(Figure::Hits, Some(123_456_789_012));
    wide.total.set(Figure::Misses, Some(98_765_432_109));
    wide.total.set(Figure::Accesses, Some(123_456_789_012 + 8128 + 98_765_432_109));
    insta::assert_snapshot!("text_overflow", printed("", &[fixtures::busy(), wide]));
}

#[test]
fn no_activity_is_neither_all_nor_nothing() {
    let out = printed("", &[idle()]);
    assert!(!out.contains('%'), "{out}");
    let line = printed("--json", &[idle()]);
    assert!(line.contains("\"hit_ratio\":null"), "{line}");
}

#[test]
fn a_ratio_is_rounded_to_all_or_nothing_only_where_it_is() {
    for (hits, misses, shown) in [
        (1_000_000, 1, ">99.99%"),
        (1, 1_000_000, "<0.01%"),
        (5, 0, "100.00%"),
        (0, 5, "0.00%"),
        (2, 1, "66.67%"),
    ] {
        let total = fixtures::figures(&[
            (Figure::Accesses, hits + misses),
            (Figure::Hits, hits),
            (Figure::Misses, misses),
        ]);
        let out = printed("--columns hit_ratio", &[fixtures::interval(total)]);
        assert!(out.contains(&format!(" {shown}\n")), "{hits} {misses}: {out}");
    }
}

#[test]
fn bytes_are_written_with_letters() {
    let numbers = text::Numbers { unit: crate::text::numbers::Unit::Bytes, page_size: 1 };
    for (bytes, shown) in [
        (0, "0"),
        (1023, "1023"),
        (1024, "1.0K"),
        (1_048_524, "1023.9K"),
        (1_048_575, "1.0M"),
        (33_554_432, "32.0M"),
        (u64::MAX, "16.0E"),
    ] {
        assert_eq!(numbers.show(crate::columns::Value::Pages(bytes)), shown);
    }
}

#[test]
fn names_are_whole_where_no_terminal_limits_them() {
    let mut interval = fixtures::with_rows();
    let long = format!("/{}", "long/".repeat(60));
    interval.rows[0].who.path = Some(long.as_str().into());
    assert!(printed("--by file", &[interval.clone()]).contains(&long));
    let mut out = String::new();
    view("--by file", Some(40)).interval(&interval, &mut out);
    assert!(!out.contains(&long) && out.lines().all(|l| l.chars().count() <= 80), "{out}");
}

/// Numbers of the lines that are headers, counted from 0.
fn headers(out: &str) -> Vec<usize> {
    out.lines().enumerate().filter(|(_, line)| line.contains("HITS")).map(|(i, _)| i).collect()
}

#[test]
fn a_terminal_has_a_header_on_every_screen() {
    let size = Rc::new(Cell::new(Some(10)));
    let args = Args::parse_from(["cachestat"]);
    let asked = Rc::clone(&size);
    let screen = Box::new(move || asked.get().map(|lines| (lines, 80)));
    let mut view =
        new(&args.options(), Surroundings { zone: jiff::tz::TimeZone::UTC, page_size: 4096, screen });
    let mut out = String::new();
    view.begin(&mut out);
    for _ in 0..20 {
        view.interval(&idle(), &mut out);
    }
    // Ten lines less the one with the cursor: a header and eight intervals.
    assert_eq!(headers(&out), [0, 9, 18]);
    // The window is made lower: the header that has scrolled away is printed anew.
    size.set(Some(5));
    out.clear();
    for _ in 0..6 {
        view.interval(&idle(), &mut out);
    }
    assert_eq!(headers(&out), [0, 4]);
    // The total and its rule stay together.
    out.clear();
    view.interrupted(&mut out);
    view.total(&idle(), &mut out);
    assert_eq!(headers(&out).len(), 1, "{out}");
    assert!(out.starts_with('\r'), "the total hides the ^C of the terminal");
}

#[test]
fn no_terminal_has_one_header() {
    let out = printed("", &vec![idle(); 500]);
    assert_eq!(headers(&out), [0]);
}

#[test]
fn rows_that_do_not_fit_a_screen_have_a_header_each_time() {
    let mut view = view("--by process", Some(4));
    let mut out = String::new();
    view.begin(&mut out);
    for _ in 0..3 {
        view.interval(&fixtures::with_rows(), &mut out);
    }
    assert_eq!(headers(&out).len(), 4);
}

/// `group.key` of all values in an object.
fn keys(object: &serde_json::Value) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (key, value) in object.as_object().unwrap() {
        match value.as_object() {
            Some(group) => out.extend(group.keys().map(|k| format!("{key}.{k}"))),
            None => drop(out.insert(key.clone())),
        }
    }
    out
}

/// The keys that are published, as an example of one object.
const PUBLISHED: &str = r#"
{"time":"2026-11-21T09:00:01.000Z","interval_s":1.0,"engine":"exact",
 "read":{"accesses":0,"hits":0,"readahead_hits":0,"misses":0,"hit_ratio":null,"bytes":0,"stall_ns":0},
 "readahead":{"pages":0,"wasted":0},
 "fault":{"misses":0,"hits":0,"around":0},
 "write":{"accesses":0,"hits":0,"misses":0,"dirtied":0,"buffer_dirtied":0},
 "direct":{"read_bytes":0,"write_bytes":0,"fell_back_bytes":0},
 "meta":{"accesses":0,"hits":0,"readahead_hits":0,"misses":0},
 "cache":{"evicted":0,"refaulted":0,"cached_bytes":0,"buffers_bytes":0,"dirty_bytes":0},
 "lost":{"total":0},
 "rows":[{"pid":1,"uid":0,"comm":"dd","cgroup":"/","path":null,"read":{},"write":{},"direct":{}}]}"#;

#[test]
fn json_has_every_published_key() {
    let published: serde_json::Value = serde_json::from_str(PUBLISHED).unwrap();
    let mut lost = fixtures::with_rows();
    lost.lost = Lost { by_reason: vec![("recursion".into(), 2), ("processes_full".into(), 3)] };
    for interval in [lost, idle(), poor()] {
        let out = printed("--json --by process", &[interval]);
        let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let [interval, total] = &lines[..] else { panic!("{out}") };
        let missing: Vec<_> = keys(&published).difference(&keys(interval)).cloned().collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(interval.get("total").is_none());
        assert_eq!(total["total"], serde_json::json!(true));
        for row in interval["rows"].as_array().unwrap() {
            for key in published["rows"][0].as_object().unwrap().keys() {
                assert!(row.get(key).is_some(), "{key}");
            }
        }
    }
}

/// The rest, and who pushes pages out, too.
#[test]
fn a_line_is_as_the_schema_has_it() {
    let mut lost = fixtures::with_rows();
    lost.lost = Lost { by_reason: vec![("recursion".into(), 2), ("processes_full".into(), 3)] };
    lost.rows[0].who.other = true;
    let options =
        ["", "-p 42", "-p 42,7", "--by process", "--by file", "--by evictor", "--engine both --by process"];
    for options in options.map(|o| format!("--json {o}")) {
        let out = printed(&options, &[lost.clone(), fixtures::busy(), idle(), poor()]);
        for line in out.lines() {
            let line = serde_json::from_str(line).unwrap();
            let lacks = crate::schema_check::check_as("interval", &line);
            let all = ["total", "pid", "pids", "back_pages", "classic", "rows", "total_rows"];
            assert!(lacks.iter().all(|key| all.contains(&key.as_str())), "{lacks:?}");
        }
    }
}

#[test]
fn json_says_which_process_it_is_about() {
    let out = printed("--json -p 42", &[idle()]);
    let value: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&value["pid"], &value["pids"]), (&42.into(), &serde_json::Value::Null));
    let out = printed("--json -p 42,7 -p 42", &[idle()]);
    let value: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&value["pid"], &value["pids"]), (&serde_json::Value::Null, &serde_json::json!([7, 42])));
}

/// A process without a name is not the line of the interval.
#[test]
fn an_empty_name_is_not_the_empty_field_of_csv() {
    let mut interval = fixtures::with_rows();
    interval.rows[0].who.comm = Some("".into());
    interval.rows[1].who.comm = Some("\\0".into());
    let out = printed("--csv --by comm --columns hits", &[interval]);
    let mut reader = ::csv::Reader::from_reader(out.as_bytes());
    let names: Vec<_> = reader.records().map(|r| r.unwrap()[2].to_owned()).collect();
    assert_eq!(names[..3], ["", "\\0", "\\\\0"], "{out}");
}

#[test]
fn csv_lines_have_as_many_fields_as_the_header() {
    for options in ["--csv", "--csv -x", "--csv --by process", "--csv --unit bytes --by process"] {
        let out = printed(options, &[fixtures::with_rows(), idle(), poor()]);
        let mut reader = ::csv::Reader::from_reader(out.as_bytes());
        let fields = reader.headers().unwrap().len();
        for record in reader.records() {
            assert_eq!(record.unwrap().len(), fields);
        }
    }
}
