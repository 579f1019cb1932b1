//! Metadata that was cached, what overlayfs copies, and what is dropped behind a reader.

use super::super::crowd::Pair;
use super::*;
use crate::report::units;
use crate::report::units::page;

/// A `du` over 5000 files: blocks of metadata, names, and the seconds in which it waited for them.
fn du(number: u32, blocks: u64, names: u64, waited: f64) -> Run {
    let ahead = blocks / 2;
    let mut run = with(&[
        (Figure::MetaAccesses, 51 + 2 * blocks),
        (Figure::MetaHits, 51 + blocks),
        (Figure::MetaAheadHits, ahead),
        (Figure::MetaMisses, blocks - ahead),
    ]);
    run.waits.read_ns = Some(0);
    run.waits.lookup_ns = Some(std::time::Duration::from_secs_f64(waited).as_nanos().try_into().unwrap());
    run.lookups = Lookups { dcache_misses: Some(names), work_ns: Some(names * 70_000) };
    run.usage.device_read_bytes = Some(blocks * page());
    (run.number, run.exit_status) = (number, Some(0));
    (run.usage.user_s, run.usage.system_s) = (Some(0.05), Some(0.05 + waited / 2.0));
    run.wall_s = 0.12 + 3.0 * waited;
    run
}

/// A run beside which overlayfs copied so many pages.
fn copying(pages: u64) -> Run {
    let mut run = super::cold();
    let copied_from = Some("/data/f".into());
    let copy = FileRow { path: Some("/up/data/f".into()), copied_from, dirtied: pages, ..FileRow::default() };
    run.files.push(copy);
    run.waits.open_ns = Some(600_000_000);
    run
}

/// A run of whose pages so many were gone when it had ended.
fn dropping(pages: u64) -> Run {
    let mut run = super::cold();
    run.files[0].after = Some(Residency { cached: 10_240 - pages, pages: 10_240, pattern: None });
    run.files[0].unchanged = true;
    (run.system.evicted, run.system.removed) = (Some(0), Some(10_240));
    run
}

/// The nearest pairs.
pub(in crate::report::findings) fn pairs() -> Vec<Pair> {
    let twice = |names| vec![du(1, 369, 5053, 0.4), du(2, 40, names, 0.0)];
    vec![
        ("metadata-cached-before", twice(502), twice(503)),
        ("overlay-copied", vec![copying(2048)], vec![copying(2047)]),
        ("dropped-behind", vec![dropping(5120)], vec![dropping(5119)]),
    ]
}

fn metadata(runs: &[Run]) -> Option<Finding> {
    find(&[], runs).into_iter().find(|f| f.id == "metadata-cached-before")
}

