//! For whom kswapd made room, as a bound: as text and as JSON.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::json;

use super::super::Share;
use super::Shown;
use super::page_size;
use super::volume;

impl Shown<'_> {
    fn taker(&mut self, group: Option<u64>) -> String {
        group.map_or_else(|| "(other cgroups)".into(), |id| self.group(id))
    }

    fn woke(&self, n: &Share) -> Option<u64> {
        self.wakes.then_some(n.did.woke)
    }

    /// A table, if it took any pages.
    pub(super) fn room(&mut self) -> String {
        let mut out = String::new();
        let Some(room) = self.room.filter(|room| room.taken > 0) else { return out };
        let _ = writeln!(
            out,
            "\nFor whom kswapd took {}: for none more than it grew by meanwhile\n\n{:>8} {:>8} {:>8}  CGROUP",
            volume(room.taken),
            "AT MOST",
            "GREW",
            "WOKE IT"
        );
        let named: Vec<_> = self.shares.iter().filter(|(_, n)| n.at_most > 0 || n.did.woke > 0).collect();
        for (group, n) in named.iter().take(self.top) {
            let woke = self.woke(n).map_or_else(|| "-".into(), |n| n.to_string());
            let (at_most, grew, group) = (volume(n.at_most), volume(n.did.grew), self.taker(*group));
            let _ = writeln!(out, "{at_most:>8} {grew:>8} {woke:>8}  {group}");
        }
        if named.len() > self.top {
            let _ = writeln!(out, "{:>26}  {} more (--json)", "", named.len() - self.top);
        }
        if room.unexplained > 0 {
            let _ = writeln!(
                out,
                "{:>8} and more for none of these: for memory of the kernel's own, or taken before this began",
                volume(room.unexplained)
            );
        }
        out
    }

    /// One object; null where it is not known.
    pub(super) fn room_json(&mut self) -> Value {
        let Some(room) = self.room else { return Value::Null };
        let mut rows = Vec::new();
        for (group, n) in self.shares {
            rows.push(json!({
                "cgroup": group.and_then(|id| self.cgroup(id)),
                "other": group.is_none(),
                "at_most_pages": n.at_most,
                "at_most_bytes": n.at_most * page_size(),
                "grew_pages": n.did.grew,
                "grew_bytes": n.did.grew * page_size(),
                "wakeups": self.woke(n),
            }));
        }
        json!({
            "out_pages": room.taken,
            "out_bytes": room.taken * page_size(),
            "unexplained_pages": room.unexplained,
            "unexplained_bytes": room.unexplained * page_size(),
            "cgroups": rows,
        })
    }
}
