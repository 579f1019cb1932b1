//! A file of which nearly all is a hole, as large as any user can make it, where there is no cachestat(2): what is cached
//! of it would have to be looked for page by page.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::told;

/// Emulation is slow; page by page it would take hours.
const SOON: Duration = Duration::from_secs(60);

pub fn a_sparse_file(_: &Path) {
    // Of the others none takes 15 TiB.
    let dir = Path::new("/mnt/xfs");
    for tib in [1, 15] {
        let path = dir.join(format!("sparse-{tib}"));
        File::create(&path).unwrap().set_len(tib << 40).unwrap();
        let path = path.to_str().unwrap();
        let began = Instant::now();
        let all = told("", &["head", "-c", "4096", path]);
        let took = began.elapsed();
        println!("  {tib} TiB: {took:?}");
        assert!(took < SOON, "{took:?}");
        // One page of a hole is no waiting.
        assert!(all.share("data").is_none_or(|share| share < 0.2), "{}", all.0["verdict"]);
        let files = all.0["files"].as_array().unwrap();
        let row = files.iter().find(|f| f["path"] == path).unwrap_or_else(|| panic!("{}", all.short()));
        // Whatever is said of it is not 0 pages, since one was read.
        match row["residency_unknown"].as_str() {
            Some(why) => assert!(row["after"].is_null() && why.contains("too large"), "{row}"),
            None => assert!(row["after"]["cached"].as_u64().unwrap() > 0, "{row}"),
        }
    }
    // Not too large to be looked at: a second or more each time, in which an interrupt is heeded.
    let path = dir.join("sparse-60-gib");
    File::create(&path).unwrap().set_len(60 << 30).unwrap();
    let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cachestat").into());
    let mut runs = Command::new(cachestat);
    runs.args(["--json", "-o", "/tmp/report.json", "-r", "100", "--", "head", "-c", "4096"]).arg(&path);
    for pause in [5, 8] {
        let mut child = runs.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(pause));
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        let asked = Instant::now();
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) }, 0);
        child.wait().unwrap();
        println!("  interrupted: {:?}", asked.elapsed());
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    }
}
