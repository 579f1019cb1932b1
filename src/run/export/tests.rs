//! What is exported is what `--json` tells, cell by cell: read back by the library's own reader, and by DuckDB in `tests/duckdb`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::Value;

use super::*;
use crate::cli::Args;
use crate::figures::Figure;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::writer::Writer;
use crate::sample::Counter;
use crate::sample::Histograms;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::view::fixtures;
use crate::view::fixtures::FakeNames;
use crate::view::json::Json;

/// Intervals with rows that come and go, more than are gathered at a time, and with names that act on terminals.
fn samples() -> Vec<Sample> {
    let start = Moment::now();
    let mut latency = Histograms::default();
    let mut all = vec![fixtures::sample(start, Duration::ZERO, &[])];
    let mut total = 0;
    for tick in 1..=40_u32 {
        let rows: Vec<_> = (0..500)
            .map(|n| {
                let name = ["dd", "\x1b[2J", "=1+1", "\u{202e}x,\"", "two\nlines"][n as usize % 5];
                let hits = u64::from(n + tick);
                total += hits;
                fixtures::process(1000 + n, name, &[(Counter::ReadHits, hits)])
            })
            .collect();
        let mut sample =
            fixtures::sample(start, Duration::from_secs(tick.into()), &[(Counter::ReadHits, total)]);
        sample.rows = rows;
        latency.miss[5] += u64::from(tick);
        sample.latency = Some(Box::new(latency.clone()));
        all.push(sample);
    }
    all[0].latency = Some(Box::default());
    all
}

fn record(path: &Path, made: Vec<Sample>) {
    let mut writer = Writer::file(path, Duration::from_secs(1)).unwrap();
    for mut sample in made {
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
    }
}

fn pivot(options: &str) -> Pivot {
    fixtures::pivot(&Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace())))
}

fn open(path: &Path) -> crate::record::replay::Opened {
    Replay::open(path, &Part::default(), Box::new(|_| ())).unwrap()
}

fn export(recording: &Path, directory: &Path, options: &str) -> anyhow::Result<Written> {
    let mut opened = open(recording);
    let mut pivot = Pivot { names: Box::new(opened.names), ..pivot(options) };
    let export = Export::new(directory, pivot.by.is_some(), true).map_err(|f| anyhow::anyhow!(f.message))?;
    export.write(&mut opened.replay, &mut opened.clock, &mut pivot)
}

fn json(recording: &Path, options: &str) -> Vec<Value> {
    let mut opened = open(recording);
    let mut pivot = Pivot { names: Box::new(opened.names), ..pivot(options) };
    let mut live = Live::new(&mut opened.replay).unwrap();
    let view = Json { pids: Vec::new(), by: pivot.by };
    let mut out = Vec::new();
    while opened.clock.until(opened.clock.now()).unwrap() != Wake::Over {
        live.tick().unwrap();
        out.push(view.value(&live.interval(&mut pivot)));
    }
    out
}

/// A table as objects, by the names of its columns.
fn table(path: &Path) -> Vec<Value> {
    let reader = SerializedFileReader::try_from(path).unwrap();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => (*flag).into(),
        Field::Long(n) | Field::TimestampMicros(n) => (*n).into(),
        Field::ULong(n) => (*n).into(),
        Field::Double(x) => (*x).into(),
        Field::Str(text) => text.as_str().into(),
        other => panic!("{other:?}"),
    };
    let object = |row: parquet::record::Row| {
        row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
    };
    reader.get_row_iter(None).unwrap().map(|row| Value::Object(object(row.unwrap()))).collect()
}

/// A figure of JSON in a cell: a number that is not known is `null` in both.
fn same(cells: &Value, json: &Value, of: cells::Of) {
    for figure in of.figures() {
        let cell = &cells[format!("{}_{}", figure.group(), figure.key())];
        assert_eq!(cell, &json[figure.group()][figure.key()], "{figure:?} of {cells}");
    }
}

