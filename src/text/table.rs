//! Cells in columns.

use std::fmt::Write as _;

use super::width::columns;
use super::width::shortened;

/// Puts cells in columns, aligned right. A cell too long for its column takes the blanks of those after it.
#[must_use]
pub fn aligned(cells: &[(String, usize)]) -> String {
    let mut out = String::new();
    let mut edge = 0;
    for (i, (cell, width)) in cells.iter().enumerate() {
        if i > 0 {
            out.push(' ');
            edge += 1;
        }
        edge += width;
        let blanks = edge.saturating_sub(columns(&out) + columns(cell));
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(cell);
    }
    out
}

/// Cells aligned right in columns as wide as their widest, then names.
#[must_use]
pub fn fitted(lines: &[Vec<String>], names: &[String]) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<_> =
        (0..count).map(|i| lines.iter().map(|l| columns(&l[i])).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (cells, name) in lines.iter().zip(names) {
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(out, "{}  ", pad(cell, *width, false));
        }
        out.push_str(name);
        out.push('\n');
    }
    out
}

/// A text in a column of this width, cut where it is longer.
#[must_use]
pub fn pad(text: &str, width: usize, left: bool) -> String {
    let text = shortened(text, width);
    let blanks = " ".repeat(width.saturating_sub(columns(&text)));
    if left { text + &blanks } else { blanks + &text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_has_a_mark_however_wide_its_letters_are() {
        assert_eq!((pad("abc", 5, true), pad("abc", 5, false)), ("abc  ".into(), "  abc".into()));
        assert_eq!(pad("a name that is long", 7, true), "a …long");
        // Each takes two columns.
        let wide = pad("日本語日本語", 8, true);
        assert_eq!((wide.as_str(), columns(&wide)), ("日…本語 ", 8));
        assert_eq!(pad("日本", 4, true), "日本");
    }
}
