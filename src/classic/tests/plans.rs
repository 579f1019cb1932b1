//! Plans with one capability taken away at a time.

use crate::classic::plan::Event;
use crate::classic::plan::FUNCTIONS;
use crate::classic::plan::How;
use crate::classic::*;
use crate::facts::Facts;
use crate::facts::Preemption;
use crate::facts::TRACEPOINTS;
use crate::facts::fixtures;
use crate::plan::Certainty;

/// A kernel of folios that can do everything and is not preemptible (6.12 as Debian builds it).
fn able() -> Means {
    let functions =
        FUNCTIONS.iter().filter(|f| !f.ends_with("account_dirtied") && !f.starts_with("account_"));
    let tracepoints = TRACEPOINTS.iter().filter(|t| **t != "writeback_dirty_page");
    let btf = functions.map(|f| (*f).into()).chain(tracepoints.map(|t| format!("tp:{t}"))).collect();
    let facts = Facts { kprobe_session: Err("not requested".into()), ..fixtures::able(btf) };
    Means { facts, kprobe: Ok(()), refused: Vec::new() }
}

/// A kernel of pages (5.10): no kprobe.multi.
fn old() -> Means {
    let mut means = able();
    means.facts.kprobe_multi = Err("EINVAL".into());
    for gone in ["filemap_add_folio", "folio_mark_accessed", "__folio_mark_dirty", "tp:writeback_dirty_folio"]
    {
        means.facts.btf.remove(gone);
    }
    for there in ["account_page_dirtied", "tp:writeback_dirty_page"] {
        means.facts.btf.insert(there.into());
    }
    means
}

/// A kernel that lets nobody attach to functions.
fn no_functions(mut means: Means) -> Means {
    means.facts.kprobe_multi = Err("EOPNOTSUPP".into());
    means.facts.trampoline = Err("EPERM".into());
    means.kprobe = Err("no such type".into());
    means
}

fn preemptible(mut means: Means) -> Means {
    means.facts.preemption = Preemption::Preemptible;
    means
}

/// Program and target of the four counts, `-` where there is none.
fn chosen(means: &Means) -> [String; 4] {
    let plan = Plan::new(means).unwrap();
    for c in Counter::EVENTS {
        let unknown = matches!(plan.counts[c as usize], Certainty::Unknown(_));
        assert_eq!(plan.hook(Event::Count(c)).is_none(), unknown, "{c:?}");
    }
    Counter::EVENTS
        .map(|c| plan.hook(Event::Count(c)).map_or("-".into(), |h| format!("{} {}", h.program, h.target)))
}

#[test]
fn kprobes_are_what_is_taken_where_they_attach() {
    assert_eq!(
        chosen(&able()),
        [
            "added_multi filemap_add_folio",
            "accessed_multi folio_mark_accessed",
            "dirtied_multi __folio_mark_dirty",
            "buffer_multi mark_buffer_dirty"
        ]
    );
    assert_eq!(chosen(&able()), chosen(&preemptible(able())), "they lose nothing on any kernel");
    assert!(Plan::new(&able()).unwrap().counts.iter().all(|c| *c == Certainty::Exact));
    let plan = Plan::new(&old()).unwrap();
    assert_eq!(
        chosen(&old()),
        [
            "added_kprobe add_to_page_cache_lru",
            "accessed_kprobe mark_page_accessed",
            "dirtied_kprobe account_page_dirtied",
            "buffer_kprobe mark_buffer_dirty"
        ]
    );
    assert!(plan.counts.iter().all(|c| *c == Certainty::Exact));
}

#[test]
fn the_newest_name_is_tried_first_where_the_older_is_a_wrapper() {
    let mut means = able();
    means.facts.btf.insert("folio_account_dirtied".into());
    assert_eq!(chosen(&means)[2], "dirtied_multi folio_account_dirtied");
    // BTF has it, attaching shows that it is inlined.
    for program in ["dirtied_multi", "dirtied_kprobe", "dirtied_fentry"] {
        means.refused.push((program.into(), "folio_account_dirtied".into(), "ENOENT".into()));
    }
    assert_eq!(chosen(&means)[2], "dirtied_multi __folio_mark_dirty");
    // add_to_page_cache_lru attaches as well, and hardly anyone calls it: not a way out.
    for program in ["added_multi", "added_kprobe", "added_fentry"] {
        means.refused.push((program.into(), "filemap_add_folio".into(), "EINVAL".into()));
    }
    assert_eq!(chosen(&means)[0], "added_tp mm_filemap_add_to_page_cache");
}

