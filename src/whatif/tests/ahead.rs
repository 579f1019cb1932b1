//! Read-ahead: what is true at another size is what the kernel's own algorithm would do there.

use std::ops::Range;

use super::super::curve::MODEL_ERROR;
use super::super::pages::beside;
use super::super::pages::is_chosen;
use super::*;

const FILE: u32 = 9000;
const WINDOW: u32 = 32;
const NOW: usize = 3300;

/// A page of the one file.
fn read(page: u64, outcome: Outcome) -> Touch {
    Touch { page: 1 << 32 | page, ..super::read(page, outcome) }
}

/// A cache that reads ahead by itself: a file with its pages, and the last window.
struct Kernel {
    policy: Classic,
    marked: Vec<bool>,
    start: u32,
    size: u32,
    late: u32,
    /// Pages that were read ahead for the read before.
    ahead: Vec<u32>,
}

/// How it is read ahead.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// `page_cache_sync_ra` and `page_cache_async_ra`.
    Reads,
    /// `do_sync_mmap_readahead`: the pages around.
    Faults,
}

impl Kernel {
    fn new(size: usize) -> Self {
        let mut policy = Classic::new(FILE as usize, Statistics::Late);
        policy.resize(size, 1.0);
        Self { policy, marked: vec![false; FILE as usize], start: 0, size: 0, late: 0, ahead: Vec::new() }
    }

    fn submit(&mut self, asked: Range<u32>, late: u32) {
        self.late = late;
        for at in (self.start..self.start + self.size).take_while(|at| *at < FILE) {
            if self.policy.bring(at) {
                self.marked[at as usize] = late > 0 && at == self.start + self.size - late;
                self.ahead.extend((!asked.contains(&at)).then_some(at));
            }
        }
    }

    /// A page is read, and the following ones of the request after it. Whether the page was there; of a read, and had been used.
    fn read(&mut self, page: u32, asked: u32, how: How) -> bool {
        let request = page..page + asked;
        let known = self.policy.has(page) && !(how == How::Reads && self.policy.ahead(page));
        if !self.policy.has(page) {
            let before = (0..page).rev().take(WINDOW as usize);
            let run = before.take_while(|p| self.policy.has(*p)).count() as u32;
            (self.start, self.size) = match how {
                How::Faults => (page.saturating_sub(WINDOW / 2), WINDOW),
                How::Reads if run <= asked => (page, asked),
                How::Reads => (page, (run + asked).min(WINDOW)),
            };
            self.submit(request, u32::from(how == How::Reads && run > asked));
        } else if std::mem::take(&mut self.marked[page as usize]) {
            let next = |size: u32| if size < 2 { 4 * size } else { (2 * size).min(WINDOW) };
            if page == self.start + self.size - self.late {
                self.start += self.size;
                self.size = self.size.max(next(self.size));
                self.submit(request, self.size);
            } else if let Some(from) = (page + 1..FILE).take(WINDOW as usize).find(|p| !self.policy.has(*p)) {
                (self.start, self.size) = (from, next(from - page + asked));
                self.submit(request, self.size);
            }
        }
        self.policy.touch(page, if how == How::Faults { Use::Mapped } else { Use::Marked });
        known
    }
}

/// Pages by a power of chance, which neighbours do not have in common.
fn skewed(power: i32, accesses: usize) -> Vec<u32> {
    let mut random = Random(12345, 67890);
    let pick = |_| (f64::from(FILE) * random.next().powi(power)) as u32 * 3079 % FILE;
    (0..accesses).map(pick).collect()
}

