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

/// The same as sections of a manual page; the lines stay as they are.
pub(super) fn manual(sections: Vec<Section>) -> String {
    let mut out = String::new();
    for (title, text) in sections {
        let _ = writeln!(out, ".SH {}\n.nf", title.to_uppercase());
        for line in text.lines() {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            // A dot or a quote at the beginning would be a request to roff.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            let _ = writeln!(out, "{guard}{line}");
        }
        out.push_str(".fi\n");
    }
    out
}
