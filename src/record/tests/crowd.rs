//! Threads that come and go by the hundred.

use super::*;

/// Each sample has so many threads that were never there before, and one that goes on.
const NEW: u64 = 500;
/// No process of this machine has an id from here on, and so none of those is alive, whatever runs beside the test.
const NOBODY: u32 = 1 << 22;

fn crowd() -> Vec<Sample> {
    let start = Moment::now();
    let reads = |n: u64| [(Counter::ReadHits, n), (Counter::ReadBytes, n * 4096), (Counter::ReadCalls, n)];
    (0..60_u32)
        .map(|tick| {
            let since = (NEW + 7) * u64::from(tick);
            let mut sample = fixtures::sample(start, Duration::from_secs(u64::from(tick)), &reads(since));
            if tick > 0 {
                let ids = (0..NEW).map(|n| NOBODY + 1000 + tick * 1000 + u32::try_from(n).unwrap());
                sample.rows = ids.map(|id| fixtures::process(id, "cat", &reads(1))).collect();
                sample.rows.push(fixtures::process(NOBODY + 7, "goes on", &reads(7)));
            }
            sample
        })
        .collect()
}

#[test]
fn what_is_gone_for_good_is_not_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::file(&dir.path().join("a"), Duration::from_secs(1)).unwrap();
    let mut most = 0;
    for mut sample in crowd() {
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        most = most.max(writer.places());
    }
    assert!((4000..10_000).contains(&most), "{most} of {} rows are remembered at a time", 59 * NEW);
    // Where the segments begin changes nothing of what is shown.
    for options in ["--json --by process", "--csv", "--by comm"] {
        let path = dir.path().join("b");
        let live = record(&path, options, crowd());
        assert_eq!((live, Vec::new()), replay(&path, options, &Part::default()), "{options}");
    }
}