/// By scale: what is predicted, how far it may be off, and what is true, where each of the stream is a request of so
/// many pages. Lengths of lists are known late, as in a cgroup: with exact ones there are cliffs.
fn compare(stream: &[u32], request: u32, how: How, rate: f64) -> Vec<(f64, f64, f64, f64)> {
    let mut simulation = Simulation::new(rate, |pages| Box::new(Classic::new(pages, Statistics::Late)));
    simulation.resize(|scale| Some(NOW as f64 * scale));
    let mut kernels: Vec<_> = SCALES.iter().map(|s| Kernel::new((NOW as f64 * s) as usize)).collect();
    let mut missed = [0; SCALES.len()];
    let mut counted = (0, 0);
    let (around, kind) = match how {
        How::Faults => (Kind::Around, Kind::Fault),
        How::Reads => (Kind::Ahead, Kind::Read),
    };
    let half = stream.len() / 2;
    for (n, page) in stream.iter().enumerate() {
        let mut known = vec![false; request as usize];
        for (i, kernel) in kernels.iter_mut().enumerate() {
            kernel.ahead.clear();
            for (rest, known) in (0..request).rev().zip(&mut known) {
                *known = kernel.read(page + request - 1 - rest, rest + 1, how);
                missed[i] += u64::from(!*known && n >= half);
            }
            if SCALES[i] != 1.0 {
                continue;
            }
            let send =
                |page: u32, kind, outcome, rest| Touch { kind, rest, ..read(u64::from(page), outcome) };
            for page in &kernel.ahead {
                simulation.touch(&send(*page, around, Outcome::Unknown, 0));
            }
            for (rest, known) in (0..request).rev().zip(&known) {
                counted = (counted.0 + 1, counted.1 + u64::from(!known));
                let outcome = if *known { Outcome::Hit } else { Outcome::Missed };
                simulation.touch(&send(page + request - 1 - rest, kind, outcome, rest));
            }
        }
        if (n + 1) % (stream.len() / 32) == 0 {
            simulation.end_slice(Some(std::mem::take(&mut counted)));
            simulation.flush();
            kernels.iter_mut().for_each(|kernel| kernel.policy.flush());
        }
    }
    let points = Curve::new(simulation.slices(), &simulation.sizes(), MODEL_ERROR).points.unwrap();
    let all = points
        .iter()
        .zip(missed)
        .map(|(p, missed)| (p, missed as f64 / (half as u64 * u64::from(request)) as f64));
    let told = all.filter_map(|(p, was)| p.miss_ratio.map(|(said, error)| (p.scale, said, error, was)));
    told.filter(|(scale, ..)| *scale <= 2.0).collect()
}

fn off(points: &[(f64, f64, f64, f64)]) -> (f64, f64) {
    let off = points.iter().map(|(_, said, _, was)| (said - was).abs());
    (off.clone().sum::<f64>() / points.len() as f64, off.fold(0.0, f64::max))
}

#[test]
fn a_file_read_at_random_is_read_ahead_more_the_more_of_it_is_there() {
    // Pages, and blocks of two as databases have them.
    for (power, request) in [(2, 1), (5, 1), (2, 2)] {
        let stream: Vec<u32> =
            skewed(power, 300_000 / request as usize).iter().map(|page| page / request * request).collect();
        let points = compare(&stream, request, How::Reads, 1.0);
        let (mean, worst) = off(&points);
        assert!(points.len() >= 6 && mean <= 0.02 && worst <= 0.05, "{power}, {request}: {points:?}");
        // What it is off by the choice of pages is told.
        let half = compare(&stream, request, How::Reads, 0.5);
        let within = |(_, said, error, was): &(f64, f64, f64, f64)| (said - was).abs() <= error + 0.005;
        assert!(
            half.len() >= 6 && half.iter().all(within) && off(&half).1 <= 0.05,
            "{power}, {request}: {half:?}"
        );
    }
}

#[test]
fn pages_around_faults_take_room_at_every_size() {
    // A read takes a sixteenth of a millisecond to simulate where nothing is optimised.
    for power in [2, 5] {
        let points = compare(&skewed(power, 40_000), 1, How::Faults, 1.0);
        let (mean, worst) = off(&points);
        assert!(points.len() >= 6 && mean <= 0.03 && worst <= 0.05, "{power}: {points:?}");
        // A smaller cache brings in more around more faults: that is not simulated, but told as an error.
        let within = |(_, said, error, was): &(f64, f64, f64, f64)| (said - was).abs() <= *error + 0.005;
        assert!(points.iter().all(within), "{power}: {points:?}");
    }
}

