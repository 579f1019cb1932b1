//! A kernel for tests.

use std::collections::BTreeSet;

use super::Facts;
use super::Preemption;

/// One that can do everything with these functions and tracepoints, and is not preemptible.
pub(crate) fn able(btf: BTreeSet<String>) -> Facts {
    Facts {
        release: "test".into(),
        preemption: Preemption::Voluntary,
        preemption_source: "test".into(),
        realtime: false,
        btf,
        trampoline: Ok(()),
        kprobe_multi: Ok(()),
        kprobe_session: Ok(()),
        return_probes_keep: false,
        fetch_atomics: true,
        tracefs: Ok("/sys/kernel/tracing".into()),
        vmemmap: Err("not needed here".into()),
        wake_page: Ok(0xffff_ffff_8100_0000),
        refused: Vec::new(),
    }
}
