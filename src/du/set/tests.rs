#![allow(clippy::unwrap_used)]

use std::fs;
use std::io;
use std::io::Read as _;
use std::io::Write as _;

use super::reading::Lines;
use super::*;
use crate::exit::Failure;

const HEAD: &str = r#"{"type":"cachedu-set","version":3,"page_size":4096}"#;

fn parse(from: impl io::BufRead) -> Result<Vec<File>, (usize, String)> {
    Lines::new(from)?.collect()
}

fn set(lines: &[&str]) -> Result<Vec<File>, (usize, String)> {
    let end = format!("{{\"type\":\"end\",\"files\":{}}}", lines.len());
    parse([&[HEAD], lines, &[end.as_str()]].concat().join("\n").as_bytes())
}

#[test]
fn what_is_damaged_is_not_restored() {
    for line in [
        "{}",
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0,0]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0,2,-1,1]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[18446744073709551615,2]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0,18446744073709551615]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[2251799813685248,1]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0]}"#,
        r#"{"path":"a","path_hex":"f","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[-1,1]}"#,
    ] {
        assert_eq!(set(&[line]).unwrap_err().0, 2, "{line}");
    }
    // The last page that a file may have.
    let last =
        r#"{"path":"a","size_bytes":9223372036854775807,"inode":1,"mtime_ns":1,"runs":[2251799813685247,1]}"#;
    assert_eq!(set(&[last]).unwrap()[0].runs[0].start, (1 << 51) - 1);
    assert!(parse(&b""[..]).is_err() && parse(&b"x\n"[..]).is_err() && parse(&b"{}"[..]).is_err());
    assert!(parse(HEAD.replace(":3,", ":2,").as_bytes()).unwrap_err().1.contains("version 2"));
}

#[test]
fn what_was_cut_off_is_not_restored() {
    let file = r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0,1]}"#;
    let end = |n| format!("{{\"type\":\"end\",\"files\":{n}}}");
    assert!(set(&[file, file]).is_ok() && set(&[]).is_ok());
    assert!(parse(format!("{HEAD}\n{file}\n").as_bytes()).unwrap_err().1.contains("end is missing"));
    assert!(parse(HEAD.as_bytes()).is_err());
    assert!(parse(format!("{HEAD}\n{file}\n{}\n", end(2)).as_bytes()).is_err());
    assert!(parse(format!("{HEAD}\n{file}\n{}\n{file}\n", end(1)).as_bytes()).is_err());
}

/// Wherever a copy of a compressed set stopped, that is what is said: not that it is no set, nor what the decoder calls it.
#[test]
fn what_was_cut_off_compressed_is_told() {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writeln!(to, "{HEAD}").unwrap();
    for n in 0..50 {
        writeln!(to, r#"{{"path":"/{n}","size_bytes":1,"inode":{n},"mtime_ns":1,"runs":[0,1]}}"#).unwrap();
    }
    writeln!(to, r#"{{"type":"end","files":50}}"#).unwrap();
    let whole = to.finish().unwrap();
    assert_eq!(parse(whole.as_slice()).unwrap().len(), 50);
    for n in super::reading::GZIP.len()..whole.len() {
        let (line, what) = parse(&whole[..n]).unwrap_err();
        assert_eq!(what, "its end is missing", "{n} of {} bytes, line {line}", whole.len());
    }
}

#[test]
fn what_is_huge_is_refused() {
    // A line without an end, a list without an end, and more files than a set has.
    let zeros = io::BufReader::new(fs::File::open("/dev/zero").unwrap());
    assert_eq!(parse(zeros).unwrap_err().0, 1);
    let head = format!("{HEAD}\n");
    let endless = head.as_bytes().chain(io::BufReader::new(io::repeat(b'[')));
    assert!(parse(endless).unwrap_err().1.contains("longer than any line"));
}

fn source(lines: &[&str], head: &str) -> Source {
    let end = format!("{{\"type\":\"end\",\"files\":{}}}", lines.len());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all([&[head], lines, &[end.as_str()]].concat().join("\n").as_bytes()).unwrap();
    Source::open(file.path()).unwrap_or_else(|_| panic!("it is there"))
}

fn compared(a: &Source, b: &Source, json: bool, most: usize) -> Result<String, Failure> {
    let mut out = String::new();
    diff(a, b, json, most, |text| {
        out += text;
        Ok(true)
    })?;
    Ok(out)
}

#[test]
fn differences() {
    let a = source(
        &[
            r#"{"path":"/a","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,10,10,10]}"#,
            r#"{"path":"/gone","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[5,1]}"#,
            r#"{"path":"/same","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,2]}"#,
        ],
        HEAD,
    );
    let b = source(
        &[
            r#"{"path":"/same","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,2]}"#,
            r#"{"path":"/a","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[5,20]}"#,
            r#"{"path":"?","path_hex":"2fff","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[7,3]}"#,
        ],
        HEAD,
    );
    assert!(compared(&a, &source(&[], &HEAD.replace("4096", "65536")), false, 1 << 20).is_err());
    insta::assert_snapshot!("diff", compared(&a, &b, false, 1 << 20).ok().unwrap());
    insta::assert_snapshot!("diff_json", compared(&a, &b, true, 1 << 20).ok().unwrap());
}

/// What does not fit into memory is compared like what does.
#[test]
fn differences_in_parts() {
    let line = |n: u32, runs: &str| {
        format!(r#"{{"path":"/{n:03}","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[{runs}]}}"#)
    };
    // In an order of their own, and one path twice, of which the last counts.
    let a: Vec<String> =
        (0..100).map(|n| line(n * 37 % 100, "0,3")).chain([line(5, "0,1"), line(100, "1,1")]).collect();
    let b: Vec<String> = (0..99).map(|n| line(n * 83 % 100, "1,4")).collect();
    let of = |lines: &[String]| source(&lines.iter().map(String::as_str).collect::<Vec<_>>(), HEAD);
    let (a, b) = (of(&a), of(&b));
    let truth: String = (0..=100)
        .map(|n| {
            let (gone, new, same) = match n {
                5 => (1, 4, 0),
                17 => (3, 0, 0),
                100 => (1, 0, 0),
                _ => (1, 2, 2),
            };
            format!(
                "{{\"type\":\"diff\",\"path\":\"/{n:03}\",\"gone\":{gone},\"new\":{new},\"same\":{same}}}\n"
            )
        })
        .collect();
    for most in [1, 1000, 5000, 1 << 20] {
        assert_eq!(compared(&a, &b, true, most).ok().unwrap(), truth, "{most}");
    }
}
