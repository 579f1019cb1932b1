//! Beside others: a second one, itself, and standing still.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::ending::held_by;
use crate::tools::*;

pub fn two_at_once(dir: &Path) {
    let work = Work::new(dir);
    let mut reader = Reader::new();
    let mut one = Monitor::start("--json --by process --top 100000 0.2");
    let mut two = Monitor::start("--json --by process --top 100000 0.3");
    assert!(held_by(one.pid()).is_disjoint(&held_by(two.pid())));
    work.run(&mut reader, || {
        one.line();
        two.line();
    });
    for monitor in [one, two] {
        let (intervals, _) = monitor.finish_json();
        assert_eq!(reads(&rows_of(&intervals, reader.pid())), work.want);
    }
    reader.end();
}

/// Its output goes to a file on disk, and that makes a page of the file dirty: something it did itself.
pub fn it_leaves_itself_out(dir: &Path) {
    let monitor = |name: &str, options: &str| {
        let path = dir.join(name);
        let out = File::create(&path).unwrap();
        let options = format!("--json --by process --top 100000 {options} 0.2");
        let process = cachestat(&options).stdout(out).spawn().unwrap();
        wait_for("two lines", || fs::read_to_string(&path).unwrap().lines().count() >= 2);
        (process, path)
    };
    // It sees all the others; it is there before they write their first line.
    let mut watcher = Monitor::start("--json --by process --top 100000 0.2");
    let monitors = [monitor("without", ""), monitor("with", "--include-self")];
    sleep(Duration::from_millis(500));
    watcher.line();
    let [without, with] = monitors.map(|(mut process, path)| {
        // SAFETY: kill takes no pointer; the child is not reaped yet.
        unsafe { libc::kill(signed(process.id()), libc::SIGINT) };
        assert!(process.wait().unwrap().success());
        let lines: Vec<Value> =
            fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let (_, intervals) = lines.split_last().unwrap();
        (process.id(), intervals.to_vec())
    });
    let (intervals, _) = watcher.finish_json();
    for (pid, _) in [&without, &with] {
        let seen = sum(&rows_of(&intervals, *pid), "/write/dirtied");
        assert!(seen >= 1, "another one sees that {pid} writes");
    }
    assert!(rows_of(&without.1, without.0).is_empty(), "it does not see itself");
    let own = rows_of(&with.1, with.0);
    assert!(sum(&own, "/write/dirtied") >= 1, "it sees itself where asked to: {own:?}");
    assert!(own.iter().all(|r| r["comm"] == "cachestat"), "{own:?}");
}

pub fn stopped_and_continued(dir: &Path) {
    const BEAT: f64 = 0.5;
    let file = cold_file(&dir.join("file"), 29);
    let mut reader = Reader::new();
    let mut monitor = Monitor::launch(&format!("--json --by process --top 100000 {BEAT}"));
    monitor.line();
    let before = monitor.line().to_string();
    let last = Instant::now();
    monitor.signal(libc::SIGSTOP);
    sleep(Duration::from_secs(1));
    reader.tell("random", &file);
    sleep(Duration::from_secs(2));
    let stopped = last.elapsed().as_secs_f64();
    monitor.signal(libc::SIGCONT);
    let lines: Vec<Value> = std::iter::once(before)
        .chain((0..4).map(|_| monitor.line().to_string()))
        .map(|l| serde_json::from_str(&l).unwrap())
        .collect();
    let seconds: Vec<f64> = lines.iter().map(|l| l["interval_s"].as_f64().unwrap()).collect();
    let near = |got: f64, want: f64, by: f64| (got - want).abs() <= by * want;
    // The second one that arrives may have been on its way when the signal came.
    let long = seconds.iter().position(|s| *s > 2.0 * BEAT).unwrap_or_else(|| panic!("{seconds:?}"));
    assert!(long <= 2, "{seconds:?}");
    // It began when the line before it was written, up to a beat before that was read.
    let lasted = 0.9 * stopped..=1.1 * stopped + BEAT;
    assert!(lasted.contains(&seconds[long]), "{seconds:?}, stopped for {stopped}");
    // The next one ends on the old beat again, so that it has any length from half a beat to one and a half.
    assert!((0.4 * BEAT..=1.6 * BEAT).contains(&seconds[long + 1]), "{seconds:?}");
    assert!(near(seconds[long + 2], BEAT, 0.2), "{seconds:?}");
    let beats = seconds[long..=long + 2].iter().sum::<f64>() / BEAT;
    assert!((beats - beats.round()).abs() < 0.2, "not on the beat: {seconds:?}");
    // What happened while it stood still is in the long interval, all of it.
    let during = rows_of(&lines[long..=long], reader.pid());
    assert_eq!(reads(&during)[..4], [29, 0, 0, 29], "{during:?}");
    assert_eq!(rows_of(&lines, reader.pid()).len(), 1);
    monitor.signal(libc::SIGINT);
    let (status, err) = monitor.ended();
    assert!(status.success(), "{status}");
    let warning = format!("this interval took {:.3} s instead of {BEAT} s", seconds[long]);
    assert!(err.contains(&warning), "{err}");
    reader.end();
}
