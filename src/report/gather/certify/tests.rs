//! The books of thousands of files, kept by a cache made up for it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::files::Dev;
use crate::files::File;
use crate::sample::FileSample;
use crate::sample::Followed;
use crate::sample::Moment;
use crate::sample::Sparse;
use crate::view::fixtures;
use crate::view::fixtures::file as row;

const FILES: u64 = 5000;
const OURS: u32 = 10;
const THEIRS: u32 = 20;

fn used(row: &FileSample) -> Used {
    Used {
        file: Arc::clone(&row.file),
        deleted: false,
        sum: row.counters.clone(),
        parts: crate::sample::Parts::Unknown,
        fillers: Vec::new(),
        meanwhile: 0,
    }
}

/// A file of the cache made up: its pages, those cached before, those that others brought in meanwhile, those that left.
struct Made {
    pages: u64,
    before: u64,
    others: u64,
    left: u64,
}

/// All kinds of files, and a run that read each of them whole.
fn cache(left: impl Fn(u64) -> u64) -> Vec<Made> {
    (0..FILES)
        .map(|n| {
            let pages = 1 + n % 7;
            let before = if n % 3 == 0 { pages } else { n % 2 };
            let others = u64::from(n % 5 == 1).min(pages - before);
            Made { pages, before, others, left: left(n).min(pages) }
        })
        .collect()
}

struct Kept {
    files: Vec<Used>,
    told: HashMap<Key, Told>,
    brought: Brought,
    left: u64,
    before: u64,
    pages: u64,
}

fn kept(cache: &[Made]) -> Kept {
    let mut out = Kept {
        files: Vec::new(),
        told: HashMap::new(),
        brought: Brought::default(),
        left: 0,
        before: 0,
        pages: 0,
    };
    let mut followed = Followed::new(1);
    let mut rows = Vec::new();
    for (inode, f) in (1..).zip(cache) {
        let own = f.pages - f.before - f.others;
        let ahead = own.saturating_sub(1);
        let ours = [
            (Counter::ReadHits, f.before + f.others),
            (Counter::ReadMisses, own.min(1)),
            (Counter::Prefetched, ahead),
            (Counter::ReadAheadHits, ahead),
        ];
        let ours = row(OURS, inode, &ours);
        rows.push(row(THEIRS, inode, &[(Counter::ReadMisses, f.others), (Counter::ReadHits, 9)]));
        rows.push(ours.clone());
        out.files.push(used(&ours));
        followed.files.push(ours);
        out.told.insert(out.files.last().unwrap().file.key(), Told::After(f.pages - f.left, f.pages));
        (out.left, out.before, out.pages) = (out.left + f.left, out.before + f.before, out.pages + f.pages);
    }
    let sample = fixtures::sample(Moment::now(), Duration::from_secs(1), &[]);
    let sample = Sample { files: rows, followed: Some(Box::new(followed)), ..sample };
    out.brought.note(&sample);
    out
}

fn books(kept: &Kept) -> Books<'_> {
    Books { brought: &kept.brought, left: Some(kept.left), lost: 0, worth: Certainty::Exact, unlisted: false }
}

fn pages(bytes: Option<u64>) -> u64 {
    bytes.unwrap() / page()
}

#[test]
fn where_nothing_left_it_is_exact() {
    let kept = kept(&cache(|_| 0));
    let got = before(kept.files.iter(), &kept.told, &books(&kept));
    assert_eq!((got.files, got.files_unknown, got.bytes), (FILES, 0, kept.pages * page()));
    assert_eq!(pages(got.cached_at_least_bytes), kept.before);
    assert_eq!(pages(got.cached_at_most_bytes), kept.before);
    assert!(got.exact && got.why.is_empty(), "{got:?}");
    assert_eq!(got.share_at_least, Some(crate::report::units::share(kept.before, kept.pages)));
}

