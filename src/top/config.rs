//! Settings that a person keeps: a small TOML file.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::columns::Column;
use crate::exit::Failure;
use crate::options::OneOf;
use crate::pivot::By;
use crate::text::foreign::Foreign;
use crate::text::infile;
use crate::text::numbers::Unit;
use crate::text::outfile;
use crate::text::times;
use crate::top::cells;
use crate::top::settings::Ended;
use crate::top::settings::Settings;
use crate::top::settings::Show;
use crate::top::settings::Sort;

/// The file as it is written. What is missing keeps its default; what is not known is a mistake.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    interval: Option<Length>,
    by: Option<String>,
    columns: Option<Vec<String>>,
    sort: Option<String>,
    reverse: Option<bool>,
    unit: Option<String>,
    show: Option<String>,
    threads: Option<bool>,
    ended: Option<String>,
    mouse: Option<bool>,
    /// By kind of rows. A table: it must come last.
    columns_of: Option<BTreeMap<String, Vec<String>>>,
}

/// Where the file is unless somebody says otherwise; `None` without a home.
#[must_use]
pub fn path() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    // A relative path is to be ignored, says the XDG specification.
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("cachetop/config.toml"))
}

/// Reads the file over the settings. `wanted`: it must be there.
///
/// # Errors
/// Wrong usage when it has mistakes, or is wanted and cannot be read.
pub fn read(path: &Path, wanted: bool, settings: &mut Settings) -> Result<(), Failure> {
    let text = match read_text(path) {
        Ok(text) => text,
        // It will be made when somebody keeps settings.
        Err(e) if e.kind() == io::ErrorKind::NotFound && (!wanted || parent_exists(path)) => return Ok(()),
        // Nobody requested it: see `unreadable`.
        Err(_) if !wanted => return Ok(()),
        Err(e) => return Err(mistake(path, &e.to_string())),
    };
    apply(&text, settings).map_err(|why| mistake(path, &why))
}

/// Text of a size that settings have: whatever lies there, and a device has no end.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // A link to /dev/null is how files of settings are said to be none.
    match infile::open(path)? {
        Some(file) => file.take(LARGEST + 1).read_to_string(&mut text)?,
        None if is_null(&std::fs::metadata(path)?) => 0,
        None => return Err(io::Error::other("it is no regular file")),
    };
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other("it is too large for settings"));
    }
    Ok(text)
}

fn is_null(of: &std::fs::Metadata) -> bool {
    of.file_type().is_char_device() && of.rdev() == libc::makedev(1, 3)
}

/// What a person must know where the file that nobody named is there and cannot be read: the defaults count.
#[must_use]
pub fn unreadable(path: &Path) -> Option<String> {
    let error = read_text(path).err().filter(|e| e.kind() != io::ErrorKind::NotFound)?;
    Some(format!("the settings in {} cannot be read ({error}), the defaults count", Foreign::from(path)))
}

/// Bytes that settings may have.
const LARGEST: u64 = 1 << 16;

/// A length of time: a number of seconds, or text with a unit.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "interval: write a number of seconds, or a text such as '500ms'")]
enum Length {
    Seconds(f64),
    Text(String),
}

impl Length {
    fn read(&self) -> Result<std::time::Duration, String> {
        match self {
            Self::Seconds(seconds) => times::interval(*seconds),
            Self::Text(text) => times::read(text),
        }
    }
}

fn parent_exists(path: &Path) -> bool {
    path.parent().is_some_and(|p| p.as_os_str().is_empty() || p.is_dir())
}

fn mistake(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("cannot use the settings in {}: {}", Foreign::from(path), why.trim_end()))
        .remedy("correct the file or remove it; --no-config leaves it alone")
}

fn choice<T: OneOf>(key: &str, text: &str) -> Result<T, String> {
    T::named(text).ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|value| value.name()).collect();
        format!("{key} is one of {}", names.join(", "))
    })
}

fn column(name: &str) -> Result<&'static Column, String> {
    let found = cells::find(name).filter(|c| cells::suits_rows(c));
    found.ok_or_else(|| format!("columns: there is no column '{name}' for rows"))
}

fn apply(text: &str, settings: &mut Settings) -> Result<(), String> {
    let kept: Kept = toml::from_str(text).map_err(|e| e.message().to_owned() + &line(text, e.span()))?;
    if let Some(length) = kept.interval {
        settings.interval = length.read().map_err(|e| format!("interval: {e}"))?;
    }
    if let Some(by) = kept.by {
        settings.by = choice::<By>("by", &by)?;
    }
    if let Some(unit) = kept.unit {
        settings.unit = choice::<Unit>("unit", &unit)?;
    }
    if let Some(show) = kept.show {
        settings.show = choice::<Show>("show", &show)?;
    }
    if let Some(names) = kept.columns {
        settings.columns = names.iter().map(|n| column(n)).collect::<Result<_, _>>()?;
        settings.columns_are_default = false;
    }
    for (by, names) in kept.columns_of.unwrap_or_default() {
        let by = choice::<By>("columns_of", &by)?;
        settings.choose(by, Some(names.iter().map(|n| column(n)).collect::<Result<_, _>>()?));
    }
    if let Some(sort) = kept.sort {
        settings.sort = Sort::parse(&sort).map_err(|e| format!("sort: {e}"))?;
    }
    if let Some(ended) = kept.ended {
        settings.ended = choice::<Ended>("ended", &ended)?;
    }
    settings.reverse = kept.reverse.unwrap_or(settings.reverse);
    settings.threads = kept.threads.unwrap_or(settings.threads);
    settings.mouse = kept.mouse.unwrap_or(settings.mouse);
    Ok(())
}

