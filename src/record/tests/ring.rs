//! A ring of files keeps what it was told to, and no more.

use super::*;

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
    // A day, of which each eighth could go by itself, from one beginning of a segment to the next.
    let files = shards(dir.path()).unwrap().len();
    assert!((4..=5).contains(&files), "{files}");
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
