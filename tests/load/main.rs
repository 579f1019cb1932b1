//! The command under load and under faults, as root, on the running kernel.
//!
//! `load [OPTION]... [SUBSTR]...` runs the tests whose names contain one of the words; `--list` names them. What is
//! true is known from how the load is made: so many processes, threads and files, and so many pages read by each.
//!
//! - `--dir DIR`: where files are made; on a disk (default: below the build's own directory)
//! - `--processes N`: short-lived processes (default 2500)
//! - `--files N`: files that are read (default 50 000)
//! - `--hotplug`: takes a processor away and gives it back, for a machine of one's own
//!
//! `CACHESTAT` in the environment names another program to test than that of this build.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ahead;
mod burst;
mod crowd;
mod direct;
mod files;
mod follow;
mod given_up;
mod innocent;
mod members;
mod only;
mod owners;
mod part;
mod pressure;
mod races;
mod refused;
mod sleep;
mod storm;
mod sums;
mod threads;
mod tick;
mod time;
#[path = "../tools/mod.rs"]
mod tools;
#[path = "../truth/uring.rs"]
mod uring;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use tools::Test;

const TESTS: &[Test] = &[
    ("short_processes", storm::short_processes),
    ("one_process_after_another", storm::one_process_after_another),
    ("more_than_the_table_in_one_interval", storm::more_than_the_table_in_one_interval),
    ("sendfile_in_turn", storm::sendfile_in_turn),
    ("a_process_id_that_comes_again", storm::a_process_id_that_comes_again),
    ("a_followed_id_that_comes_again", follow::a_followed_id_that_comes_again),
    ("processes_of_many_threads", members::processes_of_many_threads),
    ("more_than_can_be_followed", follow::more_than_can_be_followed),
    ("memory_after_a_burst", burst::memory_after_a_burst),
    ("names_of_many_files", burst::names_of_many_files),
    ("starts_beside_short_lives", storm::starts_beside_short_processes),
    ("sixty_four_threads", threads::sixty_four_threads),
    ("ten_thousand_threads", tick::ten_thousand_threads),
    ("ticks_beside_requests", races::ticks_beside_requests),
    ("reads_beside_read_ahead", part::reads_beside_read_ahead),
    ("reads_beside_evictions", part::reads_beside_evictions),
    ("read_ahead_beside_evictions", ahead::read_ahead_beside_evictions),
    ("mapped_as_a_whole", ahead::mapped_as_a_whole),
    ("many_buffers", ahead::many_buffers),
    ("sixty_thousand_words", tick::sixty_thousand_words),
    ("readers_that_sleep", threads::readers_that_sleep),
    ("many_files", files::many_files),
    ("files_of_threads_that_sleep", files::files_of_threads_that_sleep),
    ("more_processes_than_room", crowd::more_processes_than_room),
    ("a_file_beside_many", only::a_file_beside_many),
    ("a_name_beside_many", only::a_name_beside_many),
    ("a_mount_with_more_files_than_room", only::a_mount_with_more_files_than_room),
    ("short_lived_cgroups", only::short_lived_cgroups),
    ("four_thousand_cgroups", only::four_thousand_cgroups),
    ("in_a_pid_namespace", only::in_a_pid_namespace),
    ("rows_are_the_line", sums::rows_are_the_line),
    ("asynchronous_direct_io", direct::asynchronous_direct_io),
    ("writes_that_are_given_up", given_up::writes_that_are_given_up),
    ("direct_io_that_fails_when_queued", direct::direct_io_that_fails_when_queued),
    ("memory_pressure", pressure::memory_pressure),
    ("suspended", time::suspended),
    ("a_processor_that_goes_and_comes", time::a_processor_that_goes_and_comes),
    ("another_user_and_cgroup", owners::another_user_and_cgroup),
    ("renamed_and_moved_by_others", innocent::renamed_and_moved_by_others),
    ("a_thread_of_many_names", innocent::a_thread_of_many_names),
    ("renamed_in_the_middle_of_a_read", innocent::renamed_in_the_middle_of_a_read),
    ("rows_under_shorter_names", innocent::rows_under_shorter_names),
    ("each_hook_refused", refused::each_hook_refused),
    ("no_hook_for_dirty_pages", refused::no_hook_for_dirty_pages),
];

/// What the command line says.
#[derive(Debug)]
struct Options {
    processes: u64,
    files: u64,
    hotplug: bool,
}

static OPTIONS: OnceLock<Options> = OnceLock::new();

fn options() -> &'static Options {
    OPTIONS.get().unwrap()
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut options = Options { processes: 2500, files: 50_000, hotplug: false };
    let (mut dir, mut words) = (PathBuf::from(env!("CARGO_TARGET_TMPDIR")), Vec::new());
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--child" => {
                tools::child(threads::act);
                return ExitCode::SUCCESS;
            }
            "--members" => return members::act(&value()),
            "--read" => return storm::read(&value(), &value()),
            "--list" => {
                TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
                return ExitCode::SUCCESS;
            }
            "--dir" => dir = value().into(),
            "--processes" => options.processes = value().parse().unwrap(),
            "--files" => options.files = value().parse().unwrap(),
            "--hotplug" => options.hotplug = true,
            _ => words.push(arg),
        }
    }
    OPTIONS.set(options).unwrap();
    let dir = tempfile::tempdir_in(dir).unwrap();
    tools::run(TESTS, &words, dir.path())
}
