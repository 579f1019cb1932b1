//! A run that is recorded is replayed as it was; whatever happens to the file costs what is damaged and no more.
#![allow(clippy::unwrap_used)]

mod bounds;
mod cost;
mod crowd;
mod day;
mod marks;
mod moments;
mod names;
mod ring;

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use super::file::Reader;
use super::live::Noting;
use super::live::Recording;
use super::names::Told;
use super::replay::Part;
use super::replay::Replay;
use super::replay::When;
use super::writer::Bounds;
use super::writer::Writer;
use super::writer::shards;
use crate::cli::Args;
use crate::exit::Code;
use crate::pivot::Pivot;
use crate::run;
use crate::run::World;
use crate::sample::Counter;
use crate::sample::Histograms;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::sample::machine::Event;
use crate::sample::machine::Machine;
use crate::view;
use crate::view::Surroundings;
use crate::view::fixtures;
use crate::view::fixtures::Beats;
use crate::view::fixtures::FakeNames;
use crate::view::fixtures::Made;
use crate::wait::Wake;

/// Ticks in which threads and files come, go and come again.
fn samples(number: u32) -> Vec<Sample> {
    let mut machine = Machine::new();
    let mut latency = Histograms::default();
    (0..number)
        .map(|tick| {
            let events: Vec<_> = (0..tick % 7)
                .map(|i| {
                    let k = tick + i;
                    let who = (1 + k % 9, k % 2, k as usize % 5, k % 3, u64::from(1 + k % 3));
                    let n = u64::from(k * 37 % 4000 + 1);
                    Event {
                        who,
                        file: u64::from(k % 8),
                        rows: (k % 5 != 0, true),
                        late: k % 11 == 0,
                        counter: k as usize % 7,
                        n,
                    }
                })
                .collect();
            let mut sample = machine.read(&events);
            latency.hit[tick as usize % 30] += 3;
            sample.latency = Some(Box::new(latency.clone()));
            for row in &mut sample.rows {
                row.latency = (row.tid % 2 == 0).then(|| Box::new(latency.clone()));
            }
            sample.lost.by_reason = vec![("recursion".into(), u64::from(tick / 50))];
            sample
        })
        .collect()
}

fn here() -> Surroundings {
    Surroundings { zone: jiff::tz::TimeZone::UTC, page_size: 4096, screen: Box::new(|| None) }
}

/// What is shown live, while it is recorded.
fn record(path: &Path, options: &str, made: Vec<Sample>) -> String {
    let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
    let mut writer = Writer::file(path, Duration::from_secs(1)).unwrap();
    let mut beats = Beats(made.len() - 1);
    let mut source = Made(made.into(), fixtures::plan(&[]));
    let (told, sink) = Told::new();
    let mut names = FakeNames::default();
    let (mut source, wake) = Recording::new(&mut source, &mut names, &mut writer, sink);
    let mut wait = Noting { wait: &mut beats, wake };
    let mut pivot = Pivot { names: Box::new(told), ..fixtures::pivot(&args) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let world =
        World { source: &mut source, pivot: &mut pivot, wait: &mut wait, out: &mut out, err: &mut err };
    run::run(&args.options(), view::new(&args.options(), here()).as_mut(), world).unwrap();
    String::from_utf8(out).unwrap()
}

/// What a replay shows, and what it says.
fn replay(path: &Path, options: &str, part: &Part) -> (String, Vec<String>) {
    let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
    let said = Rc::new(RefCell::new(Vec::new()));
    let notes = Rc::clone(&said);
    let opened = Replay::open(path, part, Box::new(move |text| notes.borrow_mut().push(text.to_owned())));
    let mut opened = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            assert_eq!(failure.code, Code::Usage, "{failure:?}");
            return (String::new(), vec![failure.message]);
        }
    };
    let mut pivot = Pivot { names: Box::new(opened.names), ..fixtures::pivot(&args) };
    let mut options = args.options();
    options.interval = opened.interval;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let world = World {
        source: &mut opened.replay,
        pivot: &mut pivot,
        wait: &mut opened.clock,
        out: &mut out,
        err: &mut err,
    };
    run::run(&options, view::new(&options, here()).as_mut(), world).unwrap();
    let said = said.borrow().clone();
    (String::from_utf8(out).unwrap(), said)
}

