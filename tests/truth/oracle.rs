//! The oracle: what every page of one file was before each call, by mincore, with read-ahead settled.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use cachetop::figures::Figure;

use crate::expect::Expect;
use crate::fs::Fs;
use crate::sys;

/// Pages looked at past the end of the file: 5.10 adds one there.
const SLACK: usize = 40;

/// Why a page is in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    /// Read, written, or there before we looked.
    Used,
    /// Brought in ahead of any use.
    Ahead,
}

/// What was counted.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    pub hits: u64,
    pub ahead_hits: u64,
    pub misses: u64,
    pub bytes: u64,
    /// Calls that delivered something, and those of them that missed.
    pub calls: u64,
    pub missed_calls: u64,
    /// Pages that reading added inside the range of a call.
    pub miss_fills: u64,
    /// Pages that reading added outside of it.
    pub ahead: u64,
    pub wasted: u64,
    pub gone: u64,
    pub write_hits: u64,
    pub write_misses: u64,
    pub write_fills: u64,
    pub write_bytes: u64,
}

/// Follows the pages of one file through the calls of one process.
pub struct Oracle {
    file: File,
    map: sys::Map,
    page: u64,
    state: Vec<State>,
    settler: Settler,
    trace: bool,
    pub tally: Tally,
}

impl Oracle {
    /// Looks at the file as it is now; whatever is cached counts as used.
    pub fn new(file: &File, fs: Fs) -> io::Result<Self> {
        let page = sys::page_size();
        let pages = file.metadata()?.size().div_ceil(page) as usize + SLACK;
        let mut new = Self {
            file: file.try_clone()?,
            map: sys::Map::new(file, pages)?,
            page,
            state: vec![State::Absent; pages],
            settler: Settler::new(file, fs)?,
            trace: std::env::var_os("TRUTH_TRACE").is_some(),
            tally: Tally::default(),
        };
        let now = new.resident();
        new.state = now.iter().map(|r| if *r { State::Used } else { State::Absent }).collect();
        Ok(new)
    }

    /// Where the device is done, and pages come only later: a worker has to unpack them.
    pub fn patient(mut self) -> Self {
        self.settler.inflight = None;
        self
    }

    /// Residency with nothing in flight.
    pub fn resident(&mut self) -> Vec<bool> {
        self.settler.settle(&self.file, &self.map, self.state.len() as u64 * self.page)
    }

    /// Pages in the cache now.
    pub fn cached(&mut self) -> u64 {
        self.resident().iter().filter(|r| **r).count() as u64
    }

    /// Whether pages that a server still owes can be told from pages that are not there (cachestat(2), 6.5).
    pub fn sees_flight(&self) -> bool {
        self.settler.cachestat
    }

    /// True if something was still in flight when patience ran out.
    pub fn unsettled(&self) -> bool {
        self.settler.gave_up
    }

    fn range(&self, pos: u64, len: u64) -> std::ops::Range<usize> {
        if len == 0 {
            return 0..0;
        }
        let last = (pos + len - 1) / self.page;
        (pos / self.page) as usize..(last as usize + 1).min(self.state.len())
    }

    /// Looks again; pages that came are fills of `range` or read-ahead, pages that went are gone.
    fn refresh(&mut self, range: std::ops::Range<usize>, writing: bool) {
        for (page, now) in self.resident().into_iter().enumerate() {
            let state = &mut self.state[page];
            match (now, *state) {
                (true, State::Absent) if range.contains(&page) => {
                    *(if writing { &mut self.tally.write_fills } else { &mut self.tally.miss_fills }) += 1;
                    *state = State::Used;
                }
                (true, State::Absent) => {
                    self.tally.ahead += 1;
                    *state = State::Ahead;
                }
                (false, State::Used | State::Ahead) => {
                    self.tally.gone += 1;
                    self.tally.wasted += u64::from(*state == State::Ahead);
                    *state = State::Absent;
                }
                _ => {}
            }
        }
    }

    /// Runs a call that reads at `pos` and returns what it delivered.
    pub fn read(&mut self, pos: u64, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        let was = self.trace.then(|| self.tally.clone());
        let result = call();
        let got = *result.as_ref().unwrap_or(&0) as u64;
        let range = self.range(pos, got);
        self.tally.bytes += got;
        self.tally.calls += u64::from(got > 0);
        let absent = |page: &usize| self.state[*page] == State::Absent;
        self.tally.missed_calls += u64::from(range.clone().any(|page| absent(&page)));
        for page in range.clone() {
            match self.state[page] {
                State::Absent => self.tally.misses += 1,
                State::Used => self.tally.hits += 1,
                State::Ahead => {
                    self.tally.ahead_hits += 1;
                    self.state[page] = State::Used;
                }
            }
        }
        self.refresh(range, false);
        if let Some(was) = was {
            let t = &self.tally;
            eprintln!(
                "read {pos}+{got}: hits {} first uses {} misses {} ahead {}",
                t.hits - was.hits,
                t.ahead_hits - was.ahead_hits,
                t.misses - was.misses,
                t.ahead - was.ahead
            );
        }
        result
    }

    /// Runs a call that writes at `pos` and returns what it took.
    pub fn write(&mut self, pos: u64, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        let result = call();
        let took = *result.as_ref().unwrap_or(&0) as u64;
        let range = self.range(pos, took);
        self.tally.write_bytes += took;
        for page in range.clone() {
            if self.state[page] == State::Absent {
                self.tally.write_misses += 1;
            } else {
                self.tally.write_hits += 1;
                self.state[page] = State::Used;
            }
        }
        self.refresh(range, true);
        result
    }

