//! Around what was told, everything is in a file of its own.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::moments::AROUND;
use crate::record::moments::Moments;

/// Feeds samples, of which some end with something that is told; where each was recorded, and how much was in memory at most.
fn feed(moments: &mut Moments, made: &[Sample], told: &[usize]) -> (Vec<PathBuf>, usize) {
    let (mut paths, mut most) = (Vec::new(), 0);
    for (tick, sample) in made.iter().enumerate() {
        if told.contains(&tick) {
            paths.push(moments.tell(sample, &format!("tick {tick}")).unwrap());
        }
        moments.write(&mut sample.clone(), &mut FakeNames::default(), Wake::Deadline).unwrap();
        most = most.max(moments.size());
    }
    (paths, most)
}

fn new(directory: &Path, keep: usize) -> Moments {
    Moments::new(directory, keep, Duration::from_secs(1))
}

fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Intervals, and rows in an order that does not tell where segments begin: those that did as much stand in that of their places.
fn rows(json: &str) -> Vec<serde_json::Value> {
    let mut out = lines(json);
    // The sum is told at the end of a run that was interrupted, and one of them was not.
    out.retain(|interval| interval.get("total").is_none());
    for rows in out.iter_mut().filter_map(|interval| interval.get_mut("rows")?.as_array_mut()) {
        rows.sort_by_key(ToString::to_string);
    }
    out
}

#[test]
fn a_minute_before_and_one_behind_are_there_with_files_and_times() {
    let dir = tempfile::tempdir().unwrap();
    let made = samples(400);
    let (paths, _) = feed(&mut new(dir.path(), 9), &made, &[0, 200, 230, 395]);
    // The second and the third overlap; the first has nothing before it, the last little behind it.
    assert_eq!((paths.len(), &paths[1]), (4, &paths[2]));
    assert_eq!(files(dir.path()).len(), 3);
    let around = AROUND.as_secs() as usize;
    for (path, first, last) in [(0, 0..=0, around), (2, 110..=140, 230 + around), (3, 305..=335, 399)] {
        let path = &paths[path];
        for options in ["--json --by file", "--json --by thread", "--json --by cgroup"] {
            let (out, said) = replay(path, options, &Part::default());
            let whole = dir.path().join("whole");
            record(&whole, "", made.clone());
            let from = lines(&replay(path, "--json", &Part::default()).0)[0]["time"].clone();
            let begin = made.iter().position(|s| from == view::utc(s.time).as_str()).unwrap() - 1;
            assert!(first.contains(&begin), "it begins with {begin}");
            let part = Part {
                from: Some(When::At(made[begin + 1].time)),
                to: Some(When::At(made[last].time)),
                ..Part::default()
            };
            assert!(rows(&out) == rows(&replay(&whole, options, &part).0), "{options}");
            fs::remove_file(&whole).unwrap();
            assert!(said.iter().all(|s| s.starts_with("moment at ") && s.contains("tick ")), "{said:?}");
        }
    }
    let (_, said) = replay(&paths[1], "--json", &Part::default());
    assert!(said.len() == 2 && said[0].ends_with("tick 200") && said[1].ends_with("tick 230"), "{said:?}");
}

#[test]
fn a_file_of_a_moment_that_was_cut_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, _) = feed(&mut new(dir.path(), 9), &samples(100), &[50]);
    let (whole, cut) = (fs::read(&paths[0]).unwrap(), dir.path().join("cut"));
    let all = lines(&replay(&paths[0], "--json", &Part::default()).0).len();
    let mut between = 0;
    for length in (1..40).map(|n| whole.len() - n * 97) {
        fs::write(&cut, &whole[..length]).unwrap();
        let (out, said) = replay(&cut, "--json", &Part::default());
        assert!(lines(&out).len() < all, "{length} of {}: {said:?}", whole.len());
        between += usize::from(!said.iter().any(|s| s.contains("in the middle of a tick")));
    }
    // How long a tick is depends on what the machine is called; one may end where the file was cut, which nobody can see.
    assert!(between <= 2, "{between} of 39 were not seen to be cut");
}

