//! A monitor that stands still, and a processor that goes away.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::threads::STEADY;
use crate::tools::*;

/// A reader reads on while the monitor is stopped for five seconds.
pub fn suspended(dir: &Path) {
    let file = cold_file(&dir.join("file"), 9);
    hold_warm(&file);
    let mut reader = Reader::new();
    let mut monitor = Monitor::start("--json --by process --top 100000 1");
    reader.send("steady", &file);
    monitor.line();
    let last = Instant::now();
    monitor.signal(libc::SIGSTOP);
    sleep(Duration::from_secs(5));
    monitor.signal(libc::SIGCONT);
    let stopped = last.elapsed().as_secs_f64();
    reader.answered();
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    let (_, whole) = intervals.split_last().unwrap(); // the last one was interrupted
    let seconds: Vec<f64> = whole.iter().map(|l| l["interval_s"].as_f64().unwrap()).collect();
    let long: Vec<usize> = (0..seconds.len()).filter(|n| seconds[*n] > 2.0).collect();
    let [long] = long[..] else { panic!("one long interval: {seconds:?}") };
    // Stopped before it had chosen its next beat, it leaves out those that passed meanwhile: up to one more second.
    assert!((-0.1..1.7).contains(&(seconds[long] - stopped)), "{seconds:?}, {stopped}");
    // No burst: the next one ends on the beat again, and the others are a second long.
    for (n, s) in seconds.iter().enumerate().filter(|(n, _)| *n != long) {
        let shortest = if n == long + 1 { 0.4 } else { 0.8 };
        assert!((shortest..=1.6).contains(s), "{seconds:?}");
    }
    let all = rows_of(&intervals, reader.pid());
    assert_eq!(reads(&all)[..4], [STEADY, STEADY, 0, 0], "{all:?}");
    let of_long = reads(&rows_of(&whole[long..=long], reader.pid()))[0];
    // The rest of the reads were made in so much time outside of it, at most one each millisecond.
    let outside: f64 = seconds.iter().sum::<f64>() - seconds[long] + 1.0;
    let least = STEADY.saturating_sub((outside * 1000.0) as u64);
    assert!(
        (least..=STEADY).contains(&of_long),
        "{of_long} of at least {least} in the long one: {seconds:?}"
    );
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    reader.end();
}

/// Gives the processor back, whatever happens.
struct Back(&'static str);

impl Drop for Back {
    fn drop(&mut self) {
        let _ = fs::write(self.0, "1");
    }
}

/// Readers of warm pages bound to each processor; the second one is taken away and given back meanwhile.
pub fn a_processor_that_goes_and_comes(dir: &Path) {
    const CPU: &str = "/sys/devices/system/cpu/cpu1/online";
    const READS: u64 = 20_000;
    if !crate::options().hotplug {
        println!("     not requested: --hotplug");
        return;
    }
    let file = cold_file(&dir.join("file"), 9);
    hold_warm(&file);
    let mut readers: Vec<Reader> = (0..4).map(|_| Reader::new()).collect();
    for (n, reader) in readers.iter().enumerate() {
        let mask = format!("{:x}", 1 << (n % 2));
        let pid = reader.pid().to_string();
        let set = Command::new("taskset").args(["-p", &mask, &pid]).stdout(Stdio::null()).status().unwrap();
        assert!(set.success());
    }
    let mut monitor = Monitor::start("--json --by process --top 100000 0.1");
    let _back = Back(CPU);
    // Before, without and after.
    for online in ["1", "0", "1"] {
        if fs::read_to_string(CPU).unwrap().trim() != online {
            fs::write(CPU, online).unwrap();
        }
        readers.iter_mut().for_each(|r| r.send("busy", &file));
        sleep(Duration::from_millis(300));
        readers.iter_mut().for_each(Reader::answered);
    }
    // And right in the middle.
    readers.iter_mut().for_each(|r| r.send("busy", &file));
    sleep(Duration::from_millis(100));
    fs::write(CPU, "0").unwrap();
    sleep(Duration::from_millis(300));
    fs::write(CPU, "1").unwrap();
    readers.iter_mut().for_each(Reader::answered);
    monitor.catch_up();
    let (intervals, total) = monitor.finish_json();
    for reader in &readers {
        let got = reads(&rows_of(&intervals, reader.pid()));
        assert_eq!(got[..4], [4 * READS, 4 * READS, 0, 0]);
    }
    let whole: Vec<&Value> = intervals.iter().collect();
    for pointer in READS_OF_ALL {
        // A total that went back would show as a difference far beyond what can be read.
        assert_eq!(sum(&whole, pointer), figure(&total, pointer), "{pointer}: {total}");
        assert!(whole.iter().all(|l| figure(l, pointer) <= 1 << 40), "{pointer}");
    }
    let all = 16 * READS;
    assert!((all..all + all / 100).contains(&figure(&total, "/read/accesses")), "{total}");
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    readers.into_iter().for_each(Reader::end);
}

const READS_OF_ALL: [&str; 6] =
    ["/read/accesses", "/read/hits", "/read/bytes", "/readahead/pages", "/cache/evicted", "/cache/removed"];
