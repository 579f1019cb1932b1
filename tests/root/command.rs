//! `cachestat -- COMMAND` from outside: what it passes on, and what it says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

/// `cachestat OPTIONS -- sh -c LINE`.
fn shell(options: &str, line: &str) -> Command {
    let mut command = cachestat(options);
    command.args(["--", "sh", "-c", line]);
    command
}

fn json(path: &Path) -> Value {
    let report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    crate::tools::schema::check_report(&report);
    report
}

pub fn command_status(_: &Path) {
    for (line, status) in [("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let (code, out, err) = output(&mut shell("", line));
        assert_eq!((code, out.as_str()), (Some(status), ""), "{err}");
        assert!(err.contains(&format!("exit status {status}")) && err.contains("findings"), "{err}");
        // What did next to nothing is told in a few lines, of which none says only that something is not known.
        assert!(err.lines().count() <= 15, "{} lines: {err}", err.lines().count());
        assert!(!err.contains(" -  ") && !err.contains(" - s"), "{err}");
        assert!(err.matches("not known here: ").count() <= 1, "{err}");
        // In 80 columns, as long as no path or number is out of the ordinary.
        let wide: Vec<_> = err.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:?}");
    }
    // As wide as somebody says, and with everything where that is asked for.
    for (columns, verbose) in [("60", ""), ("120", "-v"), ("200", "-v --unit pages")] {
        let (_, _, err) = output(shell(verbose, "true").env("COLUMNS", columns));
        let most = columns.parse().unwrap();
        assert!(err.lines().all(|l| l.chars().count() <= most), "{columns}: {err}");
        assert_eq!(err.contains("asked for"), !verbose.is_empty(), "{err}");
        assert_eq!(err.contains("reads, in pages"), verbose.ends_with("pages"), "{err}");
    }
}

/// Where the threads of a shell's command line waited; none: this kernel does not tell.
fn waits_of(dir: &Path, line: &str) -> Option<serde_json::Value> {
    let path = dir.join("waits.json");
    let mut command = cachestat("--json");
    command.arg("-o").arg(&path).args(["--", "sh", "-c", line]);
    let (code, _, err) = output(&mut command);
    assert_eq!(code, Some(0), "{err}");
    let waits = json(&path)["runs"][0]["waits"].clone();
    if waits["cpu_ns"].is_null() {
        println!("     this kernel does not tell where threads wait");
        return None;
    }
    Some(waits)
}

/// Who is stopped does not want a processor.
pub fn command_stopped(dir: &Path) {
    let line = "(sleep 1; kill -CONT $$) & kill -STOP $$; wait";
    let Some(waits) = waits_of(dir, line) else { return };
    let ns = |name: &str| waits[name].as_u64().unwrap();
    assert!(ns("cpu_ns") < 500_000_000, "{waits}");
    assert!(ns("other_ns") > 500_000_000, "{waits}");
}

/// Some shells wait for their children by sleeping until a signal comes (dash, busybox, zsh), others by wait4 (bash).
pub fn command_of_a_shell_that_waits(dir: &Path) {
    let Some(waits) = waits_of(dir, "sleep 0.5 & sleep 1 & wait") else { return };
    let ns = |name: &str| waits[name].as_u64().unwrap();
    assert!(ns("child_ns") > 700_000_000, "{waits}");
    assert!(ns("timer_ns") > 1_200_000_000, "{waits}");
    // All that is no waiting for files, whatever it is for.
    let named = ns("child_ns") + ns("timer_ns");
    assert!(ns("other_ns").saturating_sub(named) < 500_000_000, "{waits}");
}

