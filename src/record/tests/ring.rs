//! A ring of files keeps what it was told to, and no more.

use super::*;
use crate::record::growing::disk::SIZE as DISK;

#[test]
fn a_quiet_ring_begins_files_by_their_age() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 30, age: Duration::from_secs(86_400) };
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(60)).unwrap();
    let start = Moment::now();
    for tick in 0..1440_u64 {
        let mut sample =
            fixtures::sample(start, Duration::from_secs(60 * tick), &[(Counter::ReadHits, tick)]);
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
    }
    // A day, of which each eighth can go by itself.
    let files = shards(dir.path()).unwrap().len();
    assert!((8..=9).contains(&files), "{files}");
    assert_eq!(lines(&replay(dir.path(), "--json", &Part::default()).0).len(), 1439);
}

const DAY: u64 = 86_400;

/// Records an interval an hour, from one day since the start to another, the clock of people being wrong by so many days.
fn hours(writer: &mut Writer, (start, from, to): (Moment, u64, u64), wrong: i64) {
    for hour in from * 24..to * 24 {
        let mut sample = fixtures::sample(start, Duration::from_secs(3600 * hour), &[]);
        sample.time += jiff::SignedDuration::from_hours(24 * wrong);
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        // Each begins a segment, at which what is too old goes.
        sample.time += jiff::SignedDuration::from_secs(60);
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
    }
}

#[test]
fn a_clock_that_is_set_makes_no_file_older() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 30, age: Duration::from_secs(8 * DAY) };
    let has = |old: &Path| shards(dir.path()).unwrap().iter().any(|path| path == old);
    drop(Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap());
    let earlier = shards(dir.path()).unwrap().pop().unwrap();
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(3600)).unwrap();
    let start = Moment::now();
    hours(&mut writer, (start, 0, 2), 0);
    let before = shards(dir.path()).unwrap().len();
    assert!(before > 2, "{before}");
    // As after a step of the clock by years: what was written looks as old as that, or as if it were yet to come.
    for (days, wrong) in [((2, 3), 4000), ((3, 4), -4000)] {
        for path in shards(dir.path()).unwrap() {
            let then = std::time::SystemTime::now() - Duration::from_secs(4000 * DAY);
            fs::File::open(path).unwrap().set_modified(then).unwrap();
        }
        hours(&mut writer, (start, days.0, days.1), wrong);
        assert!(has(&earlier) && shards(dir.path()).unwrap().len() > before, "{wrong}");
    }
    // Time that passes does.
    hours(&mut writer, (start, 4, 9), 0);
    assert!(!has(&earlier));
    let kept = shards(dir.path()).unwrap().len();
    hours(&mut writer, (start, 9, 30), 0);
    assert!((kept - 1..=kept + 1).contains(&shards(dir.path()).unwrap().len()), "{kept}");
    drop(writer);
    // A run that begins knows no better than the clock then.
    for path in shards(dir.path()).unwrap() {
        let then = std::time::SystemTime::now() - Duration::from_secs(9 * DAY);
        fs::File::open(path).unwrap().set_modified(then).unwrap();
    }
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(3600)).unwrap();
    hours(&mut writer, (Moment::now(), 0, 1), 0);
    assert_eq!(shards(dir.path()).unwrap().len(), 1);
}

