//! How sizes and times are written in a report.

use crate::text::numbers::scaled;

/// Bytes with a unit that people read: `52 KiB`, `1.5 GiB`.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let (x, unit) = scaled(n as f64, 1024.0, 1023.5, &["KiB", "MiB", "GiB", "TiB", "PiB"]);
    let whole = unit != "PiB" && (x >= 99.95 || (x - x.round()).abs() < 0.05);
    if whole { format!("{x:.0} {unit}") } else { format!("{x:.1} {unit}") }
}

/// Pages as bytes with a unit.
#[must_use]
pub fn of_pages(n: u64) -> String {
    bytes(n.saturating_mul(page()))
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
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    } else if seconds >= 0.0995 {
        format!("{seconds:.2} s")
    } else {
        format!("{:.0} ms", seconds * 1e3)
    }
}

/// Nanoseconds as `12.3 ms`.
#[must_use]
#[allow(clippy::cast_precision_loss)]
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
    fn shares_are_never_rounded_to_nothing_or_all() {
        let of = |digits| [0.0, 8.0 / 24576.0, 0.5, 24568.0 / 24576.0, 1.0, 1.5].map(|x| percent(x, digits));
        assert_eq!(of(1), ["0.0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %", "150.0 %"]);
        assert_eq!(of(0), ["0 %", "<1 %", "50 %", ">99 %", "100 %", "150 %"]);
        assert_eq!([-0.0, -0.001, -0.25].map(|x| percent(x, 0)), ["0 %", ">-1 %", "-25 %"]);
    }
}
