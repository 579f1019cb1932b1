//! The load that is watched, and run again under other limits.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::tools::*;

/// xorshift128+, the same each time.
struct Random(u64, u64);

impl Random {
    fn next(&mut self) -> f64 {
        let (mut a, b) = (self.0, self.1);
        a ^= a << 23;
        (self.0, self.1) = (b, a ^ b ^ (a >> 18) ^ (b >> 5));
        (self.1.wrapping_add(b) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Reads pages of a file until the time is over: `zipf`, `mix` (a quarter of it a scan over a third of the file), `loop`,
/// `phases` (Zipf's law over one half of the file, then the other, four times its pages each), or `writes` (Zipf's law; three of
/// ten pages are written as well, and for two of ten one of a journal beside the file). Prints the share of the
/// accesses, after a while, whose page was not there, and that of the time that these took.
pub fn load(words: &[String]) {
    let [mode, path, seconds, warm] = words else { panic!("MODE FILE SECONDS WARM: {words:?}") };
    let (seconds, warm): (f64, f64) = (seconds.parse().unwrap(), warm.parse().unwrap());
    let file = File::options().read(true).write(mode == "writes").open(path).unwrap();
    // What the run before has left dirty would stay, on the account of its cgroup.
    file.sync_all().unwrap();
    advise(&file, libc::POSIX_FADV_DONTNEED);
    let mut journal = (mode == "writes").then(|| Journal::new(&Journal::beside(Path::new(path))));
    advise(&file, libc::POSIX_FADV_RANDOM);
    let page = usize::try_from(page_size()).unwrap();
    let pages = file.metadata().unwrap().len() / page_size();
    let length = usize::try_from(pages).unwrap() * page;
    // SAFETY: a fresh mapping that is never touched.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(base, libc::MAP_FAILED);
    let mut sum = 0.0;
    let each = |rank: u64| {
        sum += (rank as f64).powf(-0.9);
        sum
    };
    let ranks: Vec<f64> = (1..=pages).map(each).collect();
    let mut random = Random(12345, 67890);
    let skipped = std::env::var("WHAT_IF_SKIP").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    (0..skipped).for_each(|_| _ = random.next());
    let mut zipf = |among: u64| {
        let at = random.next() * ranks[among as usize - 1];
        let rank = ranks.partition_point(|below| *below < at) as u64;
        // Neighbours in rank are no neighbours in the file; the stride has no divisor in common with the length.
        (rank * 3079 % among, random.next())
    };
    let told = told_to_end();
    let (began, mut scan, mut misses, mut all) = (Instant::now(), 0, 0u64, 0u64);
    let mut waited = Duration::ZERO;
    let mut buffer = vec![0; page];
    for n in 0u64.. {
        let now = began.elapsed().as_secs_f64();
        if now >= seconds || told.load(Ordering::Relaxed) {
            break;
        }
        let (next, other) = zipf(if mode == "phases" { pages / 2 } else { pages });
        let index = match &**mode {
            "loop" => n % pages,
            "mix" if other < 0.25 => {
                scan += 1;
                scan % (pages / 3)
            }
            "phases" => next + (n / (4 * pages) % 2) * (pages / 2),
            _ => next,
        };
        let mut there = 0u8;
        let at = usize::try_from(index).unwrap() * page;
        // SAFETY: a page of the mapping, and a byte for it.
        let known = unsafe { libc::mincore(base.byte_add(at), page, &raw mut there) };
        assert_eq!(known, 0);
        let counts = now >= warm && there & 1 == 0;
        all += u64::from(now >= warm);
        misses += u64::from(counts);
        let before = counts.then(Instant::now);
        assert!(file.read_at(&mut buffer, at as u64).unwrap() > 0);
        waited += before.map_or(Duration::ZERO, |before| before.elapsed());
        let Some(journal) = &mut journal else { continue };
        if other < 0.3 {
            file.write_all_at(&buffer, at as u64).unwrap();
        } else if other < 0.5 {
            journal.write(&buffer);
        }
    }
    println!(
        "{} {}",
        misses as f64 / all as f64,
        waited.as_secs_f64() / (began.elapsed().as_secs_f64() - warm)
    );
}

/// Set in the environment of a load that ends once its input does, if that is sooner.
pub(super) const ENDS_WITH_INPUT: &str = "WHAT_IF_ENDS_WITH_INPUT";

/// True from the moment on at which a load was told to end.
fn told_to_end() -> Arc<AtomicBool> {
    let told = Arc::new(AtomicBool::new(false));
    if std::env::var_os(ENDS_WITH_INPUT).is_some() {
        let told = Arc::clone(&told);
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            told.store(true, Ordering::Relaxed);
        });
    }
    told
}

/// A file whose pages are written in turn, and are on their device soon.
pub(super) struct Journal(File, u64);

impl Journal {
    const PAGES: u64 = 1024;

    pub(super) fn beside(file: &Path) -> PathBuf {
        file.with_extension("journal")
    }

    fn new(path: &Path) -> Self {
        let file = File::options().create(true).truncate(false).write(true).open(path).unwrap();
        file.sync_all().unwrap();
        advise(&file, libc::POSIX_FADV_DONTNEED);
        Self(file, 0)
    }

    fn write(&mut self, page: &[u8]) {
        self.0.write_all_at(page, self.1 % Self::PAGES * page.len() as u64).unwrap();
        self.1 += 1;
        if self.1 % 64 == 0 {
            self.0.sync_data().unwrap();
        }
    }
}
