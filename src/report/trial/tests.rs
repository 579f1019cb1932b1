#![allow(clippy::unwrap_used)]

use super::*;
use crate::figures::Figure;
use crate::readahead::fixtures::request;

#[test]
fn what_is_tried_is_whole_pages() {
    assert_eq!(parse("read_ahead_kb=4096"), Ok(4096));
    assert_eq!(parse("read_ahead_kb=0"), Ok(0));
    for (text, why) in [
        ("4096", "read_ahead_kb=N"),
        ("", "read_ahead_kb=N"),
        ("nr_requests=4", "read_ahead_kb=N"),
        ("read_ahead_kb=", "no number"),
        ("read_ahead_kb=-4", "no number"),
        ("read_ahead_kb=x", "no number"),
        ("read_ahead_kb=1.5", "no number"),
        ("read_ahead_kb=99999999999999999999", "no number"),
        ("read_ahead_kb=1048580", "more than"),
        ("read_ahead_kb=5", "multiple of"),
    ] {
        let said = parse(text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}

/// A run that read a file to its end.
fn run(number: u32, misses: u64, readahead_pages: u64) -> Run {
    let file = FileRow {
        dev: "8:1".into(),
        inode: 2,
        misses,
        readahead_pages,
        readahead_hits: readahead_pages,
        ..FileRow::default()
    };
    let mut run = Run { number, every: vec![file.clone()], files: vec![file], ..Run::default() };
    run.figures.set(Figure::Misses, Some(misses));
    run.figures.set(Figure::ReadAheadPages, Some(readahead_pages));
    run.figures.set(Figure::ReadMissedCalls, Some(misses));
    run
}

fn outcome(lost: u64, first: &Run, second: &Run) -> Outcome {
    let settings = [Setting::AsItWas, Setting::Pages(1024), Setting::Random, Setting::Sequential];
    let mut simulated = settings.map(Simulation::new);
    for page in 0..1000 {
        let request = request(page, 1, 1000, Some(page).filter(|p| *p > 0));
        simulated.iter_mut().for_each(|s| s.read(&request));
    }
    let tried = (vec![Change::new("/x", 128)], BTreeSet::from(["8:1".to_owned()]));
    Outcome::new(4096, tried, &simulated, [lost, 0], [first, second])
}

/// One with everything in it.
pub(in crate::report) fn example() -> Outcome {
    outcome(1, &run(1, 1, 999), &run(2, 1, 999))
}

#[test]
fn what_is_counted_stands_beside_what_is_predicted() {
    let told = outcome(0, &run(1, 1, 999), &run(2, 1, 999));
    assert_eq!((told.error, told.missed_by, told.proved()), (Some(0.0), Some(0.0), true));
    assert!(told.doubts.is_empty(), "{:?}", told.doubts);
    let predicted = told.predicted.unwrap();
    assert_eq!((predicted.tried.fetched, predicted.tried.waits), (1000, Some(1)));
    assert_eq!((predicted.random.fetched, predicted.random.waits), (1000, Some(1000)));
    assert_eq!(told.counted[0], Count { fetched: 1000, used: Some(1000), wasted: Some(0), waits: Some(1) });
    assert_eq!(told.files.len(), 1);
}

#[test]
fn what_does_not_agree_is_not_believed() {
    let told = outcome(0, &run(1, 1, 1999), &run(2, 1, 999));
    assert_eq!(told.error, Some(0.5));
    assert!(told.doubts.iter().any(|d| d.contains("50 % wrong")), "{:?}", told.doubts);
    let lossy = outcome(7, &run(1, 1, 999), &run(2, 1, 999));
    assert!(lossy.doubts.iter().any(|d| d.starts_with("7 requests")), "{:?}", lossy.doubts);
    let one = outcome(1, &run(1, 1, 999), &run(2, 1, 999));
    assert!(one.doubts.iter().any(|d| d.starts_with("1 request came")), "{:?}", one.doubts);
    // Another file than the one whose requests were seen.
    let mut other = run(1, 1, 999);
    other.every[0].inode = 3;
    let unseen = outcome(0, &other, &run(2, 1, 999));
    assert_eq!((unseen.predicted, unseen.error), (None, None));
    assert!(!unseen.doubts.is_empty() && !unseen.proved());
    let mut gone = run(2, 1, 999);
    gone.every.clear();
    assert!(outcome(0, &run(1, 1, 999), &gone).doubts.iter().any(|d| d.contains("run 2")));
}

#[test]
fn what_others_fetched_ahead_is_not_taken_for_its_own() {
    // Of 999 pages that it fetched ahead it used 900, and of another file more than it fetched.
    let mut first = run(1, 1, 999);
    first.every[0].readahead_hits = 900;
    let told = outcome(0, &first, &run(2, 1, 999));
    assert_eq!((told.counted[0].used, told.counted[0].wasted), (Some(901), Some(99)));
    first.every[0].readahead_hits = 1000;
    let told = outcome(0, &first, &run(2, 1, 999));
    let Count { fetched, used, wasted, .. } = told.counted[0];
    assert_eq!((fetched, used, wasted), (1000, None, None));
    assert_eq!(told.files[0].counted[0].map(|c| c.wasted), Some(None));
    assert_eq!(told.counted[1].wasted, Some(0));
    // It says so in the report.
    let rows = shown::rows(&told, [&first, &run(2, 1, 999)], crate::text::numbers::Unit::Pages);
    let (_, wasted) = rows.iter().find(|(name, _)| *name == "wasted").unwrap();
    assert_eq!(wasted.clone().map(shown::Cell::text), ["-", "0 pages", "0 pages", "0 pages", "0 pages"]);
}

#[test]
fn late_pages_are_known_where_waits_are() {
    let (first, mut second) = (run(1, 1, 999), run(2, 1, 999));
    let told = outcome(0, &first, &second);
    assert!(told.windows.iter().all(|w| (w.as_it_was.late, w.tried.late) == (None, None)));
    second.figures.set(Figure::Inflight, Some(3));
    let told = outcome(0, &first, &second);
    assert!(told.windows.iter().all(|w| (w.as_it_was.late, w.tried.late) == (None, Some(0))));
    assert!(told.files[0].windows.iter().all(|w| w.tried.late == Some(0)));
}

#[test]
fn what_is_mapped_is_left_out() {
    let (mut first, second) = (run(1, 1, 999), run(2, 1, 999));
    first.every[0].fault_hits = 1;
    let told = outcome(0, &first, &second);
    assert_eq!((told.counted[0].fetched, told.elsewhere), (0, [Some(1000), Some(1000)]));
    assert!(told.predicted.is_none() && told.doubts.iter().any(|d| d.contains("mapped")));
}

#[test]
fn files_without_a_device_have_no_setting() {
    let mut file = run(1, 1, 9).files.remove(0);
    file.dev = "4095:7".into();
    assert!(devices(&[file.clone()], gather::setting).0.is_empty());
    file.dev = "x".into();
    assert!(devices(&[file], gather::setting).0.is_empty());
}

#[test]
fn a_device_of_many_small_files_is_tried_as_well() {
    let of = |dev: &str, fs: &str, misses| FileRow {
        dev: dev.into(),
        fs: Some(fs.into()),
        misses,
        ..FileRow::default()
    };
    let mut files: Vec<FileRow> = (0..100).map(|_| of("8:1", "ext4", 256)).collect();
    files.extend((0..10_000).map(|_| of("8:17", "ext4", 16)));
    files.extend([of("8:33", "ext4", 9), of("0:40", "btrfs", 9000), of("0:41", "tmpfs", 9000)]);
    let setting = |dev: Dev| match (dev.major, dev.minor) {
        (0, _) => Some((4096, "/nowhere/btrfs-1/read_ahead_kb".into())),
        (8, minor) => Some((128, format!("/nowhere/{minor}"))),
        _ => None,
    };
    let (paths, set_on) = devices(&files, setting);
    let paths: Vec<_> = paths.iter().map(|(path, kb)| (path.as_str(), *kb)).collect();
    assert_eq!(paths, [("/nowhere/1", 128), ("/nowhere/17", 128), ("/nowhere/btrfs-1/read_ahead_kb", 4096)]);
    assert_eq!(set_on.iter().map(String::as_str).collect::<Vec<_>>(), ["0:40", "8:1", "8:17"]);
}

#[test]
fn a_device_that_is_left_as_it_is_is_predicted_so() {
    let settings = [Setting::AsItWas, Setting::Pages(0), Setting::Random, Setting::Sequential];
    let mut simulated = settings.map(Simulation::new);
    for page in 0..1000 {
        let request = request(page, 1, 1000, Some(page).filter(|p| *p > 0));
        simulated.iter_mut().for_each(|s| s.read(&request));
    }
    let both = [&run(1, 1, 999), &run(2, 1, 999)];
    let told = |on: &str| {
        let tried = (vec![Change::new("/x", 128)], BTreeSet::from([on.to_owned()]));
        Outcome::new(0, tried, &simulated, [0; 2], both).predicted.unwrap()
    };
    assert_eq!(told("8:1").tried.waits, Some(1000));
    assert_eq!(told("8:2").tried, told("8:2").as_it_was);
}

#[test]
fn a_run_that_was_cut_short_proves_nothing() {
    let mut second = run(2, 1, 399);
    second.left_out = true;
    let told = outcome(0, &run(1, 1, 999), &second);
    assert_eq!((told.missed_by, told.proved()), (None, false));
    assert!(told.doubts.iter().any(|d| d.contains("interrupted")), "{:?}", told.doubts);
}

#[test]
fn files_that_had_one_number_are_one() {
    let of_two = |number| {
        let mut run = run(number, 1, 599);
        run.every.push(FileRow {
            misses: 0,
            readahead_pages: 400,
            readahead_hits: 400,
            ..run.every[0].clone()
        });
        run
    };
    let told = outcome(0, &of_two(1), &of_two(2));
    assert_eq!((told.error, told.missed_by), (Some(0.0), Some(0.0)));
    assert_eq!(told.counted[0].fetched, 1000);
}

#[test]
fn what_could_not_be_put_back_is_told_without_a_second_run() {
    let mut change = Change::new("/sys/x", 128);
    change.note = Some("the command or somebody else set it to 7\x1b meanwhile: it was left so".into());
    let told = change.not_restored();
    assert!(
        told.starts_with("/sys/x was 128 and is not that again: the command or somebody else")
            && !told.contains('\x1b')
    );
}

#[test]
fn why_nothing_is_judged_is_told() {
    let mut second = run(2, 1, 399);
    second.left_out = true;
    let said = |first: &Run, second: &Run| shown::judgement(&outcome(0, first, second));
    assert!(said(&run(1, 1, 999), &second).starts_with("run 2 did not do what run 1 did"));
    assert_eq!(said(&run(1, 1, 999), &run(2, 0, 0)), "run 2 fetched nothing of the files that are predicted");
    assert_eq!(said(&run(1, 0, 0), &run(2, 1, 9)), "run 1 fetched nothing of the files that are predicted");
    let mut other = run(1, 1, 999);
    other.every[0].inode = 3;
    assert_eq!(said(&other, &run(2, 1, 999)), "nothing is predicted");
}

#[test]
fn a_prediction_of_little_that_was_fetched_is_not_praised() {
    let (first, mut second) = (run(1, 1, 999), run(2, 1, 999));
    // By copy_file_range, which is no read call.
    second.figures.set(Figure::ReadAheadPages, Some(999 + 9000));
    let told = outcome(0, &first, &second);
    assert_eq!((told.missed_by, told.proved(), told.elsewhere), (Some(0.0), false, [Some(0), Some(9000)]));
    assert!(told.doubts.iter().any(|d| d.starts_with("most of what was fetched, 35")), "{:?}", told.doubts);
    assert!(shown::judgement(&told).starts_with("little is predicted"), "{}", shown::judgement(&told));
    second.figures.set(Figure::ReadAheadPages, Some(999 + 900));
    let told = outcome(0, &first, &second);
    assert!(told.proved() && told.doubts.is_empty(), "{:?}", told.doubts);
}

#[test]
fn files_in_memory_are_not_waited_for() {
    let settings = [Setting::AsItWas, Setting::Pages(1024), Setting::Random, Setting::Sequential];
    let mut simulated = settings.map(Simulation::new);
    for page in 0..1000 {
        let disk = request(page, 1, 1000, Some(page).filter(|p| *p > 0));
        let memory = Request { file: 9, dev: Dev { major: 0, minor: 26 }, inode: 3, ..disk };
        simulated.iter_mut().for_each(|s| [&disk, &memory].into_iter().for_each(|r| s.read(r)));
    }
    let of = |number| {
        let mut run = run(number, 1, 999);
        let tmpfs = FileRow { dev: "0:26".into(), inode: 3, fs: Some("tmpfs".into()), ..FileRow::default() };
        run.every.push(tmpfs);
        run
    };
    let tried = (vec![Change::new("/x", 128)], BTreeSet::from(["8:1".to_owned()]));
    let told = Outcome::new(4096, tried, &simulated, [0; 2], [&of(1), &of(2)]);
    assert_eq!((told.predicted.unwrap().tried.waits, told.files.len()), (Some(1), 1));
}

#[test]
fn what_ran_with_another_setting_is_not_compared() {
    let told = |change: Change| {
        let settings = [Setting::AsItWas, Setting::Pages(1024), Setting::Random, Setting::Sequential];
        let mut simulated = settings.map(Simulation::new);
        for page in 0..1000 {
            let request = request(page, 1, 1000, Some(page).filter(|p| *p > 0));
            simulated.iter_mut().for_each(|s| s.read(&request));
        }
        let tried = (vec![change], BTreeSet::from(["8:1".to_owned()]));
        Outcome::new(4096, tried, &simulated, [0; 2], [&run(1, 1, 999), &run(2, 1, 999)])
    };
    // The command sets it itself.
    let second = told(Change { became: Some("64".into()), ..Change::new("/x", 128) });
    assert_eq!((second.missed_by, second.proved()), (None, false));
    assert!(second.doubts.iter().any(|d| d.starts_with("/x was 64 when run 2 had ended, and not 4096")));
    assert!(shown::judgement(&second).starts_with("the setting was changed while run 2 ran"));
    let first = told(Change { then_kb: Some(512), ..Change::new("/x", 128) });
    assert!(first.doubts.iter().any(|d| d.starts_with("/x was 512 when run 1 began, and 128")));
    assert_eq!((first.missed_by, first.proved()), (None, false));
    assert!(shown::judgement(&first).starts_with("the setting was changed while run 1 ran"));
}

#[test]
fn a_setting_that_others_put_back_is_what_it_was() {
    let told = |now: &str| {
        let mut change = Change::new("/x", 2560);
        change.end(Ok(Some(Ended::Left(now.into()))));
        (change.restored, shown::became(&change), change.became.map(|b| b.to_string()))
    };
    assert_eq!(told("2560"), (true, "/x is 2560 again".into(), Some("2560".into())));
    let (restored, text, _) = told("64");
    assert!(
        !restored
            && text
                .starts_with("/x was 2560, and is not put back: the command or somebody else set it to 64"),
        "{text}"
    );
}
