//! Tables that sort by their titles; on a phone a row is a card, and the titles sort all the same.

use std::fmt::Write as _;

use super::escape::escape;

/// What stands in a cell, and what it is sorted by.
pub(super) enum Cell {
    /// Foreign or plain text, sorted as such.
    Text(String),
    /// The same, as code.
    Code(String),
    /// One of few words, which the style knows.
    Word(&'static str),
    /// A figure and its value.
    Number(String, f64),
    /// It is not known: `-`.
    Unknown,
    /// There is no such thing.
    Nothing,
}

/// A table of a class: titles, and rows of as many cells. A column whose first cell is text is one of text.
pub(super) fn show(class: &str, titles: &[&str], rows: &[Vec<Cell>], out: &mut String) {
    let _ = write!(out, "<table class=\"sorts {class}\">\n<thead><tr>");
    for (i, title) in titles.iter().enumerate() {
        let text =
            rows.iter().any(|r| matches!(r.get(i), Some(Cell::Text(_) | Cell::Code(_) | Cell::Word(_))));
        let kind = if text { " class=\"text\"" } else { "" };
        let _ =
            write!(out, "<th scope=\"col\"{kind}><button type=\"button\">{}</button></th>", escape(title));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, (cell, title)) in row.iter().zip(titles).enumerate() {
            // The first says of itself what it is.
            let title = if i == 0 { String::new() } else { format!(" data-t=\"{}\"", escape(title)) };
            let _ = match cell {
                Cell::Text(text) => write!(out, "<td class=\"text\"{title}>{}</td>", escape(text)),
                Cell::Code(text) => {
                    write!(out, "<td class=\"text\"{title}><code>{}</code></td>", escape(text))
                }
                Cell::Word(word) => write!(out, "<td class=\"text {word}\"{title}>{word}</td>"),
                Cell::Number(text, n) => write!(out, "<td{title} data-n=\"{n}\">{}</td>", escape(text)),
                Cell::Unknown => write!(out, "<td{title}>-</td>"),
                Cell::Nothing => write!(out, "<td class=\"nothing\"></td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
}
