//! What may be lost under load: nothing, but where programs are passed by while another is preempted (KNOWN_ISSUES.md). Then
//! LOST has to say at least as much as is missing, and what is there must be right all the same.

use std::fs;
use std::path::Path;

use cachetop::sample::Lost;
use serde_json::Value;

/// Whether this kernel passes programs by while another of them is preempted: functions can be attached, and whoever runs
/// one of them can be preempted.
pub fn passes_by() -> bool {
    let preempted = |s: String| s.contains("(lazy)") || s.contains("(full)");
    Path::new("/sys/kernel/debug/kprobes").exists()
        && fs::read_to_string("/sys/kernel/debug/sched/preempt").is_ok_and(preempted)
}

/// How many events LOST says were passed by. Any other loss is none that this load may have, and neither is this one on
/// kernels that pass nobody by.
pub fn passed_by(lost: &Lost) -> u64 {
    let of = |why: &str| lost.by_reason.iter().filter(|(w, _)| w == why).map(|(_, n)| *n).sum::<u64>();
    let passed = of("recursion");
    assert_eq!(lost.total(), passed, "{lost:?}");
    assert!(passed == 0 || passes_by(), "{lost:?}");
    passed
}

/// The same of a line of JSON, beside what else the load is meant to lose.
pub fn passed_by_line(line: &Value, meant: &[&str]) -> u64 {
    let of = |why: &str| line["lost"][why].as_u64().unwrap_or(0);
    let meant: u64 = meant.iter().map(|why| of(why)).sum();
    let passed = of("recursion");
    assert_eq!(of("total"), meant + passed, "{line}");
    assert!(passed == 0 || passes_by(), "{line}");
    passed
}
