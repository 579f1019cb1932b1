//! What a script asks of a command: assertions and their exit codes, and the verdict.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tools::*;

const PAGES: u64 = 256;

/// Runs `sh -c LINE` with these options; exit code, standard output, the report of `--json -o`.
fn run(options: &[&str], line: &str, dir: &Path) -> (Option<i32>, String, String, Value) {
    let path = dir.join("asserted.json");
    let _ = fs::remove_file(&path);
    let mut c = cachestat(&format!("--json -o {}", path.display()));
    c.args(options).args(["--", "sh", "-c", line]);
    let (code, out, err) = output(&mut c);
    let report = fs::read_to_string(path).map_or(Value::Null, |text| {
        let report = serde_json::from_str(&text).unwrap();
        crate::tools::schema::check_report(&report);
        report
    });
    (code, out, err, report)
}

/// 256 cold pages, read twice: what holds, what does not, what is not known, and what makes no sense.
pub fn assertions(dir: &Path) {
    let path = cold_file(&dir.join("asserted"), PAGES);
    let (bytes, read) = (PAGES * page_size(), format!("cat {} >/dev/null", path.display()));
    let at_least = format!("read.bytes >= {bytes}");
    let holds =
        ["-r", "2", "--assert", &at_least, "--assert", "run1.device_read_bytes >= 512KiB", "--assert"];
    let (code, out, err, report) = run(&[&holds[..], &["lost == 0"]].concat(), &read, dir);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""), "{}", report["assertions"]);
    let outcomes = report["assertions"].as_array().unwrap();
    assert!(outcomes.len() == 3 && outcomes.iter().all(|o| o["holds"] == true), "{outcomes:?}");

    // The first run was cold: not each run holds.
    drop_cache(&fs::File::open(&path).unwrap());
    let junit = dir.join("junit.xml");
    let never = format!("{at_least}0");
    let options = ["-r", "2", "--assert", "device_read_bytes < 4KiB", "--assert", &never, "--junit"];
    let (code, _, err, report) = run(&[&options[..], &[junit.to_str().unwrap()]].concat(), &read, dir);
    assert_eq!(code, Some(3), "{err}");
    assert_eq!(err.lines().count(), 2, "{err}");
    assert!(
        err.starts_with(
            "cachestat: assertion failed: device_read_bytes < 4KiB: run 1: device_read_bytes is "
        ),
        "{err}"
    );
    assert_eq!(report["assertions"][0]["run"], 1);
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"2\"") && xml.matches("<failure ").count() == 2, "{xml}");

    // The command's own exit status, where all holds; an assertion over it; and 3 before it.
    assert_eq!(run(&["--assert", "exit_status == 7"], "exit 7", dir).0, Some(7));
    assert_eq!(run(&["--assert", "exit_status == 0"], "exit 7", dir).0, Some(3));
    // What makes no sense is said before anything runs; so is a run that there will not be.
    let mark = dir.join("has-run");
    for wrong in ["hits", "hit > 3", "hits > 5s", "1 < 2", "hits \x1b]0;x\x07 > 3", "run2.wall < 1h"] {
        let (code, _, err, _) = run(&["--assert", wrong], &format!("touch {}", mark.display()), dir);
        assert!(code == Some(2) && !mark.exists() && !err.contains('\x1b'), "{wrong}: {err:?}");
    }
}

/// The later run is the faster one because of what the first left: most of the gain is data.
pub fn verdict(dir: &Path) {
    let path = cold_file(&dir.join("judged"), 64 * PAGES);
    let (code, _, _, report) = run(&["-r", "2"], &format!("cat {} >/dev/null", path.display()), dir);
    assert_eq!(code, Some(0));
    let verdict = &report["verdict"];
    let walls: Vec<f64> =
        report["runs"].as_array().unwrap().iter().map(|r| r["wall_s"].as_f64().unwrap()).collect();
    let factor = verdict["factor"].as_f64().unwrap();
    assert!((factor - walls[0] / walls[1]).abs() < 1e-6, "{verdict}");
    let causes = verdict["causes"].as_array().unwrap();
    let sum: f64 = causes.iter().filter_map(|c| c["seconds"].as_f64()).sum();
    let known = causes.iter().any(|c| c["id"] == "unexplained" && c["seconds"].is_number());
    assert!(!known || (sum - (walls[0] - walls[1])).abs() < 1e-6, "{sum} of {walls:?}: {verdict}");
    let shares: Vec<f64> = causes.iter().filter_map(|c| c["share"].as_f64()).collect();
    assert!(shares.is_empty() || (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{verdict}");
    let one = run(&[], "true", dir).3;
    assert!(
        one["verdict"]["factor"].is_null()
            && one["verdict"]["text"].as_str().unwrap().starts_with("It took ")
    );
}
