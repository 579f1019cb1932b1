//! Where everything is on a screen, and what a small screen does without.

use ratatui::layout::Rect;

/// From this height on, each figure of the system has a line of its own, with its history.
const FULL: u16 = 24;
/// From this height on, there is a line of keys.
const KEYS: u16 = 16;
/// From this height on, there is more than the table.
const HEAD: u16 = 8;
/// From this height on, the bars of the history are two lines high.
const TALL: u16 = 40;
/// From this size on, there are borders: they take two lines of the rows, and four columns.
const FRAMED: (u16, u16) = (100, 32);

/// The parts of a screen; those of no height are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zones {
    /// Where and how it counts; what is in the cache; who is pushed out of it.
    pub place: Rect,
    /// The figures of the system.
    pub figures: Rect,
    /// The border above the figures, if there is one.
    pub rule: Rect,
    /// The border below the rows, if there is one.
    pub bottom: Rect,
    /// Lines for each figure; 0 if all are in one line.
    pub each: u16,
    /// What the rows are.
    pub status: Rect,
    /// The titles of the columns.
    pub titles: Rect,
    /// The rows.
    pub rows: Rect,
    /// The keys, or a message.
    pub foot: Rect,
    /// All below the first part, for the columns and the details.
    pub page: Rect,
    /// The screen as a whole, for the help.
    pub whole: Rect,
}

impl Zones {
    /// For a screen of this size and this many figures.
    #[must_use]
    pub fn new((width, height): (u16, u16), figures: usize) -> Self {
        let each = if height >= TALL { 2 } else { u16::from(height >= FULL) };
        let count = u16::try_from(figures).unwrap_or(0);
        let place = if height >= FULL {
            3
        } else if height >= KEYS {
            2
        } else {
            u16::from(height >= HEAD)
        };
        let system = if each > 0 { each * count } else { u16::from(height >= HEAD) };
        let status = u16::from(height >= HEAD);
        let titles = u16::from(height >= 2);
        let foot = u16::from(height >= KEYS);
        let framed = width >= FRAMED.0 && height >= FRAMED.1;
        let (border, left) = if framed { (1, 2) } else { (0, 0) };
        let mut y = 0;
        let mut take = |lines: u16| {
            let area = Rect::new(left, y, width - 2 * left, lines.min(height.saturating_sub(y)));
            y += area.height;
            area
        };
        let place = take(place);
        let rule = take(border);
        let figures = take(system);
        let status = take(status);
        let titles = take(titles);
        let rows = take(height.saturating_sub(titles.bottom() + border + foot));
        let bottom = take(border);
        let foot = Rect { x: 0, width, ..take(foot) };
        let page = |from: u16| Rect::new(left, from, width - 2 * left, height.saturating_sub(from + border));
        Self {
            place,
            rule,
            figures,
            each,
            status,
            titles,
            rows,
            bottom,
            foot,
            page: page(rule.bottom()),
            whole: page(border),
        }
    }

    /// Whether there are borders.
    #[must_use]
    pub const fn framed(&self) -> bool {
        self.rule.height > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_screen_has_one_use() {
        for height in 0..100 {
            let z = Zones::new((if height % 2 == 0 { 80 } else { 120 }, height), 6);
            let parts = [z.place, z.rule, z.figures, z.status, z.titles, z.rows, z.bottom, z.foot];
            assert_eq!(parts.iter().map(|r| r.height).sum::<u16>(), height);
            assert!(z.rows.height >= 1 || height < 2, "{height}");
        }
        assert!(Zones::new((80, 24), 6).rows.height >= 12);
    }

    #[test]
    fn borders_are_for_large_screens() {
        for (size, framed) in [((80, 24), false), ((80, 60), false), ((200, 31), false), ((100, 32), true)] {
            let zones = Zones::new(size, 6);
            assert_eq!(zones.framed(), framed, "{size:?}");
            let inner = size.0 - if framed { 4 } else { 0 };
            for area in [zones.place, zones.figures, zones.status, zones.titles, zones.rows, zones.page] {
                assert_eq!((area.width, area.x), (inner, u16::from(framed) * 2), "{size:?}");
            }
        }
        assert!(Zones::new((100, 32), 6).rows.height >= 12);
    }
}