/// A tree searched cold and warm: on one screen, with the verdict on top, and adding up as it is printed.
pub fn command_on_one_screen(dir: &Path) {
    let tree = dir.join("tree");
    fs::create_dir(&tree).unwrap();
    for n in 0..600 {
        fs::write(tree.join(format!("file-{n}")), vec![b'a'; 4096 * (n % 7 + 1)]).unwrap();
    }
    assert!(Command::new("sync").status().unwrap().success());
    let mut grep = cachestat("-r 2 --cold all");
    let (code, _, err) = output(grep.args(["--", "grep", "-rc", "x"]).arg(&tree));
    assert_eq!(code, Some(1), "{err}");
    assert!(err.lines().count() <= 40, "{} lines: {err}", err.lines().count());
    let place = |text: &str| err.find(text).unwrap_or_else(|| panic!("no {text} in {err}"));
    assert!(place("\nRun 2 ") < place("\nfindings") && place("\nfindings") < place("\nwhere the time went"));
    let rows: Vec<Vec<&str>> = err
        .lines()
        .skip_while(|l| !l.starts_with("where the time went"))
        .skip(1)
        .take_while(|l| l.starts_with("  ") && !l.contains("exit status"))
        .map(|l| l.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    if rows.iter().any(|row| row[0] == "together") {
        println!("     threads overlapped: nothing to add up");
        return;
    }
    for column in 1..=3 {
        let steps = rows.iter().map(|row| {
            let number = row[column].split(' ').next().unwrap();
            // What is not known of one of them has no change either.
            if number == "-" { 0.0 } else { number.parse::<f64>().unwrap() * 1000.0 }
        });
        let steps: Vec<i64> = steps.map(|x| x.round() as i64).collect();
        assert_eq!(steps[0], steps[1..].iter().sum::<i64>(), "column {column}: {err}");
    }
}

pub fn command_not_there(dir: &Path) {
    let plain = dir.join("plain");
    fs::write(&plain, "no program").unwrap();
    for (program, status) in [("/no/such/program", 127), (plain.to_str().unwrap(), 126)] {
        let mut command = cachestat("");
        let (code, out, err) = output(command.args(["--", program]));
        assert_eq!((code, out.as_str()), (Some(status), ""), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.starts_with(&format!("cachestat: error: cannot run {program}: ")), "{err}");
    }
    // What cannot be written is said before the command runs.
    let ran = dir.join("ran");
    let line = format!("touch {}", ran.display());
    for option in ["-o", "--save", "--html"] {
        let (code, _, err) = output(&mut shell(&format!("{option} /no/such/directory/f"), &line));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("cannot write /no/such/directory/f") && err.contains("remedy: "), "{err}");
    }
    let (code, _, err) = output(&mut shell("--compare /no/such/file", &line));
    assert_eq!(code, Some(2), "{err}");
    assert!(!ran.exists());
}

pub fn command_streams(dir: &Path) {
    let report = dir.join("report");
    let mut command = shell(&format!("-o {}", report.display()), "cat; echo err >&2");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"from me\n").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.stdout.as_slice(), out.stderr.as_slice()), (&b"from me\n"[..], &b"err\n"[..]));
    let report = fs::read_to_string(report).unwrap();
    assert!(report.starts_with("cachestat: sh -c cat; echo err >&2\n"), "{report}");
}

/// A file just written is in the cache: so many pages, all of them hits, none from a device.
pub fn command_figures(dir: &Path) {
    const PAGES: u64 = 2048;
    let (file, report) = (dir.join("file"), dir.join("report"));
    fs::write(&file, vec![1; PAGES as usize * 4096]).unwrap();
    let options = format!("--json -o {}", report.display());
    let (code, _, err) =
        output(&mut shell(&options, &format!("(setsid cat {0} >/dev/null; true) & wait", file.display())));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report = json(&report);
    let row =
        report["files"].as_array().unwrap().iter().find(|f| f["path"] == file.to_str().unwrap()).unwrap();
    assert_eq!((&row["hits"], &row["misses"]), (&PAGES.into(), &0.into()));
    assert_eq!(row["before"], serde_json::json!({ "cached": PAGES, "pages": PAGES, "pattern": null }));
    assert!(report["read"]["hits"].as_u64().unwrap() >= PAGES);
    let found: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| &f["id"]).collect();
    assert!(found.contains(&&"cached-before".into()), "{found:?}");
    let names: Vec<_> = report["processes"].as_object().unwrap().values().collect();
    assert!(names.contains(&&"cat".into()) && names.contains(&&"sh".into()), "{names:?}");
    assert_eq!(report["left_behind"], serde_json::json!([]));
    assert!(!report["timeline"].as_array().unwrap().is_empty());
}

