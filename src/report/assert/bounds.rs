//! Between what bounds a value of a run is known, where it is not known to the unit: a lower bound shows that something was more,
//! never that it was less.

use crate::figures::Figure;
use crate::report::data::Run;

/// A count as a value that is compared.
pub(super) fn number(n: u64) -> f64 {
    n as f64
}

/// The least and the most that a figure can be, in its own unit.
pub(super) fn of_figure(run: &Run, figure: Figure) -> Option<(f64, f64)> {
    let n = run.get(figure)?;
    // By the kernel's own account of read calls, no more than this was not seen.
    let read = run.unseen_bytes.filter(|_| figure == Figure::ReadBytes).map(|more| number(n + more));
    let most = match read {
        Some(most) => most,
        None if run.at_least.contains(&figure) || misses(run, figure) => f64::INFINITY,
        None => number(n),
    };
    Some((number(n), most))
}

/// Whether a figure of reads is at least so much, since much was read that nobody saw: of tmpfs, which has all of its pages, or of
/// squashfs, which may not. How many pages or calls that was, bytes do not tell.
fn misses(run: &Run, figure: Figure) -> bool {
    run.unseen_bytes.is_some()
        && match figure {
            Figure::Accesses | Figure::Hits | Figure::ReadCalls => true,
            Figure::Misses | Figure::ReadAheadHits | Figure::ReadMissedCalls => squashed(run),
            _ => false,
        }
}

/// Whether a file of squashfs was among those that something was done to.
fn squashed(run: &Run) -> bool {
    run.files.iter().any(|f| f.fs.as_deref() == Some("squashfs"))
}

/// The part of the accesses that were hits: what was not seen was all hits, but of squashfs.
pub(super) fn hit_ratio(run: &Run) -> Option<(f64, f64)> {
    let (hits, all) = (run.get(Figure::Hits)?, run.get(Figure::Accesses)?);
    // Of nothing, no share is known.
    let seen = (all > 0).then(|| number(hits) / number(all))?;
    Some(match run.unseen_bytes {
        None if run.at_least.contains(&Figure::Hits) => (0.0, 1.0),
        None => (seen, seen),
        Some(_) if squashed(run) => (0.0, 1.0),
        Some(_) => (seen, 1.0),
    })
}

/// What the kernel's accounts say of the command's processes: not all of it, where nobody waited for some of them.
pub(super) fn of_account(run: &Run, value: f64) -> (f64, f64) {
    (value, if run.unwaited { f64::INFINITY } else { value })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::figures::Figure;
    use crate::report::Report;
    use crate::report::assert::Assertion;
    use crate::report::assert::Outcomes;
    use crate::report::data::FileRow;
    use crate::report::data::Run;
    use crate::report::data::Usage;

    fn run() -> Run {
        let mut run = Run { number: 1, wall_s: 1.0, ..Run::default() };
        for (figure, n) in [
            (Figure::Accesses, 1000),
            (Figure::Hits, 900),
            (Figure::Misses, 0),
            (Figure::ReadBytes, 4 << 20),
            (Figure::DirectReadBytes, 5 << 20),
        ] {
            run.figures.set(figure, Some(n));
        }
        run.usage = Usage { device_read_bytes: Some(6 << 20), ..Usage::zero() };
        run
    }

    fn results(run: &Run, texts: &[&str]) -> Vec<Outcomes> {
        let report = Report { runs: vec![run.clone()], ..Report::default() };
        texts.iter().map(|text| Assertion::parse(text).unwrap().check(&report).result).collect()
    }

    const DIRECT: [&str; 6] = [
        "direct.read_bytes < 6MiB",
        "direct.read_bytes == 5MiB",
        "direct.read_bytes == 0",
        "direct.read_bytes > 4MiB",
        "direct.read_bytes > 5MiB",
        "mean.direct.read_bytes < 1TiB",
    ];

    #[test]
    fn what_is_not_all_seen_is_never_shown_to_be_little() {
        use Outcomes::Failed;
        use Outcomes::Passed;
        use Outcomes::Unknown;
        let mut run = run();
        assert_eq!(results(&run, &DIRECT), [Passed, Passed, Failed, Passed, Failed, Passed]);
        run.at_least = vec![Figure::DirectReadBytes];
        assert_eq!(results(&run, &DIRECT), [Unknown, Unknown, Failed, Passed, Unknown, Unknown]);
        let report = Report { runs: vec![run.clone()], ..Report::default() };
        let found = Assertion::parse(DIRECT[0]).unwrap().check(&report).found;
        assert_eq!(found, "direct.read_bytes is at least 5242880 (5 MiB)");
        // Nothing of it was seen, which is not nothing.
        run.figures.set(Figure::DirectReadBytes, Some(0));
        assert_eq!(results(&run, &["direct.read_bytes == 0", "direct.read_bytes >= 0"]), [Unknown, Passed]);
        // The other figures are as they were.
        assert_eq!(results(&run, &["misses == 0", "hit_ratio == 90%"]), [Passed, Passed]);
    }

    #[test]
    fn accounts_without_what_nobody_waited_for() {
        let texts = ["device_read_bytes < 7MiB", "device_read_bytes >= 6MiB", "major_faults == 0"];
        assert_eq!(results(&run(), &texts), [Outcomes::Passed; 3]);
        let unwaited = Run { unwaited: true, ..run() };
        assert_eq!(results(&unwaited, &texts), [Outcomes::Unknown, Outcomes::Passed, Outcomes::Unknown]);
    }

    #[test]
    fn reads_that_nobody_saw() {
        use Outcomes::Passed;
        use Outcomes::Unknown;
        let texts = [
            "read.bytes < 5MiB",
            "read.bytes < 9MiB",
            "accesses < 2000",
            "hit_ratio < 95%",
            "hit_ratio >= 90%",
            "misses == 0",
        ];
        assert_eq!(results(&run(), &texts), [Passed; 6]);
        let mut unseen = Run { unseen_bytes: Some(4 << 20), ..run() };
        assert_eq!(results(&unseen, &texts), [Unknown, Passed, Unknown, Unknown, Passed, Passed]);
        // Squashfs has them on a device.
        unseen.files = vec![FileRow { fs: Some("squashfs".into()), ..FileRow::default() }];
        assert_eq!(results(&unseen, &texts), [Unknown, Passed, Unknown, Unknown, Unknown, Unknown]);
    }
}
