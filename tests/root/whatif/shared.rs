//! A limit that two share: what is said of one of them, against what it misses under another limit for both.

use super::*;

/// What the other one does: as much as this one, more than this one, and a scan that takes whatever there is.
fn others() -> &'static [&'static str] {
    if is_long() { &["zipf", "mix", "loop"] } else { &["mix"] }
}

/// What is compared: of half the size, that of the others has so much in it that hardly anything can be said.
fn scales() -> &'static [f64] {
    if is_long() { &[0.5, 0.75, 1.25, 1.5, 2.0, 4.0] } else { &[0.75, 2.0] }
}

/// Two groups below one that has a limit, and a load in each.
struct Shared {
    loads: [Child; 2],
    mine: Group,
    _theirs: Group,
    _both: Group,
}

impl Shared {
    /// `None`: cgroups have no limits here.
    fn new(limit: u64, modes: [&str; 2], files: &[PathBuf; 2], seconds: f64, warm: f64) -> Option<Self> {
        let both = Group::new(limit)?;
        let (mine, theirs) = (both.below("mine"), both.below("#1 \u{202e}theirs"));
        let loads =
            [(&mine, 0), (&theirs, 1)].map(|(g, i)| g.load_for_now(modes[i], &files[i], seconds, warm));
        Some(Self { loads, mine, _theirs: theirs, _both: both })
    }

    /// Ends both; what this one missed.
    fn ended(self) -> f64 {
        let [mine, theirs] = self.loads;
        let missed = ratio(mine);
        ratio(theirs);
        missed
    }
}

/// Nobody knows what the other one does with another limit: the stated error has it, and nothing is concluded.
pub fn what_if_of_a_shared_limit(dir: &Path) {
    let files = ["mine", "theirs"].map(|name| cold_file(&dir.join(name), PAGES));
    let seconds = of_environment("WHAT_IF_SECONDS").unwrap_or(if is_long() { 16.0 } else { 8.0 });
    for other in others() {
        let modes = ["zipf", other];
        let Some(now) = Shared::new(2 * LIMIT, modes, &files, seconds + LONGEST_START, seconds) else {
            println!("skipped: cgroups have no memory limits here");
            return;
        };
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let name = now.mine.name();
        let (code, out, err) = output(cachestat(&format!("--json --what-if {seconds} --cgroup")).arg(&name));
        assert_eq!(code, Some(0), "{err}");
        let missed = now.ended();
        let all: Value = serde_json::from_str(&out).unwrap();
        let what_if = &all["what_if"];
        assert_eq!((&what_if["cgroup"], &what_if["limit_bytes"]), (&name.into(), &(2 * LIMIT).into()));
        let notes = what_if["notes"].as_array().unwrap();
        let shared = notes.iter().filter_map(Value::as_str).find(|n| n.contains("files of others"));
        assert!(shared.is_some_and(|n| n.contains("/what-if-")), "{what_if}");
        let seen = what_if["now"]["miss_ratio"].as_f64().unwrap();
        assert!((seen - missed).abs() < 0.05, "{other}: counted {seen}, by mincore {missed}");
        let mut said = 0;
        for point in what_if["curve"].as_array().unwrap_or_else(|| panic!("{other}: no curve: {what_if}")) {
            let scale = point["scale"].as_f64().unwrap();
            let [Some(predicted), Some(error)] = ["miss_ratio", "error"].map(|key| point[key].as_f64())
            else {
                println!("beside {other} x{scale}: nothing is said");
                continue;
            };
            if !scales().contains(&scale) {
                continue;
            }
            let limit = (2.0 * LIMIT as f64 * scale) as u64;
            let again = Shared::new(limit, modes, &files, 2.0 * seconds + LONGEST_START, seconds).unwrap();
            std::thread::sleep(Duration::from_secs_f64(1.5 * seconds));
            let truth = again.ended();
            println!("beside {other} x{scale}: predicted {predicted:.3} ± {error:.3}, was {truth:.3}");
            assert!((predicted - truth).abs() <= error, "{what_if}");
            said += 1;
        }
        assert!(2 * said >= scales().len(), "{other}: of {said} sizes something is said: {what_if}");
    }
}