#[test]
fn a_command_is_faster_since_metadata_was_cached() {
    let (cold, warm) = (du(1, 369, 5053, 0.4), du(2, 0, 2, 0.0));
    let found = metadata(&[cold.clone(), warm.clone()]).unwrap();
    assert_eq!(found.runs, [2]);
    let what = format!("run 1 brought in 369 blocks of them and looked up {} names more", units::count(5051));
    assert!(found.text.contains(&what), "{}", found.text);
    assert!(found.text.contains("0.400 s of waiting and 0.354 s of work on names (57 %"), "{}", found.text);
    assert!(found.remedy.as_ref().unwrap().contains("--cold-each all"));
    assert_eq!(
        (&found.evidence["metadata_blocks"], &found.evidence["brought_by_run"]),
        (&369.into(), &1.into())
    );
    // What it waited longer for than the first did saved it nothing.
    let longer = Run { wall_s: 0.2, ..du(2, 0, 2, 0.012) };
    let first = Run { wall_s: 0.6, ..du(1, 369, 5053, 0.0) };
    let text = metadata(&[first.clone(), longer.clone()]).unwrap().text;
    assert!(text.contains("saved it 0.354 s of work on names (59 % of the time in that run)"), "{text}");
    // Threads that worked at the same time: it is the time of them all that it is a share of.
    let threads = |run: Run, user| {
        let usage = Usage { user_s: Some(user), ..run.usage };
        Run { one_thread: Some(false), usage, ..run }
    };
    let text = metadata(&[threads(first, 0.9), longer]).unwrap().text;
    assert!(text.contains(" of the time of its threads, which worked in parallel in that run)"), "{text}");
    // The third owes it to the first, too.
    let third = Run { number: 3, ..warm.clone() };
    let found = metadata(&[cold.clone(), warm.clone(), third]).unwrap();
    assert_eq!((found.runs, &found.evidence["brought_by_run"]), (vec![2, 3], &1.into()));
    // Where nobody counts blocks and names, by what came from devices.
    let blind = |mut run: Run| {
        for figure in [Figure::MetaAccesses, Figure::MetaHits, Figure::MetaAheadHits, Figure::MetaMisses] {
            run.figures.set(figure, None);
        }
        run.lookups = Lookups::default();
        run
    };
    let found = metadata(&[blind(cold.clone()), blind(warm.clone())]).unwrap();
    assert!(found.text.contains("369 blocks of them more"), "{}", found.text);
    assert!(found.evidence["names"].is_null());
    // The nearest in which it is not so: nothing was cached for the second either.
    assert_eq!(metadata(&[cold.clone(), du(2, 369, 5053, 0.4)]), None);
    // Another command, and one that ended otherwise, prove nothing of this one.
    let other = Run { label: Some("b".into()), ..warm.clone() };
    assert_eq!(metadata(&[Run { label: Some("a".into()), ..cold.clone() }, other]), None);
    assert_eq!(metadata(&[cold.clone(), Run { exit_status: Some(1), ..warm.clone() }]), None);
    // As slow as before.
    assert_eq!(metadata(&[cold.clone(), Run { wall_s: 2.0, ..warm }]), None);
    // It was no matter of metadata: a large file, whose few blocks are cached as well.
    let mut large = [self::cold(), Run { wall_s: 0.1, ..warm_of_the_same() }];
    large[0].figures.set(Figure::MetaMisses, Some(12));
    assert_eq!(metadata(&large), None);
    // Blocks there were, and waiting for them was next to nothing of the time.
    let slow = |run: Run| Run { wall_s: run.wall_s + 60.0, ..run };
    assert_eq!(metadata(&[slow(cold), slow(du(2, 0, 2, 0.0))]), None);
}

fn warm_of_the_same() -> Run {
    Run { exit_status: None, ..warm() }
}

#[test]
fn metadata_that_was_there_already() {
    let there = |accesses: u64, hits: u64, data: u64| {
        let mut run = with(&[(Figure::MetaAccesses, accesses), (Figure::MetaHits, hits)]);
        (run.exit_status, run.asked_pages) = (Some(0), data);
        run
    };
    let found = metadata(&[there(10_204, 10_204, 12)]).unwrap();
    assert!(
        found.text.contains("all of 10") && found.remedy.unwrap().contains("--cold all"),
        "{}",
        found.text
    );
    assert_eq!(
        metadata(&[Run { cold: Some("all".into()), ..there(10_204, 10_204, 12) }]).unwrap().remedy,
        None
    );
    assert_eq!(metadata(&[there(10_204, 10_203, 12)]), None, "it brought one in");
    assert_eq!(metadata(&[there(255, 255, 12)]), None);
    assert_eq!(metadata(&[there(300, 300, 4000)]), None, "data is what it used");
    // Some of it came from devices where nobody counts.
    let mut unseen = there(10_204, 10_204, 12);
    unseen.usage.device_read_bytes = Some(40 * page());
    assert_eq!(metadata(&[unseen]), None);
    let mut unknown = there(10_204, 10_204, 12);
    unknown.figures.set(Figure::MetaHits, None);
    assert_eq!(metadata(&[unknown]), None);
}

