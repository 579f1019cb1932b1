//! What two sets have in common.

use std::cmp::Ordering;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Map;

use super::Source;
use super::sorted::Sorted;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Run;
use crate::text::table::fitted;

/// Bytes of JSON that are written at once.
const TOGETHER: usize = 1 << 16;

/// Pages of a file, or of all: only in the first set, only in the second, in both.
type Figures = [u64; 3];

fn common(a: &[Run], b: &[Run]) -> u64 {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += x.end().min(y.end()).saturating_sub(x.start.max(y.start));
        if x.end() < y.end() { i += 1 } else { j += 1 }
    }
    sum
}

fn pages(runs: &[Run]) -> u64 {
    runs.iter().map(|r| r.pages).sum()
}

/// Compares two sets by path, and hands on what comes of each file, in the order of paths, as long as that is wanted. No
/// more than `most` bytes of each are in memory at once.
///
/// # Errors
/// Wrong usage for what is no set, and for sets with pages of different sizes: their numbers mean different things.
fn compare(
    a: &Source,
    b: &Source,
    most: usize,
    mut each: impl FnMut(&Path, Figures) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let sizes = (a.page_size()?, b.page_size()?);
    if sizes.0 != sizes.1 {
        let text = format!("one set has pages of {} bytes, the other of {}", sizes.0, sizes.1);
        return Err(Failure::usage(text).remedy("compare sets of the same machine"));
    }
    let (mut a, mut b) = (Sorted::new(a.files()?, most)?, Sorted::new(b.files()?, most)?);
    loop {
        let order = match (a.path(), b.path()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let first = if order.is_le() { a.next()? } else { None };
        let second = if order.is_ge() { b.next()? } else { None };
        let runs = |entry: &Option<(PathBuf, Vec<Run>)>| entry.as_ref().map_or(0, |(_, runs)| pages(runs));
        let same = match (&first, &second) {
            (Some((_, a)), Some((_, b))) => common(a, b),
            _ => 0,
        };
        let figures = [runs(&first) - same, runs(&second) - same, same];
        let Some((path, _)) = first.or(second) else { continue };
        if !each(&path, figures)? {
            return Ok(());
        }
    }
}

/// Writes what differs as a table, or all of it as JSON lines; `write` says whether anybody reads them still.
///
/// # Errors
/// Wrong usage for what is no set, and when it cannot be written.
pub fn show(
    a: &Source,
    b: &Source,
    as_json: bool,
    most: usize,
    mut write: impl FnMut(&str) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut sum = [0_u64; 3];
    let (mut lines, mut names) =
        (vec![["GONE", "NEW", "SAME"].map(str::to_owned).to_vec()], vec!["NAME".to_owned()]);
    let (mut text, mut read) = (String::new(), true);
    compare(a, b, most, |path, figures| {
        sum = std::array::from_fn(|n| sum[n].saturating_add(figures[n]));
        if as_json {
            let mut object = Map::new();
            object.insert("type".into(), "diff".into());
            view::put_path(&mut object, path);
            object.extend(["gone", "new", "same"].map(Into::into).into_iter().zip(figures.map(Into::into)));
            text.push_str(&crate::text::foreign::json(&object));
            text.push('\n');
            if text.len() >= TOGETHER {
                read = write(&text)?;
                text.clear();
            }
        } else if figures[0] + figures[1] > 0 {
            lines.push(figures.map(|n| n.to_string()).to_vec());
            names.push(view::name(path));
        }
        Ok(read)
    })?;
    if !as_json {
        lines.push(sum.map(|n| n.to_string()).to_vec());
        names.push("total".into());
        text = fitted(&lines, &names);
    }
    if read {
        write(&text)?;
    }
    Ok(())
}
