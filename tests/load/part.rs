//! Reads of a file that is cached in part, by threads that find a page at the moment when another one reads it ahead or takes
//! it away: whatever the file has, each page that is read is counted once, as what it was.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use std::time::Instant;

use cachetop::plan::Brackets;
use cachetop::plan::Wants;
use cachetop::sample::Counter;
use cachetop::sample::Lost;
use cachetop::sample::Source as _;
use cachetop::session::Options;
use cachetop::session::Session;
use cachetop::whatif::Kind;
use cachetop::whatif::Outcome;

use crate::races::next;
use crate::races::read_bytes;
use crate::tools::*;

/// Of the file. The last is never there.
pub(crate) const PAGES: u64 = 2048;
/// Pages that are read ahead at once, while they are read.
const STEP: u64 = 8;
const ROUNDS: usize = 8;
/// Pages of a request, at most.
const MOST: u64 = 6;
pub(crate) const LASTS: Duration = Duration::from_secs(5);
/// Of all pages, where single pages are followed.
const FOLLOWED: f64 = 0.5;

const FIGURES: [Counter; 6] = [
    Counter::ReadBytes,
    Counter::ReadHits,
    Counter::ReadAheadHits,
    Counter::ReadMisses,
    Counter::Prefetched,
    Counter::LostOrder,
];
const BYTES: usize = 0;
const HITS: usize = 1;
const AHEAD: usize = 2;
const MISSES: usize = 3;
const PREFETCHED: usize = 4;
const ORDER: usize = 5;

type Figures = [u64; FIGURES.len()];

/// What a thread did: how often it has read each page, and how many it had to bring in.
struct Truth {
    tid: u32,
    reads: Vec<u32>,
    missed: u64,
}

impl Truth {
    fn pages(&self) -> u64 {
        self.reads.iter().map(|n| u64::from(*n)).sum()
    }
}

/// Tells others to stop, also where a test fails.
pub(crate) struct Stops<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn add(into: &mut Figures, figures: Figures) {
    into.iter_mut().zip(figures).for_each(|(sum, n)| *sum += n);
}

pub(crate) fn pages_advise(file: &File, first: u64, pages: u64, advice: i32) {
    let (at, len) = (first * page_size(), pages * page_size());
    let (at, len) = (libc::off_t::try_from(at).unwrap(), libc::off_t::try_from(len).unwrap());
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), at, len, advice) }, 0);
}

/// What is counted, and what the threads of this process did by then.
struct Watch {
    session: Session,
    touches: Option<cachetop::kernel::Touches>,
    threads: BTreeMap<u32, Figures>,
    /// Of all rows of files of this process.
    files: Figures,
    wasted: u64,
    lost: Lost,
    /// Events that the kernel has passed by: reads, and pages of which it is not known that they have gone.
    passed: u64,
    /// By thread and page: how often one that is followed was read; and whether all of them were told to have been missing.
    followed: BTreeMap<(u32, u64), u32>,
    all_missed: bool,
}

impl Watch {
    fn new(wants: Wants) -> Self {
        let options = Options { include_self: true, wants, ..Options::default() };
        let mut session = Session::open(&options).unwrap();
        let touches = wants.touches.then(|| session.attached().touches().unwrap());
        if touches.is_some() {
            session.attached().choose(FOLLOWED);
        }
        let sample = session.sample().unwrap();
        Self {
            session,
            touches,
            threads: BTreeMap::new(),
            files: Figures::default(),
            wasted: sample.total.get(Counter::PrefetchWasted),
            lost: sample.lost,
            passed: 0,
            followed: BTreeMap::new(),
            all_missed: true,
        }
    }

    /// How many prefetched pages have gone unused meanwhile.
    fn tick(&mut self) -> u64 {
        let (sample, own) = (self.session.sample().unwrap(), std::process::id());
        for row in sample.rows.iter().filter(|row| row.tgid == own) {
            add(self.threads.entry(row.tid).or_default(), FIGURES.map(|c| row.counters.get(c)));
        }
        for row in sample.files.iter().filter(|row| row.tgid == own) {
            add(&mut self.files, FIGURES.map(|c| row.counters.get(c)));
        }
        for touch in self.touches.iter_mut().flat_map(|t| t.read().unwrap()) {
            if touch.kind == Kind::Read {
                *self.followed.entry((touch.tid, touch.page & 0xffff_ffff)).or_default() += 1;
                self.all_missed &= touch.outcome == Outcome::Missed;
            }
        }
        // A page that a request added may be taken away before it is there, and be added again: that is told, and checked below.
        let mut lost = sample.lost.since(&self.lost);
        lost.by_reason.retain(|(why, _)| why != "order");
        self.passed = passed_by(&lost);
        let wasted = sample.total.get(Counter::PrefetchWasted);
        wasted - std::mem::replace(&mut self.wasted, wasted)
    }

    /// Of all threads of this process.
    fn all(&self) -> Figures {
        let mut all = Figures::default();
        self.threads.values().for_each(|figures| add(&mut all, *figures));
        all
    }

