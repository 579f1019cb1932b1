//! Threads that wait so that no signal ends it (D), for storage or a file system that does not answer.

use serde_json::Value;
use serde_json::json;

use super::common::LEAST;
use super::finding::Finding;
use crate::report::data::Run;
use crate::report::units::count;
use crate::report::units::seconds;
use crate::sample::Counter;
use crate::sample::Unended;
use crate::text::foreign::Foreign;

/// Where in the kernel threads are, in words.
pub(super) fn places(threads: usize, within: &[(Foreign, usize)]) -> String {
    let first: Vec<String> = within.iter().take(3).map(|(name, n)| format!("{n} in {name}")).collect();
    match (threads, within) {
        (_, []) => String::new(),
        (1, [(name, _), ..]) => format!(", in {name} of the kernel"),
        (_, all) => {
            let more = if all.len() > first.len() { ", and elsewhere" } else { "" };
            format!(": {} of the kernel{more}", first.join(", "))
        }
    }
}

/// The same for evidence.
pub(super) fn counted(within: &[(Foreign, usize)]) -> Value {
    within.iter().map(|(name, n)| json!({ "in": name, "threads": n })).collect()
}

/// A process that was watched, of which some waited in D all the time.
pub(super) fn hung(run: &Run, _: &[&Run]) -> Option<Finding> {
    let hung = run.hung.as_ref()?;
    let (n, others) = (hung.threads, hung.of.saturating_sub(hung.threads));
    let were = if n == 1 { "was" } else { "were" };
    let who = match others {
        0 if n == 1 => "Its only thread was".to_owned(),
        0 => format!("All of its {} threads were", count(n as u64)),
        _ => format!("{} of its {} threads {were}", count(n as u64), count(hung.of as u64)),
    };
    let rest = match others {
        1 if hung.others_slept => " The other one slept.".to_owned(),
        n if n > 1 && hung.others_slept => format!(" The other {} slept.", count(n as u64)),
        _ => String::new(),
    };
    let text = format!(
        "{who} in an uninterruptible wait (D) from before the watch began to its end{}. That is for storage or a file system \
         that does not answer, as a rule. How long it lasts is not measured.{rest}",
        places(n, &hung.within)
    );
    let evidence = json!({ "threads": n, "of": hung.of, "others_slept": hung.others_slept, "tid": hung.tid,
        "within": counted(&hung.within), "wall_s": run.wall_s });
    let remedy =
        format!("What it waits for: cat /proc/{0}/stack (as root), and ls -l /proc/{0}/fd.", hung.tid);
    Some(Finding::new("hung", text, evidence)?.remedy(remedy))
}

/// What a thread does that waits, in words.
const fn doing(why: Counter) -> &'static str {
    match why {
        Counter::WaitRead => "a read",
        Counter::WaitFault => "a page fault",
        Counter::WaitExec => "execve",
        Counter::WaitOpen => "open",
        Counter::WaitLookup => "a call that looks up or changes a name",
        Counter::WaitDirectory => "getdents",
        Counter::WaitWrite => "a write",
        _ => "fsync and its like, or close",
    }
}

/// Waits that had not ended, where one of them was so long that it was no ordinary one which the end happened to meet.
pub(super) fn unended(run: &Run) -> Option<&Unended> {
    let lasts = |u: &&Unended| {
        let s = u.ns as f64 / 1e9;
        s >= 1.0 || (s >= 0.1 && s >= LEAST * run.wall_s)
    };
    run.unended.as_ref().filter(lasts)
}

