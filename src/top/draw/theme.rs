//! Colours and signs, as far as the terminal has them.
//!
//! Colours are the first eight of the terminal's own, and nothing depends on them alone: they follow the person's
//! theme, light or dark, and cost nothing where there are none.

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::symbols::bar;

/// How things look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours are used.
    pub color: bool,
    /// Signs beyond ASCII are used.
    pub unicode: bool,
}

/// Bars without anything beyond ASCII.
const ASCII: bar::Set = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "*",
    five_eighths: "+",
    half: "+",
    three_eighths: "-",
    one_quarter: "-",
    one_eighth: ".",
    empty: " ",
};

impl Theme {
    /// Without colours, with all signs.
    #[must_use]
    pub const fn plain() -> Self {
        Self { color: false, unicode: true }
    }

    /// What this terminal has, by its environment.
    #[must_use]
    pub fn fitting(wanted: crate::top::options::Color, env: impl Fn(&str) -> Option<String>) -> Self {
        use crate::top::options::Color as Wanted;
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        let term = set("TERM").unwrap_or_default();
        let mono = term.ends_with("-m") || term.ends_with("-mono") || term.starts_with("vt");
        let color = match wanted {
            Wanted::Always => true,
            Wanted::Never => false,
            Wanted::Auto => set("NO_COLOR").is_none() && !mono,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        Self { color, unicode: locale.contains("utf-8") || locale.contains("utf8") }
    }

    /// Whether there are any.
    #[must_use]
    pub const fn colors(self) -> bool {
        self.color
    }

    const fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// The n-th figure of the system.
    #[must_use]
    pub const fn figure(self, id: &str) -> Style {
        match id.as_bytes() {
            b"hits" | b"classic_hits" => self.colored(Color::Green),
            b"readahead_hits" => self.colored(Color::Cyan),
            b"misses" | b"classic_misses" => self.colored(Color::Red),
            b"dirtied" | b"classic_dirtied" | b"classic_buffers" => self.colored(Color::Magenta),
            b"direct_bytes" => self.colored(Color::Blue),
            _ => Style::new(),
        }
    }

    /// What matters most.
    #[must_use]
    pub const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The titles of the columns.
    #[must_use]
    pub const fn titles(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The title of the column that sorts.
    #[must_use]
    pub const fn sorted(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD).add_modifier(Modifier::UNDERLINED)
    }

    /// The selected row.
    #[must_use]
    pub const fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What is over.
    #[must_use]
    pub const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What a person must see.
    #[must_use]
    pub const fn warning(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Bars.
    #[must_use]
    pub const fn bars(self) -> bar::Set<'static> {
        if self.unicode { bar::NINE_LEVELS } else { ASCII }
    }

    /// A bar for a part of the whole, in eighths.
    #[must_use]
    pub fn bar(self, part: f64) -> &'static str {
        let set = self.bars();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let eighths = (part.clamp(0.0, 1.0) * 8.0).ceil() as u8;
        match eighths {
            0 => set.empty,
            1 => set.one_eighth,
            2 => set.one_quarter,
            3 => set.three_eighths,
            4 => set.half,
            5 => set.five_eighths,
            6 => set.three_quarters,
            7 => set.seven_eighths,
            _ => set.full,
        }
    }

    /// How full a cell is of the n-th of figures on top of each other, without colours.
    #[must_use]
    pub fn shade(self, n: usize) -> &'static str {
        let all: &[&'static str] = if self.unicode { &["░", "▒", "█"] } else { &[".", "+", "#"] };
        all.get(n.min(2)).copied().unwrap_or("#")
    }

    /// The line behind the title of a panel.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        if self.unicode { "─" } else { "-" }
    }

    /// Where the largest value is: above or below.
    #[must_use]
    pub const fn arrow(self, falls: bool) -> &'static str {
        match (self.unicode, falls) {
            (true, true) => "▼",
            (true, false) => "▲",
            (false, true) => "v",
            (false, false) => "^",
        }
    }

    /// A bar for a part of the whole, from the left, in a room of so many cells.
    #[must_use]
    pub fn share(self, part: f64, room: usize) -> String {
        const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let steps = (part.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
        let steps = if part > 0.0 { steps.max(1) } else { 0 };
        if self.unicode {
            "█".repeat(steps / 8) + PARTS.get(steps % 8).copied().unwrap_or_default()
        } else {
            "#".repeat(steps.div_ceil(8))
        }
    }

    /// The bars of shares.
    #[must_use]
    pub const fn shares(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// How good a part of hits is.
    #[must_use]
    pub fn heat(self, ratio: f64) -> Style {
        self.colored(match ratio {
            r if r >= 0.9 => Color::Green,
            r if r >= 0.5 => Color::Yellow,
            _ => Color::Red,
        })
    }

    /// Where a figure has no value in the history.
    #[must_use]
    pub const fn absent(self) -> &'static str {
        if self.unicode { "·" } else { "," }
    }

    /// The branch before a thread, and before the last one.
    #[must_use]
    pub const fn branch(self, last: bool) -> &'static str {
        match (self.unicode, last) {
            (true, false) => "├─ ",
            (true, true) => "└─ ",
            (false, false) => "|- ",
            (false, true) => "`- ",
        }
    }

    /// A text with nothing beyond ASCII where that cannot be shown.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        text.chars()
            .map(|c| {
                if c == '…' {
                    '~'
                } else if c.is_ascii() {
                    c
                } else {
                    '?'
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::options::Color as Wanted;

    #[test]
    fn the_environment_decides() {
        let theme = |vars: &[(&str, &str)], wanted| {
            let find = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            let theme = Theme::fitting(wanted, find);
            (theme.color, theme.unicode)
        };
        let xterm = ("TERM", "xterm-256color");
        assert_eq!(theme(&[xterm, ("LANG", "C.UTF-8")], Wanted::Auto), (true, true));
        assert_eq!(theme(&[xterm, ("LANG", "C.UTF-8"), ("LC_ALL", "C")], Wanted::Auto), (true, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "1")], Wanted::Auto), (false, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "")], Wanted::Auto), (true, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "1")], Wanted::Always), (true, false));
        assert_eq!(theme(&[("TERM", "vt100")], Wanted::Auto), (false, false));
        assert_eq!(theme(&[("TERM", "xterm")], Wanted::Never), (false, false));
    }
}
