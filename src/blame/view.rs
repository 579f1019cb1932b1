//! The bill as text and as JSON.

mod files;
mod room;

use std::fmt::Write as _;

use serde_json::json;

use super::Bill;
use super::Counts;
use super::Evictor;
use super::How;
use super::Room;
use super::Row;
use super::Share;
use super::bill::sum;
use crate::names::Names;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers;

/// Sentences below the table.
const SENTENCES: usize = 3;

/// What is shown.
pub(super) struct Shown<'a> {
    pub(super) bill: &'a Bill,
    /// For whom kswapd made room; `None`: not known.
    pub(super) room: Option<&'a Room>,
    /// The cgroups of it that are shown.
    pub(super) shares: &'a [(Option<u64>, Share)],
    pub(super) names: &'a mut dyn Names,
    /// How long was looked.
    pub(super) seconds: f64,
    /// The counters beside it, in pages: what reclaim took, what went otherwise, what was read back in.
    pub(super) evicted: Option<u64>,
    pub(super) removed: Option<u64>,
    pub(super) refaulted: Option<u64>,
    /// Whether it is seen that pages come back, what the kernel itself takes for read back in, and that it is waited for.
    pub(super) comes: bool,
    pub(super) refaults: bool,
    pub(super) waits: bool,
    /// Whether it is seen who wakes kswapd.
    pub(super) wakes: bool,
    /// What was asked for, in words; empty for everything.
    pub(super) chosen: &'a str,
    /// Events that could not be accounted, of these programs and of those that count beside them.
    pub(super) lost: u64,
    /// Rows of the table.
    pub(super) top: usize,
    /// What is not known, and why.
    pub(super) notes: &'a [String],
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages as bytes.
fn volume(pages: u64) -> String {
    numbers::bytes(pages * page_size())
}

