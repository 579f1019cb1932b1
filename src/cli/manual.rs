//! The manual page: what clap knows, and what the long help tells beyond that.

use std::fmt::Write as _;

use clap::Command;

use super::help::Section;

/// The commands, for what to see besides.
const COMMANDS: [&str; 4] = ["cachedu", "cachestat", "cachetop", "cachetopd"];

/// A manual page; `about` stands in front of the options.
pub(super) fn page(command: Command, about: &str, sections: Vec<Section>) -> String {
    let name = command.get_name().to_owned();
    // Without this, the synopsis of a command is all of its options.
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<_> = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect();
    let man = clap_mangen::Man::new(command.override_usage(usage.join("\n")));
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text));
    let mut options = Vec::new();
    let _ = man.render_options_section(&mut options);
    let (text, options) = (String::from_utf8_lossy(&text), String::from_utf8_lossy(&options));
    // Each section comes with the same two lines of preamble; once is enough.
    let (preamble, head) = text.split_at(text.find(".TH").unwrap_or(0));
    // Headings of options stand below that of the options; else they are as those of what is explained.
    let options = options.replace(preamble, "").replace("\n.SH ", "\n.SS ");
    let mut out = format!("{preamble}{}.SH DESCRIPTION\n", head.replace(preamble, ""));
    for (i, paragraph) in about.split("\n\n").enumerate() {
        let _ = writeln!(out, "{}{}", if i > 0 { ".PP\n" } else { "" }, escaped(paragraph));
    }
    out += &options;
    for (title, text) in sections {
        as_it_is(&title.to_uppercase(), &text, &mut out);
    }
    let others = COMMANDS.iter().filter(|c| **c != name).map(|c| format!("\\fB{c}\\fR(1)"));
    let _ = writeln!(out, ".SH \"SEE ALSO\"\n{}", others.collect::<Vec<_>>().join(",\n"));
    plain(&out)
}

/// A section whose lines stay as they are. They are made for a help that has them two columns from the left: as far
/// from it as text of manual pages, they would be longer than a terminal of 80 columns.
fn as_it_is(title: &str, text: &str, out: &mut String) {
    let _ = writeln!(out, ".SH \"{title}\"\n.in 2n\n.nf");
    for line in text.lines() {
        let line = escaped(line);
        // A dot at the beginning would be a request to roff.
        let guard = if line.starts_with('.') { "\\&" } else { "" };
        let _ = writeln!(out, "{guard}{line}");
    }
    out.push_str(".fi\n");
}

/// What is copied from the page is to be what stands here: by themselves, these become typographic.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            c => out.push(c),
        }
    }
    out
}

/// Characters by their numbers, so that no encoding has to be known to whoever formats it. Where there is nothing but
/// ASCII, three dots have no stand-in.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '…' => out.push_str("..."),
            c if c.is_ascii() => out.push(c),
            c => {
                let _ = write!(out, "\\[u{:04X}]", u32::from(c));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn what_would_be_set_otherwise_is_escaped() {
        let mut out = String::new();
        as_it_is("A B", "'a\n.b -c ~ ^ `x` \\ … ½", &mut out);
        let expected =
            ".SH \"A B\"\n.in 2n\n.nf\n\\(aqa\n\\&.b \\-c \\(ti \\(ha \\(gax\\(ga \\e ... \\[u00BD]\n.fi\n";
        assert_eq!(plain(&out), expected);
    }

    #[test]
    fn the_synopsis_is_not_all_options_and_headings_of_options_are_below_them() {
        let text = page(crate::cli::top::Args::command(), "About.", Vec::new());
        assert!(text.contains(".SH SYNOPSIS\n\\fBcachetop\\fR [OPTIONS] [INTERVAL]\n"), "{text}");
        let text = page(crate::cli::du::Args::command(), "About.", Vec::new());
        assert!(text.contains(".SS \"WHAT TO LOOK AT\"") && text.is_ascii(), "{text}");
    }
}
