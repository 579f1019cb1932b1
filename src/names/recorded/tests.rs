//! What was looked up is what a reader finds.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::files::File;
use crate::files::Named;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::sample::Counter;
use crate::sample::FileSample;
use crate::sample::Moment;
use crate::view::fixtures;
use crate::view::fixtures::FakeNames;

const HOSTILE: &str = "/a\n\u{1b}[2J\\x41\u{202e}";

/// A machine whose names change, and which counts how often it is asked.
#[derive(Default)]
struct Changing {
    fake: FakeNames,
    asked: u32,
    mounts: Mounts,
    version: u64,
    /// Of everybody.
    line: Option<Vec<u8>>,
}

impl Names for Changing {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.asked += 1;
        self.fake.user(uid)
    }

    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup> {
        self.asked += 1;
        match id {
            9 => Rc::new(Cgroup { path: HOSTILE.into(), label: crate::cgroup::label(HOSTILE) }),
            id => self.fake.cgroup(id, tgid),
        }
    }

    fn mounts(&mut self, dev: Dev) -> &mut Mounts {
        if self.version == 0 {
            return self.fake.mounts(dev);
        }
        self.mounts = Mounts::parse("31 27 0:51 / /elsewhere rw - tmpfs tmpfs rw");
        &mut self.mounts
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.mounts(Dev::default())
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        self.asked += 1;
        if let Some(line) = &self.line {
            return Some(Foreign::from(&line[..]));
        }
        (pid != 3).then(|| Foreign::from(&b"cat \xff\n\\ x"[..]).with(&pid.to_string()))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

fn sample() -> Sample {
    let mut sample = fixtures::sample(Moment::now(), Duration::from_secs(1), &[(Counter::ReadHits, 100)]);
    let row = |tgid, uid, cgroup| {
        let row = fixtures::process(tgid, "dd", &[(Counter::ReadHits, u64::from(tgid))]);
        crate::sample::RowSample { uid, cgroup, ..row }
    };
    sample.rows = vec![row(1, 1000, 1), row(2, 0, 2), row(3, 7, 9), row(4, 1000, 5)];
    let file = |minor, block| File {
        dev: Dev { major: 0, minor },
        inode: 3,
        generation: 0,
        block,
        name: "/@/f\n".into(),
        named: Named::Whole,
    };
    let files = [file(40, None), file(51, None), file(6, Some(Dev { major: 4000, minor: 1 }))];
    sample.files = files
        .into_iter()
        .map(|file| FileSample {
            tgid: 1,
            uid: 1000,
            cgroup: 1,
            born: 0,
            process: "dd".into(),
            file: Arc::new(file),
            deleted: false,
            counters: fixtures::counters(&[(Counter::ReadHits, 2)]),
        })
        .collect();
    sample
}

fn rows(by: By, sample: &Sample, names: Box<dyn Names>) -> Vec<crate::model::Row> {
    let mut pivot = Pivot { by: Some(by), top: 100, filter: Filter::default(), names };
    let before = fixtures::sample(Moment::now(), Duration::ZERO, &[]);
    pivot.interval(&before, sample, &sample.known.plan()).rows
}

#[test]
fn rows_are_called_what_they_were_called_then() {
    let (sample, mut book) = (sample(), Recorded::default());
    book.note(&sample, &mut Changing::default());
    let text = serde_json::to_string(&book).unwrap();
    let book: Recorded = serde_json::from_str(&text).unwrap();
    for by in [By::Process, By::Thread, By::Comm, By::User, By::Cgroup, By::File, By::Mount, By::Device] {
        let there = rows(by, &sample, Box::new(book.clone()));
        assert_eq!(there, rows(by, &sample, Box::<Changing>::default()), "{by:?}");
        assert!(there.len() > 1);
    }
    let mut book = book;
    assert_eq!(book.cgroup(9, 0).path, HOSTILE);
    assert_eq!(book.command_line(1).unwrap().bytes(), b"cat \xff\n\\ x1");
    assert_eq!((book.command_line(3), book.command_line(99)), (None, None));
    // What nobody looked up has no name; it is not looked up now.
    assert_eq!((book.user(12345), book.cgroup(77, 1).path.as_str()), (None, "cgroup:77"));
}

#[test]
fn only_what_is_new_is_looked_up_and_told() {
    let (mut sample, mut names, mut book) = (sample(), Changing::default(), Recorded::default());
    let first = book.note(&sample, &mut names);
    let asked = names.asked;
    assert_eq!(book.note(&sample, &mut names), Recorded::default());
    assert_eq!(names.asked, asked);
    // A process of the same number has another name, and something was mounted elsewhere.
    sample.rows[0].process = "sh".into();
    sample.files.truncate(2);
    sample.files.iter_mut().for_each(|f| f.process = "sh".into());
    names.version = 1;
    let second = book.note(&sample, &mut names);
    assert_eq!((second.commands.len(), second.users.len()), (1, 0));
    let mut reader = first;
    reader.merge(serde_json::from_value(serde_json::to_value(&second).unwrap()).unwrap());
    assert_eq!(reader.mounts(Dev::default()).point(Dev { major: 0, minor: 51 }), Some("/elsewhere"));
    assert_eq!(reader.cgroup(1, 0).path, "/user.slice");
}

#[test]
fn nobody_fills_a_recording_with_what_it_is_called() {
    let mut sample = sample();
    let row = sample.rows.pop().unwrap();
    let named = |tgid| crate::sample::RowSample { tgid, ..row.clone() };
    sample.rows = (1..=20_000).map(named).collect();
    // As large as a process may have it, and each byte is six where it is written down.
    let mut names = Changing { line: Some(vec![1; 2 << 20]), ..Changing::default() };
    let new = Recorded::default().note(&sample, &mut names);
    let text = serde_json::to_vec(&new).unwrap().len();
    assert_eq!(new.commands.len(), 20_000);
    assert!((LINES / 2..LINES + LINES / 8).contains(&text), "{text} bytes");
    // Of an honest one its end is missing, and says so.
    names.line = Some("ä".repeat(LINE).into());
    let mut book = Recorded::default();
    book.note(&sample, &mut names);
    let line = book.command_line(2).unwrap();
    assert_eq!(std::str::from_utf8(line.bytes()).unwrap(), "ä".repeat(LINE / 2) + "…");
}
