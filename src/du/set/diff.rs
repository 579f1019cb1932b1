//! What two sets have in common.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Map;

use super::Set;
use crate::du::view;
use crate::exit::Failure;
use crate::residency::Run;
use crate::text::table::fitted;

/// What two sets have in common, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// By path: pages only in the first, only in the second, in both.
    pub files: BTreeMap<PathBuf, (u64, u64, u64)>,
}

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

impl Diff {
    /// Compares two sets by path.
    ///
    /// # Errors
    /// Wrong usage for sets with pages of different sizes: their numbers mean different things.
    pub fn new(a: &Set, b: &Set) -> Result<Self, Failure> {
        if a.page_size != b.page_size {
            let text = format!("one set has pages of {} bytes, the other of {}", a.page_size, b.page_size);
            return Err(Failure::usage(text).remedy("compare sets of the same machine"));
        }
        let mut both: BTreeMap<&Path, (&[Run], &[Run])> = BTreeMap::new();
        for f in &a.files {
            both.entry(&f.path).or_default().0 = &f.runs;
        }
        for f in &b.files {
            both.entry(&f.path).or_default().1 = &f.runs;
        }
        let files = both.into_iter().map(|(path, (a, b))| {
            let same = common(a, b);
            (path.to_path_buf(), (pages(a) - same, pages(b) - same, same))
        });
        Ok(Self { files: files.collect() })
    }

    /// As a table of what differs, or as JSON lines.
    #[must_use]
    pub fn show(&self, as_json: bool) -> String {
        let mut out = String::new();
        let mut sum = (0, 0, 0);
        let title = |s: &str| s.to_string();
        let (mut lines, mut names) =
            (vec![vec![title("GONE"), title("NEW"), title("SAME")]], vec![title("NAME")]);
        for (path, &(gone, new, same)) in &self.files {
            let add = u64::saturating_add;
            sum = (add(sum.0, gone), add(sum.1, new), add(sum.2, same));
            if as_json {
                let mut object = Map::new();
                object.insert("type".into(), "diff".into());
                view::put_path(&mut object, path);
                object.extend(
                    [("gone", gone), ("new", new), ("same", same)].map(|(k, n)| (k.into(), n.into())),
                );
                let _ = writeln!(out, "{}", crate::text::foreign::json(&object));
            } else if gone + new > 0 {
                lines.push([gone, new, same].map(|n| n.to_string()).to_vec());
                names.push(view::name(path));
            }
        }
        if as_json {
            return out;
        }
        lines.push([sum.0, sum.1, sum.2].map(|n| n.to_string()).to_vec());
        names.push("total".into());
        fitted(&lines, &names)
    }
}
