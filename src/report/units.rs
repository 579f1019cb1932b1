//! How sizes and times are written in a report.

use crate::text::numbers::Unit;
use crate::text::numbers::scaled;

/// Bytes with a unit that people read: `52 KiB`, `1.5 GiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let (x, unit) = scaled(n as f64, 1024.0, 1023.5, &["KiB", "MiB", "GiB", "TiB", "PiB"]);
    let whole = unit != "PiB" && (x >= 99.95 || (x - x.round()).abs() < 0.05);
    if whole { format!("{x:.0} {unit}") } else { format!("{x:.1} {unit}") }
}

/// Parts of a sum, and the sum behind them, as bytes in the unit of the sum: what is shown adds up.
#[must_use]
pub fn bytes_of_a_sum(parts: &[u64]) -> Vec<String> {
    let sum = parts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
    if sum < 1024 {
        return parts.iter().chain([&sum]).map(|n| bytes(*n)).collect();
    }
    let (x, unit) = scaled(sum as f64, 1024.0, 1023.5, &["KiB", "MiB", "GiB", "TiB", "PiB"]);
    // As many digits as the sum has where it stands alone.
    let of: i64 = if x >= 99.95 && unit != "PiB" { 1 } else { 10 };
    let scale = x / sum as f64 * of as f64;
    let steps: Vec<f64> = parts.iter().map(|n| *n as f64 * scale).collect();
    let total = rounded((x * of as f64).round_ties_even());
    let shown = adding_up(&steps, total);
    let whole = shown.iter().zip(parts).all(|(n, part)| n % of == 0 && (*n > 0 || *part == 0));
    let show = |n: i64| match whole || of == 1 {
        true => format!("{} {unit}", n / of),
        false => format!("{}.{} {unit}", n / of, n % of),
    };
    let part = |(n, part): (&i64, &u64)| match (n, part) {
        (0, 0) => format!("0 {unit}"),
        // Something, and not nothing.
        (0, _) => format!("<{} {unit}", if of == 1 { "1" } else { "0.1" }),
        _ => show(*n),
    };
    shown.iter().zip(parts).map(part).chain([show(total)]).collect()
}

fn rounded(x: f64) -> i64 {
    x.round() as i64
}

/// Rounds numbers so that they add up to `total`, which is what they add up to, rounded. What is one too much or too
/// little is taken from, or given to, those that rounding favoured or cut most; not where it would be all there is.
#[must_use]
pub fn adding_up(numbers: &[f64], total: i64) -> Vec<i64> {
    let mut whole: Vec<i64> = numbers.iter().map(|x| rounded(*x)).collect();
    let off = total.saturating_sub(whole.iter().sum());
    let steps = usize::try_from(off.unsigned_abs()).unwrap_or(usize::MAX);
    // Rounding cannot have made more of a difference: it is not their sum.
    if steps <= numbers.len().div_ceil(2) {
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        let cut = |i: usize| (numbers[i] - whole[i] as f64) * off.signum() as f64;
        let little = |i: usize| numbers[i].abs() < 1.0;
        order.sort_by(|a, b| little(*a).cmp(&little(*b)).then(cut(*b).total_cmp(&cut(*a))));
        order.into_iter().take(steps).for_each(|i| whole[i] += off.signum());
    }
    whole
}

/// A time in a table: in the unit that suits the longest of them, with so many digits that what is shown adds up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// What is counted, in seconds.
    step: f64,
    /// Of these, in one unit.
    steps: i64,
    digits: usize,
    unit: &'static str,
}

impl Clock {
    /// For times up to so many seconds.
    #[must_use]
    pub fn new(longest: f64) -> Self {
        if longest < 0.0995 {
            Self { step: 1e-4, steps: 10, digits: 1, unit: "ms" }
        } else {
            Self { step: 1e-3, steps: 1000, digits: 3, unit: "s" }
        }
    }

    /// A time as steps and parts of one.
    #[must_use]
    pub fn count(self, seconds: f64) -> f64 {
        seconds / self.step
    }

    /// A time in whole steps.
    #[must_use]
    pub fn round(self, seconds: f64) -> i64 {
        rounded(self.count(seconds))
    }

    /// Steps as a time: `0.250 s`, `2.9 ms`.
    #[must_use]
    pub fn show(self, steps: i64) -> String {
        let sign = if steps < 0 { "-" } else { "" };
        let n = steps.unsigned_abs();
        let of = self.steps.unsigned_abs();
        format!("{sign}{}.{:0digits$} {}", n / of, n % of, self.unit, digits = self.digits)
    }

    /// The same as a change: `+0.250 s`, `-2.9 ms`.
    #[must_use]
    pub fn change(self, steps: i64) -> String {
        let sign = if steps < 0 { "" } else { "+" };
        format!("{sign}{}", self.show(steps))
    }
}