pub fn command_signals(dir: &Path) {
    for (signal, name) in [(libc::SIGTERM, "TERM"), (libc::SIGINT, "INT"), (libc::SIGUSR1, "USR1")] {
        let ready = dir.join(format!("ready-{name}"));
        let line = format!("trap 'exit 42' {name}; touch {}; while :; do sleep 0.05; done", ready.display());
        let child = shell("", &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !ready.exists() {
            assert!(Instant::now() < deadline, "the command has not begun");
            std::thread::sleep(Duration::from_millis(10));
        }
        // SAFETY: no memory is involved; the child has not been waited for.
        unsafe { libc::kill(signed(child.id()), signal) };
        let out = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(42), "SIG{name}: {err}");
        assert!(err.contains("findings"), "the report comes all the same: {err}");
    }
}

pub fn command_of_sudo(_: &Path) {
    let line = "id -u; id -g; echo $HOME $USER";
    let mut command = shell("", line);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").env("SUDO_USER", "nobody");
    let (code, out, err) = output(&mut command);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("65534\n65534\n") && out.ends_with("nobody\n"), "{out}");
    assert!(err.contains("run as nobody, who called sudo"), "{err}");
    let mut command = shell("--as-root", line);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").env("SUDO_USER", "nobody");
    let (_, out, err) = output(&mut command);
    assert!(out.starts_with("0\n0\n"), "{out} {err}");
    // Half of it, and nobody's number: neither is a reason to run it as root.
    for (uid, gid) in [("65534", None), ("65534", Some("x")), ("4294967295", Some("4294967295"))] {
        let mut command = shell("", line);
        command.env("SUDO_UID", uid).env_remove("SUDO_GID");
        gid.into_iter().for_each(|gid| _ = command.env("SUDO_GID", gid));
        let (code, out, err) = output(&mut command);
        assert!(code == Some(2) && out.is_empty() && err.contains("SUDO_UID and SUDO_GID"), "{out} {err}");
    }
}

pub fn command_compared(dir: &Path) {
    let saved = dir.join("saved.json");
    let html = dir.join("page.html");
    let options =
        format!("-v -r 2 --warmup 1 --prepare true --save {} --html {}", saved.display(), html.display());
    let (code, _, err) = output(&mut shell(&options, "sleep 0.2"));
    assert_eq!(code, Some(0), "{err}");
    for part in ["run 1", "run 2", "mean ± σ [s]", "change", "unexplained"] {
        assert!(err.contains(part), "no {part} in {err}");
    }
    assert!(fs::read_to_string(html).unwrap().starts_with("<!doctype html>"));
    let (code, _, err) = output(&mut shell(&format!("--compare {}", saved.display()), "sleep 0.1"));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("compared with"), "{err}");
    // Two sleeps, each of which may be late but not early.
    let wall = err.lines().find_map(|l| l.trim_start().strip_prefix("wall ")).expect(&err);
    let wall: Vec<f64> = wall.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [then, now, change] = wall[..3] else { panic!("{err}") };
    assert!(then >= 0.2 && now >= 0.1, "{err}");
    assert!((change - (now - then)).abs() < 0.0001, "as printed: {err}");
    // As published, with everything that there is.
    json(&saved);
    let all = dir.join("all.json");
    let options =
        format!("-r 2 --warmup 1 --prepare true --json -o {} --compare {}", all.display(), saved.display());
    let (code, _, err) = output(&mut shell(&options, "(sleep 2 &) ; exit 4"));
    assert_eq!(code, Some(4), "{err}");
    let all = json(&all);
    // Of the two runs, which ended alike. What was saved had ended with 0: what fails is not faster.
    assert_eq!(all["differences"].as_array().unwrap().len(), 1);
    assert!(
        all["verdict"]["text"].as_str().unwrap().contains("with 4: they are not compared"),
        "{}",
        all["verdict"]
    );
    assert_eq!(all["left_behind"].as_array().unwrap().len(), 1);
    // No report: said before the command runs.
    let (code, _, err) = output(&mut shell("--compare /bin/sh", "echo it ran >&2"));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("cannot compare with /bin/sh: it is not JSON") && !err.contains("it ran"), "{err}");
    let (code, _, err) = output(&mut shell("--prepare false", "true"));
    assert_eq!(code, Some(1), "{err}");
}