/// A fault that finds a page which was brought in around another one is no miss.
#[test]
fn a_fault_finds_what_another_brought_in() {
    let mut simulation = Simulation::new(1.0, classic);
    simulation.resize(|scale| Some(4000.0 * scale));
    for at in (0..FILE).step_by(8) {
        let send = |page: u32, kind, outcome| Touch { kind, ..read(u64::from(page), outcome) };
        for page in at + 1..at + 8 {
            simulation.touch(&send(page, Kind::Around, Outcome::Unknown));
        }
        simulation.touch(&send(at, Kind::Fault, Outcome::Missed));
        (at + 1..at + 8).for_each(|page| simulation.touch(&send(page, Kind::Fault, Outcome::Hit)));
    }
    simulation.end_slice(None);
    let slice = &simulation.slices()[0];
    for (misses, unknown) in slice.misses.iter().zip(slice.unknown) {
        let misses = misses.iter().sum::<f64>() + unknown;
        // What was brought in just now may be among a batch that goes.
        assert!((f64::from(FILE / 8)..f64::from(FILE / 8 + 20)).contains(&misses), "{misses}");
    }
}

/// What is read from beginning to end is used after it was read ahead: other sizes have no more of it, and no less.
#[test]
fn a_sequential_read_is_read_ahead_as_it_is() {
    let stream: Vec<u32> = (0..4 * FILE).map(|n| n % FILE).collect();
    let points = compare(&stream, 1, How::Reads, 1.0);
    assert!(points.iter().all(|(_, said, _, was)| *said > 0.99 && *was > 0.99), "{points:?}");
    let mut simulation = Simulation::new(1.0, classic);
    simulation.resize(|scale| Some(100.0 * scale));
    for at in (0..FILE).step_by(8) {
        for page in at..at + 8 {
            simulation.touch(&Touch { kind: Kind::Ahead, ..read(u64::from(page), Outcome::Unknown) });
        }
        (at..at + 8).for_each(|page| simulation.touch(&read(u64::from(page), Outcome::Missed)));
    }
    // Each page was brought in once, and missed once.
    simulation.end_slice(None);
    let slice = &simulation.slices()[0];
    for misses in slice.misses.iter().zip(slice.unknown).map(|(m, unknown)| m.iter().sum::<f64>() + unknown) {
        assert_eq!(misses, f64::from(FILE));
    }
}

#[test]
fn what_is_read_ahead_is_no_use() {
    for mut policy in policies(10) {
        policy.resize(5, 1.0);
        assert!(policy.bring(1) && !policy.bring(1));
        assert!(policy.has(1) && policy.ahead(1));
        assert!(!policy.touch(1, Use::Marked) && policy.touch(1, Use::Marked));
        assert!(policy.has(1) && !policy.ahead(1));
        policy.bring(2);
        (3..9).for_each(|page| {
            policy.bring(page);
        });
        assert!(!policy.has(2) && !policy.ahead(2));
    }
}

/// How far a simulation is off at sizes up to four times the present one, of files of which nothing is read ahead, whatever is there
/// before a page (`POSIX_FADV_RANDOM`); but for ten pages after one of so many reads, if the cache of now has found its page.
fn off_at_random(each: Option<usize>) -> Vec<(f64, f64, f64)> {
    const NOW: usize = 1500;
    let stream = skewed(2, 200_000);
    let mut simulation = Simulation::new(1.0, |pages| Box::new(Classic::new(pages, Statistics::Late)));
    simulation.resize(|scale| Some(NOW as f64 * scale));
    let mut alone: Vec<_> = SCALES.iter().map(|_| Classic::new(FILE as usize, Statistics::Late)).collect();
    alone
        .iter_mut()
        .zip(SCALES)
        .for_each(|(policy, scale)| policy.resize((NOW as f64 * scale) as usize, 1.0));
    let mut missed = [0; SCALES.len()];
    let here = SCALES.iter().position(|s| *s == 1.0).unwrap();
    for (n, page) in stream.iter().enumerate() {
        let ahead = each.is_some_and(|each| n % each == 0 && alone[here].has(*page));
        for (i, policy) in alone.iter_mut().enumerate() {
            let ahead = (page + 1..FILE).take(if ahead { 10 } else { 0 });
            for other in ahead.filter(|other| policy.bring(*other)).collect::<Vec<_>>() {
                if i == here {
                    let touch = read(u64::from(other), Outcome::Unknown);
                    simulation.touch(&Touch { kind: Kind::Ahead, ..touch });
                }
            }
            let there = policy.touch(*page, Use::Marked);
            missed[i] += usize::from(!there && n >= stream.len() / 2);
            if i == here {
                let outcome = if there { Outcome::Hit } else { Outcome::Missed };
                simulation.touch(&read(u64::from(*page), outcome));
            }
        }
        if (n + 1) % (stream.len() / 32) == 0 {
            simulation.end_slice(None);
            simulation.flush();
            alone.iter_mut().for_each(Policy::flush);
        }
    }
    let points = Curve::new(simulation.slices(), &simulation.sizes(), MODEL_ERROR).points.unwrap();
    let was = missed.map(|missed| missed as f64 / (stream.len() / 2) as f64);
    points.iter().zip(was).map(|(point, was)| (point.scale, point.miss_ratio.unwrap().0, was)).collect()
}

