//! The command from outside, as root, on the running kernel: what it counts, how it ends, what it leaves behind.
//!
//! `root [SUBSTR]...` runs the tests whose names contain one of the words; `--list` names them. What is true is
//! known from file sizes, from `mincore`, and from what the kernel says of its BPF objects.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ahead;
mod asserts;
mod bench;
mod beside;
mod blame;
mod certificate;
mod command;
mod counting;
mod daemon;
mod ending;
mod evictors;
mod held;
mod hostile;
mod many;
mod outputs;
mod privileges;
#[path = "../pty/mod.rs"]
mod pty;
mod refusing;
mod several;
mod tables;
mod threads;
#[path = "../tools/mod.rs"]
mod tools;
mod trees;
mod whatif;
mod working;

use std::process::ExitCode;

use tools::Test;

const TESTS: &[Test] = &[
    ("a_count_of_intervals", counting::a_count_of_intervals),
    ("one_process_in_json", counting::one_process_in_json),
    ("one_process_in_csv", counting::one_process_in_csv),
    ("one_process_in_text", counting::one_process_in_text),
    ("an_idle_process_has_no_ratio", counting::an_idle_process_has_no_ratio),
    ("the_end_of_the_process_watched", counting::the_end_of_the_process_watched),
    ("nothing_is_left_behind", ending::nothing_is_left_behind),
    ("a_start_is_ended_as_asked", ending::a_start_is_ended_as_asked),
    ("nothing_is_left_behind_of_a_start_cut_short", ending::nothing_is_left_behind_of_a_start_cut_short),
    ("two_at_once", beside::two_at_once),
    ("it_leaves_itself_out", beside::it_leaves_itself_out),
    ("stopped_and_continued", beside::stopped_and_continued),
    ("command_status", command::command_status),
    ("command_stopped", command::command_stopped),
    ("command_of_a_shell_that_waits", command::command_of_a_shell_that_waits),
    ("command_on_one_screen", command::command_on_one_screen),
    ("command_not_there", command::command_not_there),
    ("command_streams", command::command_streams),
    ("command_figures", command::command_figures),
    ("command_signals", command::command_signals),
    ("command_of_sudo", command::command_of_sudo),
    ("command_compared", command::command_compared),
    ("process_for_a_time", command::process_for_a_time),
    ("process_that_sleeps", command::process_that_sleeps),
    ("process_for_a_time_has_all_accounts", command::process_for_a_time_has_all_accounts),
    ("one_part_again_and_again", command::one_part_again_and_again),
    ("children_that_nobody_waits_for", command::children_that_nobody_waits_for),
    ("command_on_a_full_disk", command::command_on_a_full_disk),
    ("command_on_a_tree_twice", trees::command_on_a_tree_twice),
    ("command_that_maps", trees::command_that_maps),
    ("command_on_tmpfs", trees::command_on_tmpfs),
    ("a_sparse_file", outputs::a_sparse_file),
    ("what_is_written_where", outputs::what_is_written_where),
    ("what_others_have_planted", outputs::what_others_have_planted),
    ("a_full_disk_keeps_what_was_saved", outputs::a_full_disk_keeps_what_was_saved),
    ("not_root", refusing::not_root),
    ("explain", refusing::explain),
    ("where_symbols_are", refusing::where_symbols_are),
    ("a_process_that_has_ended", refusing::a_process_that_has_ended),
    ("a_thousand_short_processes", many::a_thousand_short_processes),
    ("the_newest_name", many::the_newest_name),
    ("several_processes", several::several_processes),
    ("several_of_which_one_is_wrong", several::several_of_which_one_is_wrong),
    ("several_names_and_users", several::several_names_and_users),
    ("several_names_of_who_faults", several::several_names_of_who_faults),
    ("several_users_on_overlayfs", several::several_users_on_overlayfs),
    ("several_cgroups", several::several_cgroups),
    ("several_of_a_recording", several::several_of_a_recording),
    ("without_tracefs", refusing::without_tracefs),
    ("without_btf", refusing::without_btf),
    ("few_files", refusing::few_files),
    ("small_stack", refusing::small_stack),
    ("no_more_threads", threads::no_more_threads),
    ("no_thread_for_a_name", threads::no_thread_for_a_name),
    ("no_thread_for_a_deed", threads::no_thread_for_a_deed),
    ("elsewhere_is_told_apart", refusing::elsewhere_is_told_apart),
    ("settings_that_cannot_be_read", refusing::settings_that_cannot_be_read),
    ("assertions", asserts::assertions),
    ("verdict", asserts::verdict),
    ("certificate_of_a_tree", certificate::certificate_of_a_tree),
    ("certificate_of_others", certificate::certificate_of_others),
    ("benchmark", bench::benchmark),
    ("commands_in_turns", bench::commands_in_turns),
    ("progress", bench::progress),
    ("metrics_are_what_was_done", daemon::metrics_are_what_was_done),
    ("what_was_recorded_is_replayed", daemon::what_was_recorded_is_replayed),
    ("a_recording_on_a_full_disk", daemon::a_recording_on_a_full_disk),
    ("a_moment_is_kept_with_its_files", daemon::a_moment_is_kept_with_its_files),
    ("privileges_are_those_of_the_table", privileges::privileges_are_those_of_the_table),
    ("privileges_of_threads", privileges::privileges_of_threads),
    ("a_command_keeps_its_rights", privileges::a_command_keeps_its_rights),
    ("a_normal_user_by_setcap", privileges::a_normal_user_by_setcap),
    ("hostile_names_in_intervals", hostile::hostile_names_in_intervals),
    ("hostile_names_in_reports", hostile::hostile_names_in_reports),
    ("hostile_names_in_cachetop", hostile::hostile_names_in_cachetop),
    ("hostile_names_in_cachedu", hostile::hostile_names_in_cachedu),
    ("hostile_words_on_the_command_line", hostile::hostile_words_on_the_command_line),
    ("read_ahead_is_predicted", ahead::read_ahead_is_predicted),
    ("read_ahead_is_put_back", ahead::read_ahead_is_put_back),
    ("read_ahead_that_cannot_be_tried", ahead::read_ahead_that_cannot_be_tried),
    ("what_if", whatif::what_if),
    ("what_if_of_a_loop", whatif::what_if_of_a_loop),
    ("what_if_of_writes", whatif::what_if_of_writes),
    ("waiting_of_what_if", whatif::waiting_of_what_if),
    ("what_if_of_a_command", whatif::what_if_of_a_command),
    ("what_if_of_sqlite", whatif::databases::what_if_of_sqlite),
    ("what_if_of_a_shared_limit", whatif::shared::what_if_of_a_shared_limit),
    ("what_if_of_nothing", whatif::what_if_of_nothing),
    ("blame_of_a_command", blame::blame_of_a_command),
    ("blame_of_a_process", blame::blame_of_a_process),
    ("blame_of_a_scan", blame::blame_of_a_scan),
    ("evictors_that_have_no_room", evictors::evictors_that_have_no_room),
    ("evictors_that_were_asked_for", evictors::evictors_that_were_asked_for),
    ("working_set", working::working_set),
    ("working_set_in_intervals", working::working_set_in_intervals),
    ("working_set_of_many_files", working::working_set_of_many_files),
    ("working_set_of_short_processes", working::working_set_of_short_processes),
    ("working_set_of_short_cgroups", working::working_set_of_short_cgroups),
    ("what_cgroups_hold", held::what_cgroups_hold),
    ("tables_are_explained", tables::tables_are_explained),
    ("tables_as_metrics", tables::tables_as_metrics),
    ("a_table_that_is_full", tables::a_table_that_is_full),
    ("working_set_as_metrics", daemon::working_set_as_metrics),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--child") => {
            tools::child(working::act);
            return ExitCode::SUCCESS;
        }
        Some("--ahead") => {
            ahead::read(&words[1..]);
            return ExitCode::SUCCESS;
        }
        Some("--load") => {
            whatif::load(&words[1..]);
            return ExitCode::SUCCESS;
        }
        Some("--hold") => {
            whatif::machine::hold(&words[1..]);
            return ExitCode::SUCCESS;
        }
        Some("--list") => {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // What takes a machine of its own, or minutes.
    let alone: Option<fn(&std::path::Path)> = match words.first().map(String::as_str) {
        Some("--machine") => Some(whatif::machine::what_if_of_a_machine),
        Some("--postgresql") => Some(whatif::databases::what_if_of_postgresql),
        _ => None,
    };
    if let Some(test) = alone {
        test(dir.path());
        return ExitCode::SUCCESS;
    }
    tools::run(TESTS, &words, dir.path())
}