fn line(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let before = span.and_then(|s| text.get(..s.start));
    before.map_or_else(String::new, |b| format!(" (line {})", b.matches('\n').count() + 1))
}

fn written(settings: &Settings) -> Result<String, toml::ser::Error> {
    let s = settings;
    let ids = |columns: &[&Column]| columns.iter().map(|c| c.id.to_owned()).collect::<Vec<_>>();
    let columns = ids(&s.columns);
    let own: BTreeMap<_, _> =
        s.own.iter().map(|(by, columns)| (by.name().to_owned(), ids(columns))).collect();
    let kept = Kept {
        interval: Some(Length::Seconds(s.interval.as_secs_f64())),
        by: Some(s.by.name().into()),
        columns: (!s.columns_are_default).then_some(columns),
        columns_of: (!own.is_empty()).then_some(own),
        sort: Some(s.sort.name().into()),
        reverse: Some(s.reverse),
        unit: Some(s.unit.name().into()),
        show: Some(s.show.name().into()),
        threads: Some(s.threads),
        ended: Some(s.ended.name().into()),
        mouse: Some(s.mouse),
    };
    Ok(format!("# Written by cachetop (key W).\n{}", toml::to_string(&kept)?))
}

/// Keeps the settings. A file that is there is replaced in one go, so that none is ever half written.
///
/// # Errors
/// When the file cannot be written.
pub fn save(path: &Path, settings: &Settings) -> anyhow::Result<()> {
    let text = written(settings)?;
    if let Some(dir) = path.parent() {
        outfile::make_directories(dir)?;
    }
    Ok(outfile::write(path, text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::plan::Engine;

    #[test]
    fn what_was_kept_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/config.toml");
        let mut settings = Settings::for_engine(Engine::Exact);
        settings.interval = Duration::from_millis(2500);
        (settings.by, settings.show, settings.unit) = (By::Cgroup, Show::Total, Unit::Bytes);
        settings.columns = crate::columns::set(&["misses", "hits"]);
        (settings.columns_are_default, settings.reverse, settings.sort) = (false, true, Sort::Name);
        settings.choose(By::File, Some(crate::columns::set(&["hits", "readahead_pages"])));
        save(&path, &settings).unwrap();
        let mut back = Settings::for_engine(Engine::Exact);
        read(&path, true, &mut back).unwrap();
        assert_eq!(written(&back).unwrap(), written(&settings).unwrap());
        assert_eq!(back.columns.len(), 2);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        insta::assert_snapshot!(written(&settings).unwrap());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, part) in [
            ("colour = 1", "unknown field `colour`"),
            ("by = 'process'\nby = 'x'", "(line 2)"),
            ("by = 'inode'", "by is one of process, thread"),
            ("interval = 0", "more than 0"),
            ("interval = 'x'", "ms, s, m or h"),
            ("interval = '1e308h'", "longer than a year"),
            ("interval = true", "write a number of seconds"),
            ("columns = ['hits', 'rubbish']", "no column 'rubbish'"),
            ("[columns_of]\nfile = ['rubbish']", "no column 'rubbish'"),
            ("[columns_of]\ninode = ['hits']", "columns_of is one of process"),
            ("columns = ['evicted']", "no column 'evicted' for rows"),
            ("sort = 'rubbish'", "no column 'rubbish'"),
        ] {
            let error = apply(text, &mut Settings::for_engine(Engine::Exact)).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn no_file_is_no_mistake_but_a_directory_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::for_engine(Engine::Exact);
        read(&dir.path().join("none"), false, &mut settings).unwrap();
        read(&dir.path().join("none"), true, &mut settings).unwrap();
        assert!(read(&dir.path().join("no/where"), true, &mut settings).is_err());
        let huge = dir.path().join("huge");
        fs::File::create(&huge).unwrap().set_len(2 << 30).unwrap();
        let failure = read(&huge, true, &mut settings).unwrap_err();
        assert!(failure.message.contains("too large"), "{failure:?}");
        assert!(read(dir.path(), true, &mut settings).is_err());
        // Nobody writes to it: it is not waited for.
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let failure = read(&pipe, true, &mut settings).unwrap_err();
        assert!(failure.message.contains("no regular file"), "{failure:?}");
        read(Path::new("/dev/null"), true, &mut settings).unwrap();
        assert_eq!(unreadable(Path::new("/dev/null")), None);
        // The default one: a warning.
        read(dir.path(), false, &mut settings).unwrap();
        assert!(unreadable(dir.path()).unwrap().contains("the defaults count"));
        assert_eq!(unreadable(&dir.path().join("none")), None);
    }
}
