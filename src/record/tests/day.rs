//! A day of a made load through the recorder, by a clock that runs faster: what is in the ring is what was counted, tick by
//! tick and row by row, and the recorder does not grow.

use super::*;
use crate::record::moments::Moments;
use crate::sample::Source as _;

/// Rows that are active in each tick.
const ROWS: u32 = 100;
/// What they count.
const WHICH: [Counter; 4] = [Counter::ReadHits, Counter::ReadMisses, Counter::ReadBytes, Counter::ReadCalls];
const HOUR: u32 = 3600;

/// A number that each row of each tick has, and that nothing must remember.
fn noise(tick: u32, row: u32, which: u32) -> u64 {
    let mut x = u64::from(tick) << 24 | u64::from(row) << 4 | u64::from(which);
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) >> 20
}

/// What a row counts in a tick: a few do much, most do little, one in ten misses.
fn counted(tick: u32, row: u32) -> [u64; 4] {
    let hits = 1 + noise(tick, row, 0) % (1 << (1 + row % 11));
    let misses = if row % 10 == 0 { noise(tick, row, 1) % 20 } else { 0 };
    let calls = if row % 2 == 0 { hits } else { hits / 4 + 1 };
    [hits, misses, (hits + misses) * 4096, calls]
}

/// The source: it has no past but its sums.
struct Load {
    start: Moment,
    time: jiff::Timestamp,
    total: [u64; 4],
}

impl Load {
    fn new() -> Self {
        Self { start: Moment::now(), time: fixtures::nine(), total: [0; 4] }
    }

    fn time(&self, tick: u32) -> jiff::Timestamp {
        self.time + jiff::SignedDuration::from_secs(tick.into())
    }

    fn sample(&mut self, tick: u32) -> Sample {
        let mut rows = Vec::new();
        for row in 0..ROWS {
            let counted = counted(tick, row);
            self.total.iter_mut().zip(counted).for_each(|(t, n)| *t += n);
            let pairs: Vec<_> = WHICH.into_iter().zip(counted).collect();
            // Now and then one ends, and another one begins.
            let id = 1000 + row + 1000 * ((tick + 37 * row) / 1800 % 50);
            rows.push(fixtures::process(id, &format!("worker-{}", row % 20), &pairs));
        }
        let pairs: Vec<_> = WHICH.into_iter().zip(self.total).collect();
        let mut sample = fixtures::sample(self.start, Duration::from_secs(tick.into()), &pairs);
        sample.time = self.time(tick);
        sample.memory.cached_bytes += noise(tick, 0, 3) % (1 << 16) * 4096;
        sample.rows = rows;
        sample
    }
}

fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Processor time of this thread.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn length(directory: &Path) -> u64 {
    shards(directory).unwrap().iter().map(|p| fs::metadata(p).unwrap().len()).sum()
}

/// So many ticks into a ring that keeps them all, and into a small one whose files grow old as fast as the clock runs.
fn run(ticks: u32, alone: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (ring, small) = (dir.path().join("ring"), dir.path().join("small"));
    let second = Duration::from_secs(1);
    let large = Bounds { size: 1 << 30, age: Duration::from_secs(30 * 24 * 3600) };
    // The larger part of a day has no room in it, and a quarter is too old.
    let bounds = Bounds { size: 12 << 20, age: Duration::from_secs(6 * 3600) };
    let mut writer = Writer::ring(&ring, large, second).unwrap();
    let mut other = Writer::ring(&small, bounds, second).unwrap();
    let mut moments = Moments::new(&ring, 3, second);
    let (mut load, mut memory, mut open) = (Load::new(), Vec::new(), Vec::new());
    let (mut recording, mut keeping) = (Duration::ZERO, Duration::ZERO);
    for tick in 0..ticks {
        let mut sample = load.sample(tick);
        let begun = worked();
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        let written = worked();
        if tick % HOUR == HOUR - 60 {
            moments.tell(&sample, "an hour is nearly over").unwrap();
        }
        moments.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        recording += written - begun;
        keeping += worked() - written;
        other.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
        if tick % HOUR == HOUR / 2 {
            memory.push(resident());
            open.push(descriptors());
            assert!(length(&small) <= bounds.size, "hour {}", tick / HOUR);
        }
    }
    let (size, a_day) = (length(&ring), 24 * u64::from(HOUR));
    println!(
        "{ticks} ticks: {size} bytes, {:.1} MiB a day; {:?} of a processor a tick, {:?} more for moments",
        size as f64 * a_day as f64 / f64::from(ticks) / f64::from(1 << 20),
        recording / ticks,
        keeping / ticks
    );
    println!("resident, each hour: {memory:?}; descriptors: {open:?}");
    assert!(size * a_day / u64::from(ticks) <= 40 << 20);
    if alone {
        let (low, high) = (memory.iter().min().unwrap(), memory.iter().max().unwrap());
        assert!(*high <= 20 << 20 && high - low <= 2 << 20, "{memory:?}");
        assert!(open.iter().all(|n| *n == open[0]), "{open:?}");
        assert!(recording / ticks <= Duration::from_millis(1));
        // By size alone it would keep ten hours, by age six; the file in which the sixth ends stays as a whole.
        let opened = Replay::open(&small, &Part::default(), Box::new(|_| ())).unwrap();
        let kept = load.time(ticks - 1).duration_since(opened.begins).as_secs();
        println!("the small ring has {kept} s");
        assert!((5 * 3600..9 * 3600).contains(&kept), "{kept}");
    }
    drop((writer, other, moments));
    // What is read back is what the source makes once more.
    let mut opened = Replay::open(&ring, &Part::default(), Box::new(|said| panic!("{said}"))).unwrap();
    let mut again = Load { start: load.start, ..Load::new() };
    for tick in 0..ticks {
        if tick > 0 {
            assert_eq!(crate::wait::Wait::until(&mut opened.clock, Instant::now()).unwrap(), Wake::Deadline);
        }
        let (mut want, mut there) = (again.sample(tick), opened.replay.sample().unwrap());
        for sample in [&mut want, &mut there] {
            sample.rows.sort_by_key(|r| r.tgid);
        }
        assert_eq!((want.total, want.time, want.memory), (there.total, there.time, there.memory), "{tick}");
        if tick > 0 {
            assert!(want.rows == there.rows, "the rows of {tick}");
        }
    }
    // From anywhere.
    let mut slowest = Duration::ZERO;
    for place in 0..24 {
        let tick = ticks * place / 24 + 1;
        let part = Part { from: Some(When::At(load.time(tick))), ..Part::default() };
        let begun = worked();
        let mut opened = Replay::open(&ring, &part, Box::new(|_| ())).unwrap();
        opened.replay.sample().unwrap();
        crate::wait::Wait::until(&mut opened.clock, Instant::now()).unwrap();
        let first = opened.replay.sample().unwrap();
        slowest = slowest.max(worked() - begun);
        assert_eq!(first.time, load.time(tick));
    }
    println!("{slowest:?} of a processor to begin anywhere, at most");
    assert!(slowest <= Duration::from_millis(if alone { 100 } else { 2000 }));
}

/// A day, for figures of which the rest of the tests has no part: by itself, as it is shipped.
///
///     cargo test --release --lib a_day_in_five_minutes -- --ignored --nocapture
#[test]
#[ignore = "a measurement of some minutes"]
fn a_day_in_five_minutes() {
    run(24 * HOUR, true);
}

#[test]
fn twenty_minutes_come_back_as_they_were() {
    run(1200, false);
}
