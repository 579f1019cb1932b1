//! What came in again since there was not room enough for it.

use serde_json::json;

use super::common::MANY;
use super::common::percent;
use super::finding::Finding;
use super::pushed::Room;
use super::pushed::for_room;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::units::share;

/// How many pages the kernel evicted while the run lasted and the run brought in again, at least: of what came in twice, all but
/// what left otherwise, whosever that was, and what nobody saw leave.
fn came_back(run: &Run) -> Option<u64> {
    let otherwise = run.system.removed? + run.lost.values().sum::<u64>();
    Some(run.twice_pages?.saturating_sub(otherwise).min(run.system.evicted?))
}

/// What a run brought in again that had been evicted while it ran.
struct Again {
    /// By the kernel's account; it remembers evictions from long before, for whomever.
    refaulted: Option<u64>,
    /// All that it brought in.
    fills: u64,
    /// What is worth a word of that.
    least: u64,
    /// Who took the room, page by page, where `--blame` knows it.
    billed: Option<Room>,
    /// While it ran, and not by others where that is known; at least so many.
    meanwhile: u64,
    /// Of what was read ahead for it, never read. Any of `meanwhile` may have been evicted before it was used.
    unread: u64,
}

/// `None` where it is not known, or little.
fn again(run: &Run) -> Option<Again> {
    let refaulted = run.get(Figure::Refaulted);
    let fills = run.brought_in()?;
    let least = MANY.max(fills / 10);
    if refaulted.is_some_and(|back| back < least) {
        return None;
    }
    // Only what went while it ran says that it needs more than there is. With --blame that is known; else it is known of what must
    // have come twice.
    let billed = run.blame.as_ref().is_some_and(|pushed| pushed.again_pages.is_some());
    let billed = if billed { Some(for_room(run)?) } else { None };
    let meanwhile = match &billed {
        Some(room) => room.pages(),
        None => came_back(run)?,
    };
    let unread = run.unused_pages.unwrap_or(0).min(run.system.readahead_wasted.unwrap_or(u64::MAX));
    (meanwhile >= least).then_some(Again { refaulted, fills, least, billed, meanwhile, unread })
}

/// Windows so large that they were evicted before they were read: more memory is not what it lacks first.
pub(super) fn read_ahead(run: &Run, _: &[&Run]) -> Option<Finding> {
    let Again { refaulted, fills, least, meanwhile, unread, .. } = again(run)?;
    if unread < least {
        return None;
    }
    let text = format!(
        "Read-ahead fetched more than there was room for: at least {} were brought in again that had been evicted while it ran, and \
         at least {} of what was fetched ahead was never read.",
        run.volume(meanwhile),
        run.volume(unread),
    );
    let asked = super::reading::only_asked_for(run);
    let evidence = json!({ "refaulted": refaulted, "fills": fills, "evicted_and_back_pages": meanwhile,
        "unread_pages": unread, "only_asked_for_pages": asked });
    const MORE: &str = "more memory (a cgroup's limit counts cached pages, too)";
    let setting = run.files.iter().max_by_key(|f| f.readahead_pages).and_then(|f| f.read_ahead_kb);
    let smaller = setting.map(|kb| ((kb / 2).clamp(16, 128), kb)).filter(|(smaller, kb)| smaller < kb);
    let remedy = match smaller {
        // No window bounds that.
        _ if asked * 2 >= unread => format!(
            "It was asked for (readahead, POSIX_FADV_WILLNEED or MADV_WILLNEED): ask for less at a time, and nearer to its use, \
             or give it {MORE}."
        ),
        Some((kb, _)) => format!(
            "A smaller window (cachestat --try read_ahead_kb={kb} -- COMMAND shows what it brings), or {MORE}."
        ),
        None => "M".to_owned() + MORE.trim_start_matches('m') + ".",
    };
    Some(Finding::new("readahead-evicted", text, evidence)?.remedy(remedy))
}

pub(super) fn working_set(run: &Run, earlier: &[&Run]) -> Option<Finding> {
    let Again { refaulted, fills, least, billed, meanwhile, unread } = again(run)?;
    // What read-ahead lost before it was read was not used twice: it is no part of what the command works with.
    let used = meanwhile.saturating_sub(unread);
    if used < least || super::pushed::scan(run, earlier).is_some() {
        return None;
    }
    let own = billed.as_ref().filter(|room| room.is_own());
    let evidence = json!({ "refaulted": refaulted, "fills": fills, "evicted_by_anybody": run.system.evicted,
        "evicted_for_it_and_back": own.map(Room::pages), "evicted_by_kswapd_and_back": billed.as_ref().map(|room| room.kswapd),
        "twice_pages": billed.is_none().then_some(meanwhile), "unread_pages": unread });
    let (volume, part) = (run.volume(used), percent(share(used, fills)));
    if own.is_some() {
        // Not what the kernel calls refaults: these may have been evicted long before, for whomever.
        let text = format!(
            "What it works with is larger than the cache: at least {volume} were read back in that had been evicted while it ran, \
             {part} of all it fetched.",
        );
        return Some(Finding::new("working-set-too-large", text, evidence)?.remedy(
            "Give it more memory (a cgroup's limit counts cached pages, too), or let it work on less at a time.",
        ));
    }
    let by = match &billed {
        Some(room) => format!(
            ", up to {} of it by kswapd, which makes room for nobody in particular",
            run.volume(room.kswapd.min(used))
        ),
        None => String::new(),
    };
    let text = format!(
        "What it works with is larger than the room that it had in the cache: at least {volume} were brought in again that had \
         been evicted while it ran{by}, {part} of all it fetched. Whether it took that room itself, or others did, is not known.",
    );
    let who = match billed {
        Some(_) => {
            "'cachestat --blame SECONDS' tells beside it by how much each cgroup grew while kswapd ran."
        }
        None => "See with --blame who took the room.",
    };
    Some(Finding::new("working-set-too-large", text, evidence)?.remedy(format!(
        "{who} Where it was this command: more memory (a cgroup's limit counts cached pages, too), or less to work on at a time{}.",
        if billed.is_some() { "; where others, memory.low for it or memory.high for them" } else { "" },
    )))
}
