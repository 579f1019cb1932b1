//! Moments that were told while it was recorded are told again, at their times and with nothing of them acting.
#![allow(clippy::unwrap_used)]

use super::*;

/// Records ticks, some of which end with moments.
fn marked(path: &Path, number: u32, marks: &[(u32, &str)]) -> Vec<jiff::Timestamp> {
    let mut writer = Writer::file(path, Duration::from_secs(1)).unwrap();
    let mut times = Vec::new();
    for (tick, mut sample) in (0..).zip(samples(number)) {
        for (_, line) in marks.iter().filter(|(at, _)| *at == tick) {
            writer.mark((*line).to_owned());
        }
        times.push(sample.time);
        writer.write(&mut sample, &mut FakeNames::default(), Wake::Deadline).unwrap();
    }
    times
}

#[test]
fn a_moment_is_told_at_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let (path, without) = (dir.path().join("a"), dir.path().join("b"));
    // In the middle, at the beginning of a segment, and two at once.
    let marks = [(7, "misses > 4/s: one"), (300, "two"), (301, "three"), (301, "four")];
    let times = marked(&path, 400, &marks);
    let at = |tick: usize| crate::view::utc(times[tick]);
    let (out, said) = replay(&path, "--json", &Part::default());
    let want: Vec<_> =
        marks.iter().map(|(tick, line)| format!("moment at {}: {line}", at(*tick as usize))).collect();
    assert_eq!(said, want);
    // The figures are what they are without.
    marked(&without, 400, &[]);
    let figures = |json: &str| lines(json).iter().map(|l| l["read"].clone()).collect::<Vec<_>>();
    assert_eq!(figures(&out), figures(&replay(&without, "--json", &Part::default()).0));
    // Those of the time that is asked for, only.
    let part = |from: usize, to: usize| Part {
        from: Some(When::At(times[from])),
        to: Some(When::At(times[to])),
        ..Part::default()
    };
    assert_eq!(replay(&path, "--json", &part(8, 300)).1, want[1..2]);
    assert_eq!(replay(&path, "--json", &part(301, 399)).1, want[2..]);
    assert!(replay(&path, "--json", &part(302, 399)).1.is_empty());
}

#[test]
fn a_made_up_moment_neither_acts_nor_fills_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let line = "\x1b]0;x\x07\n\u{202e}moment";
    marked(&path, 20, &vec![(3, line); 5000]);
    let (out, said) = replay(&path, "--json", &Part::default());
    assert_eq!(lines(&out).len(), 19);
    assert!(said.len() <= 64 && !said.is_empty());
    assert!(said.iter().all(|s| !s.contains(['\x1b', '\x07', '\n', '\u{202e}'])), "{said:?}");
}
