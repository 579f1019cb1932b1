//! Pages that were pushed out of the cache while a run lasted and were missed: by whom (`--blame`).

use serde_json::json;

use super::common::MANY;
use super::common::percent;
use super::finding::Finding;
use crate::blame::How;
use crate::report::data::FileRow;
use crate::report::data::Run;
use crate::report::pushed::Pushed;
use crate::report::pushed::Row;
use crate::report::units::page;
use crate::report::units::share;
use crate::text::foreign;
use crate::text::foreign::Foreign;

/// Whether pages went so that somebody could have the room, or because somebody said so: not given up with what was in them.
/// For whom kswapd makes room is not known.
fn pushes(how: How) -> bool {
    !matches!(how, How::Kswapd | How::Deleted | How::Truncated | How::Invalidated)
}

/// Whether this is what others did to it.
fn by_others(row: &Row) -> bool {
    !row.own && row.kind.is_some_and(pushes)
}

/// What can be done about it.
fn remedy(how: How) -> &'static str {
    match how {
        How::Limit => {
            "Raise memory.max (memory.high) of the cgroup whose limit was reached, or run one of the two in a cgroup of its own."
        }
        How::Direct | How::Reclaim => {
            "Bound the other by a cgroup with memory.high, or keep this one's pages by memory.low of its cgroup."
        }
        How::Dontneed => {
            "The other gives pages up (POSIX_FADV_DONTNEED) that it is not the only one to use: run it at another time, or \
             have it ask mincore(2) or cachestat(2) before it reads what it gives up."
        }
        How::Proactive => "Whoever writes to memory.reclaim takes more than what is not used: ask for less.",
        How::Damon => "DAMON takes what is used: its threshold of age is too low.",
        _ => "Do not do that while this runs.",
    }
}

pub(super) fn by_another(run: &Run, _: &[&Run]) -> Option<Finding> {
    let pushed = run.blame.as_ref()?;
    let again = pushed.again(by_others)?;
    let fetched = run.brought_in()?;
    if again < MANY || share(again, fetched) < 0.1 {
        return None;
    }
    // Who it was: cgroup, process and way, those that cost most first.
    let mut whom: Vec<(&Row, u64)> = Vec::new();
    for row in pushed.rows.iter().filter(|row| by_others(row)) {
        let n = row.again_pages?;
        match whom.iter_mut().find(|(known, _)| known.by == row.by && known.kind == row.kind) {
            Some((_, sum)) => *sum += n,
            None => whom.push((row, n)),
        }
    }
    whom.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let how = whom.first()?.0.kind?;
    let mut told: Vec<String> = whom
        .iter()
        .take(3)
        .map(|(row, n)| {
            let (group, process) = (row.by.cgroup.as_ref(), row.by.process.as_ref());
            let way = row.kind.map_or("", How::text);
            format!(
                "{} by {} in {} ({way})",
                run.volume(*n),
                foreign::or(process, "-"),
                foreign::or(group, "-")
            )
        })
        .collect();
    let rest: u64 = whom.iter().skip(3).map(|(_, n)| n).sum();
    if rest > 0 {
        told.push(format!("{} by others", run.volume(rest)));
    }
    // Names are foreign: nothing is replaced in them.
    let text = format!(
        "{} were pushed out of the cache by others while it ran, and it had to bring them in again ({} of all that it \
         fetched): {}.",
        run.volume(again),
        percent(share(again, fetched)),
        told.join(", "),
    );
    let by: Vec<_> = whom
        .iter()
        .take(10)
        .map(|(row, n)| json!({ "cgroup": row.by.cgroup, "process": row.by.process, "how": row.how, "again_pages": n }))
        .collect();
    let evidence = json!({ "again_pages": again, "fetched_pages": fetched, "by": by });
    Some(Finding::new("pushed-out-by", text, evidence)?.remedy(remedy(how)))
}

/// Pages that a file has, if it was read once from end to end and no more, and those of them that were brought in more than
/// once all the same.
fn once(file: &FileRow) -> Option<(u64, u64)> {
    let size = file.size?;
    let pages = size.div_ceil(page());
    let (used, all) = (file.misses + file.readahead_hits, file.misses + file.readahead_hits + file.hits);
    let one_pass = file.read_bytes <= pages * page() && file.read_bytes >= size / 10 * 9;
    // In order, as read-ahead proves: what it fetched, and no more, is most of what was used.
    let in_order = file.readahead_hits >= used / 2 && file.fault_misses + file.fault_hits == 0;
    let new = file.hits * 10 <= all;
    let fetched = file.misses + file.readahead_pages;
    (pages >= MANY && one_pass && in_order && new).then(|| (pages.min(used), fetched.saturating_sub(pages)))
}

