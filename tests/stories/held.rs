//! The stories of who is held back by what is no matter of cached files: memory that was swapped out, a cgroup whose reads are
//! bounded.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::MIB;
use crate::PAGE;
use crate::cold_file;
use crate::pressure::fast;
use crate::pressure::me;
use crate::sys;
use crate::told;

/// Pages of the story below that are swapped out, and come back.
const OUT: u64 = 512;

/// A file of a slow disk to swap to: written as mkswap(8) does, and used until this goes.
struct Swap(std::ffi::CString);

impl Swap {
    fn on(path: &Path) -> Self {
        const SIZE: u64 = 32 * MIB;
        let file = File::create(path).unwrap();
        file.write_all_at(&vec![0; usize::try_from(SIZE).unwrap()], 0).unwrap();
        // A version, the last page, and no bad ones; the mark is at the end of the first page.
        file.write_all_at(
            &[1u32, u32::try_from(SIZE / PAGE - 1).unwrap(), 0].map(u32::to_le_bytes).concat(),
            1024,
        )
        .unwrap();
        file.write_all_at(b"SWAPSPACE2", PAGE - 10).unwrap();
        file.sync_all().unwrap();
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path outlives the call.
        assert_eq!(unsafe { libc::swapon(path.as_ptr(), 0) }, 0, "{}", std::io::Error::last_os_error());
        Self(path)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // SAFETY: the path outlives the call.
        unsafe { libc::swapoff(self.0.as_ptr()) };
    }
}

/// A cgroup of version 2, mounted where reports look if nobody has, and gone with this.
struct Group {
    dir: PathBuf,
    mounted: bool,
}

impl Group {
    const ROOT: &str = "/sys/fs/cgroup";

    fn new(name: &str, controllers: &str) -> Self {
        let root = Path::new(Self::ROOT);
        let mounted = !root.join("cgroup.controllers").exists();
        if mounted {
            sys::mount("none".as_ref(), root, "cgroup2", "").unwrap();
        }
        fs::write(root.join("cgroup.subtree_control"), controllers).unwrap();
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        Self { dir, mounted }
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.dir.join(file), value).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // This process may be in it.
        let _ = fs::write(Path::new(Self::ROOT).join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&self.dir);
        if self.mounted {
            sys::unmount(Self::ROOT.as_ref());
        }
    }
}

/// A program waits for its own memory, which had been swapped out: its cgroup has room for half of what it writes, and what it
/// reads again comes from a disk of 25 requests a second, some pages at a time.
pub fn swapped_out(dir: &Path) {
    let swap = Swap::on(&dir.join("swap"));
    let group = Group::new("swapping", "+memory");
    let of = |limit: u64| {
        group.set("memory.max", &limit.to_string());
        let line = format!("echo $$ >{}/cgroup.procs; exec {} --swapped {OUT}", group.dir.display(), me());
        let before = sys::vmstat("pswpin");
        (told("", &["sh", "-c", &line]), sys::vmstat("pswpin") - before)
    };
    let (t, came) = of(8 * MIB);
    let (roomy, _) = of(200 * MIB);
    drop(group);
    drop(swap);
    let found = t.has("swapped");
    let n = |key: &str| found["evidence"][key].as_u64().unwrap();
    println!("  {found}; pswpin {came}");
    assert!(came >= OUT, "{came}");
    assert!((OUT / 2..=came).contains(&n("own_at_most_pages")), "{came}: {found}");
    assert_eq!(n("swapped_in_pages"), came, "{found}");
    assert!((OUT / 16..=came).contains(&n("swap_faults")), "{found}");
    // That is no matter of the cache: no advice of read-ahead, and no other name for it.
    for other in ["waited-for-data", "waited-in-faults", "working-set-too-large"] {
        t.has_not(other);
    }
    t.because("faults", 0.7..=1.0);
    assert!(t.share("data").is_some_and(|share| share < 0.05), "{}", t.0["verdict"]);
    roomy.has_not("swapped");
}

/// Writes memory of its own, sixteen MiB, and reads so many pages of its beginning. For the story above.
pub fn swapped(pages: &str) {
    let mut all = vec![0u8; 16 << 20];
    let page = usize::try_from(PAGE).unwrap();
    for (n, page) in all.chunks_exact_mut(page).enumerate() {
        page[0] = u8::try_from(n % 251).unwrap() + 1;
    }
    for (n, page) in std::hint::black_box(&all).chunks_exact(page).take(pages.parse().unwrap()).enumerate() {
        assert_eq!(usize::from(page[0]), n % 251 + 1);
    }
}

/// A cgroup that may read half a MiB a second of a disk that gives far more. Cgroups of version 2 only, as guests have.
pub fn bounded_by_io_max(_: &Path) {
    const RATE: u64 = MIB / 2;
    let group = Group::new("bounded", "+io");
    let path = cold_file(&fast(), "bounded", 2 * MIB);
    let device = fs::metadata(&path).unwrap().dev();
    let device = format!("{}:{}", libc::major(device), libc::minor(device));
    group.set("io.max", &format!("{device} rbps={RATE}"));
    // The report looks where it is itself.
    group.set("cgroup.procs", "0");
    let t = told("", &["cat", path.to_str().unwrap()]);
    let again = told("", &["cat", path.to_str().unwrap()]);
    drop(group);
    let found = t.has("waited-for-data");
    println!("  {found}");
    let limit = &found["evidence"]["io_max"][0];
    assert_eq!(
        (&limit["cgroup"], limit["device"].as_str()),
        (&"/bounded".into(), Some(device.as_str())),
        "{found}"
    );
    assert_eq!((limit["bytes"].as_u64(), &limit["requests"]), (Some(RATE), &serde_json::Value::Null));
    assert!(found["remedy"].as_str().unwrap().contains("io.max of /bounded"), "{found}");
    t.because("data", 0.7..=1.0);
    // Neither the device nor the setting of read-ahead is said to have been the limit.
    assert!(!found["text"].as_str().unwrap().contains("ead-ahead"), "{found}");
    // From the cache it is not slower than elsewhere, and nobody is told to raise it.
    again.has_not("waited-for-data");
    assert!(!again.short().contains("Raise io.max"), "{}", again.short());
}