    /// Runs something that reads nothing but may bring pages in or drop them.
    pub fn aside<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let result = call();
        self.refresh(0..0, false);
        result
    }

    /// The expectation that follows, every figure exact.
    pub fn expect(&self) -> Expect {
        let t = &self.tally;
        let mut e = Expect::nothing();
        e.exact(Figure::Accesses, t.hits + t.ahead_hits + t.misses);
        e.exact(Figure::Hits, t.hits);
        e.exact(Figure::ReadAheadHits, t.ahead_hits);
        e.exact(Figure::Misses, t.misses);
        e.exact(Figure::ReadBytes, t.bytes);
        e.exact(Figure::ReadCalls, t.calls);
        e.exact(Figure::ReadMissedCalls, t.missed_calls);
        e.exact(Figure::ReadAheadPages, t.ahead);
        e.exact(Figure::ReadAheadWasted, t.wasted);
        e.exact(Figure::Fills, t.miss_fills + t.ahead);
        e.exact(Figure::Removed, t.gone);
        e.exact(Figure::WriteAccesses, t.write_hits + t.write_misses);
        e.exact(Figure::WriteHits, t.write_hits);
        e.exact(Figure::WriteMisses, t.write_misses);
        if self.unsettled() {
            e.note("the oracle gave up waiting for read-ahead to settle".into());
        }
        e
    }
}

/// Waits until what was submitted has arrived.
struct Settler {
    fs: Fs,
    cachestat: bool,
    inflight: Option<PathBuf>,
    last_io: u64,
    gave_up: bool,
}

impl Settler {
    fn new(file: &File, fs: Fs) -> io::Result<Self> {
        let cachestat = sys::cachestat(file, 1).is_ok();
        let inflight = if cachestat || !fs.block() { None } else { inflight_file(file)? };
        Ok(Self { fs, cachestat, inflight, last_io: u64::MAX, gave_up: false })
    }

    fn settle(&mut self, file: &File, map: &sys::Map, len: u64) -> Vec<bool> {
        if !self.fs.block() {
            return map.resident();
        }
        let patience = Duration::from_millis(if self.gave_up { 40 } else { 5000 });
        let deadline = Instant::now() + patience;
        if self.cachestat {
            self.by_cachestat(file, map, len, deadline)
        } else {
            self.by_device(map, deadline)
        }
    }

    /// From 6.5: the kernel says how many pages there are, those in flight included.
    fn by_cachestat(&mut self, file: &File, map: &sys::Map, len: u64, deadline: Instant) -> Vec<bool> {
        loop {
            let all = sys::cachestat(file, len).expect("cachestat worked before");
            let now = map.resident();
            if now.iter().filter(|r| **r).count() as u64 == all {
                return now;
            }
            if Instant::now() > deadline {
                self.gave_up = true;
                return now;
            }
            sleep(Duration::from_micros(200));
        }
    }

    /// Before: nothing was submitted, or the device is idle and mincore has stopped changing.
    fn by_device(&mut self, map: &sys::Map, deadline: Instant) -> Vec<bool> {
        let io = proc_io("read_bytes");
        let mut now = map.resident();
        if io == self.last_io && self.inflight.is_some() {
            return now;
        }
        self.last_io = io;
        let quiet = match () {
            () if self.inflight.is_none() => 25, // a server, or a worker, that nobody can ask whether it is done
            // btrfs marks its pages up to date from a worker, after the device is done.
            () if self.fs == Fs::Btrfs => 5,
            () => 2,
        };
        let mut same = 0;
        while same < quiet {
            if Instant::now() > deadline {
                self.gave_up = true;
                break;
            }
            sleep(Duration::from_millis(1));
            let next = map.resident();
            same = if next == now && !self.busy() { same + 1 } else { 0 };
            now = next;
        }
        now
    }

    fn busy(&self) -> bool {
        let read = self.inflight.as_ref().and_then(|p| std::fs::read_to_string(p).ok());
        read.is_some_and(|s| s.split_whitespace().next() != Some("0"))
    }
}

/// A counter of `/proc/self/io`.
pub fn proc_io(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines()
        .filter_map(|l| l.split_once(": "))
        .find(|(k, _)| *k == key)
        .and_then(|(_, v)| v.parse().ok())
        .unwrap_or(0)
}

/// `/sys/dev/block/M:m/inflight` of the device behind a file.
fn inflight_file(file: &File) -> io::Result<Option<PathBuf>> {
    let dev = file.metadata()?.dev();
    let id = format!("{}:{}", libc::major(dev), libc::minor(dev));
    let direct = PathBuf::from(format!("/sys/dev/block/{id}/inflight"));
    if direct.exists() {
        return Ok(Some(direct));
    }
    // btrfs: files show an anonymous device; the mount table names the real one.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    for line in mounts.lines() {
        let f: Vec<&str> = line.split(' ').collect();
        let Some(dash) = f.iter().position(|s| *s == "-") else { continue };
        if f.get(dash + 1) == Some(&"btrfs") && f.len() > dash + 2 {
            let rdev = std::fs::metadata(f[dash + 2])?.rdev();
            let id = format!("{}:{}", libc::major(rdev), libc::minor(rdev));
            return Ok(Some(PathBuf::from(format!("/sys/dev/block/{id}/inflight"))));
        }
    }
    Ok(None)
}
