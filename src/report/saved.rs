//! Reading a report that was saved, for `--compare`. It may be anybody's, of any size, damaged or made up: of its runs
//! only what means are made of is kept, from a reader that gives each value no more room than a report has for it, and
//! its numbers must be such as a run can have.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use serde::Deserializer as _;
use serde::de::DeserializeSeed;
use serde::de::Error as _;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::Saved;
use super::cold::Cold;
use super::data::Run;
use super::groups;
use super::json::SCHEMA;
use super::options::RUNS;
use super::units::page;
use crate::exit::Failure;
use crate::options::OneOf as _;
use crate::text::foreign::Foreign;

/// Bytes that a saved report may have: a thousand runs have 200 MiB.
const LARGEST: u64 = 256 << 20;
/// Bytes that one run may have, or any other value of a report: one with 50 files, 512 pieces of time and 10 000 processes
/// has 300 KiB. In memory this becomes ten times as much.
const VALUE: u64 = 3 << 20;
/// Seconds that a run can have lasted: thirty years.
const SECONDS: f64 = 1e9;
/// What can have been counted of anything: sums of a few hundred of these are numbers, too.
const COUNT: u64 = 1 << 56;

/// A reader that ends with an error where a value is longer than it may be.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
    all: u64,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("a part of it is too large for a report"));
        }
        if self.read.get() >= self.all {
            return Err(io::Error::other("it is too large for a report"));
        }
        let room = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(into.len());
        let n = self.inner.read(&mut into[..room])?;
        self.left.set(self.left.get() - n as u64);
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

/// What is kept of a report.
#[derive(Default)]
struct Kept {
    schema: Option<Value>,
    command: Option<Value>,
    host: Option<Value>,
    page_size: Option<Value>,
    commands: Option<Value>,
    runs: Vec<Run>,
    /// Why a run cannot be read.
    bad: Option<String>,
}

struct Report<'a>(&'a Cell<u64>);

impl<'de> Visitor<'de> for Report<'_> {
    type Value = Kept;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kept, A::Error> {
        let mut kept = Kept::default();
        loop {
            self.0.set(VALUE);
            let Some(key) = map.next_key::<String>()? else { return Ok(kept) };
            self.0.set(VALUE);
            let place = match key.as_str() {
                "schema" => &mut kept.schema,
                "command" => &mut kept.command,
                "commands" => &mut kept.commands,
                "host" => &mut kept.host,
                "page_size" => &mut kept.page_size,
                "runs" => {
                    (kept.runs, kept.bad) = map.next_value_seed(Runs(self.0))?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // As text first: made up, a MiB of brackets would become a hundred of values.
            let text: Box<RawValue> = map.next_value()?;
            let small = Some(text.get()).filter(|t| t.len() <= SMALL);
            *place = small.and_then(|t| serde_json::from_str(t).ok());
        }
    }
}

/// Bytes of a command and its arguments that are told.
const SMALL: usize = 1 << 17;

/// The runs, and why one cannot be read. No more than [`RUNS`]: made up, a small file could ask for much memory.
struct Runs<'a>(&'a Cell<u64>);

impl<'de> DeserializeSeed<'de> for Runs<'_> {
    type Value = (Vec<Run>, Option<String>);

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Runs<'_> {
    type Value = (Vec<Run>, Option<String>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<Self::Value, A::Error> {
        let (mut all, mut bad) = (Vec::new(), None);
        loop {
            self.0.set(VALUE);
            let Some(text) = runs.next_element::<Box<RawValue>>()? else { return Ok((all, bad)) };
            if all.len() >= RUNS {
                return Err(A::Error::custom("it has more runs than anybody makes"));
            }
            match one(text.get()) {
                Ok(run) => all.push(run),
                Err(why) => bad = bad.or(Some(format!("its run {} cannot be read: {why}", all.len() + 1))),
            }
            if bad.is_some() {
                // Of the rest it only matters where it ends.
                self.0.set(LARGEST);
                while runs.next_element::<IgnoredAny>()?.is_some() {}
                return Ok((all, bad));
            }
        }
    }
}