/// `a / b`, of pages, bytes or nanoseconds; 0 of nothing.
pub(super) fn share(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Shares of a whole in per cent, with so many digits, that add up to 100 where the parts do. What is not nothing is not
/// shown as nothing, nor what is not all as all.
#[must_use]
pub fn shares(parts: &[f64], whole: f64, digits: usize) -> Vec<String> {
    let all = if digits == 0 { 100.0 } else { 1000.0 };
    let exact: Vec<f64> = parts.iter().map(|n| n / whole).collect();
    let steps: Vec<f64> = exact.iter().map(|x| x * all).collect();
    let sum: f64 = exact.iter().sum();
    let shown = if (sum - 1.0).abs() < 1e-6 {
        adding_up(&steps, rounded(all))
    } else {
        steps.iter().map(|x| rounded(*x)).collect()
    };
    let show = |(x, n): (&f64, &i64)| match *n as f64 {
        0.0 => percent(*x, digits),
        n if n >= all && *x < 1.0 => percent(*x, digits),
        n => percent(n / all, digits),
    };
    exact.iter().zip(&shown).map(show).collect()
}

/// Pages as bytes with a unit.
#[must_use]
pub fn of_pages(n: u64) -> String {
    bytes(n.saturating_mul(page()))
}

/// Pages in a sentence: `3 MiB`, `768 pages`.
#[must_use]
pub fn volume(pages: u64, unit: Unit) -> String {
    match (unit, pages) {
        (Unit::Pages, 1) => "1 page".into(),
        (Unit::Pages, n) => format!("{} pages", count(n)),
        (Unit::Bytes, n) => of_pages(n),
    }
}

/// What was counted in bytes, in a sentence about pages: `3 MiB`, `768 pages`, `767.5 pages`.
#[must_use]
pub fn volume_of_bytes(n: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => bytes(n),
        Unit::Pages if n % page() == 0 => volume(n / page(), unit),
        Unit::Pages => format!("{} pages", pages_of(n)),
    }
}

/// Bytes as pages, with a tenth where they are not whole ones: `767.5`; never 0 of what is not nothing.
#[must_use]
pub fn pages_of(n: u64) -> String {
    let (whole, rest) = (n / page(), n % page());
    // Up, so that it is not whole, nor nothing.
    match (rest * 10).div_ceil(page()) {
        0 => count(whole),
        tenths => format!("{}.{}", count(whole), tenths.min(9)),
    }
}

/// Bytes of a page of this system.
#[must_use]
pub fn page() -> u64 {
    rustix::param::page_size() as u64
}

/// A share with so many digits behind the point: `12.5 %`; never 0 % or 100 % of what is not (`<0.1 %`, `>99.9 %`).
#[must_use]
pub fn percent(share: f64, digits: usize) -> String {
    let p = share * 100.0;
    let least = if digits == 0 { 1.0 } else { 0.1 };
    match p {
        p if p > 0.0 && p < least => format!("<{least} %"),
        p if p < 0.0 && p > -least => format!(">-{least} %"),
        p if p < 100.0 && p > 100.0 - least => format!(">{} %", 100.0 - least),
        // Adding 0 makes -0 plain 0.
        p => format!("{:.digits$} %", p + 0.0),
    }
}

/// Seconds more or less: `+0.250`, `-0.002`; nothing is neither.
#[must_use]
pub fn change(seconds: f64) -> String {
    format!("{:+.3}", (seconds * 1000.0).round() / 1000.0 + 0.0)
}

/// A wall time: `6.44 s`, `0.40 s`, `12 ms`, `3 min 20 s`.
#[must_use]
pub fn wall(seconds: f64) -> String {
    if seconds >= 119.5 {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    } else if seconds >= 0.0995 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.00095 || seconds <= 0.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        // Never nothing of what is not.
        format!("{:.2} ms", (seconds * 1e3).max(0.01))
    }
}

/// Two wall times beside each other, in one unit where that leaves something of both: `540 ms → 45 ms`.
#[must_use]
pub fn walls(then: f64, now: f64) -> String {
    let (least, most) = (then.min(now), then.max(now));
    match most {
        most if (0.00095..0.0995).contains(&least) && (0.0995..9.9995).contains(&most) => {
            format!("{:.0} ms → {:.0} ms", then * 1e3, now * 1e3)
        }
        _ => format!("{} → {}", wall(then), wall(now)),
    }
}

/// Nanoseconds as `12.3 ms`.
#[must_use]
pub fn seconds(ns: u64) -> String {
    let x = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", x / 1e6),
        _ => format!("{:.2} s", x / 1e9),
    }
}