#[test]
fn trampolines_only_where_they_lose_nothing() {
    let mut means = able();
    means.facts.kprobe_multi = Err("EINVAL".into());
    means.kprobe = Err("EACCES".into());
    assert!(chosen(&means).iter().all(|h| h.contains("_fentry ")));
    let [added, accessed, dirtied, buffers] = chosen(&preemptible(means));
    assert_eq!(accessed, "-");
    assert_eq!(added, "added_tp mm_filemap_add_to_page_cache");
    assert_eq!(dirtied, "dirtied_btf writeback_dirty_folio");
    assert_eq!(buffers, "buffer_tp block_dirty_buffer");
}

#[test]
fn tracepoints_stand_for_functions_but_nothing_stands_for_accessed() {
    let plan = Plan::new(&no_functions(able())).unwrap();
    assert_eq!(
        chosen(&no_functions(able())),
        [
            "added_tp mm_filemap_add_to_page_cache",
            "-",
            "dirtied_btf writeback_dirty_folio",
            "buffer_tp block_dirty_buffer"
        ]
    );
    let Certainty::Unknown(why) = &plan.counts[1] else { panic!("{:?}", plan.counts) };
    for word in ["kprobe.multi: EOPNOTSUPP", "kprobe: no such type", "fentry: EPERM", "no tracepoint"] {
        assert!(why.contains(word), "{why}");
    }
    assert_eq!(plan.counts[2], Certainty::Exact);
    assert_eq!(plan.known(), Known([true, false, true, true]));
}

#[test]
fn how_large_a_dirty_folio_is_must_be_told() {
    // The BTF tracepoint tells, with losses that are counted.
    let plan = Plan::new(&preemptible(no_functions(able()))).unwrap();
    assert!(matches!(&plan.counts[2], Certainty::Bounded(why) if why.contains("LOST")), "{:?}", plan.counts);
    // The classic one does not, but loses nothing.
    let mut means = no_functions(able());
    means.refused.push(("dirtied_btf".into(), "writeback_dirty_folio".into(), "EPERM".into()));
    let plan = Plan::new(&means).unwrap();
    assert_eq!(plan.hook(Event::Count(Counter::Dirtied)).unwrap().how, How::Tracepoint("writeback"));
    assert!(
        matches!(&plan.counts[2], Certainty::Bounded(why) if why.contains("one page")),
        "{:?}",
        plan.counts
    );
    // Before folios there is nothing to tell.
    let means = preemptible(no_functions(old()));
    assert_eq!(chosen(&means)[2], "dirtied_tp writeback_dirty_page");
    assert_eq!(Plan::new(&means).unwrap().counts[2], Certainty::Exact);
}

#[test]
fn without_tracefs_btf_tracepoints_do() {
    let mut means = no_functions(able());
    means.facts.tracefs = Err("not mounted".into());
    let plan = Plan::new(&means).unwrap();
    assert!(plan.hooks.iter().all(|h| h.how == How::TracepointBtf));
    assert_eq!(plan.counts[0], Certainty::Exact);
    let plan = Plan::new(&preemptible(means)).unwrap();
    assert!(matches!(plan.counts[0], Certainty::Bounded(_)));
}

#[test]
fn every_refusal_leads_to_another_plan_until_nothing_is_left() {
    for start in [able(), old(), preemptible(able()), no_functions(preemptible(able()))] {
        let mut means = start;
        let mut plans = 0;
        // Whatever is attached first refuses, over and over.
        while let Ok(plan) = Plan::new(&means) {
            let Some(h) = plan.hooks.iter().find(|h| matches!(h.event, Event::Count(_))) else { break };
            assert!(!means.refuses(h.program, h.target));
            means.refused.push((h.program.into(), h.target.into(), "refused".into()));
            plans += 1;
            assert!(plans < 100, "it ends");
        }
        let none = Plan::new(&means).unwrap_err();
        assert!(none.reason.contains("none of the events") && !none.remedy.is_empty());
    }
}

#[test]
fn the_plan_is_explained() {
    let mut means = no_functions(able());
    means.refused.push(("exit_tp".into(), "sched_process_exit".into(), "EBUSY".into()));
    let plan = Plan::new(&means).unwrap();
    insta::assert_snapshot!("explain", crate::classic::explain::explain(&plan, &means));
    insta::assert_snapshot!("differences", differences());
    let text = crate::classic::explain::explain(&Plan::new(&able()).unwrap(), &able());
    assert!(!text.contains("unknown"), "{text}");
    for text in [text, differences()] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
