//! What leads on from the details of a row: the rows of its lists, and what one would run next.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use crate::live::keeper::Id;
use crate::pivot::By;
use crate::pivot::Who;
use crate::text::foreign::Foreign;
use crate::top::details::Details;
use crate::top::now::Now;
use crate::whatif::Prediction;

/// What may be chosen on the page of details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The details of this row.
    Row(By, Id),
    /// The row of the lists that has the most of what the n-th finding is about.
    Finding(usize),
    /// The n-th of the commands.
    Command(usize),
}

/// What a cgroup would miss with more memory, or with less.
#[derive(Debug, Clone, PartialEq)]
pub enum WhatIf {
    /// It was asked just now.
    Starting,
    /// What is known so far.
    Told(Box<Prediction>),
    /// Why nothing is.
    Failed(String),
}

/// The details of a row, as far as they have come.
#[derive(Debug, Clone)]
pub struct Open {
    /// What the row stands for.
    pub by: By,
    /// Which row.
    pub id: Id,
    /// Who.
    pub who: Who,
    /// What was found out.
    pub details: Option<Details>,
    /// Another process has its number by now: nothing more comes of this one.
    pub replaced: bool,
    /// When the process began, as far as that was ever known.
    pub begun: Option<u64>,
    /// The command line: requested, and what came back.
    pub command_line: Option<Option<Foreign>>,
    /// What the cache has of it now, and before that; asked again and again.
    pub now: Option<Now>,
    /// The answer before.
    pub before: Option<Now>,
    /// What would be with more memory; `None`: nobody has asked.
    pub what_if: Option<WhatIf>,
    /// The line to which the page went to show it.
    pub answer_line: Option<usize>,
    /// What is chosen on the page.
    pub chosen: Option<Link>,
    /// The line on which it stood when it was chosen.
    pub chosen_line: Option<usize>,
}

impl Open {
    /// Of a row, of which nothing is known yet.
    #[must_use]
    pub fn new(by: By, id: Id, who: Who) -> Self {
        Self {
            by,
            id,
            who,
            details: None,
            replaced: false,
            begun: None,
            command_line: None,
            now: None,
            before: None,
            what_if: None,
            answer_line: None,
            chosen: None,
            chosen_line: None,
        }
    }
}

/// All that may be chosen, from above.
#[must_use]
pub fn all(open: &Open, commands: bool) -> Vec<Link> {
    let findings = open.details.as_ref().map_or(0, |details| details.findings.len());
    let findings = (0..findings).filter(|n| proof(open, *n).is_some()).map(Link::Finding);
    let lists = open.details.iter().flat_map(|details| &details.lists);
    let rows =
        lists.flat_map(|list| list.shown().iter().map(|row| Link::Row(list.by, Id::new(list.by, &row.who))));
    let number = if commands && !open.replaced { self::commands(open.by, &open.who).len() } else { 0 };
    findings.chain(rows).chain((0..number).map(Link::Command)).collect()
}

/// The row that proves a finding: of the first list, which has the parts of this row, the one with the most of it. It need
/// not be one of the busiest, which the page shows.
#[must_use]
pub fn proof(open: &Open, finding: usize) -> Option<(By, &Who)> {
    let details = open.details.as_ref()?;
    let of = details.findings.get(finding)?.of;
    let list = details.lists.first()?;
    // Of several alike, the busiest.
    let most = list.rows.iter().rev().max_by_key(|row| row.figures.get(of))?;
    (most.figures.get(of)? > 0).then_some((list.by, &most.who))
}

/// Who is behind a link.
#[must_use]
pub fn who<'a>(open: &'a Open, by: By, id: &Id) -> Option<&'a Who> {
    let list = open.details.as_ref()?.lists.iter().find(|list| list.by == by)?;
    list.rows.iter().map(|row| &row.who).find(|who| Id::new(by, who) == *id)
}

/// A name that is none (deleted, or known by number only) leads nowhere.
fn path(path: &Option<Foreign>) -> Option<Foreign> {
    let named = |p: &&Foreign| p.bytes().starts_with(b"/") && !p.bytes().ends_with(b" (deleted)");
    path.as_ref().filter(named).cloned()
}

/// A name with bytes that are no UTF-8 was not kept byte for byte: no command could be given it.
fn cgroup(who: &Who) -> Option<Foreign> {
    path(&who.cgroup).filter(|c| !c.raw().contains(char::REPLACEMENT_CHARACTER))
}

/// An option with its value, in one word.
fn set(option: &str, value: &Foreign) -> OsString {
    let mut word = OsString::from(option);
    word.push(OsStr::from_bytes(value.bytes()));
    word
}

/// What says again and again what this row would miss with more memory, or with less; `latency`: and how long it would wait.
#[must_use]
pub fn what_if(by: By, who: &Who, latency: bool) -> Option<Vec<OsString>> {
    let cgroup = (by == By::Cgroup).then(|| cgroup(who)).flatten()?;
    let words = ["cachestat", "--json", "--what-if", "1h", "--so-far", "2"];
    let timed = latency.then(|| OsString::from("--latency"));
    let own = std::iter::once(set("--cgroup=", &cgroup));
    Some(words.into_iter().map(OsString::from).chain(timed).chain(own).collect())
}

