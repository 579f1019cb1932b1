//! What a recording takes.

use super::*;

/// Rows that go on, as most do: what a day takes of the disk, what a tick takes of the time, and how long it takes to begin
/// in the middle. Printed with `--nocapture`; the bounds are wide, since builds for tests are slow.
#[test]
fn what_a_hundred_rows_cost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = Writer::file(&path, Duration::from_secs(1)).unwrap();
    let (mut random, start, mut total) = (1_u64, Moment::now(), [0_u64; 4]);
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut written, mut times) = (Duration::ZERO, Vec::new());
    for tick in 0..600_u64 {
        let mut rows = Vec::new();
        for n in 0..100_u32 {
            // A few do much, most do little; one in ten misses.
            let hits = 1 + next(1 << (1 + n % 11));
            let misses = if n % 10 == 0 { next(20) } else { 0 };
            let calls = if n % 2 == 0 { hits } else { hits / 4 + 1 };
            let counted = [hits, misses, (hits + misses) * 4096, calls];
            total.iter_mut().zip(counted).for_each(|(t, n)| *t += n);
            let which = [Counter::ReadHits, Counter::ReadMisses, Counter::ReadBytes, Counter::ReadCalls];
            let pairs: Vec<_> = which.into_iter().zip(counted).collect();
            rows.push(fixtures::process(1000 + n, &format!("worker-{}", n % 20), &pairs));
        }
        let which = [Counter::ReadHits, Counter::ReadMisses, Counter::ReadBytes, Counter::ReadCalls];
        let pairs: Vec<_> = which.into_iter().zip(total).collect();
        let mut sample = fixtures::sample(start, Duration::from_millis(tick * 1000 + next(3)), &pairs);
        sample.rows = rows;
        sample.memory.cached_bytes += next(1 << 16) * 4096;
        times.push(sample.time);
        let begun = Instant::now();
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        written += begun.elapsed();
    }
    drop(writer);
    let bytes = fs::metadata(&path).unwrap().len();
    let begun = Instant::now();
    let part = Part { from: Some(When::At(times[590])), to: Some(When::At(times[592])), ..Part::default() };
    let (out, _) = replay(&path, "--json --by process", &part);
    let (sought, a_day) = (begun.elapsed(), bytes * 86_400 / 600 / (1 << 20));
    println!(
        "{bytes} bytes of 600 ticks, {a_day} MiB a day; {:?} a tick; {sought:?} to begin in the middle",
        written / 600
    );
    assert_eq!(out.lines().count(), 3);
    assert!(a_day <= 40, "{a_day} MiB a day");
}