    /// To the page, where no event was passed by.
    fn same(&self, counted: u64, truth: u64, told: &str) {
        let passed = MOST * self.passed;
        assert!(
            counted.abs_diff(truth) <= passed,
            "{counted} of {truth}, {passed} may have been passed by: {told}"
        );
    }

    /// Of one that reads: each page once, and as missing what it brought in itself, by the kernel's own account.
    fn check(&self, truth: &Truth) {
        let counted = self.threads.get(&truth.tid).copied().unwrap_or_default();
        let (pages, told) = (truth.pages(), format!("{}: {FIGURES:?} {counted:?}", truth.tid));
        assert_eq!(counted[BYTES] % page_size(), 0, "{told}");
        assert_eq!(counted[HITS] + counted[AHEAD] + counted[MISSES], counted[BYTES] / page_size(), "{told}");
        self.same(counted[BYTES] / page_size(), pages, &told);
        // A page that went before it was delivered, and is added again, may have been read in by then or not.
        let (missed, twice, passed) = (counted[MISSES], counted[ORDER], MOST * self.passed);
        assert!(
            (missed.saturating_sub(passed)..=missed + twice + passed).contains(&truth.missed),
            "{missed} and {twice} again of {}: {told}",
            truth.missed
        );
    }

    /// Of pages that are followed each read is told, by whatever way it was counted: of about so many, of whole stretches.
    fn check_followed(&self, truth: &Truth) {
        if self.touches.is_none() {
            return;
        }
        let mut stretches: Vec<u64> = self.followed.keys().map(|(_, page)| page / 32).collect();
        stretches.dedup();
        let part = stretches.len() as f64 / (PAGES / 32) as f64;
        assert!((part - FOLLOWED).abs() < 0.2, "{part} of the pages");
        assert_eq!(self.followed.keys().find(|(tid, page)| *tid != truth.tid || *page >= PAGES), None);
        let (mut told, mut read) = (0, 0);
        for page in stretches.iter().flat_map(|s| s * 32..(s + 1) * 32) {
            let reads = truth.reads[usize::try_from(page).unwrap()];
            let seen = self.followed.get(&(truth.tid, page)).copied().unwrap_or_default();
            assert!(seen == reads || self.passed > 0, "page {page} was read {reads} times: {seen}");
            (told, read) = (told + u64::from(seen), read + u64::from(reads));
        }
        self.same(told, read, "reads of pages that are followed");
    }
}

/// Counts alone, files, single pages.
fn ways() -> [(&'static str, Wants); 3] {
    let none = Wants::default();
    [
        ("counts", none),
        ("files", Wants { files: true, ..none }),
        ("single pages", Wants { touches: true, ..none }),
    ]
}

fn tid() -> u32 {
    // SAFETY: no preconditions.
    unsigned(unsafe { libc::gettid() })
}

/// Waits for the other one, without sleeping: what comes next is to happen at once.
fn meet(own: &AtomicU64, other: &AtomicU64, n: u64) {
    own.store(n, SeqCst);
    while other.load(SeqCst) < n {
        std::thread::yield_now();
    }
}

/// Reads each page once, in requests of one to four.
fn read_beside(file: &File, seed: &mut u64, truth: &mut Truth, mut step: impl FnMut(u64)) {
    let mut buffer = vec![0; usize::try_from(4 * page_size()).unwrap()];
    let before = read_bytes();
    for n in 0..(PAGES - STEP) / STEP {
        let (mut page, end) = (n * STEP, (n + 1) * STEP);
        step(n + 1);
        for _ in 0..next(seed) % 300 {
            std::hint::spin_loop();
        }
        while page < end {
            let pages = (1 + next(seed) % 4).min(end - page);
            let part = &mut buffer[..usize::try_from(pages * page_size()).unwrap()];
            file.read_exact_at(part, page * page_size()).unwrap();
            (page..page + pages).for_each(|page| truth.reads[usize::try_from(page).unwrap()] += 1);
            page += pages;
        }
    }
    truth.missed += (read_bytes() - before) / page_size();
}

/// One reads pages, once each, while another reads the same pages ahead: none of them is found used.
pub fn reads_beside_read_ahead(dir: &Path) {
    let file = &File::open(cold_file(&dir.join("file"), PAGES)).unwrap();
    for (name, wants) in ways() {
        let mut watch = Watch::new(wants);
        let mut seed = 1;
        for _ in 0..ROUNDS {
            let (here, there) = (&AtomicU64::new(0), &AtomicU64::new(0));
            let reading = File::open(dir.join("file")).unwrap();
            advise(&reading, libc::POSIX_FADV_RANDOM);
            let truth = std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut truth =
                        Truth { tid: tid(), reads: vec![0; usize::try_from(PAGES).unwrap()], missed: 0 };
                    read_beside(&reading, &mut seed, &mut truth, |n| meet(here, there, n));
                    truth
                });
                for n in 0..(PAGES - STEP) / STEP {
                    meet(there, here, n + 1);
                    pages_advise(file, n * STEP, STEP, libc::POSIX_FADV_WILLNEED);
                }
                reader.join().unwrap()
            });
            drop_cache(file);
            let (wasted, counted) = (watch.tick(), watch.threads[&truth.tid]);
            watch.check(&truth);
            let told = format!("{name}: {FIGURES:?} {counted:?}, {} missed, {wasted} wasted", truth.missed);
            watch.same(counted[HITS] + wasted, 0, &told);
            let ahead = watch.threads[&tid()][PREFETCHED];
            let read: u64 = watch.threads.values().map(|figures| figures[AHEAD]).sum();
            watch.same(read, ahead, &format!("used of what was read ahead: {told}"));
            watch.check_followed(&truth);
            watch.followed.clear();
            assert!(
                watch.all_missed || watch.passed > 0,
                "{told}: a page that is followed was said to be there"
            );
        }
        let all = watch.all();
        println!("     {name}: {FIGURES:?} {all:?}");
        assert!(all[AHEAD] > 0 && all[MISSES] > 0, "{name}: {all:?}");
        if wants.files {
            assert_eq!(watch.files, all, "{name}: files and threads");
        }
    }
}

