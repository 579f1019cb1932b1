//! Numbers for people.

/// Pages shown as pages or as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Pages of this machine: 4 KiB on x86.
    Pages,
    /// With K, M, G in text, plain numbers in CSV; what reports have where nobody asked.
    #[default]
    Bytes,
}

/// Divides by `step` once, and on until less than `limit` is left: what that is, and the letter for it.
pub(crate) fn scaled<'a>(mut x: f64, step: f64, limit: f64, letters: &[&'a str]) -> (f64, &'a str) {
    let mut letter = "";
    for next in letters {
        x /= step;
        letter = next;
        if x < limit {
            break;
        }
    }
    (x, letter)
}

/// Letters for powers of 1024.
const BINARY: &[&str] = &["K", "M", "G", "T", "P", "E"];
/// Letters for powers of 1000.
const DECIMAL: &[&str] = &["k", "M", "G", "T", "P", "E"];

/// A number of bytes with one decimal and the usual letters (powers of 1024).
#[must_use]
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return n.to_string();
    }
    // What would be rounded up to 1024.0 belongs to the next letter.
    #[allow(clippy::cast_precision_loss)]
    let (x, letter) = scaled(n as f64, 1024.0, 1023.95, BINARY);
    format!("{x:.1}{letter}")
}

/// A ratio in per cent. `100.00%` is said only of all, and `0.00%` only of none.
#[must_use]
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let shown = if ratio > 0.0 && ratio < 1.0 { percent.clamp(0.01, 99.99) } else { percent };
    format!("{shown:.2}%")
}

/// A number of things: whole up to 999999, then with k, M, G (powers of 1000). Fractions only below 10; `<0.1` is
/// something, and not nothing.
#[must_use]
pub fn decimal(x: f64) -> String {
    if x > 0.0 && x < 0.05 {
        "<0.1".into()
    } else if x < 9.95 && x.fract() != 0.0 {
        format!("{x:.1}")
    } else if x < 999_999.5 {
        format!("{x:.0}")
    } else {
        let (x, letter) = scaled(x, 1000.0, 999.95, DECIMAL);
        format!("{x:.1}{letter}")
    }
}

/// A number of bytes, with K, M, G (powers of 1024).
#[must_use]
pub fn binary(x: f64) -> String {
    if x > 0.0 && x < 0.5 {
        "<1".into()
    } else if x < 999.5 {
        format!("{x:.0}")
    } else {
        let (x, letter) = scaled(x, 1024.0, 999.95, BINARY);
        format!("{x:.1}{letter}")
    }
}

/// A time in seconds, in six characters as long as it is less than 28 hours.
#[must_use]
pub fn seconds(x: f64) -> String {
    match x {
        x if x < 99.9995 => format!("{x:.3}"),
        x => format!("{x:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_the_narrowest_column_and_keep_what_matters() {
        for (x, expected) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.3, "0.3"),
            (9.94, "9.9"),
            (9.96, "10"),
            (131_072.0, "131072"),
            (999_999.0, "999999"),
            (999_999.9, "1.0M"),
            (1_234_567.0, "1.2M"),
            (12_345_678_901.0, "12.3G"),
            (1.8e19, "18.0E"),
        ] {
            assert_eq!(decimal(x), expected, "{x}");
            assert!(decimal(x).len() <= 6);
        }
        for (x, expected) in [
            (0.0, "0"),
            (0.2, "<1"),
            (999.0, "999"),
            (1000.0, "1.0K"),
            (1023.0 * 1024.0, "1.0M"),
            (5e8, "476.8M"),
        ] {
            assert_eq!(binary(x), expected, "{x}");
            assert!(binary(x).len() <= 6);
        }
    }
}
