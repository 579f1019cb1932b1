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

/// What stands between whose pages went and who took them.
pub const ARROW: &str = " <- ";

/// Cuts what is too long on both sides of the arrow, so that there are two sides to be seen. Of the left one the end tells most;
/// of the right one the name of the process, which stands in brackets, and not whose limit it was.
#[must_use]
pub fn sides(text: &str, width: usize) -> String {
    let length = |text: &str| text.chars().count();
    let room = width.saturating_sub(ARROW.len());
    let Some((left, right)) = text.split_once(ARROW).filter(|_| length(text) > width && room >= 4) else {
        return shortened(text, width);
    };
    let of_left = length(left).min((room / 2).max(room.saturating_sub(length(right))));
    let of_right = room - of_left;
    let limit = right.rsplit_once("), limit of ");
    let who = limit.map_or_else(|| right.to_owned(), |(who, _)| format!("{who})"));
    // Where a limit is left out that is seen: a mark takes the place of what would just fit.
    let right = if length(&who) <= of_right { beginning(right, of_right) } else { shortened(&who, of_right) };
    format!("{}{ARROW}{right}", ending(left, of_left))
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
    fn both_sides_of_an_arrow_are_left() {
        let text = "/h1t/lim <- /h1t/lim (cat), limit of /h1t/lim";
        assert_eq!(sides(text, 45), text);
        assert_eq!(sides(text, 34), "/h1t/lim <- /h1t/lim (cat), limit…");
        assert_eq!(sides(text, 26), "/h1t/lim <- /h1t/lim (cat…");
        assert_eq!(sides(text, 20), "/h1t/lim <- /h…(cat)");
        let long = "/system.slice/one.service <- /system.slice/another.service (tar)";
        assert_eq!(sides(long, 30), "…/one.service <- /sys…ce (tar)");
        assert_eq!(sides(long, 60), "/system.slice/one.service <- /system.sl…nother.service (tar)");
        assert_eq!(sides("/a <- kswapd", 8), "/a <- …d");
        for width in 0..70 {
            assert!(sides(long, width).chars().count() <= width.max(1), "{width}");
        }
    }

    #[test]
    fn the_end_fits_columns_and_not_characters() {
        assert_eq!(end("/a/very/long/path", 10), "...ng/path");
        assert_eq!(end("漢字漢字漢字", 7), "...漢字");
    }
}
