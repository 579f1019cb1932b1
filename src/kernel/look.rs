//! What the kernel programs must know, and what only they can find out: who we are, and which file is meant.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use libbpf_rs::ProgramInput;

use super::skel::AttachError;
use super::skel::CachetopSkel;
use super::skel::types;
use crate::only::Files;
use crate::only::Only;

/// Programs that are run by hand before anything counts, and attached nowhere.
pub(super) fn is_needed(program: &str, only: &Only) -> bool {
    match program {
        "look" | super::chores::PROGRAM => true,
        "look_btrfs" => matches!(only.files, Some(Files::One { name: Some(_), .. })),
        _ => false,
    }
}

/// Writes down what is chosen, before the programs are loaded.
pub(super) fn write_down(rodata: &mut types::rodata, only: &Only) {
    rodata.only_some = only.threads();
    rodata.only_processes = !only.processes.pids.is_empty();
    rodata.only_names = !only.comms.is_empty();
    rodata.only_users = !only.users.is_empty();
    rodata.only_groups = !only.cgroups.is_empty();
    rodata.only_file = match &only.files {
        None => 0,
        Some(Files::One { .. }) => 1,
        Some(Files::Device(_)) => 2,
        Some(Files::System(_)) => 3,
    };
}

/// Whether the kernel programs tell several files of one number apart, where numbers alone do not (btrfs).
pub(super) struct Looked {
    pub(super) subvolume: bool,
}

/// Has the kernel programs look at the monitor itself and at the file that is chosen.
///
/// # Errors
/// When the file is not there any more, or the kernel does not run the program.
pub(super) fn look(skel: &mut CachetopSkel<'_>, only: &Only) -> Result<Looked, AttachError> {
    let path = only.files.as_ref().map(|files| match files {
        Files::One { path, .. } | Files::Device(path) | Files::System(path) => path.as_path(),
    });
    let file = path.map(open).transpose()?;
    let refused = |e: libbpf_rs::Error| AttachError::Load(format!("looking at the monitor itself: {e:#}"));
    if let (Some(file), Some(bss)) = (&file, skel.maps.bss_data.as_deref_mut()) {
        let number = u32::try_from(file.as_raw_fd()).unwrap_or(u32::MAX);
        // SAFETY: a word of our own that the kernel programs only read.
        unsafe { (&raw mut bss.looked.file).write_volatile(number.wrapping_add(1)) };
    }
    super::asked::write_down(skel, only)?;
    skel.progs.look.test_run(ProgramInput::default()).map_err(refused)?;
    if is_needed("look_btrfs", only) {
        skel.progs.look_btrfs.test_run(ProgramInput::default()).map_err(refused)?;
    }
    let Some(bss) = skel.maps.bss_data.as_deref_mut() else { return Ok(Looked { subvolume: false }) };
    // SAFETY: whole words, written by the programs that have just run.
    let (inode, root, me) = unsafe {
        let looked = &raw const bss.looked;
        let inode = (&raw const (*looked).inode).read_volatile();
        let root = (&raw const (*looked).root).read_volatile();
        (inode, root, (&raw const bss.monitor_tgid).read_volatile())
    };
    if me == 0 || file.is_some() && inode == 0 {
        return Err(AttachError::Load("a program that was run has seen nothing".into()));
    }
    Ok(Looked { subvolume: root != 0 })
}

/// Only to be looked at: nothing is read.
fn open(path: &Path) -> Result<fs::File, AttachError> {
    let file = fs::File::options().read(true).custom_flags(libc::O_PATH).open(path);
    file.map_err(|e| AttachError::Load(format!("{}: {e}", crate::text::foreign::Foreign::from(path))))
}
