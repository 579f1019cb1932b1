//! What a workload should have been counted as, sent from the child to the parent.

use std::collections::BTreeMap;

use cachetop::classic::Counter;
use cachetop::figures::Figure;
use serde_json::Value;
use serde_json::json;

use crate::pivots::RowWant;

/// The truth about one figure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Want {
    /// The truth lies here; equal ends are the rule.
    pub lo: u64,
    pub hi: u64,
    /// Why the truth is not one number; empty if it is.
    pub why: String,
    /// Accepted as well where the plan calls the figure bounded *and* its reason contains this word: what a
    /// test forgives, `--explain` has to say.
    pub loose: Vec<(u64, u64, String)>,
}

/// Whose rows are added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The child's own.
    Child,
    /// These processes (the child's children); each must have a row.
    Pids(Vec<u32>),
    /// Rows with this command name, and how many there must be.
    Comm(String, usize),
}

/// Everything that one scenario expects.
#[derive(Debug, Clone)]
pub struct Expect {
    wants: BTreeMap<String, Want>,
    pub scope: Scope,
    /// Rows of pivots.
    pub rows: Vec<RowWant>,
    pub notes: Vec<String>,
    /// Read calls that did not miss, and those that did, where a scenario is about that.
    pub calls: Option<(u64, u64)>,
    /// Pages that may go and come back within one call: so many may be in LOST for that reason.
    pub churn: u64,
}

/// The stable name of a figure, `group.key`.
pub fn key(figure: Figure) -> String {
    figure.name().into()
}

impl Expect {
    /// A process that read, wrote and dropped nothing.
    pub fn nothing() -> Self {
        let mut new = Self {
            wants: BTreeMap::new(),
            scope: Scope::Child,
            rows: Vec::new(),
            notes: Vec::new(),
            calls: None,
            churn: 0,
        };
        for figure in [
            Figure::Accesses,
            Figure::Hits,
            Figure::ReadAheadHits,
            Figure::Misses,
            Figure::Inflight,
            Figure::ReadBytes,
            Figure::ReadAheadPages,
            Figure::ReadAheadWasted,
            Figure::Fills,
            Figure::WriteAccesses,
            Figure::WriteHits,
            Figure::WriteMisses,
            Figure::Dirtied,
            Figure::DirectReadBytes,
            Figure::DirectWriteBytes,
            Figure::DirectFellBack,
            Figure::Evicted,
            Figure::Removed,
        ] {
            new.exact(figure, 0);
        }
        new
    }

    /// The truth is one number.
    pub fn exact(&mut self, figure: Figure, value: u64) -> &mut Self {
        self.wants.insert(key(figure), Want { lo: value, hi: value, ..Want::default() });
        self
    }

    /// The truth is known to lie in a range only, whatever the engine.
    pub fn within(&mut self, figure: Figure, lo: u64, hi: u64, why: &str) -> &mut Self {
        self.wants.insert(key(figure), Want { lo, hi, why: why.into(), loose: Vec::new() });
        // Which pages were missed is not known: so neither is in how many calls.
        if figure == Figure::Misses
            && let Some(calls) = self.wants.get_mut(&key(Figure::ReadMissedCalls))
        {
            (calls.lo, calls.why) = (calls.lo.min(u64::from(lo > 0)), why.into());
        }
        self
    }

    /// The same for a count of the classic engine.
    pub fn classic(&mut self, counter: Counter, lo: u64, hi: u64, why: &str) -> &mut Self {
        let want = Want { lo, hi, why: why.into(), loose: Vec::new() };
        self.wants.insert(format!("classic.{}", counter.key()), want);
        self
    }

    /// The truth about a count of the classic engine.
    pub fn want_classic(&self, counter: Counter) -> Option<&Want> {
        self.wants.get(&format!("classic.{}", counter.key()))
    }

    /// Accepted as well, only where the plan calls the figure bounded and says `word`.
    pub fn if_bounded(&mut self, figure: Figure, lo: u64, hi: u64, word: &str) -> &mut Self {
        self.wants.entry(key(figure)).or_default().loose.push((lo, hi, word.into()));
        if figure == Figure::Misses
            && let Some(calls) = self.wants.get_mut(&key(Figure::ReadMissedCalls))
        {
            calls.loose.push((calls.lo.min(lo), calls.hi.max(u64::from(hi > 0)), word.into()));
        }
        self
    }

    /// Where the plan says that tmpfs is not seen, anything up to the truth is accepted.
    pub fn may_not_see_tmpfs(&mut self) {
        for want in self.wants.values_mut() {
            want.loose.push((0, want.hi, "reads of tmpfs are not seen".into()));
        }
    }

