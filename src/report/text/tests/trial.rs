//! `--try` as text.

use super::*;
use crate::report::trial;
use crate::report::trial::Count;

/// Files have long names, evil names or none; of what is not known there is a dash. One screen has the answer alone.
#[test]
fn what_was_tried() {
    let mut outcome = trial::example();
    let mut nameless = outcome.files[0].clone();
    nameless.counted[1] = nameless.counted[1].map(|c| Count { wasted: None, ..c });
    outcome.files[0].path = Some("/srv/\u{1b}[2Jdata\u{202e}".into());
    let long = format!("/{}/end", "deep/".repeat(40));
    outcome.files.push(trial::FileOutcome { path: Some(Foreign::from(&*long)), ..nameless.clone() });
    outcome.files.push(nameless);
    outcome.windows[0].tried.late = None;
    let run = |number| Run { number, wall_s: 1.5, ..Run::default() };
    let report = Report { trial: Some(outcome), runs: vec![run(1), run(2)], ..Report::default() };
    for width in [80, 120] {
        let text = shown(&report, Style { verbose: true, ..wide(width) });
        let from = text.find("read-ahead tried").unwrap();
        insta::assert_snapshot!(format!("what_was_tried_{width}"), &text[from..]);
    }
    let text = shown(&report, wide(80));
    assert!(text.lines().count() <= SCREEN && !text.contains("windows,"), "{text}");
}
