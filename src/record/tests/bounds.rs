//! What is packed costs little and may become much: no more of it is taken than a recorder writes.

use flate2::Compress;
use flate2::Compression;
use flate2::FlushCompress;

use super::*;
use crate::cgroup::Cgroup;
use crate::files::Dev;
use crate::files::Mounts;
use crate::names::Names;
use crate::names::Recorded;
use crate::record::file;
use crate::record::frame::Decoder;
use crate::record::frame::Encoder;
use crate::record::frame::Session;
use crate::record::rows;
use crate::sample::written::MOST;

/// The frames of two samples, before they are packed, and the text of the second with so many rows that are new.
fn two(number: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut encoder, session) = (Encoder::default(), Session::now(Duration::from_secs(1)));
    let mut made = samples(2);
    let mut raw = |n: usize, session| encoder.encode(&mut made[n], &Recorded::default(), session).unwrap();
    let (first, second) = (raw(0, Some(&session)), raw(1, None));
    let mut rest = second.as_slice();
    let length = usize::try_from(rows::take(&mut rest).unwrap()).unwrap();
    let mut head: serde_json::Value = serde_json::from_slice(&rest[..length]).unwrap();
    head["sample"]["names"] = vec!["a"].into();
    (head["sample"]["rows"], head["sample"]["of_files"]) = (vec!["@"].into(), serde_json::json!([]));
    let row = "[1,1,0,1,1,0,0,[],null]";
    (first, head.to_string().replace("\"@\"", &vec![row; number].join(",")).into_bytes())
}

/// A frame with this text, which fills it up to so many bytes, and with rows that were there before.
fn frame(text: &[u8], bytes: usize, old: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let filled = text.len().max(bytes);
    rows::put(&mut out, filled as u64);
    out.extend(text);
    out.resize(out.len() + filled - text.len(), b' ');
    rows::put(&mut out, old);
    out.resize(out.len() + 5 * usize::try_from(old).unwrap() + 1, 0);
    out
}

fn why(text: &[u8], bytes: usize, old: u64) -> Option<String> {
    let mut decoder = Decoder::default();
    decoder.decode(true, &two(1).0).unwrap();
    decoder.decode(false, &frame(&two(1).1, 0, 0)).unwrap();
    decoder.decode(false, &frame(text, bytes, old)).err().map(|e| e.to_string())
}

#[test]
fn a_frame_has_no_more_rows_than_any_tick() {
    assert_eq!(why(&two(MOST).1, 0, 0), None);
    let said = why(&two(MOST + 1).1, 0, 0).unwrap();
    assert!(said.starts_with("more rows than any tick has"), "{said}");
    let said = why(&two(1).1, 0, MOST as u64 + 1).unwrap();
    assert!(said.starts_with("more rows than any tick has"), "{said}");
    // Nor is more written.
    let mut sample = samples(1).remove(0);
    sample.rows = vec![fixtures::process(1, "a", &[]); MOST + 1];
    let said = Encoder::default().encode(&mut sample, &Recorded::default(), None).unwrap_err();
    assert!(said.to_string().contains("too large to be recorded"), "{said}");
}

#[test]
fn a_segment_has_no_more_text_than_any() {
    let (first, text) = two(1);
    let mut decoder = Decoder::default();
    decoder.decode(true, &first).unwrap();
    let large = frame(&text, 50 << 20, 0);
    assert!(decoder.decode(false, &large).is_ok() && decoder.decode(false, &large).is_ok());
    let said = decoder.decode(false, &large).err().unwrap();
    assert!(said.to_string().contains("its segment is larger than any"), "{said}");
    decoder.decode(true, &first).unwrap();
    assert!(decoder.decode(false, &large).is_ok(), "the next one begins anew");
    // Nor more rows, which need more memory than text.
    let rows = frame(&two(MOST).1, 0, 0);
    let said = (0..5).find_map(|_| decoder.decode(false, &rows).err()).unwrap();
    assert!(said.to_string().contains("its segment is larger than any"), "{said}");
}