#[test]
fn tables_have_what_json_has() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("a"), dir.path().join("deep/tables"));
    record(&recording, samples());
    // The last eleven of each interval are the row for the rest.
    let options = "--by process --top 489";
    let written = export(&recording, &out, options).unwrap();
    assert_eq!(written, Written { intervals: 40, rows: Some(40 * 490) });
    let want = json(&recording, options);
    let intervals = table(&out.join("intervals.parquet"));
    assert_eq!(intervals.len(), want.len());
    for (cells, json) in intervals.iter().zip(&want) {
        same(cells, json, cells::Of::Interval);
        assert_eq!(cells["lost_total"], json["lost"]["total"]);
        assert_eq!(cells["cache_cached_bytes"], json["cache"]["cached_bytes"]);
        assert_eq!(cells["read_hit_ratio"], json["read"]["hit_ratio"]);
        assert_eq!(cells["engine"], json["engine"]);
        assert_eq!(cells["classic_hits"], Value::Null);
    }
    let rows = table(&out.join("rows.parquet"));
    let of_json: Vec<_> = want.iter().flat_map(|i| i["rows"].as_array().unwrap()).collect();
    assert_eq!(rows.len(), of_json.len());
    for (cells, json) in rows.iter().zip(&of_json) {
        same(cells, json, cells::Of::Row);
        for key in ["pid", "uid", "user", "comm", "cgroup", "path", "inode"] {
            assert_eq!(cells[key], json[key], "{key}");
        }
        assert_eq!(cells["other"], Value::Bool(json.get("other").is_some()));
    }
    assert_eq!(rows.iter().filter(|r| r["other"] == true).count(), 40);
    // By construction: the sum of all that was read, in the line and in its rows.
    let sum = |all: &[Value]| all.iter().map(|c| c["read_hits"].as_u64().unwrap()).sum::<u64>();
    let made = (1..=40).map(|tick| (0..500).map(|n| n + tick).sum::<u64>()).sum::<u64>();
    assert_eq!((sum(&intervals), sum(&rows)), (made, made));
    let histograms = table(&out.join("histograms.parquet"));
    let counts: Vec<_> = histograms.iter().map(|h| (h["interval"].as_u64(), h["count"].as_u64())).collect();
    assert_eq!(counts, (1..=40).map(|n| (Some(n), Some(n))).collect::<Vec<_>>());
    assert!(histograms.iter().all(|h| h["of"] == "latency.miss" && h["bucket"] == 5));
}

#[test]
fn what_is_not_known_is_null_and_a_large_number_is_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("a"), dir.path().join("tables"));
    let start = Moment::now();
    let mut made = vec![fixtures::sample(start, Duration::ZERO, &[])];
    made.push(fixtures::sample(start, Duration::from_secs(1), &[(Counter::ReadBytes, u64::MAX)]));
    for sample in &mut made {
        sample.known = std::sync::Arc::new(crate::sample::Known::by(&fixtures::plan(&[Figure::Misses])));
    }
    record(&recording, made);
    assert_eq!(export(&recording, &out, "").unwrap(), Written { intervals: 1, rows: None });
    assert!(!out.join("rows.parquet").exists());
    let cells = &table(&out.join("intervals.parquet"))[0];
    assert_eq!(cells["read_misses"], Value::Null);
    assert_eq!(cells["read_hit_ratio"], Value::Null);
    assert_eq!(cells["read_hits"], 0);
    assert_eq!(cells["read_bytes"], u64::MAX);
}

#[test]
fn what_is_no_table_is_not_replaced_and_what_fails_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, out) = (dir.path().join("a"), dir.path().join("tables"));
    record(&recording, samples().into_iter().take(3).collect());
    fs::create_dir(&out).unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "PAR1 of somebody").unwrap();
    for plant in [
        (|at, _| fs::write(at, "a letter")) as fn(&Path, &Path) -> io::Result<()>,
        |at, victim| std::os::unix::fs::symlink(victim, at),
        |at, _| fs::create_dir(at),
    ] {
        let at = out.join("rows.parquet");
        plant(&at, &victim).unwrap();
        let error = export(&recording, &out, "--by process").unwrap_err().to_string();
        assert!(error.contains("it is not replaced"), "{error}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        let _ = fs::remove_file(&at).or_else(|_| fs::remove_dir(&at));
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "PAR1 of somebody");
    // A table is.
    for _ in 0..2 {
        export(&recording, &out, "--by process").unwrap();
    }
    let names: std::collections::BTreeSet<_> =
        fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["histograms.parquet", "intervals.parquet", "rows.parquet"].map(String::from).into());
    assert!(Export::new(&recording, false, false).err().unwrap().message.contains("is no directory"));
}
