//! Files that are nowhere but in memory.

use super::*;

/// Files that are in memory only, of so many pages.
struct Memory(u64);

impl warm::Look for Memory {
    fn length(&self, _: &Used) -> Option<u64> {
        None
    }
    fn in_memory(&self, _: &Used) -> Option<u64> {
        Some(self.0 * crate::report::units::page())
    }
    fn before(&self, _: &Used) -> Option<u64> {
        None
    }
    fn after(&self, _: &Used) -> Option<u64> {
        None
    }
}

#[test]
fn what_is_in_memory_only_was_there() {
    let memory = |counters: &[(Counter, u64)]| {
        let f = used(OURS, 1, counters);
        let (file, sum) = (Arc::clone(&f.file), f.counters.clone());
        let used =
            Used { file, deleted: false, sum, parts: Parts::Unknown, fillers: Vec::new(), meanwhile: 0 };
        let (mut all, mounts) = (Counters::default(), Mounts::default());
        all.add_sparse(&f.counters);
        let (origins, look) = (Origins::default(), Memory(100));
        let nobody = certify::Brought::default();
        let judged =
            warm::judge(&[used], (&all, Some(0), None), (1, false), (&origins, &nobody), &mounts, &look);
        (judged.memory, judged.warm, judged.asked, judged.bound.warm)
    };
    let read = [(Counter::ReadHits, 100), (Counter::ReadBytes, 100 * 4096)];
    assert_eq!(memory(&read), (100, 0, 100, 100));
    let thrice = [(Counter::ReadHits, 300), (Counter::ReadBytes, 300 * 4096)];
    assert_eq!(memory(&thrice), (100, 0, 100, 100), "however often");
    // What it has written itself, in either way, it may have put there.
    assert_eq!(memory(&[read[0], read[1], (Counter::Dirtied, 1)]).0, 0);
    assert_eq!(memory(&[read[0], read[1], (Counter::WriteMisses, 100)]).0, 0);
    assert_eq!(
        memory(&[read[0], read[1], (Counter::FaultHits, 1)]).0,
        0,
        "and what is mapped, nobody sees it write"
    );
}