/// Reads a report that was saved.
///
/// # Errors
/// Wrong usage, when it is none.
pub fn saved(path: &Path) -> Result<Saved, Failure> {
    let remedy = "name a file that '--save FILE' or '--json -o FILE' wrote";
    let bad = |why: String| {
        Failure::usage(format!("cannot compare with {}: {why}", Foreign::from(path))).remedy(remedy)
    };
    let file = File::open(path).map_err(|e| bad(e.to_string()))?;
    let meta = file.metadata().map_err(|e| bad(e.to_string()))?;
    if meta.is_file() && meta.len() > LARGEST {
        return Err(bad("it is too large for a report".into()));
    }
    let (left, read) = (Rc::new(Cell::new(VALUE)), Rc::new(Cell::new(0)));
    let bounded = Bounded {
        inner: BufReader::new(file),
        left: Rc::clone(&left),
        // A device has no end.
        all: LARGEST,
        read: Rc::clone(&read),
    };
    let mut json = serde_json::Deserializer::from_reader(bounded);
    let mut kept = json.deserialize_map(Report(&left)).map_err(|e| match e.classify() {
        Category::Io => bad(io::Error::from(e).to_string()),
        Category::Eof if read.get() > 0 => bad("it is not complete: its end is missing".into()),
        Category::Eof => bad("it is empty".into()),
        Category::Syntax => bad("it is not JSON".into()),
        Category::Data => bad(format!("it is JSON, but not the report of a command ({e})")),
    })?;
    left.set(VALUE);
    json.end().map_err(|e| match e.classify() {
        Category::Io => bad(io::Error::from(e).to_string()),
        _ => bad("it has more than one object: these are intervals, not the report of a command".into()),
    })?;
    match kept.schema.as_ref().and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(bad(format!("it is '{}', and this version knows '{SCHEMA}'", Foreign::from(other))));
        }
        None => return Err(bad("it is JSON, but not the report of a command".into())),
    }
    if let Some(why) = kept.bad {
        return Err(bad(why));
    }
    let lines = lines(&kept);
    for run in &mut kept.runs {
        run.line = lines.iter().find(|(label, _)| *label == run.label).map(|(_, line)| line.clone());
    }
    // What failed or was cut short is compared only where there is nothing else.
    let whole = kept.runs.iter().rfind(|r| !r.left_out).or(kept.runs.last());
    let run = whole.cloned().ok_or_else(|| bad("it has no run".into()))?;
    let list = |value: &Option<Value>| value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let word = |v: &Value| v.as_str().map(|w| Foreign::from(w).to_string());
    let mut command: Vec<String> = list(&kept.command).iter().filter_map(word).collect();
    let lines: Vec<String> = list(&kept.commands).iter().filter_map(|c| word(&c["line"])).collect();
    command.extend(Some(lines.join(", ")).filter(|l| !l.is_empty()));
    let size = kept.page_size.as_ref().and_then(Value::as_u64).filter(|n| *n != page());
    let about = format!(
        "{}, on {}, {}{}",
        command.join(" "),
        Foreign::from(kept.host.as_ref().and_then(Value::as_str).unwrap_or("?")),
        Foreign::from(run.time.as_str()),
        size.map_or_else(String::new, |n| format!(", pages of {n} bytes, not of {}", page()))
    );
    Ok(Saved { path: path.into(), about, run, groups: groups::divide(&kept.runs) })
}

/// The lines of the commands of a report, by the labels of their runs.
fn lines(kept: &Kept) -> Vec<(Option<String>, Arc<str>)> {
    let list = |value: &Option<Value>| value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let word = |v: &Value| v.as_str().map(String::from);
    let several = list(&kept.commands);
    if !several.is_empty() {
        let line = |c: &Value| Some((Some(word(&c["label"])?), word(&c["line"])?.into()));
        return several.iter().filter_map(line).collect();
    }
    let words: Vec<_> = list(&kept.command).iter().filter_map(word).collect();
    Vec::from_iter((!words.is_empty()).then(|| (None, words.join("\0").into())))
}

/// A run without what is not compared.
fn one(text: &str) -> Result<Run, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    Sound("run").deserialize(&mut json).map_err(|e| words(&e))?;
    let mut run = Run::from_json(text).map_err(|e| words(&e))?;
    if run.wall_s <= 0.0 {
        return Err("wall_s is 0, which no run has".into());
    }
    // A letter, and no more than that.
    if run.label.as_ref().is_some_and(|l| l.len() != 1 || !l.bytes().all(|b| b.is_ascii_uppercase())) {
        return Err("its label is no letter".into());
    }
    (run.files, run.timeline, run.warmers, run.left_behind) = Default::default();
    (run.processes, run.latency, run.window_pages) = Default::default();
    run.cold = run.cold.filter(|c| Cold::named(c).is_some());
    run.saved = true;
    Ok(run)
}