pub fn process_for_a_time(dir: &Path) {
    let (file, report) = (dir.join("watched"), dir.join("watched.json"));
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let line = format!("while :; do cat {} >/dev/null; sleep 0.05; done", file.display());
    let mut reader = Command::new("sh").args(["-c", &line]).stdout(Stdio::null()).spawn().unwrap();
    let options = format!("-p {} --for 1s --json -o {}", reader.id(), report.display());
    let (code, _, err) = output(&mut cachestat(&options));
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report = json(&report);
    assert_eq!(report["pid"], reader.id());
    let row = report["files"].as_array().unwrap().iter().find(|f| f["path"] == file.to_str().unwrap());
    let hits = row.unwrap()["hits"].as_u64().unwrap();
    assert!(hits >= 256 && hits % 256 == 0 || hits > 512, "{hits}");
    assert!(report["wall_s"].as_f64().unwrap() >= 1.0);
    assert!(report["exit_status"].is_null());
}

/// What sleeps from before the watch to its end is told to have slept, and what has ended is refused.
pub fn process_that_sleeps(dir: &Path) {
    let path = dir.join("asleep.json");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    // Until it sleeps.
    std::thread::sleep(Duration::from_millis(500));
    let options = format!("-p {} --for 1s --json -o {}", sleeper.id(), path.display());
    let (code, _, err) = output(&mut cachestat(&options));
    sleeper.kill().unwrap();
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report = json(&path);
    let told: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| f["id"].clone()).collect();
    assert_eq!(told, ["asleep"]);
    assert!(report["verdict"]["text"].as_str().unwrap().starts_with("It slept all the time"), "{report}");
    assert!(report["time_parts"]["unexplained_s"].as_f64().is_none_or(|s| s == 0.0), "{report}");
    // A shell that waits for us: what we do is not its doing.
    let line = format!("{} -p $$ --for 1s --json -o {}; :", program(), path.display());
    let (code, _, err) = output(Command::new("sh").args(["-c", &line]).stdin(Stdio::null()));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report = json(&path);
    assert!(report["verdict"]["text"].as_str().unwrap().starts_with("It slept all the time"), "{report}");
    assert_eq!(report["user_s"].as_f64().map(|s| s < 0.05), Some(true), "{report}");
    // Killed, and not waited for.
    std::thread::sleep(Duration::from_millis(200));
    let (code, _, err) = output(&mut cachestat(&format!("-p {} --for 1s", sleeper.id())));
    sleeper.wait().unwrap();
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("has ended"), "{err}");
}