#[test]
fn what_becomes_larger_than_any_tick_is_not_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let (first, text) = two(1);
    let mut packing = Compress::new(Compression::fast(), false);
    let mut packed = |raw: &[u8]| {
        let (begin, mut out) = (packing.total_in(), Vec::with_capacity((1 << 20) + raw.len() / 64));
        packing.compress_vec(raw, &mut out, FlushCompress::Sync).unwrap();
        assert!(packing.total_in() - begin == raw.len() as u64 && out.len() < out.capacity());
        out.truncate(out.len() - file::FLUSHED.len());
        out
    };
    let segment = file::Segment { at: file::BEGIN, time: 1, back: 0, before: 0 };
    let mut bytes = file::beginning();
    bytes.extend(file::framed(Some(segment), Wake::Deadline, &packed(&first)).unwrap());
    let large = packed(&frame(&text, file::LARGEST + 1, 0));
    assert!(large.len() < file::LARGEST / 50, "{}", large.len());
    bytes.extend(file::framed(None, Wake::Deadline, &large).unwrap());
    fs::write(&path, &bytes).unwrap();
    let (_, said) = replay(&path, "--csv", &Part::default());
    assert!(said[0].contains("it is larger than any tick"), "{said:?}");
}

/// Cgroups are called what whoever made them liked.
struct Called(FakeNames);

impl Names for Called {
    fn user(&mut self, uid: u32) -> Option<std::rc::Rc<str>> {
        self.0.user(uid)
    }

    fn cgroup(&mut self, id: u64, _: u32) -> std::rc::Rc<Cgroup> {
        let path = format!("/{id}{}", "\u{1}".repeat(4000));
        std::rc::Rc::new(Cgroup { label: crate::cgroup::label("/a"), path })
    }

    fn mounts(&mut self, dev: Dev) -> &mut Mounts {
        self.0.mounts(dev)
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.0.mounts_now()
    }

    fn command_line(&mut self, pid: u32) -> Option<crate::text::foreign::Foreign> {
        self.0.command_line(pid)
    }
}

#[test]
fn a_tick_whose_names_are_too_large_is_recorded_without_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = Writer::file(&path, Duration::from_secs(1)).unwrap();
    let start = Moment::now();
    for tick in 0..5 {
        let reads = [(Counter::ReadHits, 4000 * tick), (Counter::ReadCalls, 4000 * tick)];
        let mut sample = fixtures::sample(start, Duration::from_secs(tick), &reads);
        // The second of them is no beginning of a segment, the third is.
        if tick > 1 {
            let row = |n| crate::sample::RowSample {
                cgroup: u64::from(n) + 10,
                ..fixtures::process(n, "a", &[(Counter::ReadHits, 1), (Counter::ReadCalls, 1)])
            };
            sample.rows = (1..=4000).map(row).collect();
        }
        writer.mark(format!("moment {tick}"));
        writer.write(&mut sample, &mut Called(FakeNames::default()), Wake::Deadline).unwrap();
        assert!(tick < 2 || sample.rows.len() == 4000);
    }
    drop(writer);
    let (out, said) = replay(&path, "--json --by process --top 5000", &Part::default());
    // Each moment once, also where its frame was made twice.
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said.iter().enumerate().all(|(n, said)| said.ends_with(&format!(": moment {n}"))), "{said:?}");
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let hits: Vec<_> = lines.iter().map(|l| l["read"]["hits"].as_u64().unwrap()).collect();
    assert_eq!(&hits[..4], [4000; 4], "{hits:?}");
    let rows = |line: &serde_json::Value| line["rows"].as_array().map_or(0, Vec::len);
    assert_eq!(lines.iter().map(rows).collect::<Vec<_>>(), [1, 4000, 4000, 4000]);
    assert!(std::fs::metadata(&path).unwrap().len() < 4 << 20);
}