fn lines(json: &str) -> Vec<serde_json::Value> {
    json.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn what_is_replayed_is_what_was_shown() {
    let dir = tempfile::tempdir().unwrap();
    for options in [
        "",
        "-x -T",
        "--csv",
        "--json",
        "--bcc",
        "--json --by process",
        "--by thread",
        "--by file",
        "--by cgroup --top 2",
        "--by mount",
        "--by device --csv",
        "--by user",
        "--by comm --comm dd",
        "--json --by file -p 3",
        "--latency",
        "--cgroup /user.slice --by process",
    ] {
        let path = dir.path().join("a");
        let live = record(&path, options, samples(if options.is_empty() { 400 } else { 50 }));
        let (there, said) = replay(&path, options, &Part::default());
        assert_eq!(live, there, "{options}");
        assert!(said.is_empty(), "{said:?}");
    }
    // Whoever looks at it otherwise sees what he would have seen.
    let path = dir.path().join("b");
    record(&path, "", samples(50));
    let live = record(&dir.path().join("c"), "--json --by file", samples(50));
    assert_eq!(live, replay(&path, "--json --by file", &Part::default()).0);
}

#[test]
fn a_file_that_was_cut_anywhere_lacks_its_last_tick_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (path, cut) = (dir.path().join("a"), dir.path().join("cut"));
    let live = record(&path, "--csv --by process", samples(60));
    let whole = fs::read(&path).unwrap();
    let csv = |bytes: &[u8]| {
        fs::write(&cut, bytes).unwrap();
        replay(&cut, "--csv --by process", &Part::default())
    };
    // Where frames end is told by the writer, not by the reader.
    let mut ends = vec![16];
    let mut at = 16;
    while let Some(head) = whole.get(at..at + 12) {
        at += 12 + u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
        ends.push(at);
    }
    assert_eq!((ends.len(), at), (61, whole.len()));
    let mut random = 12345_u64;
    for _ in 0..200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = usize::try_from(random >> 33).unwrap() % whole.len();
        let (out, said) = csv(&whole[..length]);
        let ticks = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        let times: std::collections::BTreeSet<_> = out.lines().skip(1).map(|l| l.split(',').next()).collect();
        assert_eq!(times.len(), ticks.saturating_sub(1), "{length}: {said:?}");
        assert!(live.starts_with(&out), "{length}");
        assert!(ends.contains(&length) && length > 16 || said.len() == 1, "{length}: {said:?}");
    }
}

#[test]
fn a_damaged_frame_costs_its_segment_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let live = lines(&record(&path, "--json", samples(700)));
    let mut bytes = fs::read(&path).unwrap();
    let segments = Reader::open(&path).unwrap().segments().unwrap();
    assert_eq!(segments.len(), 3);
    // The first segment has none before it, and is found all the same to be missing.
    let places =
        [0, 1].map(|n| usize::try_from(segments[n].at).unwrap()).map(|at| [at + 2, at + 5, at + 100]);
    for place in places.concat() {
        let good = bytes[place];
        bytes[place] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        bytes[place] = good;
        let (out, said) = replay(&path, "--json", &Part::default());
        assert!(
            said.iter().any(|s| s.contains("damaged") || s.contains("cut") || s.contains("missing")),
            "{place}: {said:?}"
        );
        let there = lines(&out);
        assert!(there.len() >= 390 && there.len() < 700, "{place}: {}", there.len());
        // What is there is as it was, each of them; nothing was added to anything.
        for interval in there.iter().filter(|i| i.get("total").is_none()) {
            let same = live.iter().find(|i| i["time"] == interval["time"] && i.get("total").is_none());
            assert_eq!(same, Some(interval), "{place}");
        }
    }
}

#[test]
fn what_is_no_recording_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut newer = super::file::beginning();
    newer[12] = 2;
    let cases: [(&[u8], &str); 4] = [
        (b"", "ends before it begins"),
        (b"a text that is somebody's letter", "no recording"),
        (&newer, "another version"),
        (&super::file::beginning(), "no whole tick"),
    ];
    for (bytes, why) in cases {
        fs::write(&path, bytes).unwrap();
        let (_, said) = replay(&path, "", &Part::default());
        assert!(said[0].contains(why), "{said:?}");
    }
    assert!(replay(&dir.path().join("none"), "", &Part::default()).1[0].contains("there is no recording"));
    assert!(replay(dir.path(), "", &Part::default()).1[0].contains("there is no recording"));
    // And it is not written over.
    fs::write(&path, "a text that is somebody's letter").unwrap();
    assert_eq!(Writer::file(&path, Duration::from_secs(1)).err().unwrap().code, Code::Usage);
    assert!(fs::read_to_string(&path).unwrap().contains("letter"));
    // Where no file can be, none is asked for.
    for name in ["none/a", "a/b"] {
        let why = Writer::file(&dir.path().join(name), Duration::from_secs(1)).err().unwrap();
        assert!(why.code == Code::Usage && why.remedy.is_some(), "{why:?}");
    }
}