/// Who waited at the end, and nobody knows for how long yet.
pub(super) fn still_waiting(run: &Run, _: &[&Run]) -> Option<Finding> {
    let Unended { threads, why, ns } = unended(run)?;
    let text = match threads {
        1 => format!("A thread was still waiting in {} at the end, for {}.", doing(*why), seconds(*ns)),
        n => format!(
            "{} threads were still waiting for storage at the end, one of them in {} for {}.",
            count(*n),
            doing(*why),
            seconds(*ns)
        ),
    };
    let evidence = json!({ "threads": threads, "in": doing(*why), "ns": ns, "wall_s": run.wall_s });
    let pid = run.left_behind.first().map_or_else(|| "PID".to_owned(), u32::to_string);
    let remedy =
        format!("What it waits for: cat /proc/{pid}/task/*/stack (as root), and ls -l /proc/{pid}/fd.");
    Some(Finding::new("still-waiting", text, evidence)?.remedy(remedy))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::asleep::Hung;
    use crate::report::data::Usage;
    use crate::report::findings::find;
    use crate::report::findings::tests::idle;
    use crate::report::verdict::verdict;

    fn run(threads: usize, of: usize, others_slept: bool) -> Run {
        let mut run = idle();
        (run.waits.read_ns, run.usage) = (Some(0), Usage::zero());
        let within = vec![("folio_wait_bit_common".into(), threads)];
        run.hung = Some(Hung { threads, of, others_slept, within, tid: 42 });
        run
    }

    fn ids(run: &Run) -> Vec<&'static str> {
        find(&[], std::slice::from_ref(run)).iter().map(|f| f.id).collect()
    }

    #[test]
    fn who_hangs_is_told_so_and_nothing_else() {
        let mut one = run(1, 1, true);
        assert_eq!(ids(&one), ["hung"]);
        let told = hung(&one, &[]).unwrap();
        assert!(
            told.text.starts_with(
                "Its only thread was in an uninterruptible wait (D) from before the watch began to its end, in \
                 folio_wait_bit_common of the kernel."
            ),
            "{}",
            told.text
        );
        assert!(told.remedy.unwrap().contains("cat /proc/42/stack"));
        let text = verdict(&[one.clone()], None, &[]).text;
        assert!(
            text.starts_with("It hung all the time (1.00 s): none of its threads ran, and it was"),
            "{text}"
        );
        // The same figures, and nothing is known of how its threads slept: nothing is proven of the cache.
        one.hung = None;
        assert_eq!(ids(&one), ["unexplained"]);
    }

    #[test]
    fn threads_are_told_apart() {
        let text = |run: Run| hung(&run, &[]).unwrap().text;
        assert!(text(run(3, 3, true)).starts_with("All of its 3 threads were in"));
        let some = text(run(2, 8, true));
        assert!(some.starts_with("2 of its 8 threads were in"), "{some}");
        assert!(some.ends_with("The other 6 slept."), "{some}");
        assert!(text(run(1, 2, true)).ends_with("The other one slept."));
        assert!(!text(run(2, 8, false)).contains("slept"));
        // Where another slept now and then, that is not what the process did of its own accord.
        let mut mixed = run(1, 2, false);
        mixed.waits.timer_ns = Some(900_000_000);
        mixed.waits.other_ns = mixed.waits.timer_ns;
        assert!(!ids(&mixed).contains(&"slept"), "{:?}", ids(&mixed));
        mixed.hung = None;
        assert!(ids(&mixed).contains(&"slept"), "{:?}", ids(&mixed));
    }

    #[test]
    fn a_wait_that_has_not_ended_is_told() {
        let mut run = idle();
        run.wall_s = 5.0;
        (run.waits.read_ns, run.waits.timer_ns) = (Some(3_000_000_000), Some(1_100_000_000));
        run.waits.other_ns = run.waits.timer_ns;
        assert!(ids(&run).contains(&"slept"), "{:?}", ids(&run));
        run.unended = Some(Unended { threads: 1, why: Counter::WaitRead, ns: 3_000_000_000 });
        assert_eq!(ids(&run), ["waited-for-data", "still-waiting"]);
        let text = still_waiting(&run, &[]).unwrap().text;
        assert_eq!(text, "A thread was still waiting in a read at the end, for 3.00 s.");
        // Whoever reads all the time is in a read at the end, too.
        run.unended = Some(Unended { threads: 4, why: Counter::WaitRead, ns: 20_000_000 });
        assert!(!ids(&run).contains(&"still-waiting"));
        (run.wall_s, run.left_behind) = (0.3, vec![77]);
        run.unended = Some(Unended { threads: 4, why: Counter::WaitSync, ns: 120_000_000 });
        let told = still_waiting(&run, &[]).unwrap();
        assert!(
            told.text.starts_with("4 threads were still waiting for storage at the end, one"),
            "{}",
            told.text
        );
        assert!(told.remedy.unwrap().contains("/proc/77/fd"));
    }
}