#[test]
fn a_ring_keeps_within_its_bounds_and_goes_on_behind_other_runs() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 3 << 20, age: Duration::from_secs(3600) };
    let mut random = 7_u64;
    let mut times = Vec::new();
    for _ in 0..2 {
        let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
        let start = Moment::now();
        for tick in 0..250_u64 {
            let after = Duration::from_secs(tick);
            let mut sample = fixtures::sample(start, after, &[(Counter::ReadHits, tick)]);
            // What cannot be compressed.
            sample.rows = (0..700)
                .map(|n| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    fixtures::process(
                        n,
                        "x",
                        &[(Counter::ReadHits, random), (Counter::ReadMisses, random >> 7)],
                    )
                })
                .collect();
            writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
            times.push(sample.time);
        }
    }
    let all = shards(dir.path()).unwrap();
    let sum: u64 = all.iter().map(|p| fs::metadata(p).unwrap().len()).sum();
    assert!(all.len() > 1 && sum <= bounds.size && sum > bounds.size / 3, "{} files, {sum} bytes", all.len());
    let (out, said) = replay(dir.path(), "--json", &Part::default());
    let hits: Vec<_> = lines(&out).iter().map(|i| i["read"]["hits"].as_u64().unwrap()).collect();
    assert!(hits.len() > 50 && hits.iter().all(|n| *n == 1), "{hits:?} {said:?}");
    // Where the beginning of a file is damaged, what is missing is in no interval.
    for path in &all[1..] {
        let good = fs::read(path).unwrap();
        let mut bytes = good.clone();
        bytes[40] ^= 1;
        fs::write(path, bytes).unwrap();
        let (out, said) = replay(dir.path(), "--json", &Part::default());
        fs::write(path, good).unwrap();
        let left: Vec<_> = lines(&out).iter().map(|i| i["read"]["hits"].as_u64().unwrap()).collect();
        assert!(left.len() < hits.len() && left.iter().all(|n| *n == 1), "{path:?}: {left:?}");
        assert!(said.iter().any(|s| s.contains("has no whole tick")), "{said:?}");
    }
}

/// Ticks of rows that cannot be compressed, some ten KiB each.
fn dense(random: &mut u64, ticks: u64) -> impl Iterator<Item = Sample> {
    let start = Moment::now();
    (0..ticks).map(move |tick| {
        let mut sample = fixtures::sample(start, Duration::from_secs(tick), &[(Counter::ReadHits, tick)]);
        let row = |n| {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            fixtures::process(n, "x", &[(Counter::ReadHits, *random), (Counter::ReadMisses, *random >> 7)])
        };
        sample.rows = (0..700).map(row).collect();
        sample
    })
}

fn length(directory: &Path) -> u64 {
    shards(directory).unwrap().iter().map(|p| fs::metadata(p).unwrap().len()).sum()
}

/// Writes all of them, and gives back how many could not be written.
fn write(writer: &mut Writer, samples: impl Iterator<Item = Sample>) -> usize {
    let mut write = |mut sample| writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline);
    samples.filter_map(|sample| write(sample).err()).count()
}

#[test]
fn runs_that_are_shorter_than_a_segment_keep_within_the_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 4 << 20, age: Duration::from_secs(3600) };
    let (mut random, mut most) = (7, 0);
    for _ in 0..12 {
        let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
        assert_eq!(write(&mut writer, dense(&mut random, 50)), 0);
        most = most.max(length(dir.path()));
    }
    assert!(most <= bounds.size && most > bounds.size / 2, "{most}");
    // Nor is anything too old kept, however short the run.
    for path in shards(dir.path()).unwrap() {
        let then = std::time::SystemTime::now() - Duration::from_secs(2 * 3600);
        fs::File::open(path).unwrap().set_modified(then).unwrap();
    }
    drop(Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap());
    assert_eq!(shards(dir.path()).unwrap().len(), 1);
}

#[test]
fn long_intervals_are_kept_no_longer_than_short_ones() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 30, age: Duration::from_secs(DAY) };
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(3600)).unwrap();
    let start = Moment::now();
    let hour = |n| fixtures::sample(start, Duration::from_secs(3600 * n), &[(Counter::ReadHits, n)]);
    assert_eq!(write(&mut writer, (0..200).map(hour)), 0);
    let kept = lines(&replay(dir.path(), "--json", &Part::default()).0).len();
    assert!((24..=24 + 6).contains(&kept), "{kept} hours of 24");
}

