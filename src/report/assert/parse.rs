//! Reading an expression: `[NUMBER *] [runN.|last.|mean.|GROUP.]NAME` or `NUMBER[UNIT]`, a comparison, and the same again.

use super::Assertion;
use super::Comparison;
use super::Side;
use super::Whose;
use super::groups::Wanted;
use super::names::About;
use super::names::Kind;
use super::names::Name;

/// The comparisons, the longer ones first.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

/// Units of numbers, and what they measure.
const UNITS: &[(&str, f64, Kind)] = &[
    ("%", 0.01, Kind::Share),
    ("B", 1.0, Kind::Bytes),
    ("KiB", 1024.0, Kind::Bytes),
    ("MiB", 1024.0 * 1024.0, Kind::Bytes),
    ("GiB", 1024.0 * 1024.0 * 1024.0, Kind::Bytes),
    ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0, Kind::Bytes),
    ("kB", 1e3, Kind::Bytes),
    ("MB", 1e6, Kind::Bytes),
    ("GB", 1e9, Kind::Bytes),
    ("ns", 1e-9, Kind::Seconds),
    ("us", 1e-6, Kind::Seconds),
    ("ms", 1e-3, Kind::Seconds),
    ("s", 1.0, Kind::Seconds),
    ("m", 60.0, Kind::Seconds),
    ("min", 60.0, Kind::Seconds),
    ("h", 3600.0, Kind::Seconds),
];

pub(super) fn assertion(text: &str, about: About) -> Result<Assertion, String> {
    let found = COMPARISONS.iter().filter_map(|(sign, c)| Some((text.find(sign)?, *sign, *c)));
    // The first in the text; of two that begin there, the longer, which comes first in the table.
    let Some((at, sign, comparison)) = found.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
    else {
        return Err("a comparison is missing: write 'hit_ratio > 95%'".into());
    };
    let (left, right) = (text.get(..at).unwrap_or(""), text.get(at + sign.len()..).unwrap_or(""));
    let ((left, one), (right, other)) = (side(left, about)?, side(right, about)?);
    if ![&left, &right].iter().any(|side| matches!(side, Side::Value { .. })) {
        return Err("both sides are numbers: one of them must be a figure".into());
    }
    let rate = [&left, &right].iter().any(|side| matches!(side, Side::Rate(_)));
    if rate && [one, other].contains(&Some(Kind::Share)) {
        return Err("a share is no count: it has no rate".into());
    }
    match (one, other) {
        (Some(one), Some(other)) if !alike(one, other) => {
            return Err(format!("{} cannot be compared with {}", word(one), word(other)));
        }
        _ => {}
    }
    let beyond = beyond((&left, one), (&right, other)).or_else(|| beyond((&right, other), (&left, one)));
    if let Some(why) = beyond {
        return Err(why);
    }
    if same(&left, &right) {
        return Err("both sides are the same figure: it holds wherever that is known, or nowhere".into());
    }
    Ok(Assertion { text: text.trim().to_owned(), left, comparison, right })
}

/// Why a share is compared with what none can be: 50 would be 5000 %, and whatever is below that holds always.
fn beyond(share: (&Side, Option<Kind>), other: (&Side, Option<Kind>)) -> Option<String> {
    let (Side::Value { times, .. }, Some(Kind::Share)) = share else { return None };
    let (Side::Number(n), unit) = other else { return None };
    if n / times <= 1.0 + 1e-9 {
        return None;
    }
    Some(match unit {
        None if (1.0..=100.0).contains(n) && times.to_bits() == 1.0_f64.to_bits() => {
            format!("a share is 1 at most: write '{n}%' or '{}' instead of '{n}'", (n * 1e6).round() / 1e8)
        }
        _ => "a share is 1 at most, which is 100%".into(),
    })
}

/// Whether both are one figure of the same runs, as often.
fn same(left: &Side, right: &Side) -> bool {
    match (left, right) {
        (Side::Value { of, name, times }, Side::Value { of: others, name: other, times: n }) => {
            of == others && name == other && times.to_bits() == n.to_bits()
        }
        _ => false,
    }
}

fn alike(a: Kind, b: Kind) -> bool {
    let plain = |k| if k == Kind::Nanoseconds { Kind::Seconds } else { k };
    plain(a) == plain(b)
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "a count",
        Kind::Bytes => "bytes",
        Kind::Seconds | Kind::Nanoseconds => "a time",
        Kind::Share => "a share",
    }
}

/// A side, and what it measures; a number without a unit fits everything.
fn side(text: &str, about: About) -> Result<(Side, Option<Kind>), String> {
    let text = text.trim();
    if let Some((value, "s")) = text.rsplit_once('/').map(|(value, unit)| (value.trim(), unit.trim())) {
        if about == About::Runs {
            return Err(format!("'{text}' is a rate; of a run, compare with its 'wall'"));
        }
        return match number(value)? {
            (value, kind @ (None | Some(Kind::Bytes | Kind::Seconds))) => Ok((Side::Rate(value), kind)),
            _ => Err(format!("'{text}' is no rate: write '10000/s', '10MiB/s' or '100ms/s'")),
        };
    }
    let (times, rest) = match text.split_once('*') {
        Some((times, rest)) => match number(times.trim())? {
            (times, None | Some(Kind::Share)) if times > 0.0 => (times, rest.trim()),
            _ => return Err(format!("'{}' is no factor: write '0.5 * run1.wall'", times.trim())),
        },
        None if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            let (value, kind) = number(text)?;
            return Ok((Side::Number(value), kind));
        }
        None => (1.0, text),
    };
    if rest.is_empty() {
        return Err("a side is missing: write 'hit_ratio > 95%'".into());
    }
    let (of, name) = match rest.split_once('.').filter(|_| about == About::Runs) {
        Some(("last", name)) => (Whose::Last, name),
        Some(("mean", name)) => (Whose::Mean, name),
        Some((run, name)) => match run.strip_prefix("run").and_then(|n| n.parse().ok()) {
            Some(number) => (Whose::Run(number), name),
            None => match Wanted::parse(rest) {
                Some((wanted, name)) => (Whose::Group(wanted), name),
                None => (Whose::Each, rest),
            },
        },
        None => (Whose::Each, rest),
    };
    let name = Name::parse(name, about)?;
    Ok((Side::Value { times, of, name }, Some(name.kind())))
}

/// A number with a unit.
fn number(text: &str) -> Result<(f64, Option<Kind>), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value: f64 = digits.replace('_', "").parse().map_err(|_| format!("'{text}' is no number"))?;
    match unit.trim() {
        "" => Ok((value, None)),
        unit => {
            let known = UNITS.iter().find(|(name, ..)| *name == unit);
            let (_, scale, kind) = known.ok_or_else(|| {
                format!("'{unit}' is no unit; %, B, KiB, MiB, GiB, ns, us, ms, s, m and h are")
            })?;
            // What is written with a few digits is meant so: 35% is 0.35, which 35 times 0.01 is not, nor 0.7 by 100 0.007.
            let moved = || format!("{}e{}", digits.replace('_', ""), scale.log10().round()).parse().ok();
            let value = if *scale < 1.0 { moved().unwrap_or(value * scale) } else { value * scale };
            Ok((value, Some(*kind)))
        }
    }
}
