//! The first sixteen colours in the sequences that every terminal knows: `31`, not `38;5;1`.

use std::io;
use std::io::Write;

/// Writes what it is given with the short sequences. What is written is kept until it is flushed: a sequence comes in
/// pieces.
#[derive(Debug)]
pub struct Sixteen<W: Write> {
    to: W,
    kept: Vec<u8>,
}

impl<W: Write> Sixteen<W> {
    /// Writes there.
    pub const fn new(to: W) -> Self {
        Self { to, kept: Vec::new() }
    }
}

impl<W: Write> Write for Sixteen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = shortened(&self.kept);
        self.kept.clear();
        self.to.write_all(&out)?;
        self.to.flush()
    }
}

/// The same with short sequences for the colours that have one.
fn shortened(bytes: &[u8]) -> Vec<u8> {
    const BEGIN: &[u8] = b"\x1b[";
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(BEGIN.len()).position(|w| w == BEGIN) {
        let (before, after) = rest.split_at(at + BEGIN.len());
        out.extend_from_slice(before);
        let end = after.iter().position(|b| !matches!(b, b'0'..=b'9' | b';')).unwrap_or(after.len());
        let (parameters, after) = after.split_at(end);
        match std::str::from_utf8(parameters).ok().filter(|_| after.first() == Some(&b'm')) {
            Some(text) => out.extend_from_slice(attributes(text).as_bytes()),
            None => out.extend_from_slice(parameters),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

fn attributes(text: &str) -> String {
    let all: Vec<&str> = text.split(';').collect();
    let (mut out, mut i) = (Vec::new(), 0);
    while let Some(first) = all.get(i) {
        let color = || all.get(i + 2)?.parse::<u8>().ok();
        let (begin, bright) = if *first == "38" { (30, 90) } else { (40, 100) };
        match (*first, all.get(i + 1).copied()) {
            ("38" | "48", Some("5")) => {
                match color() {
                    Some(n @ 0..8) => out.push((begin + n).to_string()),
                    Some(n @ 8..16) => out.push((bright + n - 8).to_string()),
                    _ => out.extend(all.iter().skip(i).take(3).map(ToString::to_string)),
                }
                i += 3;
            }
            ("38" | "48", Some("2")) => {
                out.extend(all.iter().skip(i).take(5).map(ToString::to_string));
                i += 5;
            }
            (other, _) => {
                out.push(other.to_owned());
                i += 1;
            }
        }
    }
    out.join(";")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_first_sixteen_are_short_and_nothing_else_changes() {
        for (long, short) in [
            ("\x1b[38;5;1mred\x1b[39m", "\x1b[31mred\x1b[39m"),
            ("\x1b[38;5;9;48;5;4mx", "\x1b[91;44mx"),
            ("\x1b[48;5;15m", "\x1b[107m"),
            ("\x1b[38;5;208m", "\x1b[38;5;208m"),
            ("\x1b[38;2;5;1;7m\x1b[1;38;5;2m", "\x1b[38;2;5;1;7m\x1b[1;32m"),
            ("\x1b[m\x1b[0m\x1b[12;34Hx\x1b[38;5", "\x1b[m\x1b[0m\x1b[12;34Hx\x1b[38;5"),
        ] {
            let mut out = Vec::new();
            let mut writer = Sixteen::new(&mut out);
            // In pieces, as they come.
            for byte in long.bytes() {
                writer.write_all(&[byte]).unwrap();
            }
            writer.flush().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), short);
        }
    }
}