/// What is wrong, without the place: it would be that in a part of the file.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().map_or_else(String::new, String::from)
}

/// Looks at each number, whether a run can have it, and at the length of lists, and keeps nothing.
struct Sound<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Sound<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sound<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(Sound(&key))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let most = if self.0 == "files" { FILES } else { LIST };
        let mut n = 0;
        while list.next_element_seed(Sound(self.0))?.is_some() {
            n += 1;
            if n > most {
                return Err(A::Error::custom(format_args!("{} has more than {most} entries", self.0)));
            }
        }
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<(), E> {
        // Numbers of inodes are any; a file without anything in it has any size.
        let any = matches!(self.0, "inode" | "size");
        let right = if self.0.ends_with("_s") { n as f64 <= SECONDS } else { n < COUNT };
        if any || right {
            Ok(())
        } else {
            Err(E::custom(format_args!("{} is {n}, which no run has", self.0)))
        }
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<(), E> {
        // Below zero: for what it is not meant, it does not fit.
        if self.0 == "exit_status" {
            Ok(())
        } else {
            Err(E::custom(format_args!("{} is {n}, which no run has", self.0)))
        }
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<(), E> {
        let right = (0.0..=SECONDS).contains(&n);
        if right { Ok(()) } else { Err(E::custom(format_args!("{} is {n:e}, which no run has", self.0))) }
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Entries of lists: of files a report keeps 50, of anything else no more than 512 or there are processes.
const FILES: usize = 1000;
const LIST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use super::*;
    use crate::exit::Code;

    fn refused(text: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let failure = saved(file.path()).unwrap_err();
        assert_eq!(failure.code, Code::Usage);
        failure.message
    }

    fn of_run(run: &str) -> String {
        format!("{{\"schema\":\"{SCHEMA}\",\"runs\":[{run}]}}")
    }

    #[test]
    fn numbers_that_no_run_has() {
        for (run, why) in [
            (r#"{"wall_s":1e308}"#, "wall_s is 1e308"),
            (r#"{"wall_s":-1}"#, "wall_s is -1"),
            (r#"{"wall_s":-0.5}"#, "wall_s is -5e-1"),
            (r#"{"wall_s":1e999}"#, "out of range"),
            (r#"{"wall_s":0.0}"#, "wall_s is 0, which"),
            (r#"{"wall_s":0}"#, "wall_s is 0, which"),
            (r#"{"user_s":2e9}"#, "user_s is"),
            (r#"{"waits":{"read_ns":18446744073709551615}}"#, "read_ns is 18446744073709551615"),
            (r#"{"read":{"hits":18446744073709551615}}"#, "hits is"),
            (r#"{"timeline":[{"at_s":1e300}]}"#, "at_s is"),
            (r#"{"files":[{"hits":-5}]}"#, "hits is -5"),
        ] {
            let text = refused(of_run(run).as_bytes());
            assert!(text.contains(why), "{run}: {text}");
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let run = r#"{"wall_s":1.5,"files":[{"inode":18446744073709551615}],"exit_status":-1}"#;
        file.write_all(of_run(run).as_bytes()).unwrap();
        assert_eq!(saved(file.path()).unwrap().run.wall_s, 1.5);
    }

    #[test]
    fn what_is_huge_is_refused() {
        let mut deep = vec![b'['; 4 << 20];
        assert!(refused(&deep).contains("report"));
        deep.splice(..0, *b"{\"x\":");
        assert!(refused(&deep).contains("too large"), "nesting");
        let list = "0,".repeat(3 << 20);
        assert!(refused(format!("{{\"x\":[{list}0]}}").as_bytes()).contains("too large"));
        assert!(refused(of_run(&format!("{{\"files\":[{list}0]}}")).as_bytes()).contains("too large"));
        let files = of_run(&format!("{{\"files\":[{}{{}}]}}", "{},".repeat(2000)));
        assert!(refused(files.as_bytes()).contains("files has more than 1000 entries"));
        let runs = r#"{"wall_s":1},"#.repeat(200_000);
        assert!(refused(of_run(&format!(r#"{runs}{{"wall_s":1}}"#)).as_bytes()).contains("more runs"));
        let sparse = tempfile::NamedTempFile::new().unwrap();
        sparse.as_file().set_len(2 << 30).unwrap();
        assert!(saved(sparse.path()).unwrap_err().message.contains("too large"));
        assert!(saved(Path::new("/dev/zero")).unwrap_err().message.contains("not JSON"));
    }
}
