//! Cutting text to a width, in columns of a terminal: some letters take two, and what stands above a letter none.

use ratatui::style::Style;
use ratatui::text::Span;

use super::apart::gathered;
use super::apart::spread;

/// Columns of a terminal that a text takes.
#[must_use]
pub fn columns(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        Span::raw(spread(text)).styled_graphemes(Style::new()).map(|g| wide(g.symbol)).sum()
    }
}

/// Of one piece.
fn wide(symbol: &str) -> usize {
    Span::raw(symbol).width()
}

/// What is drawn as one, and how wide it is: letters with all that stands above them. Two that are less wide side by side
/// (Arabic) are drawn one by one.
fn pieces(text: &str) -> Vec<(String, usize)> {
    let text = spread(text);
    let span = Span::raw(&*text);
    let piece = |symbol: &str| (gathered(symbol), wide(symbol));
    span.styled_graphemes(Style::new()).map(|g| piece(g.symbol)).collect()
}

/// The beginning of a text that so many columns have room for, and one letter at least.
#[must_use]
pub fn begin(text: &str, width: usize) -> &str {
    let mut left = width;
    let mut fits = |(_, columns): &(String, usize)| {
        let rest = left.checked_sub(*columns);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    // No letter is many bytes long, so that what is far away is not looked at.
    let near = text.char_indices().nth(width.saturating_mul(4)).map_or(text, |(at, _)| &text[..at]);
    let pieces = pieces(near);
    let number = pieces.iter().take_while(|p| fits(p)).count().max(1);
    let bytes: usize = pieces.iter().take(number).map(|(piece, _)| piece.len()).sum();
    text.get(..bytes).filter(|line| !line.is_empty()).unwrap_or(text)
}

/// As much of the beginning as takes no more than so many columns.
fn head(text: &str, width: usize) -> String {
    if text.is_ascii() {
        return text.get(..width).unwrap_or(text).to_owned();
    }
    let mut left = width;
    let fits = |(piece, columns): (String, usize)| {
        left = left.checked_sub(columns)?;
        Some(piece)
    };
    pieces(text).into_iter().map_while(fits).collect()
}

/// As much of the end.
fn tail(text: &str, width: usize) -> String {
    if text.is_ascii() {
        return text.get(text.len().saturating_sub(width)..).unwrap_or(text).to_owned();
    }
    let mut left = width;
    let fits = |(_, columns): &&(String, usize)| {
        let rest = left.checked_sub(*columns);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let pieces = pieces(text);
    let number = pieces.iter().rev().take_while(fits).count();
    pieces.into_iter().rev().take(number).rev().map(|(piece, _)| piece).collect()
}

/// Cuts the middle out of a text that is too long: beginning and end of a path tell most.
#[must_use]
pub fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head = head(text, room / 3);
    let tail = tail(text, room - columns(&head));
    format!("{head}…{tail}")
}

/// What stands between whose pages went and who took them.
pub const ARROW: &str = " <- ";

/// Cuts what is too long on both sides of the arrow, so that there are two sides to be seen. Of the left one the end tells most;
/// of the right one the name of the process, which stands in brackets, and not whose limit it was.
#[must_use]
pub fn sides(text: &str, width: usize) -> String {
    let room = width.saturating_sub(ARROW.len());
    let Some((left, right)) = text.split_once(ARROW).filter(|_| columns(text) > width && room >= 4) else {
        return shortened(text, width);
    };
    let of_left = columns(left).min((room / 2).max(room.saturating_sub(columns(right))));
    let of_right = room - of_left;
    let limit = right.rsplit_once("), limit of ");
    let who = limit.map_or_else(|| right.to_owned(), |(who, _)| format!("{who})"));
    // Where a limit is left out that is seen: a mark takes the place of what would just fit.
    let right =
        if columns(&who) <= of_right { beginning(right, of_right) } else { shortened(&who, of_right) };
    format!("{}{ARROW}{right}", ending(left, of_left))
}

/// Cuts the end off a text that is too long: the beginning of a command tells most.
#[must_use]
pub fn beginning(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    head(text, room) + "…"
}

/// Cuts the beginning off a text that is too long: the end of a path tells most.
#[must_use]
pub fn ending(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    format!("…{}", tail(text, room))
}

/// Cuts a text that is too long, between two words where there are any in the last part of it.
#[must_use]
pub fn at_a_word(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head = head(text, room);
    let end = head.rfind(' ').filter(|end| *end > head.len() / 2).unwrap_or(head.len());
    head.get(..end).unwrap_or(&head).trim_end().to_owned() + "…"
}

/// The end of a text, where the whole takes too many columns of a terminal.
#[must_use]
pub fn end(text: &str, width: usize) -> String {
    let mut chars: Vec<_> = text.chars().collect();
    while columns(&chars.iter().collect::<String>()) > width && chars.len() > 3 {
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
        assert_eq!(beginning("日本語日本語", 8), "日本語…");
        assert_eq!(beginning("日本語", 6), "日本語");
        for cut in [shortened, beginning, ending, at_a_word] {
            assert_eq!(cut("one two", 7), "one two");
            assert!(cut("/a/very/long/path", 10).chars().count() <= 10);
        }
        assert_eq!(at_a_word("one two three", 10), "one two…");
        assert_eq!(at_a_word("/a/very/long/path", 10), "/a/very/l…");
    }

    #[test]
    fn columns_are_counted_and_not_characters() {
        // 48 characters in 88 columns, and 60 in 30.
        let wide = "漢字".repeat(20) + "-END.txt";
        let marked = "e\u{301}".repeat(30);
        assert_eq!(ending(&wide, 18), "…漢字漢字-END.txt");
        assert_eq!(shortened(&wide, 19), "漢字漢…漢字-END.txt");
        assert_eq!(beginning(&wide, 8), "漢字漢…");
        assert_eq!(at_a_word(&wide, 8), "漢字漢…");
        for cut in [shortened, beginning, ending, at_a_word, sides] {
            assert_eq!(cut(&marked, 30), marked, "nothing is cut of what has room");
            // A mark stays with its letter.
            assert_eq!(cut(&marked, 20).replace('…', ""), "e\u{301}".repeat(19));
            let both = format!("/{wide} <- /{marked} (漢字), limit of /漢字");
            for text in [&wide, &marked, &both, "🇫🇷🇫🇷 one two 日本"] {
                for width in 0..100 {
                    assert!(columns(&cut(text, width)) <= width, "{text} {width}");
                }
            }
        }
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
            assert!(sides(long, width).chars().count() <= width, "{width}");
        }
    }

    #[test]
    fn the_end_fits_columns_and_not_characters() {
        assert_eq!(end("/a/very/long/path", 10), "...ng/path");
        assert_eq!(end("漢字漢字漢字", 7), "...漢字");
    }
}
