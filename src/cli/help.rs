//! The end of the help, and the sections of the manual page, from titles and texts.

use std::fmt::Write as _;

/// A section of the help and the manual page: its title, and its text in lines that fit a terminal of 80 columns.
pub(super) type Section = (&'static str, String);

/// Sections whose texts are fixed.
pub(super) fn fixed(sections: &[(&'static str, &'static str)]) -> Vec<Section> {
    sections.iter().map(|(title, text)| (*title, (*text).to_string())).collect()
}

/// The end of `--help`.
pub(super) fn long(sections: Vec<Section>) -> String {
    let mut out = String::new();
    for (title, text) in sections {
        let _ = writeln!(out, "{title}:");
        for line in text.lines() {
            let _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
        out.push('\n');
    }
    out.trim_end().to_string()
}
