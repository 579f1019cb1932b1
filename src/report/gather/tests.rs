//! Who brought in what the command found.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::files::Dev;
use crate::view::fixtures;

const OURS: u32 = 10;
const THEIRS: u32 = 20;

fn used(tgid: u32, counter: Counter, n: u64) -> FileSample {
    FileSample {
        tgid,
        uid: 0,
        cgroup: 1,
        born: 1,
        process: "cat".into(),
        file: Arc::new(File {
            dev: Dev { major: 254, minor: 0 },
            inode: 12,
            generation: 0,
            block: None,
            name: "/no/such/file".into(),
            named: Named::Whole,
        }),
        deleted: false,
        counters: fixtures::counters(&[(counter, n)]),
    }
}

/// Pages that are put down to others, and those that may have been theirs, after one reading each.
fn found(readings: &[&[FileSample]]) -> (u64, u64) {
    let began = Instant::now();
    let sample = || fixtures::sample(began, Duration::from_secs(1), &[]);
    let mut gather = Gather::new(fixtures::plan(&[]), sample(), began);
    let mut others = Others::default();
    for files in readings {
        let now = Sample { files: files.to_vec(), ..sample() };
        let mut followed = Followed::new(1);
        followed.files = files.iter().filter(|f| f.tgid == OURS).cloned().collect();
        gather.sample(&now, &followed, &mut others);
    }
    let run = gather.finish(&sample(), &Followed::new(1), &Mounts::default(), &HashMap::new());
    (run.warmers.iter().map(|w| w.fills).sum(), run.by_others)
}

#[test]
fn who_reads_later_has_not_warmed_it() {
    let (theirs, ours) = (used(THEIRS, Counter::ReadMisses, 900), used(OURS, Counter::ReadHits, 900));
    let (theirs, ours) = (&[theirs][..], &[ours][..]);
    assert_eq!(found(&[theirs, ours]), (900, 900), "before");
    assert_eq!(found(&[ours, theirs]), (0, 0), "after");
    assert_eq!(found(&[ours, theirs, ours]), (0, 900), "in between: of which pages is not known");
    let both = [theirs, ours].concat();
    assert_eq!(found(&[&both]), (0, 900), "at the same time");
    assert_eq!(found(&[theirs, ours, &[], theirs]), (900, 900));
}

#[test]
fn what_the_command_brought_in_is_nobody_elses() {
    assert_eq!(found(&[&[used(OURS, Counter::ReadMisses, 5)], &[used(OURS, Counter::ReadHits, 5)]]), (0, 0));
}
