//! What another size of the cache would have brought: only where somebody asked, and so beside all budgets of lines.

use super::page::Page;
use crate::report::data::Run;
use crate::text::foreign;

/// `many`: of several runs, it is of one.
pub(super) fn show(run: &Run, many: bool, page: &mut Page) {
    let Some(what_if) = &run.what_if else { return };
    let whose = foreign::or(what_if.cgroup.as_ref(), "of the machine");
    let which = if many { format!(" (run {})", run.number) } else { String::new() };
    page.line(&format!("\nWhat if there were more memory, or less (cache: {whose}){which}"));
    for line in what_if.lines() {
        match line.as_str() {
            "" => page.gap(),
            // The lines of a table stay what they are.
            row if row.starts_with(' ') => page.line(row),
            text => page.wrapped("", text),
        }
    }
    page.gap();
}

#[cfg(test)]
mod tests {
    use crate::report::Report;
    use crate::report::data::Run;
    use crate::report::text::Style;
    use crate::report::text::show;
    use crate::whatif::Now;
    use crate::whatif::Prediction;
    use crate::whatif::Scaled;

    fn report(what_if: Option<Prediction>) -> String {
        let run = Run { number: 1, wall_s: 0.1, what_if, ..Run::default() };
        show(&Report { runs: vec![run], ..Report::default() }, Style::default())
    }

    #[test]
    fn the_section_is_there_where_it_was_asked_for() {
        let point = Scaled {
            scale: 2.0,
            size_bytes: Some(28 << 20),
            miss_ratio: Some(0.25),
            error: Some(0.02),
            device_bytes_per_s: Some(1e6),
            waiting: None,
        };
        let what_if = Prediction {
            cgroup: Some("/x\x1b[2J".into()),
            limit_bytes: Some(14 << 20),
            cached_bytes: Some(13 << 20),
            curve: Some(vec![point, Scaled { scale: 4.0, ..Scaled::default() }]),
            now: Now { size_bytes: Some(14 << 20), miss_ratio: Some(0.5) },
            ..Prediction::default()
        };
        let text = report(Some(what_if.clone()));
        assert!(
            text.contains("more memory, or less (cache: /x\\x1b[2J)\nlimit 14.0M, 13.0M of files"),
            "{text}"
        );
        assert!(text.contains("\n    x2     28.0M    25.0%   ±2.0%    976.6K  ########\n"), "{text}");
        assert!(text.contains("\n    x4         -        -       -         -\n"), "{text}");
        assert!(text.contains("\n+14.0M -> 25.0% misses (50.0% now).\n"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        let reason = Some("not enough seen yet: 3 accesses".into());
        let text = report(Some(Prediction { curve: None, reason, ..what_if }));
        assert!(text.contains("\nNo prediction: not enough seen yet: 3 accesses.\n"), "{text}");
        assert!(!report(None).contains("What if"));
    }

    #[test]
    fn of_several_runs_it_is_said_which() {
        let run =
            |number| Run { number, wall_s: 0.1, what_if: Some(Prediction::default()), ..Run::default() };
        let text = show(&Report { runs: vec![run(1), run(2)], ..Report::default() }, Style::default());
        assert!(
            text.contains("\nWhat if there were more memory, or less (cache: of the machine) (run 2)\n"),
            "{text}"
        );
        let text = show(&Report { runs: vec![run(1)], ..Report::default() }, Style::default());
        assert!(text.contains("(cache: of the machine)\n"), "{text}");
    }
}
