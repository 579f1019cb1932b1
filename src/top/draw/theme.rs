//! Colours and signs, as far as the terminal has them.
//!
//! Colours that tell figures apart are the first eight of the terminal's own: they follow the person's theme, light or
//! dark. Colours that are values are in `heat.rs`. Nothing depends on any of them alone.

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::symbols::bar;

use super::heat::Depth;
use crate::text::apart::spread;
use crate::text::width::columns;

/// How things look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours that are used.
    pub depth: Depth,
    /// The background is known to be light.
    pub light: bool,
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
        Self { depth: Depth::None, light: false, unicode: true }
    }

    /// The same with the sixteen colours that terminals of old have.
    #[must_use]
    pub const fn sixteen() -> Self {
        Self { depth: Depth::Sixteen, ..Self::plain() }
    }

    /// What this terminal has, by its environment.
    #[must_use]
    pub fn fitting(wanted: crate::top::options::Color, env: impl Fn(&str) -> Option<String>) -> Self {
        use crate::top::options::Color as Wanted;
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        let (term, colorterm) = (set("TERM").unwrap_or_default(), set("COLORTERM").unwrap_or_default());
        let depth = Depth::named(&term, &colorterm, set("TMUX").is_some());
        let depth = match (wanted, depth) {
            (Wanted::Never, _) => Depth::None,
            (Wanted::Always, Depth::None) => Depth::Sixteen,
            (Wanted::Always, depth) => depth,
            (Wanted::Auto, depth) => {
                if set("NO_COLOR").is_none() {
                    depth
                } else {
                    Depth::None
                }
            }
        };
        // Some terminals tell their colours: foreground; background.
        let background = set("COLORFGBG").and_then(|c| c.rsplit(';').next()?.parse::<u8>().ok());
        let light = background.is_some_and(|n| n == 7 || (9..16).contains(&n));
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        Self { depth, light, unicode: locale.contains("utf-8") || locale.contains("utf8") }
    }

    /// Whether there are any.
    #[must_use]
    pub const fn colors(self) -> bool {
        !matches!(self.depth, Depth::None)
    }

    const fn colored(self, color: Color) -> Style {
        if self.colors() { Style::new().fg(color) } else { Style::new() }
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

    /// A side of a border, and where a line of it begins and ends: the first, one between, the last.
    #[must_use]
    pub const fn corners(self, which: usize) -> [&'static str; 3] {
        match (self.unicode, which) {
            (true, 0) => ["│", "╭", "╮"],
            (true, 1) => ["│", "├", "┤"],
            (true, _) => ["│", "╰", "╯"],
            (false, _) => ["|", "+", "+"],
        }
    }

    /// A key.
    #[must_use]
    pub const fn key(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// What a function key does.
    #[must_use]
    pub const fn label(self) -> Style {
        if self.colors() {
            Style::new().fg(Color::Black).bg(Color::Cyan)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
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
        let steps = (part.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
        let steps = if part > 0.0 { steps.max(1) } else { 0 };
        if self.unicode {
            "█".repeat(steps / 8) + PARTS.get(steps % 8).copied().unwrap_or_default()
        } else {
            "#".repeat(steps.div_ceil(8))
        }
    }

    /// What a bar of a share does not fill.
    #[must_use]
    pub fn groove(self) -> Style {
        if self.unicode {
            Style::new().add_modifier(Modifier::UNDERLINED | Modifier::DIM)
        } else {
            Style::new()
        }
    }

    /// The bars of shares.
    #[must_use]
    pub const fn shares(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// How good a part of hits is. From nine tenths on, each hundredth is worth more.
    #[must_use]
    pub fn ratio(self, ratio: f64) -> Style {
        let value = match ratio {
            r if r >= 0.9 => (2.0 + (r - 0.9) / 0.1) / 3.0,
            r if r >= 0.5 => (1.0 + (r - 0.5) / 0.4) / 3.0,
            r => r / 0.5 / 3.0,
        };
        self.depth.heat(value, self.light)
    }

    /// How bad it is to have this part of all misses: half of them is as bad as it gets.
    #[must_use]
    pub fn misses(self, part: f64) -> Style {
        self.depth.heat(0.6 * (1.0 - (part * 2.0).min(1.0)), self.light)
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

    /// A text as it is drawn: letters that take a column for themselves have one, and where nothing beyond ASCII can be
    /// shown there is nothing of it.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        if self.unicode {
            return spread(text).into_owned();
        }
        text.chars()
            .map(|c| match c {
                '…' => "~".to_owned(),
                c if c.is_ascii() => c.to_string(),
                // As wide as it was: what follows keeps its place.
                c => "?".repeat(columns(c.encode_utf8(&mut [0; 4]))),
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
            (theme.depth, theme.unicode)
        };
        let xterm = ("TERM", "xterm-256color");
        let many = Depth::Many;
        assert_eq!(theme(&[xterm, ("LANG", "C.UTF-8")], Wanted::Auto), (many, true));
        assert_eq!(theme(&[xterm, ("LANG", "C.UTF-8"), ("LC_ALL", "C")], Wanted::Auto), (many, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "1")], Wanted::Auto), (Depth::None, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "")], Wanted::Auto), (many, false));
        assert_eq!(theme(&[xterm, ("NO_COLOR", "1")], Wanted::Always), (many, false));
        assert_eq!(theme(&[xterm, ("COLORTERM", "truecolor")], Wanted::Auto), (Depth::True, false));
        assert_eq!(theme(&[("TERM", "vt100")], Wanted::Auto), (Depth::None, false));
        assert_eq!(theme(&[("TERM", "vt100")], Wanted::Always), (Depth::Sixteen, false));
        assert_eq!(theme(&[("TERM", "xterm")], Wanted::Never), (Depth::None, false));
        for (background, light) in [("0;15", true), ("0;default;7", true), ("15;0", false), ("0;8", false)] {
            let find = |name: &str| (name == "COLORFGBG").then(|| background.to_owned());
            assert_eq!(Theme::fitting(Wanted::Auto, find).light, light, "{background}");
        }
    }

    #[test]
    fn half_of_all_misses_is_as_bad_as_none_of_the_hits() {
        let theme = Theme { depth: Depth::True, ..Theme::plain() };
        assert_eq!(theme.misses(0.5), theme.ratio(0.0));
        assert_eq!(theme.misses(1.0), theme.ratio(0.0));
        assert_ne!(theme.misses(0.1), theme.misses(0.2));
        assert_ne!(theme.ratio(0.98), theme.ratio(0.99));
    }
}
