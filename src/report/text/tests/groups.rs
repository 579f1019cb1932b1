//! Means, as they are shown.

use super::*;

#[test]
fn cold_and_warm_means() {
    let mut runs = Vec::new();
    for (n, wall_s) in (0..).zip([9.5, 9.7, 9.3]) {
        runs.push(Run { number: 2 * n + 1, wall_s, ..cold() });
        runs.push(Run { number: 2 * n + 2, cold: None, wall_s: 0.5, warm_pages: 131_072, ..cold() });
    }
    runs[5].wall_s = 0.9;
    runs[5].left_out = true;
    runs[4].wall_s = 25.0;
    let mut report = Report {
        commands: vec![],
        command: vec!["sha256sum".into(), "\x1b[2J".into()],
        runs,
        ..Report::default()
    };
    report.conclude();
    let text = shown(&report, Style::default());
    let table = text.split_once("\nmeans").unwrap().1;
    insta::assert_snapshot!(format!("means{table}"));
    assert!(!text.contains('\x1b') && text.lines().all(|l| l.chars().count() <= 80), "{text}");
}

#[test]
fn two_commands() {
    let of = |number: u32, label: &str, wall_s| Run { number, label: Some(label.into()), wall_s, ..cold() };
    let mut report = Report {
        commands: vec![("A".into(), "grep -r x .".into()), ("B".into(), "rg '\n' \u{202e}".into())],
        runs: vec![of(1, "A", 0.02), of(2, "B", 0.01), of(3, "A", 0.03), of(4, "B", 0.01)],
        ..Report::default()
    };
    report.conclude();
    let text = shown(&report, Style::default());
    let table = text.split_once("\nA: ").unwrap().1;
    insta::assert_snapshot!(format!("A: {table}"));
}
