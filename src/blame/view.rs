//! The bill as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::Bill;
use super::Counts;
use super::Evictor;
use super::How;
use super::Row;
use super::bill::sum;
use crate::names::Names;
use crate::text::foreign::Foreign;
use crate::text::numbers;

/// Sentences below the table.
const SENTENCES: usize = 3;

/// What is shown.
pub(super) struct Shown<'a> {
    pub(super) bill: &'a Bill,
    pub(super) names: &'a mut dyn Names,
    /// How long was looked.
    pub(super) seconds: f64,
    /// The counters beside it, in pages: what reclaim took, what went otherwise, what was read back in.
    pub(super) evicted: Option<u64>,
    pub(super) removed: Option<u64>,
    pub(super) refaulted: Option<u64>,
    /// Whether it is seen that pages come back, and what the kernel itself takes for read back in.
    pub(super) comes: bool,
    pub(super) refaults: bool,
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

    fn refaulted(&self, n: &Counts) -> Option<u64> {
        self.refaults.then_some(n.refaulted)
    }

    /// One object.
    pub(super) fn json(mut self) -> String {
        let bytes = |pages: Option<u64>| pages.map(|n| n * page_size());
        let bill = self.bill;
        let mut rows = Vec::new();
        for (Evictor { how, who }, n) in &bill.rows {
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
            }));
        }
        let all = bill.sum(|_| true);
        let blame = json!({
            "seconds": (self.seconds * 1e3).round() / 1e3,
            "rows": rows,
            "totals": {
                "out_pages": all.out,
                "out_by_reclaim_pages": bill.sum(How::reclaims).out,
                "evicted_pages": self.evicted,
                "removed_pages": self.removed,
                "back_pages": self.back(&all),
                "refaulted_pages": self.refaulted,
            },
            "refaulted_of_unknown_pages": self.refaults.then_some(bill.strangers),
            "forgotten_pages": bill.forgotten,
            "lost": { "total": self.lost },
            "notes": self.notes,
        });
        format!("{}\n", json!({ "blame": blame }))
    }

    /// A table, with what matters most in words.
    pub(super) fn text(mut self) -> String {
        let bill = self.bill;
        let all = bill.sum(|_| true);
        let known = |pages: Option<u64>| pages.map_or_else(|| "-".into(), volume);
        let mut out = format!(
            "Who pushed whose pages out: {:.1} s, {} left the cache ({} by reclaim), {} came back\n",
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
                "\n{:>8} {:>8} {:>8}  {:<11}  WHOSE <- BY WHOM",
                "OUT", "BACK", "REFAULTS", "HOW"
            );
        }
        for (Evictor { how, who }, n) in bill.rows.iter().take(self.top) {
            let (back, refaulted) = (known(self.back(n)), known(self.refaulted(n)));
            let who = who.as_ref().map_or_else(|| "(no room for a row)".into(), |row| self.who(row));
            let _ = writeln!(out, "{:>8} {back:>8} {refaulted:>8}  {:<11}  {who}", volume(n.out), how.name());
        }
        if let Some(more) = bill.rows.len().checked_sub(self.top).filter(|more| *more > 0) {
            let rest = sum(bill.rows.iter().skip(self.top));
            let (back, refaulted) = (known(self.back(&rest)), known(self.refaulted(&rest)));
            let _ = writeln!(
                out,
                "{:>8} {back:>8} {refaulted:>8}  in {more} more rows (--json)",
                volume(rest.out)
            );
        }
        if self.refaults && bill.strangers > 0 {
            let _ = writeln!(
                out,
                "{:>8} {:>8} {:>8}  evicted by nobody knows whom: before this began, or forgotten",
                "",
                "",
                volume(bill.strangers),
            );
        }
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
                }
                None => pairs.push((pair, *n)),
            }
        }
        pairs.sort_by_key(|(pair, n)| (std::cmp::Reverse(n.out), *pair));
        let mut out = Vec::new();
        for ((by, owner), n) in pairs.into_iter().filter(|(_, n)| n.out > 0).take(SENTENCES) {
            let back = self.back(&n).map_or_else(String::new, |back| format!("; {} came back", volume(back)));
            let (by, owner) = (self.group(by), self.group(owner));
            out.push(format!("{by} pushed out {} of {owner}{back}.", volume(n.out)));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::rc::Rc;

    use serde_json::Value;

    use super::super::Raw;
    use super::*;
    use crate::cgroup::Cgroup;
    use crate::files::Dev;
    use crate::files::Mounts;

    struct Fake;

    impl Names for Fake {
        fn user(&mut self, _: u32) -> Option<Rc<str>> {
            None
        }
        fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
            let path = if id == 9 { "/evil\x1b[2J".into() } else { format!("/g{id}") };
            Rc::new(Cgroup { path, label: crate::cgroup::Label::default() })
        }
        fn mounts(&mut self, _: Dev) -> &mut Mounts {
            unreachable!()
        }
        fn mounts_now(&mut self) -> &Mounts {
            unreachable!()
        }
        fn command_line(&mut self, _: u32) -> Option<Foreign> {
            None
        }
    }

    fn row(how: How, by: u64, owner: u64, out: u64, back: u64) -> (Evictor, Counts) {
        let process = if by == 0 { Vec::new() } else { b"tar\x1b".to_vec() };
        let limit = if how == How::Limit { by } else { 0 };
        let who = Some(Row { limit, by, owner, process, run: 0, own: false });
        (Evictor { how, who }, Counts { out, back, refaulted: back, again: 0 })
    }

    fn bill() -> Bill {
        let before = Raw { rows: vec![row(How::Direct, 1, 9, 100, 50)], forgotten: 1, strangers: 2 };
        let now = Raw {
            rows: vec![
                row(How::Kswapd, 0, 3, 256, 0),
                row(How::Direct, 1, 9, 1124, 306),
                row(How::Limit, 1, 1, 10, 0),
                row(How::Deleted, 1, 3, 5, 0),
                (Evictor { how: How::Dropped, who: None }, Counts { out: 1, ..Counts::default() }),
            ],
            forgotten: 1,
            strangers: 9,
        };
        Bill::between(&before, &now)
    }

    fn shown<'a>(bill: &'a Bill, names: &'a mut Fake, refaults: bool) -> Shown<'a> {
        Shown {
            bill,
            names,
            seconds: 2.0004,
            evicted: Some(1290),
            removed: Some(6),
            refaulted: Some(263),
            comes: true,
            refaults,
            lost: 3,
            top: 10,
            notes: &[],
        }
    }

    #[test]
    fn a_bill_is_what_came_since_and_adds_up() {
        let bill = bill();
        assert_eq!(bill.sum(|_| true).out, 1290 + 6);
        assert_eq!(bill.sum(How::reclaims).out, 1290);
        assert_eq!((bill.strangers, bill.forgotten), (7, 0));
        assert_eq!(bill.rows[0].1, Counts { out: 1024, back: 256, refaulted: 256, again: 0 });
    }

    #[test]
    fn it_is_told_in_words_and_nothing_acts() {
        let text = shown(&bill(), &mut Fake, true).text();
        assert!(text.contains("/g1 pushed out 4.0M of /evil\\x1b[2J; 1.0M came back.\n"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.contains("  direct       /evil\\x1b[2J <- /g1 (tar\\x1b)\n"), "{text}");
        assert!(text.contains("/g3 <- kswapd\n"), "{text}");
        assert!(text.contains("limit        /g1 <- /g1 (tar\\x1b), limit of /g1\n"), "{text}");
        assert!(!text.contains("/g1 pushed out 40.0K of /g1"), "{text}");
        assert!(text.contains("(no room for a row)"), "{text}");
        let unknown = shown(&bill(), &mut Fake, false).text();
        assert!(unknown.contains("    4.0M     1.0M        -  direct"), "{unknown}");
    }

    /// Rows that are not shown are a line, with which the table still adds up.
    #[test]
    fn what_is_cut_is_told_with_all_its_figures() {
        let bill = bill();
        let text = Shown { top: 1, ..shown(&bill, &mut Fake, true) }.text();
        let back = bill.rows[1..].iter().map(|(_, n)| n.back).sum::<u64>();
        let refaulted = bill.rows[1..].iter().map(|(_, n)| n.refaulted).sum::<u64>();
        let line = format!(
            "{:>8} {:>8} {:>8}  in 4 more rows (--json)\n",
            volume(1296 - 1024),
            volume(back),
            volume(refaulted)
        );
        assert!(text.contains(&line), "{text}");
    }

    #[test]
    fn as_json() {
        let text = shown(&bill(), &mut Fake, false).json();
        assert!(!text.contains('\x1b'));
        let all: Value = serde_json::from_str(&text).unwrap();
        let all = &all["blame"];
        assert_eq!(all["seconds"], 2.0);
        assert_eq!(all["rows"][0]["how"], "direct");
        assert_eq!(all["rows"][0]["who"]["owner"], "/evil\x1b[2J");
        assert_eq!(all["rows"][0]["who"]["by"]["cgroup"], "/g1");
        assert_eq!(all["rows"][0]["refaulted_pages"], Value::Null);
        assert_eq!(all["rows"][1]["who"]["by"]["process"], Value::Null);
        assert_eq!(all["rows"][4]["who"], Value::Null);
        assert_eq!(all["totals"]["out_pages"], 1296);
        assert_eq!(all["refaulted_of_unknown_pages"], Value::Null);
        assert_eq!(all["lost"]["total"], 3);
    }
}