/// What one would run next about a row: programs of this package and their arguments.
#[must_use]
pub fn commands(by: By, who: &Who) -> Vec<Vec<OsString>> {
    let line = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let with = |mut words: Vec<OsString>, more: OsString| {
        words.push(more);
        words
    };
    match by {
        By::Process | By::Thread => match who.pid.map(|pid| pid.to_string()) {
            Some(pid) => {
                vec![line(&["cachestat", "-p", &pid, "--for", "10s"]), line(&["cachedu", "--pid", &pid])]
            }
            None => Vec::new(),
        },
        By::Comm => match &who.comm {
            Some(comm) => vec![
                with(line(&["cachestat", "1", "10", "--by", "file"]), set("--comm=", comm)),
                with(line(&["cachedu"]), set("--comm=", comm)),
            ],
            None => Vec::new(),
        },
        By::Cgroup => match cgroup(who) {
            Some(cgroup) => vec![
                with(line(&["cachestat", "1", "10", "--by", "file"]), set("--cgroup=", &cgroup)),
                with(line(&["cachestat", "--what-if", "60"]), set("--cgroup=", &cgroup)),
                with(line(&["cachedu"]), set("--cgroup=", &cgroup)),
            ],
            None => Vec::new(),
        },
        By::File => match path(&who.path) {
            Some(file) => vec![
                with(line(&["cachedu", "--map"]), set("", &file)),
                with(line(&["cachestat", "1", "10", "--by", "process"]), set("--file=", &file)),
            ],
            None => Vec::new(),
        },
        By::Mount => match path(&who.mount) {
            Some(mount) => vec![
                with(line(&["cachestat", "1", "10", "--by", "file"]), set("--mount=", &mount)),
                with(line(&["cachedu", "-x", "-f", "--top", "20"]), set("", &mount)),
            ],
            None => Vec::new(),
        },
        By::Evictor => vec![line(&["cachestat", "--blame", "60"])],
        By::User | By::Device => Vec::new(),
    }
}

/// A command as a shell takes it: nothing in it acts on the shell, nor on the terminal that it is printed on.
#[must_use]
pub fn printed(words: &[OsString]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-+=./:,@%".contains(b);
    let text = Foreign::from(word).to_string();
    if !word.is_empty() && word.as_bytes().iter().all(plain) {
        text
    } else if word.to_str() == Some(&text) {
        // Nothing in it had to be escaped for the eye.
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        let byte = |b: &u8| match b {
            b' '..=b'~' if !b"'\\".contains(b) => char::from(*b).to_string(),
            b => format!("\\x{b:02x}"),
        };
        format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_what_is_printed_for_what_it_is() {
        let words: [&[u8]; 7] = [
            b"/a/b-1.db",
            b"/it's $HOME",
            b"",
            b"/esc\x1b[2J\n;ls",
            b"/back\\slash'",
            b"/\xff",
            "/\u{202e}".as_bytes(),
        ];
        let words = words.map(|word| OsStr::from_bytes(word).to_owned());
        let text = printed(&words);
        assert!(text.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{text:?}");
        // sh of Debian has no $'…'; whoever has such names has bash.
        let Ok(out) =
            std::process::Command::new("bash").args(["-c", &format!("printf '%s\\0' {text}")]).output()
        else {
            panic!("no bash");
        };
        let mut all: Vec<&[u8]> = out.stdout.split(|b| *b == 0).collect();
        all.pop();
        assert_eq!(all, words.iter().map(|w| w.as_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn only_what_has_a_name_leads_on() {
        let who = |path: &str| Who { path: Some(path.into()), ..Who::default() };
        assert_eq!(
            commands(By::File, &who("/a b")).iter().map(|c| printed(c)).collect::<Vec<_>>(),
            ["cachedu --map '/a b'", "cachestat 1 10 --by process '--file=/a b'"]
        );
        for path in ["/gone (deleted)", "inode 7", "(other)"] {
            assert!(commands(By::File, &who(path)).is_empty(), "{path}");
        }
        assert!(commands(By::Process, &Who::default()).is_empty());
        let cgroup = |path: &str| Who { cgroup: Some(path.into()), ..Who::default() };
        assert_eq!(commands(By::Cgroup, &cgroup("/a b")).len(), 3);
        let asked = |latency| what_if(By::Cgroup, &cgroup("/a b"), latency).map(|words| printed(&words));
        assert_eq!(asked(false).as_deref(), Some("cachestat --json --what-if 1h --so-far 2 '--cgroup=/a b'"));
        assert_eq!(
            asked(true).as_deref(),
            Some("cachestat --json --what-if 1h --so-far 2 --latency '--cgroup=/a b'")
        );
        assert!(what_if(By::File, &who("/a b"), true).is_none());
        assert!(
            commands(By::Cgroup, &cgroup("/a\u{fffd}b")).is_empty(),
            "the kernel knows it by another name"
        );
    }
}