#[test]
fn a_full_disk_gives_room_to_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 16 << 20, age: Duration::from_secs(8 * DAY) };
    let (disk, mut random) = (3 << 20, 7);
    DISK.set(Some((dir.path().into(), disk)));
    // What is somebody else's stays, and what somebody holds, though it is called as ours is.
    let (other, held) =
        (dir.path().join("mine.record"), dir.path().join("0000000001-20260101T000000Z.record"));
    for path in [&other, &held] {
        fs::write(path, "mine").unwrap();
    }
    let holds = fs::File::open(&held).unwrap();
    rustix::fs::flock(&holds, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(Writer::ring(dir.path(), bounds, Duration::from_secs(1)).is_err(), "it is held");
    rustix::fs::flock(&holds, rustix::fs::FlockOperation::Unlock).unwrap();
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
    rustix::fs::flock(&holds, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut told = Vec::new();
    for mut sample in dense(&mut random, 600) {
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        told.extend(writer.hindrance());
    }
    assert!(length(dir.path()) > disk - (2 << 20));
    assert_eq!(told, ["the disk is full: the oldest files of the ring go for what comes"]);
    for path in [&other, &held] {
        assert_eq!(fs::read(path).unwrap(), b"mine");
    }
    fs::remove_file(&held).unwrap();
    drop((writer, holds));
    // It goes on where it was, and as far as that: what is there is whole, and of what came last.
    let there = lines(&replay(dir.path(), "--json", &Part::default()).0);
    assert!(there.len() > 50 && there.iter().all(|i| i["read"]["hits"] == 1), "{}", there.len());
    // Another run begins though not a byte has room.
    DISK.set(Some((dir.path().into(), length(dir.path()) + 4)));
    let before = shards(dir.path()).unwrap();
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
    assert_eq!(write(&mut writer, dense(&mut random, 5)), 0);
    let after = shards(dir.path()).unwrap();
    assert!(!after.contains(&before[0]) && after.contains(&before[1]), "one went");
    // The one that is being written does not go: nothing of it is lost.
    fs::read_dir(dir.path()).unwrap().for_each(|e| {
        let path = e.unwrap().path();
        if Some(&path) != after.last() {
            fs::remove_file(path).unwrap();
        }
    });
    DISK.set(Some((dir.path().into(), length(dir.path()))));
    assert_eq!(write(&mut writer, dense(&mut random, 3)), 3);
    assert_eq!(shards(dir.path()).unwrap(), after[after.len() - 1..]);
    DISK.set(None);
    assert_eq!(write(&mut writer, dense(&mut random, 3)), 0, "it goes on as soon as there is room");
}

/// So many files of earlier runs, with a tick in each or none.
fn earlier(directory: &Path, bounds: Bounds, (files, ticks): (usize, u64)) {
    for _ in 0..files {
        let mut writer = Writer::ring(directory, bounds, Duration::from_secs(1)).unwrap();
        assert_eq!(write(&mut writer, dense(&mut 7, ticks)), 0);
    }
}

#[test]
fn what_helps_nothing_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 16 << 20, age: Duration::from_secs(8 * DAY) };
    earlier(dir.path(), bounds, (6, 3));
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
    let files = || shards(dir.path()).unwrap().len();
    for left in [6, 5] {
        // Somebody else takes all that there is.
        DISK.set(Some((dir.path().into(), 0)));
        assert_eq!(write(&mut writer, dense(&mut 7, 5)), 5);
        assert_eq!(files(), left);
        // Once there is room again, it may help the next time.
        DISK.set(None);
        assert_eq!(write(&mut writer, dense(&mut 7, 1)), 0);
    }
    assert!(writer.hindrance().unwrap().contains("the disk is full"));
    assert_eq!(writer.hindrance(), None);
}

#[test]
fn no_more_than_one_file_goes_in_a_tick() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 16 << 20, age: Duration::from_secs(80) };
    earlier(dir.path(), bounds, (6, 0));
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
    assert_eq!(write(&mut writer, dense(&mut 7, 1)), 0);
    DISK.set(Some((dir.path().into(), length(dir.path()))));
    // What goes has room for the beginning of another file, which is due, and for no tick.
    let before = shards(dir.path()).unwrap();
    assert_eq!(write(&mut writer, dense(&mut 7, 20).skip(19)), 1);
    let after = shards(dir.path()).unwrap();
    assert!(after.starts_with(&before[1..]) && after.len() == before.len(), "{before:?} {after:?}");
    // The next one goes in the next tick: less was given than is needed.
    assert_eq!(write(&mut writer, dense(&mut 7, 21).skip(20)), 1);
    assert_eq!(shards(dir.path()).unwrap(), after[1..]);
    DISK.set(None);
}

