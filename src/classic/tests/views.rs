//! What the classic engine, and both side by side, look like.

use crate::pivot::Who;

use crate::classic::Figures;
use crate::cli::Args;
use crate::cli::CommandLine as _;
use crate::model::Interval;
use crate::model::Row;
use crate::plan::Engine;
use crate::view::Surroundings;
use crate::view::fixtures;

fn printed(options: &str, intervals: &[Interval]) -> String {
    let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
    args.check().unwrap();
    let zone = jiff::tz::TimeZone::UTC;
    let mut view =
        crate::view::new(&args.options(), Surroundings { zone, page_size: 4096, screen: Box::new(|| None) });
    let mut out = String::new();
    view.begin(&mut out);
    for interval in intervals {
        view.interval(interval, &mut out);
    }
    view.total(&intervals[0], &mut out);
    out
}

fn row(pid: u32, comm: &str, counts: [Option<u64>; 4]) -> Row {
    let figures = fixtures::figures(&[]);
    Row {
        who: Who { pid: Some(pid), uid: Some(1000), comm: Some(comm.into()), ..Who::default() },
        figures,
        classic: Some(Figures::from_counts(counts)),
        back: None,
    }
}

/// A cold read, cached pages overwritten, nothing, a kernel without a hook for accesses.
fn intervals(engine: Engine) -> Vec<Interval> {
    let counts = [
        [Some(8192), Some(8200), Some(0), Some(8)],
        [Some(3), Some(8192), Some(8195), Some(8200)],
        [Some(0); 4],
        [Some(100), None, Some(40), Some(2)],
    ];
    let mut all: Vec<Interval> = counts
        .into_iter()
        .map(|c| {
            let total = if engine == Engine::Both {
                fixtures::busy().total
            } else {
                crate::figures::Figures::unknown()
            };
            Interval {
                engine: engine.name(),
                classic: Some(Figures::from_counts(c)),
                back: None,
                ..fixtures::interval(total)
            }
        })
        .collect();
    all[0].groups = 2;
    all[0].rows = vec![row(7, "dd", counts[0]), row(8, "kworker", counts[2])];
    all
}

#[test]
fn classic() {
    let all = intervals(Engine::Classic);
    insta::assert_snapshot!("classic_text", printed("--engine classic -T", &all));
    insta::assert_snapshot!("classic_wide", printed("--engine classic -x --by process", &all));
    insta::assert_snapshot!("classic_bytes", printed("--engine classic --unit bytes", &all));
    insta::assert_snapshot!("classic_csv", printed("--engine classic --csv --unit bytes", &all));
    insta::assert_snapshot!("classic_json", printed("--engine classic --json --by process", &all[..1]));
    insta::assert_snapshot!("classic_bcc", printed("--engine classic --bcc", &all));
}

#[test]
fn both() {
    let all = intervals(Engine::Both);
    let text = printed("--engine both -T", &all);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("both_text", text);
    insta::assert_snapshot!("both_rows", printed("--engine both --by process", &all));
    insta::assert_snapshot!("both_csv", printed("--engine both --csv", &all));
    insta::assert_snapshot!("both_json", printed("--engine both --json", &all[..1]));
}

#[test]
fn columns_of_both_engines_can_be_mixed() {
    let list = "--engine both --columns hits,classic_hits,cratio,misses,classic_misses";
    insta::assert_snapshot!("both_columns", printed(list, &intervals(Engine::Both)));
    // Where an engine does not run, its columns are unknown.
    let alone = printed("--columns hits,chits", &[fixtures::busy()]);
    assert_eq!(alone.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(), ["8192", "-"]);
}

#[test]
fn the_layout_of_bcc_has_room_for_one_engine() {
    let args = Args::parse_from(["cachestat", "--engine", "both", "--bcc"]);
    assert!(args.check().unwrap_err().to_string().contains("one engine"));
}