#[test]
fn what_left_makes_a_bound_that_holds() {
    for left in [|n| n % 2, |n| n % 9, |_| 100] {
        let mut kept = kept(&cache(left));
        // And some that was nobody's of these files.
        kept.left += 77;
        let got = before(kept.files.iter(), &kept.told, &books(&kept));
        let (least, most) = (pages(got.cached_at_least_bytes), pages(got.cached_at_most_bytes));
        assert!(least <= kept.before && kept.before <= most, "{least} {} {most}", kept.before);
        assert!(most <= kept.pages && !got.exact && got.why[0].contains("left the cache"), "{got:?}");
    }
}

#[test]
fn what_others_brought_in_was_not_there_before() {
    let kept = kept(&cache(|_| 0));
    let nobody = Brought::default();
    let got = before(kept.files.iter(), &kept.told, &Books { brought: &nobody, ..books(&kept) });
    assert!(pages(got.cached_at_least_bytes) > kept.before, "without them it would be told wrong");
    // Those for whom there was no room were not there before either.
    let full = Brought { files: HashMap::new(), rest: FILES };
    let got = before(kept.files.iter(), &kept.told, &Books { brought: &full, ..books(&kept) });
    assert!(pages(got.cached_at_least_bytes) <= kept.before && !got.exact);
    assert!(pages(got.cached_at_most_bytes) >= kept.before);
}

#[test]
fn what_is_asked_before_needs_no_books() {
    let mut kept = kept(&cache(|n| n % 3));
    for (f, made) in kept.files.iter().zip(cache(|n| n % 3)) {
        kept.told.insert(f.file.key(), Told::Before(made.before, made.pages));
    }
    // Not even where events were lost.
    let got = before(kept.files.iter(), &kept.told, &Books { lost: 3, ..books(&kept) });
    assert_eq!(pages(got.cached_at_least_bytes), kept.before);
    assert!(got.exact, "{got:?}");
}

#[test]
fn what_is_not_counted_bounds_nothing() {
    let kept = kept(&cache(|_| 0));
    let unknown = || Certainty::Unknown("the hook is not there".into());
    for (books, why) in [
        (Books { lost: 3, ..books(&kept) }, "3 events were lost"),
        (Books { worth: unknown(), ..books(&kept) }, "the hook is not there"),
    ] {
        let got = before(kept.files.iter(), &kept.told, &books);
        let (least, most) = (got.cached_at_least_bytes, got.cached_at_most_bytes);
        assert_eq!((least, most), (Some(0), Some(kept.pages * page())));
        assert!(!got.exact && got.why[0].contains(why), "{got:?}");
    }
    let got = before(kept.files.iter(), &kept.told, &Books { left: None, ..books(&kept) });
    assert_eq!(pages(got.cached_at_least_bytes), kept.before);
    assert_eq!(pages(got.cached_at_most_bytes), kept.pages);
    // Within a bound: the figures, and that they are not exact.
    let bounded = Certainty::Bounded("of io_uring".into());
    let got = before(kept.files.iter(), &kept.told, &Books { worth: bounded, ..books(&kept) });
    assert!(!got.exact && pages(got.cached_at_most_bytes) == kept.before, "{got:?}");
}

#[test]
fn files_of_which_nothing_is_known_are_counted_apart() {
    let mut kept = kept(&cache(|_| 0));
    let keys: Vec<Key> = kept.files.iter().map(|f| f.file.key()).collect();
    let mut not = 0;
    for (n, key) in keys.iter().enumerate().take(30) {
        not += cache(|_| 0)[n].pages;
        kept.told.insert(*key, Told::Unknown(format!("for reason {}", n % 20)));
    }
    kept.told.insert(keys[30], Told::Apart);
    kept.told.remove(&keys[31]);
    let got = before(kept.files.iter(), &kept.told, &books(&kept));
    assert_eq!((got.files, got.files_unknown), (FILES - 1, 31));
    assert_eq!(got.unknown_used_bytes, (not + cache(|_| 0)[31].pages) * page());
    assert!(!got.exact && got.why.len() == REASONS + 1, "{:?}", got.why);
    assert_eq!(got.why[0], "2 files: for reason 0");
    // Of none.
    for told in kept.told.values_mut() {
        *told = Told::Unknown("deleted by the end".into());
    }
    let got = before(kept.files.iter(), &kept.told, &books(&kept));
    assert_eq!((got.cached_at_least_bytes, got.share_at_most), (None, None));
}