/// Of descendants that end meanwhile, the kernel's accounts are kept, whoever waited for them; and nothing counts twice.
/// Each reads a file past the cache: the device's bytes are known.
pub fn process_for_a_time_has_all_accounts(dir: &Path) {
    const EACH: u64 = 1 << 20;
    let (file, report, go) = (dir.join("direct"), dir.join("accounts.json"), dir.join("go"));
    fs::write(&file, vec![1; EACH as usize]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let dd = format!("dd if={} of=/dev/null bs=64k iflag=direct status=none", file.display());
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    // Three before the watch; then four that are waited for, one of them by a shell in between, and three orphans.
    let line = format!(
        "{dd}; {dd}; {dd}; touch {0}.ready; while [ ! -e {0} ]; do sleep 0.05; done; \
         {dd}; {dd}; {dd}; sh -c '{dd}; true'; ({dd} &); ({dd} &); ({dd} &); sh -c '{burn}'; {burn}; touch {0}.done; sleep 30",
        go.display()
    );
    let mut parent = Command::new("sh").args(["-c", &line]).spawn().unwrap();
    let ready = |name: &str| {
        let path = go.with_extension(name);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(Instant::now() < deadline, "{path:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    ready("ready");
    let before = cpu(parent.id());
    let options = format!("-p {} --for 1h --json -o {}", parent.id(), report.display());
    let monitor = cachestat(&options).stderr(Stdio::piped()).spawn().unwrap();
    // Until it watches: the programs are there then.
    std::thread::sleep(Duration::from_secs(4));
    fs::write(&go, "").unwrap();
    ready("done");
    let used = cpu(parent.id()) - before;
    std::thread::sleep(Duration::from_millis(300));
    // SAFETY: no memory is involved; the child has not been waited for.
    unsafe { libc::kill(signed(monitor.id()), libc::SIGINT) };
    let out = monitor.wait_with_output().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let report = json(&report);
    let read = report["device_read_bytes"].as_u64().unwrap();
    // Seven times the file, and what of dd itself was not cached.
    assert!((7 * EACH..7 * EACH + EACH / 2).contains(&read), "{read}");
    match (report["user_s"].as_f64(), report["system_s"].as_f64()) {
        // The orphans have some, too; the parent's account has ticks of the clock.
        (Some(user), Some(system)) => {
            let accounted = user + system;
            assert!(accounted > 0.9 * used - 0.05 && accounted < 1.3 * used + 0.3, "{accounted} {used}");
        }
        // The kernel may take longer to free a process than anybody waits: never half of it.
        none => assert_eq!(none, (None, None)),
    }
}

/// Of a file of which another part was cached, who reads one part again and again hits what it has brought in itself; what a run
/// before had brought in was not there before; and who reads all of it finds the half that was cached.
pub fn one_part_again_and_again(dir: &Path) {
    use std::os::unix::fs::FileExt as _;
    const PART: u64 = 2048;
    let (path, page) = (dir.join("parts"), page_size());
    fs::write(&path, vec![1; usize::try_from(4 * PART * page).unwrap()]).unwrap();
    let report = dir.join("parts.json");
    let file = fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    let half_cached = || {
        drop_cache(&file);
        advise(&file, libc::POSIX_FADV_RANDOM);
        let mut part = vec![0; usize::try_from(2 * PART * page).unwrap()];
        file.read_exact_at(&mut part, 2 * PART * page).unwrap();
        advise(&file, libc::POSIX_FADV_NORMAL);
        let there = resident(&file);
        assert!((2 * PART..=2 * PART + 16).contains(&there), "the workload itself: {there} pages");
    };
    let dd =
        |blocks: u64| format!("dd if={} of=/dev/null bs={page} count={blocks} status=none", path.display());
    let run = |options: &str, line: &str| {
        let options = format!("{options} --json -o {} -- sh -c", report.display());
        let (code, _, err) = output(cachestat(&options).arg(line));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let report = json(&report);
        let ids = |f: &Value| {
            f["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap().to_owned()).collect()
        };
        let ids: Vec<String> = ids(&report);
        let last = report["runs"].as_array().unwrap().last().unwrap().clone();
        (last["warm_pages"].as_u64().unwrap(), last["asked_pages"].as_u64().unwrap(), ids, report)
    };
    // What the shell and dd themselves find is warm, too.
    let own = 700;
    // Three times a quarter; twice a half, which is as many bytes as the file has; four times a quarter, likewise.
    for (times, pages) in [(3, PART), (2, 2 * PART), (4, PART)] {
        half_cached();
        let (warm, asked, ids, report) = run("", &vec![dd(pages); times].join("; "));
        assert!(warm < own && asked >= pages, "{times} times {pages}: {warm} of {asked} were warm: {report}");
        assert!(!ids.iter().any(|id| id == "cached-before"), "{times} times {pages}: {ids:?}");
    }
    half_cached();
    let (warm, asked, ids, _) = run("", &dd(4 * PART));
    assert!((2 * PART - 64..2 * PART + own).contains(&warm), "{warm} of {asked}");
    // Where the shell itself was cold, it is less than half of all.
    assert_eq!(ids.iter().any(|id| id == "cached-before"), warm * 2 >= asked, "{warm} of {asked}: {ids:?}");
    // The first run brings in what the second one finds.
    drop_cache(&file);
    let (warm, _, ids, _) = run("-r 2", &vec![dd(PART); 3].join("; "));
    assert!((PART - 64..PART + own).contains(&warm), "{warm}");
    assert!(ids.iter().any(|id| id == "warmed-by-earlier-run"), "{ids:?}");
    assert!(!ids.iter().any(|id| id == "cached-before"), "{ids:?}");
}

/// Children that the kernel takes away when they end, since their parent ignores SIGCHLD, are in no account of anybody's.
pub fn children_that_nobody_waits_for(dir: &Path) {
    const EACH: u64 = 4 << 20;
    let (file, report, ticks) = (dir.join("direct"), dir.join("unwaited.json"), dir.join("ticks"));
    fs::write(&file, vec![1; EACH as usize]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    // What it used itself by then, by /proc: the rest is what it takes to read that.
    let child = format!(
        "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read stat </proc/$$/stat; echo $stat >{}; \
         exec dd if={} of=/dev/null bs=64k iflag=direct status=none",
        ticks.display(),
        file.display()
    );
    // Nothing of the programs comes from the device any more: perl is as large as the file.
    let warm =
        Command::new("sh").args(["-c", "perl -e 1 && dd if=/dev/null of=/dev/null status=none"]).status();
    assert!(warm.unwrap().success());
    // A shell keeps its own handler for the signal.
    let parent = |set: &str| format!("{set} if (!fork) {{ exec 'sh', '-c', $ARGV[0] }} sleep 4");
    for (set, hidden) in [("$SIG{CHLD} = 'IGNORE';", true), ("$SIG{CHLD} = sub { wait };", false)] {
        let options = format!("--json -o {} -- perl -e", report.display());
        let (code, _, err) = output(cachestat(&options).args([&parent(set), &child]));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let report = json(&report);
        let stat = fs::read_to_string(&ticks).unwrap();
        let fields: Vec<f64> = stat.split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
        let own = (fields[13] + fields[14]) / 100.0;
        assert!(own > 0.1, "the workload itself: {own}");
        let all = report["user_s"].as_f64().unwrap() + report["system_s"].as_f64().unwrap();
        // Its parent has some, too.
        assert!(all > 0.95 * own - 0.02 && all < 1.3 * own + 0.5, "{all} of {own}: {report}");
        let read = report["device_read_bytes"].as_u64().unwrap();
        assert!((EACH..2 * EACH).contains(&read), "{read}");
        let rchar = report["called_read_bytes"].as_u64();
        assert_eq!(rchar.is_none(), hidden, "{rchar:?}");
    }
}

/// Processor time of a process and those that it waited for, seconds.
fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<f64> =
        stat.rsplit_once(')').unwrap().1.split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    fields[11..15].iter().sum::<f64>() / 100.0
}

/// A report that cannot be kept where it was to be is not lost.
pub fn command_on_a_full_disk(_: &Path) {
    let (code, _, err) = output(&mut shell("-o /dev/full", "true"));
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("cannot write /dev/full: ") && err.contains("findings"), "{err}");
}