/// A count with thin groups of three digits, as `131 072`.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_counts() {
        let sizes: Vec<_> = [0, 512, 1023, 1024, 53248, 1 << 20, 3 << 29, u64::MAX].map(bytes).into();
        assert_eq!(sizes, ["0 B", "512 B", "1023 B", "1 KiB", "52 KiB", "1 MiB", "1.5 GiB", "16384.0 PiB"]);
        assert_eq!(
            [999, 1500, 2_500_000, 3_210_000_000].map(seconds),
            ["999 ns", "1.5 µs", "2.5 ms", "3.21 s"]
        );
        assert_eq!([-0.002, -0.0001, 0.0, 0.25].map(change), ["-0.002", "+0.000", "+0.000", "+0.250"]);
        assert_eq!([0, 999, 1000, 131_072].map(count), ["0", "999", "1 000", "131 072"]);
    }

    #[test]
    fn a_volume_has_the_unit_that_was_asked_for() {
        let (pages, p) = (Unit::Pages, page());
        assert_eq!([0, 1, 1024].map(|n| volume(n, pages)), ["0 pages", "1 page", "1 024 pages"]);
        assert_eq!(volume(1024, Unit::Bytes), bytes(1024 * p));
        assert_eq!(
            [0, 1, p / 2, p, 3 * p / 2, 2 * p - 1].map(|n| volume_of_bytes(n, pages)),
            ["0 pages", "0.1 pages", "0.5 pages", "1 page", "1.5 pages", "1.9 pages"]
        );
        assert_eq!(volume_of_bytes(5, Unit::Bytes), "5 B");
    }

    #[test]
    fn two_times_have_one_unit() {
        assert_eq!(walls(0.543, 0.0446), "543 ms → 45 ms");
        assert_eq!(walls(6.44, 0.4), "6.44 s → 0.40 s");
        assert_eq!(walls(0.008, 0.061), "8 ms → 61 ms");
        assert_eq!(walls(300.0, 0.05), "5 min 0 s → 50 ms");
        assert_eq!(walls(0.0004, 0.0009), "0.40 ms → 0.90 ms");
        assert_eq!([0.0, 1e-9, 0.00099].map(wall), ["0 ms", "0.01 ms", "1 ms"]);
    }

    #[test]
    fn what_is_shown_adds_up() {
        assert_eq!(adding_up(&[33.4, 33.3, 33.3], 100), [34, 33, 33]);
        assert_eq!(adding_up(&[-0.4, -0.4, 1.8], 1), [0, 0, 1]);
        assert_eq!(adding_up(&[0.0, 0.5, 0.5], 1), [0, 0, 1]);
        assert_eq!(adding_up(&[0.27, 692.2], 693), [0, 693], "the little one stays little");
        assert_eq!(adding_up(&[63.66, 18.63, 17.71], 100), [64, 18, 18]);
        assert_eq!(adding_up(&[1.4, 2.4], 9), [1, 2], "what is not their sum is not bent to it");
        assert_eq!(adding_up(&[], 0), [0; 0]);
        // 1 page of 64 MiB, and three equal parts of 1 MiB.
        assert_eq!(
            bytes_of_a_sum(&[(64 << 20) - 4096, 0, 4096]),
            ["64.0 MiB", "0 MiB", "<0.1 MiB", "64.0 MiB"]
        );
        assert_eq!(
            bytes_of_a_sum(&[349_525, 349_525, 349_526]),
            ["0.3 MiB", "0.3 MiB", "0.4 MiB", "1.0 MiB"]
        );
        assert_eq!(bytes_of_a_sum(&[28 << 10, 4 << 10]), ["28 KiB", "4 KiB", "32 KiB"]);
        assert_eq!(bytes_of_a_sum(&[200 << 20, 4096]), ["200 MiB", "<1 MiB", "200 MiB"]);
        assert_eq!(bytes_of_a_sum(&[1, 0]), ["1 B", "0 B", "1 B"]);
        assert_eq!(bytes_of_a_sum(&[]), ["0 B"]);
        assert_eq!(shares(&[1.0; 3], 3.0, 1), ["33.4 %", "33.3 %", "33.3 %"]);
        assert_eq!(shares(&[5.0, -1.0], 4.0, 0), ["125 %", "-25 %"]);
        assert_eq!(shares(&[9999.0, 1.0], 10_000.0, 1), [">99.9 %", "<0.1 %"]);
        assert_eq!(shares(&[2.0, 1.0], 9.0, 0), ["22 %", "11 %"], "not all of it is known");
    }

    #[test]
    fn times_of_a_table_have_one_unit() {
        let (long, short) = (Clock::new(0.25), Clock::new(0.0029));
        assert_eq!([250, -1, 61].map(|n| long.show(n)), ["0.250 s", "-0.001 s", "0.061 s"]);
        assert_eq!([29, 0].map(|n| short.show(n)), ["2.9 ms", "0.0 ms"]);
        assert_eq!([0, 12_345, -5].map(|n| long.change(n)), ["+0.000 s", "+12.345 s", "-0.005 s"]);
        assert_eq!((long.round(0.2504), short.round(0.0029)), (250, 29));
    }

    #[test]
    fn shares_are_never_rounded_to_nothing_or_all() {
        let of = |digits| [0.0, 8.0 / 24576.0, 0.5, 24568.0 / 24576.0, 1.0, 1.5].map(|x| percent(x, digits));
        assert_eq!(of(1), ["0.0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %", "150.0 %"]);
        assert_eq!(of(0), ["0 %", "<1 %", "50 %", ">99 %", "100 %", "150 %"]);
        assert_eq!([-0.0, -0.001, -0.25].map(|x| percent(x, 0)), ["0 %", ">-1 %", "-25 %"]);
    }
}
