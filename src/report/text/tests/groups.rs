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
fn who_was_faster_than_the_others_was_not_colder() {
    let text = |walls: &[f64], failed: u32| {
        let mut runs: Vec<Run> =
            (1..).zip(walls).map(|(number, wall_s)| Run { number, wall_s: *wall_s, ..cold() }).collect();
        let last = walls.len() as u32;
        runs.extend((0..failed).map(|n| Run { number: last + 1 + n, left_out: true, ..cold() }));
        let mut report = Report { runs, ..Report::default() };
        report.conclude();
        shown(&report, wide(400))
    };
    let told = text(&[0.30, 0.10, 0.29, 0.31, 0.30, 0.30], 7);
    let note = told.lines().find(|l| l.contains("outliers of cold: run 2 (")).unwrap();
    assert!(
        note.contains("beyond 14.8") && note.contains("where it was faster") && !note.contains("colder"),
        "{note}"
    );
    assert!(told.contains("left out of cold: run 7, 8, 9, 10, 11 and 2 more\n"), "{told}");
    let told = text(&[0.50, 0.30, 0.29, 0.31, 0.30, 0.30], 0);
    let note = told.lines().find(|l| l.contains("outliers of cold: run 1 (")).unwrap();
    assert!(note.contains("a first run that was colder") && !note.contains("faster"), "{note}");
    let told = text(&[0.30, 0.50, 0.29, 0.31, 0.30, 0.30], 0);
    let note = told.lines().find(|l| l.contains("outliers of cold: run 2 (")).unwrap();
    assert!(note.ends_with("what else ran then may be why."), "{note}");
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

/// What a cold cache cost in processor time stands apart from the command's own, as in the verdict, and all of it adds up.
#[test]
fn the_price_of_a_cold_cache_has_its_row() {
    let (mut a, mut b) = (cold(), warm());
    (a.usage.system_s, a.wall_s) = (Some(1.5), 11.0);
    b.usage.system_s = Some(0.5);
    a.figures.set(Figure::Fills, Some(131_072));
    b.figures.set(Figure::Fills, Some(0));
    let report = report(vec![a, b], Vec::new());
    let text = shown(&report, Style::default());
    let table = text.split_once("where the time went ").unwrap().1;
    let row = |name: &str| {
        let line =
            table.lines().find(|l| l.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().filter_map(|w| w.parse::<f64>().ok()).collect::<Vec<_>>()
    };
    let (work, own) = (row("work for a cold cache"), row("other CPU"));
    // The fixtures have some work on names in the kernel, which is a part of its own.
    assert!((work[0] - 1.0).abs() < 0.01 && work[1] == 0.0 && (work[2] + work[0]).abs() < 1e-9, "{text}");
    assert!((own[0] - own[1]).abs() < 0.01, "{text}");
    let cause = report.verdict.causes.iter().find(|c| c.id == "cold-work").unwrap();
    assert!((cause.seconds.unwrap() - work[0]).abs() < 0.001, "{cause:?}");
    let parts = [
        "waiting for data",
        "waiting for metadata",
        "waiting for a CPU",
        "other CPU",
        "work for",
        "unexplained",
    ];
    let change = |name: &str| *row(name).get(2).unwrap_or_else(|| panic!("{name}: {text}"));
    let sum: f64 = parts.iter().map(|name| change(name)).sum();
    assert!((sum - row("wall")[2]).abs() < 0.0005, "{text}");
}
