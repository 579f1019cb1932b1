//! What a tick costs when very many threads are there.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use cachetop::sample::Counter;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;

use crate::tools::*;

const THREADS: usize = 10_000;
const TICKS: usize = 12;

/// CPU time of this thread.
fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The middle of the times that some readings took.
fn middle(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// Threads of this process that all read a page between two samples, and then none.
pub fn ten_thousand_threads(dir: &Path) {
    let path = cold_file(&dir.join("file"), 1);
    let file = File::open(&path).unwrap();
    let mut session = Session::open(&Options { include_self: true, ..Options::default() }).unwrap();
    let (go, done) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let own = std::process::id();
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            std::thread::Builder::new()
                .stack_size(16 << 10)
                .spawn_scoped(scope, || {
                    for _ in 0..TICKS {
                        go.wait();
                        assert_eq!(file.read_at(&mut [0], 0).unwrap(), 1);
                        done.wait();
                    }
                })
                .unwrap();
        }
        for _ in 0..TICKS {
            session.sample().unwrap();
            go.wait();
            done.wait();
            let begin = cpu();
            let sample = session.sample().unwrap();
            busy.push(cpu() - begin);
            // The first is a miss; all are accesses.
            let of_own = sample.rows.iter().filter(|r| r.tgid == own);
            let reads = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
            let accesses: u64 = of_own.map(|r| reads.iter().map(|c| r.counters.get(*c)).sum::<u64>()).sum();
            assert_eq!(accesses, THREADS as u64, "in the rows");
            drop(sample);
            let begin = cpu();
            session.sample().unwrap();
            idle.push(cpu() - begin);
        }
    });
    println!(
        "a tick over {THREADS} threads: {:?} when all have read, {:?} when none has",
        middle(busy),
        middle(idle)
    );
}
