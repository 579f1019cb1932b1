//! Breaking text into lines.

use super::width::begin;
use super::width::columns;

/// Breaks a text between words into lines of at most `width` columns.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// Breaks a text between words, and words that are too long behind the last of [`JOINTS`] in the second half of a line, or
/// where the line ends.
#[must_use]
pub fn folded(text: &str, width: usize) -> Vec<String> {
    let pieces = text.split_whitespace().flat_map(|word| broken(word, width));
    wrapped(&pieces.collect::<Vec<_>>().join(" "), width)
}

/// What paths, lists and assignments are joined by.
const JOINTS: [char; 5] = ['/', ':', ',', ';', '='];

fn broken(mut word: &str, width: usize) -> Vec<&str> {
    let mut out = Vec::new();
    while columns(word) > width {
        let line = begin(word, width);
        let joint = line.rfind(JOINTS).map(|at| at + 1).filter(|at| columns(&line[..*at]) * 2 > width);
        let (line, rest) = word.split_at(joint.unwrap_or(line.len()));
        out.push(line);
        word = rest;
    }
    out.push(word);
    out.retain(|piece| !piece.is_empty());
    out
}

/// A paragraph of at most `width` columns a line: the first begins with `first`, the others as far to the right.
#[must_use]
pub fn paragraph(first: &str, text: &str, width: usize) -> Vec<String> {
    let indent = columns(first);
    let mut lines = wrapped(text, width.saturating_sub(indent));
    if lines.is_empty() {
        lines.push(String::new());
    }
    let margin = " ".repeat(indent);
    let begin = |i: usize| if i == 0 { first } else { &margin };
    lines.iter().enumerate().map(|(i, line)| format!("{}{line}", begin(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_when_lines_are_broken() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdefgh i", 4), ["abcdefgh", "i"]);
        assert!(wrapped("", 4).is_empty());
    }

    #[test]
    fn a_paragraph_is_indented_as_it_begins() {
        assert_eq!(paragraph("* ", "a bc def", 6), ["* a bc", "  def"]);
        assert_eq!(paragraph("* ", "", 6), ["* "]);
    }

    #[test]
    fn long_texts_are_folded_and_nothing_of_them_is_lost() {
        let path = "/srv/".repeat(30);
        let lines = folded(&path, 40);
        assert!(lines.len() > 3 && lines.iter().all(|l| l.chars().count() <= 40));
        assert_eq!(lines.concat(), path);
        let classes: String = (0..40).map(|i| format!("/opt/app/lib/some-{i}.jar:")).collect();
        let lines = folded(&classes, 66);
        assert_eq!(lines.concat(), classes);
        assert!(lines.iter().all(|l| columns(l) <= 66 && l.ends_with(['/', ':'])), "{lines:?}");
        // A joint too far to the left would leave most of the line empty.
        assert_eq!(folded("/abcdefgh", 6), ["/abcde", "fgh"]);
        assert_eq!(folded("a bc def", 4), ["a bc", "def"]);
        assert_eq!(folded("ääääää", 4), ["ääää", "ää"]);
        assert_eq!(folded("漢字漢字 a\u{301}bcd", 4), ["漢字", "漢字", "a\u{301}bcd"]);
        assert_eq!(folded("漢字", 1), ["漢", "字"]);
    }
}
