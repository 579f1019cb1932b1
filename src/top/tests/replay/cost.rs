//! How long one waits for a jump.

use super::*;

#[test]
fn a_jump_takes_no_longer_where_there_are_many_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    record(&path, &Options { top: Some(1), ..options(Output::Json, &path) }, samples(60, 2000, 0));
    let mut walk = Walk::new(&path, None);
    walk.step(50);
    let began = Instant::now();
    let hits = walk.step(-1);
    let took = began.elapsed();
    assert_eq!(hits, 50);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Printed with `--nocapture`; the bound is wide, since builds for tests are slow.
#[test]
fn what_a_jump_costs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let options = Options { top: Some(1), ..options(Output::Json, &path) };
    record(&path, &options, samples(1200, 100, 0));
    let mut walk = Walk::new(&path, None);
    let mut longest = Duration::ZERO;
    for command in
        [900, -600, 0, 0, -60, 600].map(|s| if s == 0 { Command::Step(-1) } else { Command::Jump(s) })
    {
        let began = Instant::now();
        let text = format!("{command:?}");
        let hits = walk.ask(command);
        println!("{text}: {:?}, interval {hits}, {} bars", began.elapsed(), walk.app.history.len());
        longest = longest.max(began.elapsed());
    }
    assert_eq!(walk.hits(), 901 - 600 - 2 - 60 + 600);
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