#[test]
fn what_cannot_be_removed_or_is_no_file_pushes_nothing_out() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 4 << 20, age: Duration::from_secs(8 * DAY) };
    earlier(dir.path(), bounds, (3, 3));
    let named = |n: u8| dir.path().join(format!("000000000{n}-20260101T000000Z.record"));
    let all = shards(dir.path()).unwrap();
    // Of all these, one is held, and one leads to what is much and elsewhere.
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    elsewhere.as_file().set_len(1 << 40).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), named(8)).unwrap();
    let large = dir.path().join("0000000000-20260101T000000Z.record");
    let holds = fs::File::create(&large).unwrap();
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
    holds.set_len(1 << 40).unwrap();
    rustix::fs::flock(&holds, rustix::fs::FlockOperation::LockExclusive).unwrap();
    hours(&mut writer, (Moment::now(), 0, 1), 0);
    let there = shards(dir.path()).unwrap();
    assert!(all.iter().all(|path| there.contains(path)) && there.contains(&large), "{there:?}");
    assert_eq!(writer.hindrance(), None);
}

#[test]
fn what_cannot_be_asked_may_be_held() {
    let dir = tempfile::tempdir().unwrap();
    let (socket, nothing) = (dir.path().join("socket"), dir.path().join("nothing"));
    let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&nothing, dir.path().join("link")).unwrap();
    let held = |path: &Path| crate::record::growing::is_held(path);
    assert!(held(&socket) && !held(&nothing) && !held(&dir.path().join("link")));
}

#[test]
fn what_hinders_a_ring_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 30, age: Duration::from_secs(8 * DAY) };
    // Nobody can remove it as a file.
    let old = dir.path().join("0000000001-20250101T000000Z.record");
    fs::create_dir(&old).unwrap();
    let then = std::time::SystemTime::now() - Duration::from_secs(9 * DAY);
    fs::File::open(&old).unwrap().set_modified(then).unwrap();
    let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(3600)).unwrap();
    let start = Moment::now();
    hours(&mut writer, (start, 0, 2), 0);
    let why = writer.hindrance().unwrap();
    assert!(why.contains("bounds: cannot remove") && why.contains("0000000001-20250101T000000Z"), "{why}");
    hours(&mut writer, (start, 2, 4), 0);
    assert_eq!(writer.hindrance(), None);
    // And that it is over, so that the next time is told again.
    fs::remove_dir(&old).unwrap();
    hours(&mut writer, (start, 4, 6), 0);
    assert_eq!(writer.hindrance(), None);
    // Where no other file can be begun, what there is goes on.
    DISK.set(Some((dir.path().into(), length(dir.path()) + 8)));
    let all = shards(dir.path()).unwrap();
    let held: Vec<_> = all[..all.len() - 1].iter().map(|path| fs::File::open(path).unwrap()).collect();
    held.iter().for_each(|f| rustix::fs::flock(f, rustix::fs::FlockOperation::LockExclusive).unwrap());
    let much = [fixtures::sample(start, Duration::from_secs(7 * DAY), &[])];
    assert_eq!(write(&mut writer, much.into_iter()), 1);
    let why = writer.hindrance().unwrap();
    assert!(why.contains("cannot begin another file"), "{why}");
    DISK.set(None);
}

/// A recorder that was first run with less.
#[test]
fn what_a_later_run_counted_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { size: 1 << 30, age: Duration::from_secs(8 * DAY) };
    let made = samples(60);
    let without = |mut sample: Sample| {
        (sample.by_file, sample.files, sample.latency) = (None, Vec::new(), None);
        sample
    };
    for run in 0..3 {
        let mut writer = Writer::ring(dir.path(), bounds, Duration::from_secs(1)).unwrap();
        let part = made.iter().skip(20 * run).take(20).cloned();
        let part: Vec<_> = if run == 1 { part.collect() } else { part.map(without).collect() };
        assert_eq!(write(&mut writer, part.into_iter()), 0);
    }
    let has = |from: Option<usize>, to: Option<usize>| {
        let at = |n: Option<usize>| n.map(|n| When::At(made[n].time));
        let part = Part { from: at(from), to: at(to), ..Part::default() };
        let opened = Replay::open(dir.path(), &part, Box::new(|_| ())).unwrap();
        (opened.files, opened.latency)
    };
    assert_eq!(has(None, None), (true, true));
    assert_eq!(has(None, Some(10)), (false, false), "not of the time that is asked for");
    // What is counted from is of the run before, and the first interval is of the next one.
    assert_eq!(has(Some(20), Some(30)), (true, true));
    assert_eq!(has(Some(40), None), (false, false));
}
