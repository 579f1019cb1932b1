//! Cutting text to a width.

use ratatui::text::Line;

/// Cuts the middle out of a text that is too long: beginning and end of a path tell most.
#[must_use]
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let head = width.saturating_sub(1) / 3;
    let tail = width.saturating_sub(1) - head;
    let mut out: String = text.chars().take(head).collect();
    out.push('…');
    out.extend(text.chars().skip(length - tail));
    out
}

/// Cuts the end off a text that is too long: the beginning of a command tells most.
#[must_use]
pub fn beginning(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Cuts the beginning off a text that is too long: the end of a path tells most.
#[must_use]
pub fn ending(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(length - width + 1)).collect()
}

/// Cuts a text that is too long, between two words where there are any in the last part of it.
#[must_use]
pub fn at_a_word(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(1)).collect();
    let end = head.rfind(' ').filter(|end| *end > head.len() / 2).unwrap_or(head.len());
    head.get(..end).unwrap_or(&head).trim_end().to_owned() + "…"
}

/// The beginning of a text, with a mark, where the whole takes too many columns of a terminal.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let takes = |text: &str| if text.is_ascii() { text.len() } else { Line::raw(text).width() };
    let mut text = text.to_owned();
    if takes(&text) > width {
        while !text.is_empty() && takes(&text) >= width {
            text.pop();
        }
        text.extend((width > 0).then_some('…'));
    }
    text
}

/// The end of a text, where the whole takes too many columns of a terminal.
#[must_use]
pub fn end(text: &str, width: usize) -> String {
    let mut chars: Vec<_> = text.chars().collect();
    while Line::raw(chars.iter().collect::<String>()).width() > width && chars.len() > 3 {
        chars.drain(..4);
        chars.splice(..0, "...".chars());
    }
    chars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_most_is_left() {
        assert_eq!(shortened("/srv/data/of/somebody/file", 10), "/sr…y/file");
        assert_eq!(beginning("one two three", 10), "one two t…");
        assert_eq!(ending("/a/very/long/path", 10), "…long/path");
        assert_eq!(cut("日本語日本語", 8), "日本語…");
        assert_eq!((cut("日本語", 6), cut("one two", 5)), ("日本語".into(), "one …".into()));
        for cut in [shortened, beginning, ending, at_a_word, cut] {
            assert_eq!(cut("one two", 7), "one two");
            assert!(cut("/a/very/long/path", 10).chars().count() <= 10);
        }
        assert_eq!(at_a_word("one two three", 10), "one two…");
        assert_eq!(at_a_word("/a/very/long/path", 10), "/a/very/l…");
    }

    #[test]
    fn the_end_fits_columns_and_not_characters() {
        assert_eq!(end("/a/very/long/path", 10), "...ng/path");
        assert_eq!(end("漢字漢字漢字", 7), "...漢字");
    }
}