#[test]
fn bytes_of_anybody_are_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    record(&path, "", samples(4));
    let good = fs::read(&path).unwrap();
    // With the right checksum, so that they are looked at.
    let mut random = 99_u64;
    for _ in 0..100 {
        let mut payload = Vec::new();
        for _ in 0..60 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            payload.push(random.to_le_bytes()[5]);
        }
        let at = usize::try_from(random >> 40).unwrap() % 60;
        let segment = super::file::Segment { at: 16, time: 1, back: u64::from(payload[at]) << 40, before: 0 };
        let frame =
            super::file::framed((random & 64 == 0).then_some(segment), Wake::Deadline, &payload).unwrap();
        fs::write(&path, [&good[..], &frame, &good[16..]].concat()).unwrap();
        let (_, said) = replay(&path, "--json --by file", &Part::default());
        assert!(!said.is_empty());
    }
}

#[test]
fn a_part_is_found_wherever_it_is_and_intervals_are_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let made = samples(610);
    let live = lines(&record(&path, "--json --by process", made.clone()));
    let at = |n: usize| Some(When::At(made[n].time));
    for (from, to) in [(1, 5), (299, 301), (300, 300), (301, 609), (450, 460)] {
        let part = Part { from: at(from), to: at(to), ..Part::default() };
        let there = lines(&replay(&path, "--json --by process", &part).0);
        let there: Vec<_> = there.iter().filter(|i| i.get("total").is_none()).collect();
        assert_eq!(there, live[from - 1..to].iter().collect::<Vec<_>>(), "{from}");
    }
    let part = Part { every: Some(Duration::from_secs(10)), ..Part::default() };
    let there = lines(&replay(&path, "--json --by process --top 1000", &part).0);
    assert_eq!(there.len(), 62);
    let sum = |some: &[serde_json::Value], group: &str, key: &str| {
        some.iter().map(|i| i[group][key].as_u64().unwrap()).sum::<u64>()
    };
    for (n, interval) in there.iter().take(60).enumerate() {
        let parts = &live[n * 10..n * 10 + 10];
        assert_eq!(interval["read"]["hits"].as_u64().unwrap(), sum(parts, "read", "hits"));
        let of_rows =
            interval["rows"].as_array().unwrap().iter().map(|r| r["read"]["hits"].as_u64().unwrap());
        assert_eq!(of_rows.sum::<u64>(), sum(parts, "read", "hits"));
    }
}

#[test]
fn a_clock_that_was_set_is_told_and_changes_nothing_that_was_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut made = samples(60);
    for (n, sample) in made.iter_mut().enumerate().skip(20) {
        let hour = jiff::SignedDuration::from_hours(if n < 40 { -1 } else { 2 });
        sample.time += hour;
    }
    let live = record(&path, "--json", made.clone());
    let (there, said) = replay(&path, "--json", &Part::default());
    assert_eq!(live, there);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("set by -3600.0 s") && said[1].contains("set by +10800.0 s"), "{said:?}");
    // Time goes forward where the machine sleeps, too, and never back.
    assert!(!said[0].contains("slept") && said[1].contains(", or the machine slept, before "), "{said:?}");
    let part =
        Part { from: Some(When::At(made[25].time)), to: Some(When::At(made[30].time)), ..Part::default() };
    assert_eq!(lines(&replay(&path, "--json", &part).0).len(), 6);
}

#[test]
fn an_interval_that_took_longer_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut made = samples(60);
    let late = made[30].time;
    // As where the disk was full.
    made.drain(25..30);
    let live = record(&path, "--json", made.clone());
    let (there, said) = replay(&path, "--json", &Part::default());
    assert_eq!(live, there);
    assert_eq!(said, [format!("the interval that ends at {} took 6.000 s instead of 1 s", view::utc(late))]);
    let part = Part { every: Some(Duration::from_secs(4)), ..Part::default() };
    assert_eq!(replay(&path, "", &part).1, Vec::<String>::new(), "as long as those that are shown");
    let part = Part { to: Some(When::At(made[20].time)), ..Part::default() };
    assert_eq!(replay(&path, "", &part).1, Vec::<String>::new(), "it is not shown");
}

#[test]
fn who_only_asks_whether_it_could_record_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("yesterday");
    drop(Writer::file(&path, Duration::from_secs(1)).unwrap());
    let was = fs::read(&path).unwrap();
    fs::write(&path, [&was[..], b"and more"].concat()).unwrap();
    Writer::check(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), was.len() + 8);
    assert_eq!(Writer::check(&dir.path().join("no/such")).unwrap_err().code, Code::Usage);
    Writer::check(&dir.path().join("new")).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn standard_output_is_no_recording() {
    let why = Writer::check(Path::new("-")).unwrap_err();
    assert!(why.code == Code::Usage && why.remedy.is_some_and(|r| r.contains("'./-'")), "{}", why.message);
}

