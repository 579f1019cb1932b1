//! The registers of a HyperLogLog, and the estimate.

use super::clock::Span;

/// Ranks that are kept apart: half of all pages have the first one, and each further one half as many. The last has the rest.
const RANKS: usize = 24;

/// For each register the highest rank that was met, one more than its number; 0: none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers(Vec<u8>);

impl Registers {
    /// What was met within a span of time, by when each rank of each register was met last.
    ///
    /// `marks`: rank by rank, the registers side by side.
    #[must_use]
    pub fn within(marks: &[u8], span: Span) -> Self {
        let width = marks.len() / RANKS;
        let mut out = vec![0; width];
        for (row, rank) in marks.chunks_exact(width.max(1)).zip(1u8..) {
            for (register, mark) in out.iter_mut().zip(row) {
                if span.has(*mark) {
                    *register = rank;
                }
            }
        }
        Self(out)
    }

    /// What either of the two has met. Both must be of the same number of registers.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.0.len(), other.0.len(), "sketches of different sizes");
        for (ours, theirs) in self.0.iter_mut().zip(&other.0) {
            *ours = (*ours).max(*theirs);
        }
    }

    /// How many distinct pages there were, about.
    ///
    /// Otmar Ertl, New cardinality estimation algorithms for HyperLogLog sketches (2017), algorithm 6: without bias from
    /// nothing to as much as the registers can tell, so that there is no threshold between two methods.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        let m = self.0.len() as f64;
        let mut with = [0.0; RANKS + 1];
        for rank in &self.0 {
            with[usize::from(*rank)] += 1.0;
        }
        let mut z = m * tau(1.0 - with[RANKS] / m);
        for number in with[1..RANKS].iter().rev() {
            z = 0.5 * (z + number);
        }
        z += m * sigma(with[0] / m);
        m * m / (2.0 * std::f64::consts::LN_2 * z)
    }

    /// One character for each register: `0` where nothing was met, then the highest rank in `1` to `9` and `a` to `o`.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().filter_map(|rank| char::from_digit(u32::from(*rank), 36)).collect()
    }

    /// What the estimate may be off, as a part of it: so much in 95 of 100 cases (two standard errors, 1.04/√m each).
    #[must_use]
    pub fn bound(&self) -> f64 {
        2.0 * 1.04 / (self.0.len() as f64).sqrt()
    }
}

/// The sum over k of x^(2^k) 2^(k-1), with x: what registers that have met nothing tell.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

