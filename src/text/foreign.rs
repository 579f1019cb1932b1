//! Text that others have written: names of threads, files, cgroups, mounts, users, hosts, commands, and what a saved
//! file says. Whoever names a thread or a file must not write on root's terminal by it, nor forge a line of a report.
//!
//! A [`Foreign`] cannot be printed as it is: it has no `Deref` to a string, and its `Display` escapes. What moves the
//! cursor, ends a line, or changes the order in which a line is read stands there as `\x1b`, `\n` or `\u{202e}`, a byte
//! that is no UTF-8 as `\xff`, and a backslash as two, so that the text says what the name is. For texts that are ours
//! with pieces of theirs in them there is a second net: [`line()`] and [`lines()`].

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

/// Text that somebody else has written, byte for byte.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Foreign(Vec<u8>);

impl Foreign {
    /// As it is, for programs: to compare, to look up, to count. Never for an eye.
    #[must_use]
    pub fn raw(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// As it is, byte for byte.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it stands there as it is, with nothing escaped.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\')
    }

    /// For a column: quoted where it is empty or blank, and would look as if nothing stood there.
    #[must_use]
    pub fn visible(&self) -> Cow<'_, Self> {
        match self.0.iter().all(|b| *b == b' ') {
            true => Cow::Owned(Self([b"\"", &*self.0, b"\""].concat())),
            false => Cow::Borrowed(self),
        }
    }

    /// With a mark of ours behind it.
    #[must_use]
    pub fn with(mut self, mark: &str) -> Self {
        self.0.extend_from_slice(mark.as_bytes());
        self
    }

    /// With another one behind it.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// A cell of CSV: escaped, and nothing that a spreadsheet takes for a formula.
    #[must_use]
    pub fn cell(&self) -> String {
        let text = self.to_string();
        if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
    }
}

impl From<&[u8]> for Foreign {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<String> for Foreign {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&str> for Foreign {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&OsStr> for Foreign {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&Path> for Foreign {
    fn from(path: &Path) -> Self {
        path.as_os_str().into()
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    c => put(c, &mut out),
                }
            }
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}")?;
            }
        }
        f.pad(&out)
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for Foreign {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.raw())
    }
}

impl<'de> Deserialize<'de> for Foreign {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

/// Whether a character does something to a terminal or to the order of a line, or cannot be seen at all.
pub(crate) const fn acts(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Soft hyphen, marks of direction, separators, embeddings, isolates, invisible operators.
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Byte order mark, interlinear marks, tags.
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        // Joiners, fillers and vowels of no width, variation selectors; and what is as blank as a space, and is none.
        | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}'
        // Terminals do not agree how wide they are, by how old their tables are (Unicode 16 and 17): what comes behind them
        // would stand elsewhere. Those beyond all planes of letters stand for others on a screen.
        | '\u{17a4}' | '\u{17d8}' | '\u{2630}'..='\u{2637}' | '\u{268a}'..='\u{268f}' | '\u{302e}'..='\u{302f}'
        | '\u{31e4}'..='\u{31e5}' | '\u{3248}'..='\u{324f}' | '\u{4dc0}'..='\u{4dff}' | '\u{16ff2}'..='\u{16ff6}'
        | '\u{187f8}'..='\u{187ff}' | '\u{18cff}' | '\u{18d09}'..='\u{18d1e}' | '\u{18d80}'..='\u{18df2}'
        | '\u{1d300}'..='\u{1d356}' | '\u{1d360}'..='\u{1d376}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{1f6d8}'
        | '\u{1fa89}'..='\u{1fa8a}' | '\u{1fa8e}'..='\u{1fa8f}' | '\u{1fabe}' | '\u{1fac6}' | '\u{1fac8}' | '\u{1facd}'
        | '\u{1fadc}' | '\u{1fadf}' | '\u{1fae9}'..='\u{1faea}' | '\u{1faef}' | '\u{10ff00}'..='\u{10ffff}'
        | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}')
}

fn put(c: char, out: &mut String) {
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        // As in Rust: up to here a character is one byte, and `\x80` is a byte that is no character.
        c if acts(c) && c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        c if acts(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
        c => out.write_char(c),
    };
}

/// The second net under a line of ours that may have foreign pieces: whatever acts is escaped, backslashes stay.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    if text.chars().any(acts) {
        let mut out = String::with_capacity(text.len() + 16);
        text.chars().for_each(|c| put(c, &mut out));
        out.into()
    } else {
        text.into()
    }
}

