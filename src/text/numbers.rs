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
    let (x, letter) = scaled(n as f64, 1024.0, 1023.95, BINARY);
    format!("{x:.1}{letter}")
}

/// A ratio in per cent. `100.00%` is said only of all, and `0.00%` only of none: what would be rounded to these is
/// `>99.99%` and `<0.01%`, which is no longer, and not taken for a figure.
#[must_use]
pub fn percent(ratio: f64) -> String {
    percent_to(ratio, 2)
}

/// The same with so many digits behind the point.
#[must_use]
pub fn percent_to(ratio: f64, digits: usize) -> String {
    let least = 0.1_f64.powi(i32::try_from(digits).unwrap_or(i32::MAX));
    let text = |percent: f64| format!("{percent:.digits$}%");
    match text(ratio * 100.0) {
        none if ratio > 0.0 && none == text(0.0) => format!("<{}", text(least)),
        all if ratio < 1.0 && all == text(100.0) => format!(">{}", text(100.0 - least)),
        shown => shown,
    }
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
    fn only_none_is_nothing_and_only_all_is_everything() {
        for (x, expected) in [
            (0.0, "0.00%"),
            (1e-9, "<0.01%"),
            (0.000_04, "<0.01%"),
            (0.000_06, "0.01%"),
            (0.5, "50.00%"),
            (0.999_94, "99.99%"),
            (0.999_96, ">99.99%"),
            (1.0, "100.00%"),
            (1.5, "150.00%"),
            (-0.25, "-25.00%"),
        ] {
            assert_eq!(percent(x), expected, "{x}");
            assert!(percent(x).len() <= 7, "no longer than all of it");
        }
    }

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