impl Shown<'_> {
    fn cgroup(&mut self, id: u64) -> Option<Foreign> {
        (id != 0).then(|| Foreign::from(&*self.names.cgroup(id, 0).path))
    }

    /// In tables: `-` for none.
    fn group(&mut self, id: u64) -> String {
        self.cgroup(id).map_or_else(|| "-".into(), |name| name.to_string())
    }

    fn back(&self, n: &Counts) -> Option<u64> {
        self.comes.then_some(n.back)
    }

    /// Seconds.
    fn waited(&self, ns: u64) -> Option<f64> {
        self.waits.then_some(ns as f64 / 1e9)
    }

    fn refaulted(&self, n: &Counts) -> Option<u64> {
        self.refaults.then_some(n.refaulted)
    }

    /// One object.
    pub(super) fn json(mut self) -> String {
        let bytes = |pages: Option<u64>| pages.map(|n| n * page_size());
        let bill = self.bill;
        let mut rows = Vec::new();
        let files = bill.details.by_evictor(&bill.rows);
        for ((Evictor { how, who }, n), (_, files)) in bill.rows.iter().zip(files) {
            let files: Vec<_> = files.iter().map(|file| self.file_json(file)).collect();
            let who = who.as_ref().map(|row| {
                json!({
                    "owner": self.cgroup(row.owner),
                    "by": {
                        "cgroup": self.cgroup(row.by),
                        "process": (!row.process.is_empty()).then(|| Foreign::from(&*row.process)),
                    },
                    "limit_of": self.cgroup(row.limit),
                })
            });
            rows.push(json!({
                "how": how.name(),
                "reclaim": how.reclaims(),
                "who": who,
                "out_pages": n.out,
                "out_bytes": n.out * page_size(),
                "back_pages": self.back(n),
                "back_bytes": bytes(self.back(n)),
                "refaulted_pages": self.refaulted(n),
                "refaulted_bytes": bytes(self.refaulted(n)),
                "waits": self.waits.then_some(n.waits),
                "waited_s": self.waited(n.waited_ns),
                "files": files,
            }));
        }
        let all = bill.sum(|_| true);
        let blame = json!({
            "seconds": (self.seconds * 1e3).round() / 1e3,
            "chosen": (!self.chosen.is_empty()).then_some(self.chosen),
            "rows": rows,
            "totals": {
                "out_pages": all.out,
                "out_by_reclaim_pages": bill.sum(How::reclaims).out,
                "evicted_pages": self.evicted,
                "removed_pages": self.removed,
                "back_pages": self.back(&all),
                "refaulted_pages": self.refaulted,
                "waited_s": self.waited(all.waited_ns),
            },
            "kswapd": self.room_json(),
            "refaulted_of_unknown_pages": (self.refaults && self.chosen.is_empty()).then_some(bill.strangers),
            "forgotten_pages": bill.forgotten,
            "lost": { "total": self.lost },
            "notes": self.notes,
        });
        format!("{}\n", foreign::json(&json!({ "blame": blame })))
    }

    /// A table, with what matters most in words.
    pub(super) fn text(mut self) -> String {
        let bill = self.bill;
        let all = bill.sum(|_| true);
        let known = |pages: Option<u64>| pages.map_or_else(|| "-".into(), volume);
        let mut out = format!(
            "Who pushed whose pages out{}: {:.1} s, {} left the cache ({} by reclaim), {} came back\n",
            if self.chosen.is_empty() { String::new() } else { format!(" ({})", self.chosen) },
            self.seconds,
            volume(all.out),
            volume(bill.sum(How::reclaims).out),
            known(self.back(&all)),
        );
        if bill.rows.is_empty() {
            out += "\nNo page left.\n";
        } else {
            let _ = writeln!(
                out,
                "\n{:>8} {:>8} {:>8} {:>8}  {:<11}  WHOSE <- BY WHOM",
                "OUT", "BACK", "REFAULTS", "WAITED", "HOW"
            );
        }
        for (Evictor { how, who }, n) in bill.rows.iter().take(self.top) {
            let (back, refaulted) = (known(self.back(n)), known(self.refaulted(n)));
            let waited = self.seconds_of(n.waited_ns);
            let who = who.as_ref().map_or_else(|| "(no room for a row)".into(), |row| self.who(row));
            let _ = writeln!(
                out,
                "{:>8} {back:>8} {refaulted:>8} {waited:>8}  {:<11}  {who}",
                volume(n.out),
                how.name()
            );
        }
        if let Some(more) = bill.rows.len().checked_sub(self.top).filter(|more| *more > 0) {
            let s = if more == 1 { "" } else { "s" };
            let rest = sum(bill.rows.iter().skip(self.top));
            let (back, refaulted) = (known(self.back(&rest)), known(self.refaulted(&rest)));
            let waited = self.seconds_of(rest.waited_ns);
            let _ = writeln!(
                out,
                "{:>8} {back:>8} {refaulted:>8} {waited:>8}  in {more} more row{s} (--json)",
                volume(rest.out)
            );
        }
        if self.refaults && self.chosen.is_empty() && bill.strangers > 0 {
            let _ = writeln!(
                out,
                "{:>8} {:>8} {:>8} {:>8}  evicted by nobody knows whom: before this began, or forgotten",
                "",
                "",
                volume(bill.strangers),
                "",
            );
        }
        out += &self.files();
        out += &self.room();
        let sentences = self.sentences();
        if !sentences.is_empty() {
            let _ = writeln!(out, "\n{}", sentences.join("\n"));
        }
        for note in self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }

    fn who(&mut self, row: &Row) -> String {
        let mut out = format!("{} <- ", self.group(row.owner));
        if row.by == 0 && row.process.is_empty() {
            return out + "kswapd";
        }
        let _ = write!(out, "{} ({})", self.group(row.by), Foreign::from(&*row.process));
        if row.limit != 0 {
            let _ = write!(out, ", limit of {}", self.group(row.limit));
        }
        out
    }

    /// Cgroups that pushed out what others had, in words: those that took most first.
    fn sentences(&mut self) -> Vec<String> {
        let mut pairs: Vec<((u64, u64), Counts)> = Vec::new();
        for (Evictor { how, who }, n) in &self.bill.rows {
            let Some(row) = who.as_ref().filter(|r| r.by != 0 && r.owner != 0 && r.by != r.owner) else {
                continue;
            };
            // What is deleted or truncated was given up, not pushed out; DAMON serves nobody's cgroup.
            if matches!(how, How::Damon | How::Deleted | How::Truncated | How::Invalidated) {
                continue;
            }
            let pair = (row.by, row.owner);
            match pairs.iter_mut().find(|(key, _)| *key == pair) {
                Some((_, sum)) => {
                    sum.out += n.out;
                    sum.back += n.back;
                    sum.waited_ns += n.waited_ns;
                }
                None => pairs.push((pair, *n)),
            }
        }
        pairs.sort_by_key(|(pair, n)| (std::cmp::Reverse(n.out), *pair));
        let mut out = Vec::new();
        for ((by, owner), n) in pairs.into_iter().filter(|(_, n)| n.out > 0).take(SENTENCES) {
            let mut back =
                self.back(&n).map_or_else(String::new, |back| format!("; {} came back", volume(back)));
            if let Some(waited) = self.waited(n.waited_ns).filter(|s| *s >= 0.001) {
                let _ = write!(back, ", {waited:.3} s of waiting");
            }
            let (by, owner) = (self.group(by), self.group(owner));
            out.push(format!("{by} pushed out {} of {owner}{back}.", volume(n.out)));
        }
        out
    }
}

#[cfg(test)]
mod tests;
