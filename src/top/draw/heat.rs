//! How many colours a terminal has, and colours that are values: from bad to good.
//!
//! Where there are more than sixteen, all of them are equally bright, half way between black and white: they are read on
//! a dark background and on a light one. Nothing depends on them: the number stands there, and without colours the bad
//! ones are bold.

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

/// Colours that a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None.
    None,
    /// Its own first sixteen.
    Sixteen,
    /// The 256 of xterm.
    Many,
    /// Any.
    True,
}

/// Equally bright, from red by orange and olive to green.
const TRUE: [(u8, u8, u8); 4] = [(234, 19, 19), (178, 96, 14), (122, 122, 10), (11, 137, 11)];
/// The same of the 256.
const MANY: [u8; 7] = [160, 166, 130, 136, 100, 64, 28];

impl Depth {
    /// What a terminal that is called so has. There is no better sign: databases of terminals are not everywhere, and
    /// call most of them `xterm-256color`.
    #[must_use]
    pub fn named(term: &str, colorterm: &str, in_tmux: bool) -> Self {
        const TRUE: &[&str] = &["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour"];
        // GNU screen takes the sequences of true colour for others, and hands on what the terminal outside has said.
        let passes = in_tmux || !term.starts_with("screen");
        let is = |known: &str| term == known || term.strip_prefix(known).is_some_and(|r| r.starts_with('-'));
        match (term, colorterm) {
            ("dumb", _) => Self::None,
            _ if term.ends_with("-m") || term.ends_with("-mono") || term.starts_with("vt") => Self::None,
            (_, "truecolor" | "24bit") if passes => Self::True,
            _ if term.contains("-direct") || TRUE.iter().copied().any(is) => Self::True,
            _ if term.contains("256color") => Self::Many,
            _ => Self::Sixteen,
        }
    }

    /// The colour of a value from 0, bad, to 1, good; `light` is the background.
    #[must_use]
    pub fn heat(self, value: f64, light: bool) -> Style {
        let value = if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 };
        let style = Style::new();
        match (self, value * 3.0) {
            (Self::None, x) if x < 1.0 => style.add_modifier(Modifier::BOLD),
            (Self::None, _) => style,
            (Self::Sixteen, x) if x < 1.0 => style.fg(Color::Red),
            // Nobody reads yellow on white.
            (Self::Sixteen, x) if x < 2.0 && light => style.add_modifier(Modifier::BOLD),
            (Self::Sixteen, x) if x < 2.0 => style.fg(Color::Yellow),
            (Self::Sixteen, _) => style.fg(Color::Green),
            (Self::Many, _) => style.fg(Color::Indexed(*at(&MANY, value).0)),
            (Self::True, x) => {
                let (from, to) = at(&TRUE, x / 4.0);
                style.fg(between(*from, *to, x.fract()))
            }
        }
    }
}

/// The one of them at a part of the whole, and the next.
fn at<T>(all: &[T], part: f64) -> (&T, &T) {
    let last = all.len() - 1;
    let i = ((part * all.len() as f64) as usize).min(last);
    (&all[i], &all[(i + 1).min(last)])
}

/// A colour between two as bright as each other is as bright as they are.
fn between(a: (u8, u8, u8), b: (u8, u8, u8), part: f64) -> Color {
    let mix = |a: u8, b: u8| gamma(linear(a) * (1.0 - part) + linear(b) * part);
    Color::Rgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

fn linear(c: u8) -> f64 {
    let c = f64::from(c) / 255.0;
    if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

fn gamma(c: f64) -> u8 {
    let c = if c <= 0.003_130_8 { c * 12.92 } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
    (c * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_terminal_tells_its_colours() {
        for (term, colorterm, in_tmux, depth) in [
            ("xterm", "", false, Depth::Sixteen),
            ("linux", "", false, Depth::Sixteen),
            ("xterm-256color", "", false, Depth::Many),
            ("xterm-256color", "truecolor", false, Depth::True),
            ("xterm", "24bit", false, Depth::True),
            ("xterm-direct", "", false, Depth::True),
            ("xterm-kitty", "", false, Depth::True),
            ("foot-extra", "", false, Depth::True),
            ("footling", "", false, Depth::Sixteen),
            ("tmux-256color", "truecolor", true, Depth::True),
            ("screen-256color", "truecolor", true, Depth::True),
            ("screen-256color", "truecolor", false, Depth::Many),
            ("screen", "truecolor", false, Depth::Sixteen),
            ("vt100", "truecolor", false, Depth::None),
            ("xterm-mono", "", false, Depth::None),
            ("dumb", "truecolor", false, Depth::None),
            ("", "", false, Depth::Sixteen),
        ] {
            assert_eq!(Depth::named(term, colorterm, in_tmux), depth, "{term} {colorterm}");
        }
    }

    /// Red, green and blue of one of the 216 of the cube.
    fn cube(n: u8) -> (u8, u8, u8) {
        let level = |n: u8| [0, 95, 135, 175, 215, 255][usize::from(n % 6)];
        (level((n - 16) / 36), level((n - 16) / 6), level(n - 16))
    }

    /// The least of the contrasts with black and with white, as the guidelines for the web reckon it.
    fn contrast((r, g, b): (u8, u8, u8)) -> f64 {
        let bright = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        (1.05 / (bright + 0.05)).min((bright + 0.05) / 0.05)
    }

    #[test]
    fn values_are_read_on_black_and_on_white() {
        for i in 0..=1000 {
            let value = f64::from(i) / 1000.0;
            match Depth::True.heat(value, false).fg {
                Some(Color::Rgb(r, g, b)) => assert!(contrast((r, g, b)) > 4.4, "{value}: {r} {g} {b}"),
                other => panic!("{other:?}"),
            }
            match Depth::Many.heat(value, false).fg {
                Some(Color::Indexed(n)) => assert!(contrast(cube(n)) > 3.3, "{value}: {n}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_better_value_is_greener_at_every_depth() {
        let green = |value| match Depth::True.heat(value, false).fg {
            Some(Color::Rgb(r, g, _)) => i32::from(g) - i32::from(r),
            other => panic!("{other:?}"),
        };
        let steps: Vec<i32> = (0..=100).map(|i| green(f64::from(i) / 100.0)).collect();
        assert!(steps.windows(2).all(|w| w[0] <= w[1]), "{steps:?}");
        assert_eq!(Depth::True.heat(0.0, false).fg, Some(Color::Rgb(234, 19, 19)));
        assert_eq!(Depth::True.heat(1.0, false).fg, Some(Color::Rgb(11, 137, 11)));
        let many: Vec<_> = [0.0, 0.5, 1.0].iter().map(|x| Depth::Many.heat(*x, false).fg).collect();
        assert_eq!(many, [160, 136, 28].map(|n| Some(Color::Indexed(n))));
        let few: Vec<_> = [0.0, 0.5, 1.0].iter().map(|x| Depth::Sixteen.heat(*x, false).fg).collect();
        assert_eq!(few, [Some(Color::Red), Some(Color::Yellow), Some(Color::Green)]);
        assert_eq!(Depth::Sixteen.heat(0.5, true).fg, None, "yellow on white");
        let bold = |x| Depth::None.heat(x, false).add_modifier.contains(Modifier::BOLD);
        assert_eq!([bold(0.0), bold(0.4), bold(1.0)], [true, false, false]);
        assert!(bold(f64::NAN), "and no panic");
    }
}
