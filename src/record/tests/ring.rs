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