/// Reads a few pages anywhere, again and again, until it is told to stop.
fn read_anywhere(path: &Path, mut seed: u64, stop: &AtomicBool) -> Truth {
    let file = File::open(path).unwrap();
    advise(&file, libc::POSIX_FADV_RANDOM);
    let mut truth = Truth { tid: tid(), reads: vec![0; usize::try_from(PAGES).unwrap()], missed: 0 };
    let mut buffer = vec![0; usize::try_from(MOST * page_size()).unwrap()];
    let before = read_bytes();
    while !stop.load(SeqCst) {
        let (pages, first) = (1 + next(&mut seed) % MOST, next(&mut seed) % (PAGES - 8));
        let part = &mut buffer[..usize::try_from(pages * page_size()).unwrap()];
        file.read_exact_at(part, first * page_size()).unwrap();
        (first..first + pages).for_each(|page| truth.reads[usize::try_from(page).unwrap()] += 1);
    }
    truth.missed = (read_bytes() - before) / page_size();
    truth
}

/// One reads anywhere in a file, of which another takes pages away, and reads some ahead. No more threads than that: where one is
/// preempted the kernel may pass events by.
pub fn reads_beside_evictions(dir: &Path) {
    // Told by its calls alone, a page that goes before it is delivered is seen to be added twice, and not why.
    if Watch::new(Wants::default()).session.plan().brackets == Brackets::Tracepoints {
        println!(
            "     only tracepoints attach here, which tell it to a twentieth: it is shown in the guest of 7.2"
        );
        return;
    }
    let path = &cold_file(&dir.join("file"), PAGES);
    let file = &File::open(path).unwrap();
    for (name, wants) in ways() {
        let (mut watch, stop) = (Watch::new(wants), &AtomicBool::new(false));
        let (mut wasted, mut ticks) = (0, 0);
        let truth = std::thread::scope(|scope| {
            let reader = scope.spawn(move || read_anywhere(path, 1, stop));
            scope.spawn(move || {
                let mut seed = 2;
                while !stop.load(SeqCst) {
                    let away = next(&mut seed) % 2 == 0;
                    let (pages, first) = (1 + next(&mut seed) % 16, next(&mut seed) % (PAGES - 17));
                    let advice = if away { libc::POSIX_FADV_DONTNEED } else { libc::POSIX_FADV_WILLNEED };
                    pages_advise(file, first, pages, advice);
                }
            });
            let (begin, stops) = (Instant::now(), Stops(stop));
            while begin.elapsed() < LASTS {
                wasted += watch.tick();
                ticks += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            drop(stops);
            reader.join().unwrap()
        });
        drop_cache(file);
        wasted += watch.tick();
        let mut all = watch.all();
        println!(
            "     {name}: {ticks} ticks, {wasted} wasted, {} passed by, {FIGURES:?} {all:?}",
            watch.passed
        );
        watch.check(&truth);
        // Nothing of it is there any more. What a read found read ahead, and had to bring in itself since it went meanwhile, is
        // wasted. What was added twice within a read may have been read ahead by the other one in between.
        let (told, ahead, passed) = (all[AHEAD] + wasted, all[PREFETCHED], MOST * watch.passed);
        let range = ahead - all[ORDER] - passed.min(ahead / 2)..=ahead + passed;
        assert!(
            range.contains(&told),
            "{told} used or wasted of {ahead} that were read ahead: {name}, {range:?}"
        );
        assert!(all[HITS] > 0 && all[AHEAD] > 0 && all[MISSES] > 0 && wasted > 0, "{name}: {all:?}");
        watch.check_followed(&truth);
        if wants.files {
            all[ORDER] = 0; // which files have not
            assert_eq!(watch.files, all, "{name}: files and threads");
        }
    }
}
