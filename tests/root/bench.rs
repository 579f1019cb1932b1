//! Benchmarks: cold and warm runs, commands in turns, what is exported, and what the terminal shows meanwhile.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::pty::Screen;
use crate::tools::*;

const PAGES: u64 = 256;

/// A file of 256 pages read cold and warm in turns: the groups are what was done, and the means those of the runs.
pub fn benchmark(dir: &Path) {
    let path = cold_file(&dir.join("file"), PAGES);
    let [report, json, csv, markdown] = ["r.json", "e.json", "e.csv", "e.md"].map(|name| dir.join(name));
    let files = format!(
        "--json -o {} --export-json {} --export-csv {} --export-markdown {}",
        report.display(),
        json.display(),
        csv.display(),
        markdown.display()
    );
    let mut command = cachestat(&format!("-r 2 --cold-each pagecache --warm-runs 1 {files}"));
    for expression in ["warm.device_read_bytes < 4KiB", "cold.min.device_read_bytes >= 1MiB", "cold.wall > 0"]
    {
        command.args(["--assert", expression]);
    }
    command.args(["--", "dd", "of=/dev/null", "bs=64k", "status=none"]).arg(format!("if={}", path.display()));
    let (code, out, err) = output(&mut command);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let told: Value = serde_json::from_str(&read(&report)).unwrap();
    schema::check_report(&told);
    let groups: Vec<_> = told["groups"].as_array().unwrap().iter().map(|g| (&g["id"], &g["runs"])).collect();
    assert_eq!(
        format!("{groups:?}"),
        r#"[(String("cold"), Array [Number(1), Number(3)]), (String("warm"), Array [Number(2), Number(4)])]"#
    );
    let walls: Vec<f64> =
        told["runs"].as_array().unwrap().iter().map(|r| r["wall_s"].as_f64().unwrap()).collect();
    let mean = told["groups"][0]["wall_s"]["mean"].as_f64().unwrap();
    assert!((mean - (walls[0] + walls[2]) / 2.0).abs() < 1e-9 && told["wall_spread"].is_null(), "{walls:?}");
    let exported: Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!(exported["results"][1]["times"], serde_json::json!([walls[1], walls[3]]));
    assert_eq!(exported["results"][0]["exit_codes"], serde_json::json!([0, 0]));
    assert_eq!((read(&csv).lines().count(), read(&markdown).lines().count()), (3, 4));

    // What was exported of an earlier series is there until there is something better.
    let line = format!("--export-csv {} --prepare false", csv.display());
    assert_eq!(output(cachestat(&line).args(["--", "true"])).0, Some(1));
    assert_eq!(read(&csv).lines().count(), 3);
    let (code, _, err) =
        output(cachestat("--export-json /nowhere/x").args(["--", "sh", "-c", "echo ran >&2"]));
    assert!(code == Some(2) && err.contains("cannot write /nowhere/x") && !err.contains("ran\n"), "{err}");
    let (code, _, err) = output(cachestat("--export-json /dev/full").args(["--", "true"]));
    assert!(code == Some(1) && err.contains("cannot write /dev/full: No space left"), "{err}");
}

/// One line sleeps ten times as long as the other: so much is known of the ratio. One fails in its second run.
pub fn commands_in_turns(dir: &Path) {
    let report = dir.join("r.json");
    let mut command = cachestat(&format!("-r 2 --discard-output --json -o {}", report.display()));
    command.args(["--compare-commands", "echo loud; sleep 1", "sleep 0.1"]);
    let (code, out, err) = output(&mut command);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    let told: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    schema::check_report(&told);
    let labels: Vec<_> =
        told["runs"].as_array().unwrap().iter().map(|r| r["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["A", "B", "A", "B"]);
    let pair = &told["comparisons"][0];
    let factor = pair["factor"].as_f64().unwrap();
    assert!(pair["reference"] == "A" && pair["group"] == "B" && factor > 1.5 && factor < 10.5, "{pair}");
    assert!(told["verdict"]["text"].as_str().unwrap().starts_with("B was "), "{}", told["verdict"]);

    let mark = dir.join("mark");
    let line = format!("test ! -e {0} || exit 5; touch {0}", mark.display());
    let (code, _, err) = output(cachestat("-r 9").args(["--", "sh", "-c", &line]));
    assert!(
        code == Some(5) && err.contains("run 2 of 9 ended with exit status 5, the first with 0"),
        "{err}"
    );
    fs::remove_file(&mark).unwrap();
    let (code, _, err) = output(cachestat("-r 3 --ignore-failure").args(["--", "sh", "-c", &line]));
    assert!(code == Some(0) && err.contains("2 of 3 runs ended with an exit status other than 0"), "{err}");
}

/// The line about progress is there while nobody else writes, and leaves nothing behind, nor takes anything away.
pub fn progress(_: &Path) {
    let program = program();
    let quiet = ["-r", "3", "-o", "/dev/null", "--discard-output", "--", "sh", "-c", "echo loud; sleep 1.5"];
    let mut screen = Screen::new(Path::new(&program), &quiet);
    screen.until("run 2 is announced", |text| text.contains("cachestat: run 2 of 3: running").then_some(()));
    screen.child.wait().unwrap();
    screen.until("the line is gone", |text| text.trim().is_empty().then_some(()));

    let mut screen = Screen::new(Path::new(&program), &["-r", "3", "-o", "/dev/null", "--", "printf", "abc"]);
    screen.child.wait().unwrap();
    screen.until("all that was printed", |text| text.contains("abcabcabc").then_some(()));
    assert_eq!(screen.text().trim(), "abcabcabc");
}