    /// Where the plan says that writes of btrfs are not seen, anything up to the truth is accepted.
    pub fn may_not_see_writes_of_btrfs(&mut self) {
        let writes =
            [Figure::WriteAccesses, Figure::WriteHits, Figure::WriteMisses, Figure::DirectFellBack].map(key);
        for (_, want) in self.wants.iter_mut().filter(|(k, _)| writes.contains(k)) {
            want.loose.push((0, want.hi, "writes of btrfs are not seen".into()));
        }
    }

    /// `accesses` write accesses, all of them to pages that were not there.
    pub fn write_misses(&mut self, accesses: u64) -> &mut Self {
        self.exact(Figure::WriteAccesses, accesses).exact(Figure::WriteMisses, accesses)
    }

    /// `accesses` pages by first-time misses only, of `bytes` bytes, each page added once.
    pub fn misses(&mut self, accesses: u64, bytes: u64) -> &mut Self {
        self.exact(Figure::Accesses, accesses).exact(Figure::Misses, accesses);
        self.exact(Figure::Fills, accesses).exact(Figure::ReadBytes, bytes)
    }

    /// `accesses` hits of `bytes` bytes.
    pub fn hits(&mut self, accesses: u64, bytes: u64) -> &mut Self {
        self.exact(Figure::Accesses, accesses).exact(Figure::Hits, accesses);
        self.exact(Figure::ReadBytes, bytes)
    }

    /// Something a reader of a failure should know.
    pub fn note(&mut self, text: String) -> &mut Self {
        self.notes.push(text);
        self
    }

    /// The truth about a figure, if this scenario has one.
    pub fn want(&self, figure: Figure) -> Option<&Want> {
        self.wants.get(&key(figure))
    }

    /// For the pipe.
    pub fn to_json(&self) -> Value {
        let mut wants = self.wants.clone();
        // Where it is not known what was there, it is not known either what was on its way.
        let open = |figure| self.wants.get(&key(figure)).is_some_and(|w| w.lo < w.hi);
        if let (true, Some(all)) =
            (open(Figure::ReadAheadHits) || open(Figure::Hits), self.wants.get(&key(Figure::Accesses)))
            && let Some(inflight) = wants.get_mut(&key(Figure::Inflight))
        {
            inflight.hi = inflight.hi.max(all.hi);
        }
        let wants: serde_json::Map<String, Value> = wants
            .iter()
            .map(|(k, w)| {
                let loose = w.loose.iter().map(|(lo, hi, word)| json!([lo, hi, word]));
                (k.clone(), json!([w.lo, w.hi, w.why, loose.collect::<Vec<_>>()]))
            })
            .collect();
        let scope = match &self.scope {
            Scope::Child => json!("child"),
            Scope::Pids(pids) => json!({ "pids": pids }),
            Scope::Comm(name, rows) => json!({ "comm": name, "rows": rows }),
        };
        json!({ "wants": wants, "scope": scope, "rows": self.rows, "notes": self.notes, "calls": self.calls,
            "churn": self.churn })
    }

    /// From the pipe.
    pub fn from_json(v: &Value) -> Option<Self> {
        let number = |v: &Value, i: usize| v.get(i).and_then(Value::as_u64);
        let text = |v: &Value, i: usize| v.get(i).and_then(Value::as_str).map(str::to_owned);
        let mut wants = BTreeMap::new();
        for (k, w) in v.get("wants")?.as_object()? {
            let loose =
                w.get(3)?.as_array()?.iter().map(|l| Some((number(l, 0)?, number(l, 1)?, text(l, 2)?)));
            let loose = loose.collect::<Option<_>>()?;
            let want = Want { lo: number(w, 0)?, hi: number(w, 1)?, why: text(w, 2)?, loose };
            wants.insert(k.clone(), want);
        }
        let scope = v.get("scope")?;
        let scope = if let Some(pids) = scope.get("pids") {
            Scope::Pids(pids.as_array()?.iter().filter_map(|p| p.as_u64()?.try_into().ok()).collect())
        } else if let Some(name) = scope.get("comm") {
            Scope::Comm(name.as_str()?.into(), scope.get("rows")?.as_u64()? as usize)
        } else {
            Scope::Child
        };
        let notes = v.get("notes")?.as_array()?.iter().filter_map(|n| n.as_str().map(str::to_owned));
        let rows = serde_json::from_value(v.get("rows")?.clone()).ok()?;
        let calls = v.get("calls").and_then(|c| Some((number(c, 0)?, number(c, 1)?)));
        let churn = v.get("churn")?.as_u64()?;
        Some(Self { wants, scope, rows, notes: notes.collect(), calls, churn })
    }
}
