//! What is written: the kernel leaves its lists as they are.

use super::*;

#[test]
fn what_is_written_again_and_again_is_kept_no_longer() {
    let stream = zipf(4096, 60_000);
    for (mut plain, mut written) in policies(4096).into_iter().zip(policies(4096)) {
        plain.resize(1000, 1.0);
        written.resize(1000, 1.0);
        for (n, page) in stream.iter().enumerate() {
            if n % 5000 == 0 {
                plain.flush();
                written.flush();
            }
            assert_eq!(plain.touch(*page, Use::Marked), written.touch(*page, Use::Marked), "{n}");
            (0..n % 7).for_each(|_| assert!(written.touch(*page, Use::Written)));
        }
    }
}

/// A page that was used, has gone, and comes again in this way: whether it outlives a scan of as many pages as there is room for.
fn outlives(policy: &mut dyn Policy, comes_by: Use) -> bool {
    policy.resize(100, 1.0);
    // Pages that are used often, to which what comes back is compared.
    (0..100).for_each(|n| _ = policy.touch(300 + n % 50, Use::Marked));
    policy.flush();
    (0..=50).for_each(|page| _ = policy.touch(page, Use::Unmarked));
    assert!(!policy.has(0));
    policy.touch(0, comes_by);
    (100..200).for_each(|page| _ = policy.touch(page, Use::Unmarked));
    policy.has(0)
}

#[test]
fn what_comes_to_be_written_was_not_missed() {
    for statistics in [Statistics::Exact, Statistics::Late] {
        let lists = || Classic::new(400, statistics);
        assert!(outlives(&mut lists(), Use::Unmarked), "a page that comes back is active");
        assert!(!outlives(&mut lists(), Use::Written));
    }
}

/// A database reads a page, changes it, and leaves it; its journal is written in turn, and by far does not fit.
#[test]
fn a_journal_is_a_scan() {
    let reads = zipf(4096, 80_000);
    let run = |journal: bool| {
        let mut simulation = Simulation::new(1.0, classic);
        simulation.resize(|scale| Some(1000.0 * scale));
        let mut written = 0;
        for slice in reads.chunks(2500) {
            for (n, page) in slice.iter().enumerate() {
                let touch = read(u64::from(*page), Outcome::Unknown);
                simulation.touch(&touch);
                simulation.touch(&Touch { kind: Kind::Write, ..touch });
                if journal && n % 5 == 0 {
                    written = (written + 1) % 2000;
                    let page = hash(1 << 20 | written);
                    simulation.touch(&Touch { kind: Kind::Write, page, ..touch });
                }
            }
            simulation.end_slice(None);
        }
        // How long what is dirty stays is left out, and the error says so.
        let points = Curve::new(simulation.slices(), &simulation.sizes(), MODEL_ERROR).points.unwrap();
        let (_, error) = points[2].miss_ratio.unwrap();
        assert!((0.03..0.04).contains(&error), "{error}");
        let half = &simulation.slices()[16..];
        half.iter().map(|s| s.misses[2].iter().sum::<f64>()).sum::<f64>() / 40_000.0
    };
    let (without, with) = (run(false), run(true));
    let alone = ratio(classic(4096).as_mut(), 1000, &reads);
    assert!((without - alone).abs() < 0.01, "writes of what was read: {without}, without them {alone}");
    assert!(with > without && with < without + 0.08, "{with}, without a journal {without}");
}
