//! How far the kernel reads ahead on a device.

use std::collections::BTreeMap;
use std::fs;

use crate::files::Dev;

/// The read-ahead setting of a device's or file system's bdi: KiB, and the file that holds it.
pub(in crate::report) fn setting(dev: Dev) -> Option<(u64, String)> {
    let candidates = [
        format!("/sys/class/bdi/{dev}/read_ahead_kb"),
        // A partition has that of its disk.
        format!("/sys/dev/block/{dev}/../bdi/read_ahead_kb"),
        format!("/sys/dev/block/{dev}/queue/read_ahead_kb"),
    ];
    let btrfs = || {
        // btrfs names its bdi by a number of its own: only where there is one it must be that.
        let all = fs::read_dir("/sys/class/bdi").ok()?;
        let mut all = all.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("btrfs-"));
        let only = all.next().filter(|_| all.next().is_none())?;
        Some(format!("{}/read_ahead_kb", only.path().display()))
    };
    let read = |path: String| Some((fs::read_to_string(&path).ok()?.trim().parse().ok()?, path));
    let is_btrfs = dev.major == 0;
    candidates.into_iter().find_map(read).or_else(|| btrfs().filter(|_| is_btrfs).and_then(read))
}

/// All settings of this machine, by the files that hold them, as they are called without links.
pub(in crate::report) fn settings() -> BTreeMap<String, u64> {
    let all = fs::read_dir("/sys/class/bdi").into_iter().flatten().flatten();
    let one = |e: fs::DirEntry| {
        let path = fs::canonicalize(e.path().join("read_ahead_kb")).ok()?;
        Some((path.display().to_string(), fs::read_to_string(&path).ok()?.trim().parse().ok()?))
    };
    all.filter_map(one).collect()
}
