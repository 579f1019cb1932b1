//! What a tick costs when very many threads are there.

use std::fs::File;
use std::os::fd::AsRawFd as _;
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

/// Who reads what before a tick. Most of the file is not cached, so the kernel programs that work without functions
/// cannot tell that a read of two pages has ended: they leave it to the tick.
#[derive(Debug, Clone, Copy)]
enum Round {
    /// A page each.
    One,
    /// Two pages each: more reads for the tick to end than it has a list for.
    Two,
    /// Every hundredth two pages, the others one.
    Few,
}

const ROUNDS: [Round; 3] = [Round::One, Round::Two, Round::Few];

impl Round {
    const fn pages(self, thread: usize) -> usize {
        match self {
            Self::Two => 2,
            Self::Few if thread % 100 == 0 => 2,
            Self::One | Self::Few => 1,
        }
    }
}

/// Threads of this process that all read between two samples, and then none.
pub fn ten_thousand_threads(dir: &Path) {
    let path = cold_file(&dir.join("file"), 64);
    let file = File::open(&path).unwrap();
    advise(&file, libc::POSIX_FADV_RANDOM);
    // The last byte of a page and the first of the next.
    let border = page_size() - 1;
    assert_eq!(file.read_at(&mut [0; 2], border).unwrap(), 2);
    assert_eq!(resident(&file), 2, "pages that are cached");
    let mut session = Session::open(&Options { include_self: true, ..Options::default() }).unwrap();
    let (go, done) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let own = std::process::id();
    let (mut busy, mut idle) = (ROUNDS.map(|_| Vec::new()), Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (file, go, done) = (&file, &go, &done);
            std::thread::Builder::new()
                .stack_size(16 << 10)
                .spawn_scoped(scope, move || {
                    for tick in 0..TICKS {
                        go.wait();
                        let pages = ROUNDS[tick % ROUNDS.len()].pages(thread);
                        assert_eq!(file.read_at(&mut [0; 2][..pages], border).unwrap(), pages);
                        done.wait();
                    }
                })
                .unwrap();
        }
        for tick in 0..TICKS {
            session.sample().unwrap();
            go.wait();
            done.wait();
            let round = ROUNDS[tick % ROUNDS.len()];
            let begin = cpu();
            let sample = session.sample().unwrap();
            busy[tick % ROUNDS.len()].push(cpu() - begin);
            let of_own = sample.rows.iter().filter(|r| r.tgid == own);
            let reads = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
            let accesses: u64 = of_own.map(|r| reads.iter().map(|c| r.counters.get(*c)).sum::<u64>()).sum();
            let expected: usize = (0..THREADS).map(|thread| round.pages(thread)).sum();
            assert_eq!(accesses, expected as u64, "in the rows, {round:?}");
            drop(sample);
            let begin = cpu();
            session.sample().unwrap();
            idle.push(cpu() - begin);
        }
    });
    let [one, two, few] = busy.map(middle);
    println!(
        "a tick over {THREADS} threads: {one:?} when all have read, {few:?} when a hundred of them wait to be ended, \
         {two:?} when all do, {:?} when none has read",
        middle(idle)
    );
}

/// Words of the ledger that are in use: a page is read ahead in each stretch of 64.
const WORDS: u64 = 60_000;
/// Words for which there is room again once these are empty: three quarters of all, and some for others.
const WORDS_AGAIN: u64 = 45_000;
/// Of these, those whose pages are read in the end.
const WORDS_READ: u64 = 5000;
/// Words of the ledger that the first file left unused: the second one gets these first.
const NEVER_USED: u64 = 65_536 - WORDS;

/// A ledger that is almost full: a tick costs the same, and room comes back when the pages have gone.
pub fn sixty_thousand_words(dir: &Path) {
    let sparse = |name: &str| {
        let path = dir.join(name);
        let file = File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap();
        file.set_len(WORDS * 64 * page_size()).unwrap();
        file
    };
    let mut session = Session::open(&Options { include_self: true, ..Options::default() }).unwrap();
    session.sample().unwrap();
    let tick = |session: &mut Session| {
        let begin = cpu();
        let sample = session.sample().unwrap();
        (cpu() - begin, sample)
    };
    let ahead = |file: &File, words: u64, page: u64| {
        for word in 0..words {
            let at = libc::off_t::try_from((word * 64 + page) * page_size()).unwrap();
            // SAFETY: no memory is involved.
            assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), at, 1, libc::POSIX_FADV_WILLNEED) }, 0);
        }
    };
    let file = sparse("sparse");
    ahead(&file, WORDS, 0);
    let full = middle((0..9).map(|_| tick(&mut session).0).collect());
    // All pages go: the words are empty, and some ticks take them out.
    advise(&file, libc::POSIX_FADV_DONTNEED);
    let mut emptied: Vec<_> = (0..300).map(|_| tick(&mut session).0).collect();
    emptied.sort();
    let (first, last) = (emptied[emptied.len() / 2], emptied[emptied.len() * 9 / 10]);
    println!(
        "a tick: {full:?} with {WORDS} words in use, {first:?} (nine in ten: {last:?}) while they are taken out"
    );
    // What was taken out rests for a while.
    std::thread::sleep(Duration::from_millis(600));
    tick(&mut session);
    // A second time, elsewhere, and another page of each word: without the room that came back most of these would be lost.
    let again = sparse("again");
    ahead(&again, WORDS_AGAIN, 7);
    let (_, sample) = tick(&mut session);
    // Of the words that have been another's, each has the page that was set in it, once.
    let mut read = || {
        for word in NEVER_USED..NEVER_USED + WORDS_READ {
            again.read_exact_at(&mut [0], (word * 64 + 7) * page_size()).unwrap();
        }
        let (_, sample) = tick(&mut session);
        let own = sample.rows.iter().filter(|r| r.tgid == std::process::id());
        own.fold((0, 0), |n, row| {
            let of = |c| row.counters.get(c);
            (n.0 + of(Counter::ReadHits) + of(Counter::ReadAheadHits), n.1 + of(Counter::ReadAheadHits))
        })
    };
    let (first, second) = (read(), read());
    let full_up = sample.lost.by_reason.iter().find(|(why, _)| *why == "prefetched_full").unwrap().1;
    // What else the machine reads ahead may find no room beside these.
    assert!(full_up < WORDS_AGAIN / 10, "{:?}", sample.lost);
    assert!(
        first.1 <= WORDS_READ && first.1 > WORDS_READ / 10 * 9,
        "{first:?} of {WORDS_READ}, {full_up} lost"
    );
    assert_eq!((first.0, second), (WORDS_READ, (WORDS_READ, 0)), "{:?}", sample.lost);
    // Ten times less than a look at each word takes; other load makes it longer, not that much.
    assert!(full < Duration::from_millis(20), "{full:?} with {WORDS} words in use");
}
