#![allow(clippy::unwrap_used)]

use std::fs;
use std::io;
use std::io::Read as _;

use super::reading::parse;
use super::*;

const HEAD: &str = r#"{"type":"cachedu-set","version":3,"page_size":4096}"#;

fn set(lines: &[&str]) -> Result<Set, (usize, String)> {
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
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[2251799813685247,1]}"#,
        r#"{"path":"a","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0]}"#,
        r#"{"path":"a","path_hex":"f","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[-1,1]}"#,
    ] {
        assert_eq!(set(&[line]).unwrap_err().0, 2, "{line}");
    }
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

#[test]
fn what_is_huge_is_refused() {
    // A line without an end, a list without an end, and more files than a set has.
    let zeros = io::BufReader::new(fs::File::open("/dev/zero").unwrap());
    assert_eq!(parse(zeros).unwrap_err().0, 1);
    let head = format!("{HEAD}\n");
    let endless = head.as_bytes().chain(io::BufReader::new(io::repeat(b'[')));
    assert!(parse(endless).unwrap_err().1.contains("longer than any line"));
    let line = format!(
        "{{\"path\":\"{}\",\"size_bytes\":1,\"inode\":1,\"mtime_ns\":1,\"runs\":[]}}\n",
        "x".repeat(1 << 20)
    );
    let many = head.into_bytes().into_iter().chain(line.into_bytes().repeat(40)).collect::<Vec<_>>();
    let (number, why) = parse(&many[..]).unwrap_err();
    assert!(why.contains("too large") && number == 37, "{number}: {why}");
}

#[test]
fn differences() {
    let a = set(&[
        r#"{"path":"/a","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,10,10,10]}"#,
        r#"{"path":"/gone","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[5,1]}"#,
        r#"{"path":"/same","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,2]}"#,
    ]);
    let b = set(&[
        r#"{"path":"/same","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[0,2]}"#,
        r#"{"path":"/a","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[5,20]}"#,
        r#"{"path":"?","path_hex":"2fff","size_bytes":99999,"inode":1,"mtime_ns":1,"runs":[7,3]}"#,
    ]);
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(Diff::new(&a, &Set { page_size: 65536, ..b.clone() }).is_err());
    let diff = Diff::new(&a, &b).ok().unwrap();
    insta::assert_snapshot!("diff", diff.show(false));
    insta::assert_snapshot!("diff_json", diff.show(true));
}