/// The same for several lines.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c != '\n' && acts(c)) {
        text.split('\n').map(line).collect::<Vec<_>>().join("\n").into()
    } else {
        text.into()
    }
}

/// A name, or what stands for one that is not known.
#[must_use]
pub fn or(name: Option<&Foreign>, otherwise: &str) -> String {
    name.map_or_else(|| otherwise.into(), Foreign::to_string)
}

/// JSON on one line, in which nothing acts: what [`line()`] escapes stands as `\u202e`, and means the same.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    // Only what cannot be a key of an object is refused, and there is no such thing here.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Quiet));
    String::from_utf8(out).unwrap_or_default()
}

struct Quiet;

impl serde_json::ser::Formatter for Quiet {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, to: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| acts(*c)) {
            let (before, after) = rest.split_at(at);
            to.write_all(before.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        to.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HOSTILE: &str =
        "a\x1b]0;x\x07\n\r\t\x7f\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{200b}\u{feff}\\é\u{e0041}";

    #[test]
    fn what_acts_is_escaped_and_nothing_else() {
        assert_eq!(
            Foreign::from(HOSTILE).to_string(),
            r"a\x1b]0;x\x07\n\r\t\x7f\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{200b}\u{feff}\\é\u{e0041}"
        );
        assert_eq!(Foreign::from(&b"\xff\xc3\x28\xe2\x80"[..]).to_string(), r"\xff\xc3(\xe2\x80");
        assert_eq!(Foreign::from("kworker/0:1 日本 😀").to_string(), "kworker/0:1 日本 😀");
        assert_eq!(format!("{:>4}|{:<4}|", Foreign::from("a"), Foreign::from("\n")), "   a|\\n  |");
    }

    #[test]
    fn blank_names_are_seen() {
        for (name, seen) in [("", "\"\""), ("  ", "\"  \""), (" a ", " a "), ("\t", "\\t"), ("-", "-")] {
            assert_eq!(Foreign::from(name).visible().to_string(), seen);
        }
    }

    #[test]
    fn two_names_never_look_the_same() {
        let names = ["\x1b", r"\x1b", "\u{9b}", r"\u{9b}", "\n", r"\n", "\\", r"\\"].map(Foreign::from);
        let mut shown: Vec<_> = names.iter().map(Foreign::to_string).collect();
        shown.push(Foreign::from(&b"\x9b"[..]).to_string());
        shown.sort();
        shown.dedup();
        assert_eq!(shown.len(), 9, "{shown:?}");
    }

    /// What has no width, or is blank and no space.
    #[test]
    fn what_cannot_be_seen_is_shown() {
        for c in "\u{34f}\u{115f}\u{1160}\u{17b4}\u{180b}\u{180f}\u{2003}\u{202f}\u{2800}\u{3000}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\u{e0100}\u{a0}".chars() {
            let name = Foreign::from(format!("sshd{c}")).to_string();
            assert!(name.is_ascii() && name.starts_with("sshd\\u{"), "{name}");
        }
        assert_eq!(Foreign::from("naïve 文件 ü").to_string(), "naïve 文件 ü");
    }

    #[test]
    fn json_has_nothing_that_acts_and_comes_back() {
        let text = json(&serde_json::json!({ HOSTILE: Foreign::from(HOSTILE) }));
        assert!(!text.chars().any(acts), "{text:?}");
        let back: std::collections::BTreeMap<String, Foreign> = serde_json::from_str(&text).unwrap();
        assert_eq!(back[HOSTILE], Foreign::from(HOSTILE));
    }

    #[test]
    fn a_cell_is_no_formula() {
        for (name, cell) in
            [("=1+1", "'=1+1"), ("@x", "'@x"), ("-f", "'-f"), ("+", "'+"), ("\t=1", r"\t=1"), ("a", "a")]
        {
            assert_eq!(Foreign::from(name).cell(), cell);
        }
    }

    #[test]
    fn the_second_net_leaves_backslashes_and_lines_of_ours() {
        assert_eq!(line("a\\b"), "a\\b");
        assert_eq!(line("a\nb\x1b"), r"a\nb\x1b");
        assert_eq!(lines("a\nb\x1b\u{85}\n"), "a\nb\\x1b\\u{85}\n");
    }
}