#[test]
fn what_cannot_be_asked_is_said_to_be_that() {
    let mounts = Mounts::parse("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
    let place = |named, dev| {
        let mut row = row(OURS, 1, &[(Counter::ReadHits, 1)]);
        let name = "/tree/\u{fffd}".to_owned();
        row.file = Arc::new(File { dev, named, name, ..row.file.as_ref().clone() });
        super::place(&used(&row), &mounts, &Beforehand::default())
    };
    let (here, elsewhere) = (Dev { major: 254, minor: 0 }, Dev { major: 254, minor: 1 });
    // It is there, but not under the name that is shown: to ask by that would find nothing, or another file.
    assert_eq!(place(Named::Replaced, here), Err(Told::Unknown("its name is no UTF-8".into())));
    assert_eq!(place(Named::Whole, here), Ok("/tree/\u{fffd}".into()));
    assert_eq!(place(Named::End, here), Err(Told::Unknown("of unknown path".into())));
    assert_eq!(
        place(Named::Whole, elsewhere),
        Err(Told::Unknown("of a file system that is not mounted here".into()))
    );
}

#[test]
fn what_was_only_written_and_what_is_metadata_is_left_out() {
    let written = used(&row(OURS, 1, &[(Counter::WriteMisses, 7), (Counter::Dirtied, 7)]));
    let mut block = row(OURS, 2, &[(Counter::ReadHits, 7)]);
    let file = File { block: Some(Dev { major: 8, minor: 1 }), ..block.file.as_ref().clone() };
    block.file = Arc::new(file);
    let brought = Brought::default();
    let none = Books { brought: &brought, left: Some(9), lost: 0, worth: Certainty::Exact, unlisted: false };
    let got = before([written, used(&block)].iter(), &HashMap::new(), &none);
    assert_eq!((got.files, got.bytes, got.share_at_most), (0, 0, None));
    assert_eq!(got.about(crate::text::numbers::Unit::Bytes), "no file on a device was read");
    let direct = used(&row(OURS, 1, &[(Counter::DirectReadBytes, 4096)]));
    assert_eq!(before([direct].iter(), &HashMap::new(), &none).files_unknown, 1);
}

#[test]
fn others_are_the_machine_less_the_run() {
    let all = fixtures::figures(&[
        (Figure::ReadBytes, 5000),
        (Figure::Misses, 7),
        (Figure::ReadAheadPages, 3),
        (Figure::Dirtied, 2),
        (Figure::DirectReadBytes, 9000),
        (Figure::DirectWriteBytes, 800),
    ]);
    let ours = [(Figure::ReadBytes, 1000), (Figure::Misses, 2), (Figure::DirectReadBytes, 2000)];
    let mut ours = fixtures::figures(&ours);
    let got = others(&all, &ours, false);
    assert_eq!(got.read_bytes, Some(4000));
    assert_eq!((got.missed_bytes, got.brought_in_bytes), (Some(5 * page()), Some(8 * page())));
    assert_eq!((got.dirtied_bytes, got.why), (Some(2 * page()), None));
    assert_eq!((got.direct_read_bytes, got.direct_write_bytes), (Some(7000), Some(800)));
    // More than everybody together: no figure, and not 0.
    ours.set(Figure::Dirtied, Some(3));
    ours.set(Figure::Misses, None);
    let got = others(&all, &ours, false);
    assert_eq!((got.dirtied_bytes, got.missed_bytes, got.brought_in_bytes), (None, None, None));
    assert!(got.why.is_some());
}

#[test]
fn what_nobody_counted_is_no_page() {
    let empty = Sparse::default();
    let mut nothing = row(OURS, 1, &[]);
    nothing.counters = empty;
    assert!(!is_read(&used(&nothing)));
    let mut brought = Brought::default();
    let sample = fixtures::sample(Moment::now(), Duration::from_secs(1), &[]);
    brought.note_late(&Sample { files: vec![nothing], ..sample });
    assert!(brought.files.is_empty());
}
