//! Look-ups of metadata in a block device's own mapping.

use super::Brackets;
use super::Certainty;
use super::hooks::Attach;
use super::hooks::Hook;
use super::hooks::LOSSY;
use crate::facts::Facts;

const FOUND: &str = "block looked up";
const AHEAD: &str = "block read ahead";

/// Which programs see blocks being looked up, and where. Empty where nothing does.
pub(super) fn hooks(facts: &Facts, brackets: Brackets, why: &'static str) -> Vec<Hook> {
    let hook = |event, program, attach| Hook { event, program, attach, why };
    let trampoline = |function: &str| Attach::Trampoline(function.into());
    match brackets {
        Brackets::Tracepoints | Brackets::Unused => Vec::new(),
        Brackets::Sessions if facts.function("bdev_getblk") => {
            vec![hook(FOUND, "block_session", Attach::Session(vec!["bdev_getblk".into()]))]
        }
        // The kernels that sessions serve have bdev_getblk (6.7).
        Brackets::Sessions => Vec::new(),
        Brackets::Trampolines | Brackets::LossyTrampolines if facts.function("bdev_getblk") => {
            vec![hook(FOUND, "block_fexit", trampoline("bdev_getblk"))]
        }
        Brackets::Trampolines | Brackets::LossyTrampolines if facts.function("__getblk_gfp") => {
            let program = if facts.fetch_atomics { "block_old_fexit" } else { "block_old_fexit_pages" };
            // What is read ahead is no access: where that cannot be told, nothing is counted.
            if !facts.function("__breadahead") || facts.refuses(program) {
                return Vec::new();
            }
            vec![
                hook(AHEAD, "breadahead_fentry", trampoline("__breadahead")),
                hook(FOUND, program, trampoline("__getblk_gfp")),
            ]
        }
        Brackets::Trampolines | Brackets::LossyTrampolines => Vec::new(),
    }
    .into_iter()
    .filter(|h| !facts.refuses(h.program))
    .collect()
}

const SCOPE: &str = "metadata in a block device's own mapping only (ext4 and others that use buffers): xfs and btrfs \
                     keep theirs in buffers and trees of their own, and directories of ext2, NFS and others have \
                     mappings of their own, which are not counted";
const MOUNTING: &str = "what mounting ext4 reads is taken for read-ahead";

/// What the `meta_*` figures are worth.
pub(super) fn certainty(hooks: &[Hook], brackets: Brackets) -> Certainty {
    let uses = |program: &str| hooks.iter().any(|h| h.program == program);
    let lossy = hooks.iter().any(|h| (h.event == FOUND || h.event == "page added") && h.why == LOSSY);
    let old = uses("block_old_fexit") || uses("block_old_fexit_pages");
    let mut text = match () {
        () if uses("block_session") || uses("block_fexit") => SCOPE.to_owned(),
        () if old && uses("breadahead_fentry") => format!("{SCOPE}; {MOUNTING}"),
        () if brackets == Brackets::Unused => {
            return Certainty::Unknown("the exact engine is not in use".into());
        }
        () if brackets == Brackets::Tracepoints => {
            return Certainty::Unknown("needs hooks on functions, which this kernel refuses".into());
        }
        () => {
            return Certainty::Unknown(
                "the kernel has no function that looks up a block's buffer and can be attached to".into(),
            );
        }
    };
    if lossy {
        text.push_str("; the hooks can lose events on this preemptible kernel; LOST says how many");
    }
    Certainty::Bounded(text)
}