#[test]
fn where_nothing_is_read_ahead_nothing_is_at_any_size() {
    for (scale, said, was) in off_at_random(None) {
        assert!((said - was).abs() < 0.005, "{scale}: {said}, {was}");
    }
}

/// Reclaim marks a dirty page by the bit that has more read ahead: so it is with files that are told to be random, too. As much of it is no
/// sign that other sizes read ahead by what they have.
#[test]
fn what_is_read_ahead_after_a_dirty_page_is_not_what_a_larger_cache_would_read_ahead() {
    for (scale, said, was) in off_at_random(Some(20)) {
        assert!((said - was).abs() < 0.01, "{scale}: {said}, {was}");
    }
}

/// Of each file as large a part as of all, and a page with its neighbours. Beyond those the stretch is a circle.
#[test]
fn a_part_of_each_file_is_chosen() {
    for file in [1_u64, 77, 0xdead_beef] {
        for rate in [0.5, 0.25, 0.1, 0.03] {
            let chosen = |page: u64| is_chosen(file << 32 | page, rate);
            let all: Vec<u64> = (0..32_000).filter(|page| chosen(*page)).collect();
            let part = all.len() as f64 / 32_000.0;
            assert!((part - rate).abs() < 0.004, "{file} {rate}: {part}");
            assert!(all.iter().all(|page| chosen(page ^ 1) && chosen(page ^ 31)));
            assert!((0..32_000).all(|page| !chosen(page) || is_chosen(file << 32 | page, 2.0 * rate)));
            for page in all.iter().map(|page| file << 32 | page) {
                for by in [-40, -1, 1, 31, 33] {
                    let Some(other) = beside(page, by, rate) else { continue };
                    assert!(
                        is_chosen(other, rate)
                            && (other ^ page) % 32
                                == (page as u32 ^ page.wrapping_add_signed(by.into()) as u32) as u64 % 32
                    );
                }
            }
        }
    }
    assert_eq!(beside(7 << 32 | 3, -4, 1.0), None);
    assert_eq!(beside(7 << 32 | u64::from(u32::MAX), 1, 1.0), None);
    // A constant of the kernel programs as well.
    assert!(include_str!("../../../bpf/touch.h").contains("#define STRETCH_SHIFT 5\n"));
}

/// A reader that goes on from page to page, of which each is missed: the pages before it are not looked at anew each time.
#[test]
fn going_on_costs_no_look_at_all_that_was_there() {
    use super::super::Kind;
    use super::super::Outcome;
    use super::super::Touch;
    use super::super::ahead::Ahead;

    const PAGES: u32 = 4096;
    let mut ahead = Ahead::new(PAGES);
    let looks = std::cell::Cell::new(0_u64);
    let mut runs = Vec::new();
    for index in 0..PAGES {
        let page = 7 << 32 | u64::from(index);
        let touch = Touch {
            page,
            tid: 1,
            kind: Kind::Read,
            outcome: Outcome::Missed,
            part: false,
            rest: 0,
            window: 512,
        };
        ahead.met(page);
        let stream = ahead.reads(&touch);
        let has = |by: i32| {
            looks.set(looks.get() + 1);
            by < 0 && index.checked_add_signed(by).is_some_and(|other| other >= 100)
        };
        let asked = ahead.asks((0, stream), (&touch, index), false, has);
        runs.push(asked.map_or(0, |a| a.to - a.from));
    }
    assert!(looks.get() < 2 * u64::from(PAGES), "{} looks", looks.get());
    assert_eq!(runs[..102].iter().max(), Some(&0), "nothing before is there, or one page");
    assert!(runs[103..].iter().all(|n| *n > 0), "{runs:?}");
}
