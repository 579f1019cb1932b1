//! Letters that terminals give a column of their own, where the tables that ratatui measures and draws with give them none:
//! vowel signs of Bengali or Tamil, the marks behind katakana of half width.
//!
//! Drawn as a part of the letter before, each of them pushes by a column what comes behind it: a name of a file with some of
//! them went over the edge, and over the figures of the next line. So a screen is drawn with others in their place, which are
//! one column wide for everybody here and mean nothing, and these are put back into its cells.

use std::borrow::Cow;

use ratatui::buffer::Buffer;

/// Those that the C library (wcwidth) counts as one, and unicode-width as none: first and last of each stretch.
const APART: [(char, char); 41] = [
    ('\u{605}', '\u{605}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{9be}', '\u{9be}'),
    ('\u{9d7}', '\u{9d7}'),
    ('\u{b3e}', '\u{b3e}'),
    ('\u{b57}', '\u{b57}'),
    ('\u{bbe}', '\u{bbe}'),
    ('\u{bd7}', '\u{bd7}'),
    ('\u{cc0}', '\u{cc0}'),
    ('\u{cc2}', '\u{cc2}'),
    ('\u{cc7}', '\u{cc8}'),
    ('\u{cca}', '\u{ccb}'),
    ('\u{cd5}', '\u{cd6}'),
    ('\u{d3e}', '\u{d3e}'),
    ('\u{d4e}', '\u{d4e}'),
    ('\u{d57}', '\u{d57}'),
    ('\u{dcf}', '\u{dcf}'),
    ('\u{ddf}', '\u{ddf}'),
    ('\u{1b35}', '\u{1b35}'),
    ('\u{1b3b}', '\u{1b3b}'),
    ('\u{1b3d}', '\u{1b3d}'),
    ('\u{1b43}', '\u{1b43}'),
    ('\u{a8fa}', '\u{a8fa}'),
    ('\u{ff9e}', '\u{ff9f}'),
    ('\u{111c2}', '\u{111c3}'),
    ('\u{1133e}', '\u{1133e}'),
    ('\u{11357}', '\u{11357}'),
    ('\u{114b0}', '\u{114b0}'),
    ('\u{114bd}', '\u{114bd}'),
    ('\u{115af}', '\u{115af}'),
    ('\u{11930}', '\u{11930}'),
    ('\u{1193f}', '\u{1193f}'),
    ('\u{11941}', '\u{11941}'),
    ('\u{11a3a}', '\u{11a3a}'),
    ('\u{11a84}', '\u{11a89}'),
    ('\u{11d46}', '\u{11d46}'),
    ('\u{11f02}', '\u{11f02}'),
    ('\u{1d165}', '\u{1d165}'),
    ('\u{1d16e}', '\u{1d172}'),
];

/// The first that stands for one of them. Nobody else's can be among these: names that have some are escaped.
const FIRST: u32 = 0x10_ff00;

fn all() -> impl Iterator<Item = char> {
    APART.into_iter().flat_map(|(first, last)| first..=last)
}

fn stand_in(c: char) -> Option<char> {
    let (first, _) = APART.get(APART.partition_point(|(_, last)| *last < c))?;
    if c < *first {
        return None;
    }
    let place = all().position(|apart| apart == c)?;
    char::from_u32(FIRST + u32::try_from(place).ok()?)
}

fn original(c: char) -> Option<char> {
    let place = u32::from(c).checked_sub(FIRST)?;
    all().nth(usize::try_from(place).ok()?)
}

/// The text with what stands for them in their places.
#[must_use]
pub fn spread(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| stand_in(c).is_some()) {
        text.chars().map(|c| stand_in(c).unwrap_or(c)).collect::<String>().into()
    } else {
        text.into()
    }
}

/// The text as it was.
#[must_use]
pub fn gathered(text: &str) -> String {
    text.chars().map(|c| original(c).unwrap_or(c)).collect()
}

/// Puts them into the cells of what was drawn with a spread text.
pub fn settle(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        // With what stands above it.
        if cell.symbol().chars().any(|c| original(c).is_some()) {
            cell.set_symbol(&gathered(cell.symbol()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::foreign::acts;
    use crate::text::width::columns;

    /// What the C library knows of letters is what most terminals know.
    #[test]
    fn no_name_is_wider_for_the_c_library_than_for_us() {
        unsafe extern "C" {
            fn wcwidth(c: libc::wchar_t) -> libc::c_int;
        }
        // SAFETY: a string that ends, and no other thread of the tests asks for the locale.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"C.UTF-8".as_ptr()) };
        let wide = |c: char| {
            // SAFETY: any number may be asked about.
            i32::try_from(u32::from(c)).map_or(0, |c| unsafe { wcwidth(c) })
        };
        assert_eq!(wide('é'), 1, "a locale that knows of letters");
        let letters = ('\u{80}'..='\u{2ffff}').filter(|c| !acts(*c));
        let wrong: Vec<_> = letters
            .filter(|c| i32::try_from(columns(&format!("k{c}"))).unwrap_or(0) - 1 < wide(*c))
            .map(|c| format!("{:x}", u32::from(c)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        for text in ["ｶﾞｷﾞ", "কাকা", "لالا", "日本", "e\u{301}e\u{301}", "क्षि", "🇩🇪", "ক্ক", "ꓹꓼ"]
        {
            let most: i32 = text.chars().map(wide).sum();
            assert_eq!(i32::try_from(columns(text)).unwrap_or(0), most, "{text}");
        }
    }

    #[test]
    fn each_has_a_cell() {
        let text = "aｶﾞকাb";
        assert_eq!(gathered(&spread(text)), text);
        let mut buffer = Buffer::with_lines([&*spread(text)]);
        settle(&mut buffer);
        let cells: Vec<_> = buffer.content.iter().map(|c| c.symbol()).collect();
        assert_eq!(cells, ["a", "ｶ", "ﾞ", "ক", "া", "b"]);
        // Each with a mark above, which stays.
        let mut marked = Buffer::with_lines([&*spread("ক\u{9be}\u{981}x")]);
        settle(&mut marked);
        let cells: Vec<_> = marked.content.iter().map(|c| c.symbol()).collect();
        assert_eq!(cells, ["ক", "\u{9be}\u{981}", "x"]);
        assert!(all().all(|c| stand_in(c).is_some_and(|s| acts(s) && original(s) == Some(c))));
    }
}