/// What registers tell that have met the last rank, in which all higher ones are.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// As in `bpf/sketch.h`.
    fn meet(marks: &mut [u8], page: u64, now: u8) {
        let mut h = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^= h >> 33;
        h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
        h ^= h >> 33;
        h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        h ^= h >> 33;
        let width = marks.len() / RANKS;
        let rank = (((h >> 32) as u32) | 1 << (RANKS - 1)).trailing_zeros() as usize;
        marks[rank * width + (h as usize & (width - 1))] = now;
    }

    fn of(pages: std::ops::Range<u64>, bits: u32) -> Registers {
        let mut marks = vec![0; RANKS << bits];
        pages.for_each(|page| meet(&mut marks, page, 1));
        Registers::within(&marks, Span::new(1, 1))
    }

    #[test]
    fn from_none_to_ten_million_within_the_bound() {
        assert_eq!(of(0..0, 10).estimate(), 0.0);
        for bits in [10, 12] {
            let (mut outside, mut count, mut square) = (0, 0u32, 0.0);
            for n in [1, 3, 10, 100, 1000, 2000, 3000, 5000, 10_000, 100_000, 1_000_000] {
                // Rather more of the small, which cost nothing.
                let rounds = (1_000_000 / n).clamp(3, 40);
                for round in 0..rounds {
                    let first = (round * 1000 + n) << 32;
                    let registers = of(first..first + n, bits);
                    let off = registers.estimate() / n as f64 - 1.0;
                    outside += u32::from(off.abs() > registers.bound());
                    count += 1;
                    square += (off / registers.bound() * 2.0).powi(2);
                    assert!(off.abs() < 2.0 * registers.bound(), "{n}: {off}");
                }
            }
            // 95 of 100, and a standard error that is no larger than stated.
            assert!(f64::from(outside) <= f64::from(count) * 0.06, "{bits}: {outside} of {count}");
            assert!(
                (square / f64::from(count)).sqrt() < 1.05,
                "{bits}: {}",
                (square / f64::from(count)).sqrt()
            );
        }
        let most = of(0..10_000_000, 12);
        assert!((most.estimate() / 1e7 - 1.0).abs() < most.bound(), "{}", most.estimate());
    }

    #[test]
    fn merged_it_is_the_union_and_not_the_sum() {
        let mut both = of(0..60_000, 10);
        both.merge(&of(30_000..90_000, 10));
        assert_eq!(both, of(0..90_000, 10));
        let mut same = both.clone();
        same.merge(&both);
        assert_eq!(same, both);
    }

    /// `contrib/working-set/merge` has the same of two outputs, also of a sketch of everything and one of an owner.
    #[test]
    fn outputs_can_be_merged() {
        let dir = tempfile::tempdir().unwrap();
        let object = |all: &Registers, group: &Registers, name: &str| {
            let row = json!({ "cgroup": name, "sketch": group.text() });
            json!({ "working_set": { "all": { "sketch": all.text() }, "rows": [row] } })
        };
        let first = object(&of(0..90_000, 12), &of(0..60_000, 10), "/a");
        let later = object(&of(0..150_000, 12), &of(30_000..90_000, 10), "/a");
        let other = object(&of(500_000..501_000, 10), &of(0..300, 10), "/\x1b[2J");
        let paths = ["first", "second"].map(|name| dir.path().join(name));
        std::fs::write(&paths[0], format!("{first}\n{later}\n")).unwrap();
        std::fs::write(&paths[1], format!("{other}\n")).unwrap();
        let merge = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/working-set/merge");
        let said = std::process::Command::new("python3").arg(merge).args(&paths).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let said = String::from_utf8(said.stdout).unwrap();
        let mut all = of(0..150_000, 10);
        all.merge(&of(500_000..501_000, 10));
        let [all, group, other] = [&all, &of(0..90_000, 10), &of(0..300, 10)]
            .map(|registers| format!("{:.0}", registers.estimate()));
        let found: Vec<Vec<&str>> = said.lines().map(|l| l.split_whitespace().take(2).collect()).collect();
        let expected = [vec!["PAGES", "ERROR"], vec![&*all, "±"], vec![&*group, "±"], vec![&*other, "±"]];
        assert_eq!(found, expected, "{said}");
        assert!(said.contains("± 6.5%  {\"cgroup\": \"/a\"}") && !said.contains('\x1b'), "{said}");
    }

    #[test]
    fn a_window_has_what_was_met_in_it_again() {
        let mut marks = vec![0; RANKS << 10];
        (0..20_000).for_each(|page| meet(&mut marks, page, 1));
        (0..5_000).for_each(|page| meet(&mut marks, page, 2));
        assert_eq!(Registers::within(&marks, Span::new(2, 1)), of(0..5_000, 10));
        assert_eq!(Registers::within(&marks, Span::new(2, 2)), of(0..20_000, 10));
        assert_eq!(Registers::within(&marks, Span::new(9, 3)).estimate(), 0.0);
    }

    #[test]
    fn as_text_a_register_is_a_character() {
        let registers = of(0..1000, 10);
        let text = registers.text();
        assert_eq!(text.len(), 1024);
        assert!(text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'o')));
        let back = text.chars().filter_map(|c| c.to_digit(36)).map(|rank| rank as u8).collect();
        assert_eq!(Registers(back), registers);
        assert_eq!(Registers(vec![24, 0]).text(), "o0");
    }
}