/// Pages that it used beside what it read once: no more than these.
fn others(run: &Run, scanned: &[(&FileRow, u64, u64)]) -> Option<u64> {
    let of = |f: &FileRow| f.misses + f.readahead_pages + f.fault_misses;
    let known: u64 = run.files.iter().map(of).sum();
    let is_scanned = |f: &FileRow| scanned.iter().any(|(other, ..)| std::ptr::eq(*other, f));
    let rest = run.files.iter().filter(|f| !is_scanned(f)).map(|f| {
        let used = f.hits + f.misses + f.readahead_hits + f.fault_hits + f.fault_misses;
        f.size.map_or(used, |size| size.div_ceil(page()).min(used))
    });
    Some(rest.sum::<u64>() + run.brought_in()?.saturating_sub(known))
}

/// Pages that there was room for, at least: what was brought in and did not go.
fn room_seen(run: &Run, pushed: &Pushed) -> Option<u64> {
    let gone: u64 = pushed.rows.iter().map(|row| row.out_pages).sum();
    Some(run.brought_in()?.saturating_sub(gone))
}

pub(super) fn scan(run: &Run, _: &[&Run]) -> Option<Finding> {
    let pushed = run.blame.as_ref()?;
    // In its own context, and since it needed room: not what kswapd took, of whom is not known for whom.
    let own = |row: &&Row| row.own && matches!(row.kind, Some(How::Limit | How::Direct));
    let rows: Vec<&Row> = pushed.rows.iter().filter(own).collect();
    let out: u64 = rows.iter().map(|row| row.out_pages).sum();
    let back: u64 = rows.iter().map(|row| row.back_pages).sum::<Option<u64>>()?;
    let again: u64 = rows.iter().map(|row| row.again_pages).sum::<Option<u64>>()?;
    let scanned: Vec<(&FileRow, u64, u64)> =
        run.files.iter().filter_map(|file| once(file).map(|(pages, twice)| (file, pages, twice))).collect();
    let (pages, twice) = scanned.iter().fold((0, 0), |sum, (_, n, twice)| (sum.0 + n, sum.1 + twice));
    // What came back that cannot have been the scan's own.
    let missed = back.saturating_sub(twice);
    if missed < MANY || share(missed, out) < 0.1 {
        return None;
    }
    // The scan, and not memory of its own or what it reads otherwise, was what room was needed for: most of all that it brought
    // in, and more than all the pages that it began to use otherwise.
    let faults = run.usage.minor_faults?;
    if pages < out / 2 || share(pages, run.brought_in()?) < 0.5 || faults > pages / 4 {
        return None;
    }
    // Without the scan there would have been room for all else: it did not push itself out.
    if others(run, &scanned)? > room_seen(run, pushed)? {
        return None;
    }
    let (largest, ..) = scanned.iter().max_by_key(|(_, pages, _)| *pages)?;
    let whose = match missed.saturating_sub(again) {
        0 => "by itself".to_owned(),
        _ if again == 0 => "by others".to_owned(),
        _ => format!("{} of what came back by itself", run.volume(again)),
    };
    let path: Option<&Foreign> = largest.path.as_ref();
    let text = format!(
        "What it reads once pushes out what is used again: to read at least {} once from end to end it pushed out {}, of which at least {} \
         were read again while it ran, {whose}. The largest of what it read once is {}.",
        run.volume(pages),
        run.volume(out),
        run.volume(missed),
        foreign::or(path, "?"),
    );
    let evidence = json!({ "scanned_pages": pages, "files": scanned.len(), "path": path, "pushed_out_pages": out,
        "came_back_pages": back, "again_pages": again, "scanned_twice_pages": twice, "minor_faults": faults });
    Some(Finding::new("scan-evicts-hot-set", text, evidence)?.remedy(
        "Have it give back what it has read (POSIX_FADV_DONTNEED behind itself, RWF_DONTCACHE from 6.14 on) or say that it will \
         not use it again (POSIX_FADV_NOREUSE, from 6.3 on); or run the scan in a cgroup of its own with memory.high, so that it \
         pushes out its own pages.",
    ))
}

/// What a run brought in again of what had gone while it ran for want of room, others' part left out.
pub(super) struct Room {
    /// What it pushed out itself.
    pub(super) own: u64,
    /// What kswapd took: for nobody in particular.
    pub(super) kswapd: u64,
}

impl Room {
    /// All of it.
    pub(super) const fn pages(&self) -> u64 {
        self.own + self.kswapd
    }

    /// Whether most of it was its own doing: for whom kswapd ran is not known.
    pub(super) const fn is_own(&self) -> bool {
        self.own > self.kswapd
    }
}

/// What it brought in again of what it pushed out itself, and of what kswapd took. `None`: that is not known, or others are the
/// reason for most of it.
pub(super) fn for_room(run: &Run) -> Option<Room> {
    let pushed = run.blame.as_ref()?;
    let others = pushed.again(by_others)?;
    let own =
        pushed.again(|row| row.own && row.kind.is_some_and(|how| how != How::Kswapd && how.reclaims()))?;
    let kswapd = pushed.again(|row| row.kind == Some(How::Kswapd))?;
    Some(Room { own, kswapd }).filter(|room| room.pages() > others)
}