/// Behind a good recording, places that look like frames, each as long as the rest: nobody reads all of them to their ends.
#[test]
fn a_file_of_forged_frames_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    record(&path, "--json", samples(20));
    let mut bytes = fs::read(&path).unwrap();
    let whole = bytes.len();
    let forged = 12 << 20;
    while bytes.len() < whole + forged {
        let rest = u32::try_from(whole + forged - bytes.len()).unwrap().saturating_sub(12);
        bytes.extend([0xca, 0x57, 1, 0]);
        bytes.extend(rest.to_le_bytes());
        bytes.extend([0; 4]);
    }
    fs::write(&path, bytes).unwrap();
    let began = Instant::now();
    let why = Replay::open(&path, &Part::default(), Box::new(|_| ())).err().unwrap();
    assert!(why.message.contains("damaged in too many places"), "{}", why.message);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// Key frames of which nothing can be read, each as short as one can be, and no way back through them.
#[test]
fn a_file_of_tiny_frames_is_read_in_one_go() {
    let dir = tempfile::tempdir().unwrap();
    let (good, path) = (dir.path().join("a"), dir.path().join("b"));
    record(&good, "--json", samples(20));
    let segment = super::file::Segment { at: 0, time: 0, back: 7, before: 0 };
    let tiny = super::file::framed(Some(segment), Wake::Deadline, &[]).unwrap();
    let number = (1 << 20) / tiny.len();
    let mut bytes = fs::read(&good).unwrap();
    bytes.extend(tiny.repeat(number));
    fs::write(&path, bytes).unwrap();
    let began = Instant::now();
    assert_eq!(Reader::open(&path).unwrap().segments().unwrap().len(), number + 1);
    let took = began.elapsed();
    println!("{number} frames take {took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    let (out, said) = replay(&path, "--json", &Part::default());
    assert!(lines(&out).len() >= 19 && said.len() == 21, "{said:?}");
    assert_eq!(said[20], format!("and {} more such places", number - 20));
}

#[test]
fn two_do_not_write_one_recording() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let second = Duration::from_secs(1);
    let first = Writer::file(&path, second).unwrap();
    let why = Writer::file(&path, second).err().unwrap();
    assert!(why.code == Code::Usage && why.message.contains("is being written"), "{}", why.message);
    drop(first);
    Writer::file(&path, second).unwrap();
}

/// As `-o` has it: whoever may write there may have put it there for us to write over.
#[test]
fn what_somebody_else_left_where_everybody_writes_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::fs::chown;
    if !rustix::process::geteuid().is_root() {
        println!("not checked: needs root, as whom CI runs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let second = Duration::from_secs(1);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
    for path in [&theirs, &ours] {
        fs::write(path, "").unwrap();
    }
    chown(&theirs, Some(65534), None).unwrap();
    let why = Writer::file(&theirs, second).err().unwrap();
    assert!(why.code == Code::Usage && why.message.contains("somebody else's"), "{}", why.message);
    Writer::file(&ours, second).unwrap();
    // In a directory of one's own it is meant.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Writer::file(&theirs, second).unwrap();
}

#[test]
fn a_ring_has_one_recorder() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 20, age: Duration::from_secs(60) };
    let ring = || Writer::ring(dir.path(), bounds, Duration::from_secs(1));
    let first = ring().unwrap();
    let why = ring().err().unwrap();
    assert!(why.code == Code::Usage && why.message.contains("another one records there"), "{}", why.message);
    assert_eq!(shards(dir.path()).unwrap().len(), 1);
    drop(first);
    ring().unwrap();
}

#[test]
fn what_is_not_of_a_ring_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let others = ["2026112714-mine.record", "9999999999-x.record", "0000000001-20260101T000000Z.recor"];
    others.iter().for_each(|name| fs::write(dir.path().join(name), "mine").unwrap());
    let bounds = Bounds { size: 1 << 24, age: Duration::from_secs(3600) };
    for number in 1..=2 {
        drop(Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap());
        let all = shards(dir.path()).unwrap();
        assert!(
            all.len() == number && all[number - 1].to_str().unwrap().contains(&format!("{number:010}-20"))
        );
    }
    assert!(others.iter().all(|name| fs::read(dir.path().join(name)).unwrap() == b"mine"));
}

#[test]
fn a_ring_is_kept_in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("r");
    std::fs::write(&plain, "x").unwrap();
    let failure = crate::record::writer::has_no_recorder(&plain).unwrap_err();
    assert_eq!(failure.code, crate::exit::Code::Usage);
    assert!(failure.message.ends_with("is no directory") && failure.remedy.is_some(), "{failure:?}");
    assert!(crate::record::writer::has_no_recorder(dir.path()).is_ok());
    assert!(crate::record::writer::has_no_recorder(&dir.path().join("none")).is_ok());
}