fn found(run: &Run, id: &str) -> Option<Finding> {
    find(&[], std::slice::from_ref(run)).into_iter().find(|f| f.id == id)
}

/// `dd iflag=direct` of a block device, of which tracepoints see only what the program read when it began.
#[test]
fn no_cold_cache_is_advised_to_who_may_read_past_it() {
    let remedy = |at_least: &[Figure], unseen: u64| {
        let mut run = super::warm();
        (run.at_least, run.unseen_bytes) = (at_least.to_vec(), Some(unseen));
        (run.usage.called_read_bytes, run.usage.device_read_bytes) = (Some(340 << 20), Some(300 << 20));
        found(&run, "cached-before").unwrap().remedy
    };
    let direct = [Figure::DirectReadBytes];
    assert_eq!(remedy(&direct, 300 << 20), None);
    assert!(remedy(&direct, 100 << 20).unwrap().contains("--cold all"), "the least part of it");
    assert!(remedy(&[], 300 << 20).unwrap().contains("--cold all"), "of tmpfs, or pipes");
}

#[test]
fn what_overlayfs_copies_is_no_work_of_the_command() {
    let mut run = copying(10_241);
    run.files[1].size = Some(40 << 20);
    let told = found(&run, "overlay-copied").unwrap();
    assert!(told.text.contains("from /data/f to its upper layer"), "{}", told.text);
    // What it wrote itself later is not the copy's.
    assert_eq!(told.evidence["copied_pages"], 10_240);
    assert_eq!(told.evidence["to"], "/up/data/f");
    let open = found(&run, "time-in-open").unwrap();
    assert!(open.text.contains("Overlayfs copied"), "{}", open.text);
    // The nearest: a copy that the command made itself, of the same file.
    run.files[1].copied_from = None;
    assert_eq!(found(&run, "overlay-copied"), None);
    assert!(!found(&run, "time-in-open").unwrap().text.contains("Overlayfs"));
    // A small file beside much that it read.
    run.files[1] = FileRow { copied_from: Some("/data/small".into()), dirtied: 300, ..run.files[1].clone() };
    assert_eq!(found(&run, "overlay-copied"), None);
}

#[test]
fn what_is_dropped_behind_a_reader_is_told() {
    let mut run = super::cold();
    run.files[0].after = Some(Residency { cached: 16, pages: 10_240, pattern: None });
    run.files[0].unchanged = true;
    (run.system.evicted, run.system.removed) = (Some(100), Some(10_300));
    let told = found(&run, "dropped-behind").unwrap();
    assert_eq!(
        (&told.evidence["gone_pages"], &told.evidence["dropped_pages"]),
        (&10_224.into(), &10_124.into())
    );
    // It stayed.
    let mut stayed = run.clone();
    stayed.files[0].after = Some(Residency { cached: 10_240, pages: 10_240, pattern: None });
    assert_eq!(found(&stayed, "dropped-behind"), None);
    // It was evicted, as far as anybody can tell.
    let mut evicted = run.clone();
    (evicted.system.evicted, evicted.system.removed) = (Some(10_240), Some(10_300));
    assert_eq!(found(&evicted, "dropped-behind"), None);
    // Somebody emptied the whole cache.
    let mut emptied = run.clone();
    emptied.machine.dropped = Some(1);
    assert_eq!(found(&emptied, "dropped-behind"), None);
    // It was changed, and cut: who knows what went by that.
    let mut changed = run.clone();
    changed.files[0].dirtied = 1;
    assert_eq!(found(&changed, "dropped-behind"), None);
    // It was cut and made as long again, of which no figure tells; or written past the cache, which drops what is there.
    let mut cut = run.clone();
    cut.files[0].unchanged = false;
    assert_eq!(found(&cut, "dropped-behind"), None);
    let mut direct = run.clone();
    direct.files[0].direct_write_bytes = Some(4096);
    assert_eq!(found(&direct, "dropped-behind"), None);
    run.system.removed = None;
    assert_eq!(found(&run, "dropped-behind"), None);
}