#[test]
fn the_oldest_goes_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let others = ["moment-000001-x", "moment-x.record", "moment-99999999999-x.record", "0000000001-x.record"];
    others.iter().for_each(|name| fs::write(dir.path().join(name), "mine").unwrap());
    let made = samples(1000);
    let (paths, _) = feed(&mut new(dir.path(), 2), &made, &[100, 300, 500, 700, 900]);
    assert_eq!(
        paths.iter().filter(|p| p.exists()).collect::<Vec<_>>(),
        paths[3..].iter().collect::<Vec<_>>()
    );
    // Another run goes on behind it, and none is written over.
    let (again, _) = feed(&mut new(dir.path(), 2), &made[..80], &[70]);
    assert!(again[0] > paths[4] && paths[4].exists() && !paths[3].exists());
    assert_eq!(files(dir.path()).len(), others.len() + 2);
    assert!(others.iter().all(|name| fs::read(dir.path().join(name)).unwrap() == b"mine"));
    // One that goes on is ended, and another one begun.
    let (paths, _) = feed(&mut new(dir.path(), 9), &made, &(0..20).map(|n| n * 50).collect::<Vec<_>>());
    let different: std::collections::BTreeSet<_> = paths.iter().collect();
    assert_eq!(different.len(), 2, "{different:?}");
}

#[test]
fn what_cannot_be_removed_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("moment-000001-x.record")).unwrap();
    let (made, mut moments) = (samples(3), new(dir.path(), 1));
    let said: Vec<_> = [0, 1].map(|_| (moments.tell(&made[0], "x").unwrap(), moments.hindrance())).into();
    assert!(said[0].1.as_ref().is_some_and(|why| why.contains("moment-000001-x.record: ")), "{said:?}");
    // Another file is begun for the next one.
    fs::remove_file(&said[0].0).unwrap();
    moments.tell(&made[0], "x").unwrap();
    assert!(moments.hindrance().is_none() && said[1].1.is_none());
}

#[test]
fn a_moment_after_its_file_was_removed_has_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let made = samples(40);
    let mut moments = new(dir.path(), 9);
    let (first, _) = feed(&mut moments, &made[..20], &[10, 15]);
    assert_eq!(first[0], first[1]);
    fs::remove_file(&first[0]).unwrap();
    let (second, _) = feed(&mut moments, &made[20..], &[5]);
    assert!(second[0].exists() && files(dir.path()).len() == 1);
    // What was before is in memory still.
    assert_eq!(lines(&replay(&second[0], "--json", &Part::default()).0).len(), 39);
}

#[test]
fn what_somebody_planted_is_neither_followed_nor_written() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let made = samples(10);
    let at = |n: u32| format!("moment-{n:06}-{}.record", made[5].time.strftime("%Y%m%dT%H%M%SZ"));
    let ring = dir.path().join("ring");
    fs::create_dir(&ring).unwrap();
    // Where it would be, where the next would be, and what it is called before it is whole.
    for n in 1..4 {
        std::os::unix::fs::symlink(&victim, ring.join(format!(".{}.{}", at(n), std::process::id()))).unwrap();
    }
    std::os::unix::fs::symlink(&victim, ring.join(at(1))).unwrap();
    let (paths, _) = feed(&mut new(&ring, 1), &made, &[5]);
    assert!(fs::symlink_metadata(&paths[0]).unwrap().is_file());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(lines(&replay(&paths[0], "--json", &Part::default()).0).len(), 9);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&paths[0]).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // A directory that is gone is told, and nothing else is lost.
    let mut moments = new(&dir.path().join("gone"), 1);
    assert!(moments.tell(&made[0], "x").unwrap_err().contains("cannot make"));
    feed(&mut moments, &made, &[]);
}

#[test]
fn what_is_in_memory_is_bounded_whatever_comes() {
    let dir = tempfile::tempdir().unwrap();
    let (mut random, start) = (7_u64, Moment::now());
    let made: Vec<_> = (0..90_u64)
        .map(|tick| {
            let mut sample = fixtures::sample(start, Duration::from_secs(tick), &[(Counter::ReadHits, tick)]);
            let rows = (0..2_000).map(|n| {
                let counted = [Counter::ReadHits, Counter::ReadMisses, Counter::ReadBytes].map(|c| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (c, random)
                });
                fixtures::process(n, "x", &counted)
            });
            sample.rows = rows.collect();
            sample
        })
        .collect();
    let (paths, most) = feed(&mut new(dir.path(), 1), &made, &[80]);
    assert!((3 << 20..6 << 20).contains(&most), "{most}");
    // Less than a minute then, and whole.
    let there = lines(&replay(&paths[0], "--json", &Part::default()).0);
    assert!(there.len() > 20 && there.iter().all(|i| i["read"]["hits"] == 1 || i.get("total").is_some()));
}
