//! What a command says of itself on this kernel (`--explain`), as a value: the hooks, what each figure is worth, what can be
//! lost, and the tables. The text is made by those who know each part; programs get all of it as one object.

use serde::Serialize;

use crate::classic;
use crate::loss;
use crate::plan;
use crate::plan::Engine;
use crate::privilege::Role;
use crate::room;
use crate::room::Full;
use crate::room::Table;
use crate::text::foreign;

/// All of it; the JSON of `--explain --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Which engine counts.
    pub engine: &'static str,
    /// What the kernel answered.
    pub kernel: Option<plan::KernelTold>,
    /// The exact engine, where it runs.
    pub exact: Option<plan::Told>,
    /// The classic one, where it runs.
    pub classic: Option<classic::Told>,
    /// Reasons of LOST.
    pub lost: Vec<LossTold>,
    /// Tables in the kernel.
    pub tables: Vec<TableTold>,
    /// Bytes of all of them; `None` where the kernel does not say it of each.
    pub tables_bytes: Option<u64>,
    /// What the command keeps of its privileges.
    pub holds: Vec<HeldTold>,
}

/// A reason why something could not be accounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossTold {
    /// Its name, as in `lost`.
    pub reason: &'static str,
    /// What it makes wrong, as in `lost`.
    pub touches: &'static str,
    /// What one event of it is.
    pub about: &'static str,
    /// The option that gives room, where one does.
    pub option: Option<&'static str>,
}

/// A table in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableTold {
    /// Its name, as in metrics.
    pub table: &'static str,
    /// What an entry is about.
    pub about: &'static str,
    /// Entries that it has room for; `None`: it does not fill up.
    pub room: Option<u64>,
    /// Entries in use; `None`: not known.
    pub used: Option<u64>,
    /// Bytes of the kernel's memory; `None`: it does not say.
    pub bytes: Option<u64>,
    /// The reason under which is told what finds no room, where that is part of LOST.
    pub lost: Option<&'static str>,
    /// The option that gives room, where one does.
    pub option: Option<&'static str>,
}

/// A capability that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldTold {
    /// Its name.
    pub capability: &'static str,
    /// What for.
    pub because: &'static str,
}

/// The reasons of LOST.
fn losses() -> Vec<LossTold> {
    let told = |r: &loss::Reason| LossTold {
        reason: r.id,
        touches: r.touches.name(),
        about: r.about,
        option: r.option,
    };
    loss::REASONS.iter().map(told).collect()
}

/// The tables, and the bytes of all of them.
fn tables(all: &[Table]) -> (Vec<TableTold>, Option<u64>) {
    let told = |table: &Table| {
        let about = table.kind.about();
        let lost = match about.full {
            Full::Lost(reason) => Some(reason),
            Full::Told(_) | Full::Never => None,
        };
        let Table { room, used, bytes, .. } = *table;
        TableTold { table: about.id, about: about.what, room, used, bytes, lost, option: about.option }
    };
    (all.iter().map(told).collect(), room::total(all))
}

/// What is kept of privileges.
fn held(role: Role) -> Vec<HeldTold> {
    role.holds()
        .into_iter()
        .map(|(capability, because)| HeldTold { capability: capability.name(), because })
        .collect()
}

/// An engine's plan, and what the kernel answered to it.
pub type Answered<T> = (T, plan::KernelTold);

impl Explanation {
    /// Of the engines that run.
    #[must_use]
    pub fn new(
        engine: Engine,
        exact: Option<Answered<plan::Told>>,
        classic: Option<Answered<classic::Told>>,
        all: &[Table],
        role: Role,
    ) -> Self {
        let (exact, kernel) = exact.unzip();
        let (classic, others) = classic.unzip();
        let (tables, tables_bytes) = tables(all);
        Self {
            engine: engine.name(),
            kernel: kernel.or(others),
            exact,
            classic,
            lost: losses(),
            tables,
            tables_bytes,
            holds: held(role),
        }
    }

    /// One line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        foreign::json(self) + "\n"
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::fixtures;
    use crate::plan::Plan;
    use crate::room::Kind;
    use crate::schema_check::check_as;

    /// A kernel on which everything attaches, or tracepoints only.
    fn facts(functions: bool) -> Facts {
        let named = ["tp:mm_filemap_add_to_page_cache", "tp:mm_filemap_delete_from_page_cache"];
        let more = ["tp:mm_filemap_get_pages", "filemap_read", "filemap_fault", "tp:writeback_dirty_folio"];
        let mut facts = fixtures::able(named.iter().chain(&more).map(|s| (*s).to_owned()).collect());
        if !functions {
            let no = || Err("EOPNOTSUPP".to_owned());
            (facts.trampoline, facts.kprobe_multi, facts.kprobe_session) = (no(), no(), no());
        }
        facts
    }

    fn published(said: &Explanation) -> serde_json::Value {
        let text = said.json();
        assert!(text.ends_with("}\n") && text.lines().count() == 1);
        let value = serde_json::from_str(&text).unwrap();
        assert!(check_as("explanation", &value).is_empty());
        value
    }

    #[test]
    fn it_is_as_published() {
        let tables = [
            Table { kind: Kind::Threads, room: Some(16384), used: Some(3), bytes: Some(10) },
            Table { kind: Kind::Other, room: None, used: None, bytes: None },
        ];
        for functions in [true, false] {
            let facts = facts(functions);
            let exact = || {
                let plan = Plan::new(&facts, plan::Wants::default()).unwrap();
                (plan.told(&facts), (&facts).into())
            };
            let classic = || {
                let means = classic::Means { facts: facts.clone(), kprobe: Ok(()), refused: Vec::new() };
                (classic::told(&classic::Plan::new(&means).unwrap(), &means), (&facts).into())
            };
            let said = Explanation::new(Engine::Exact, Some(exact()), None, &tables, Role::Count);
            let value = published(&said);
            assert_eq!(value["kernel"]["functions"]["able"], functions);
            assert_eq!(value["kernel"]["preemptible"], false);
            assert_eq!(value["tables"][0]["lost"], "processes_full");
            assert!(value["tables_bytes"].is_null() && value["classic"].is_null());
            let both = Explanation::new(Engine::Both, Some(exact()), Some(classic()), &tables, Role::Daemon);
            assert!(!published(&both)["classic"]["hooks"].as_array().unwrap().is_empty());
            let classic = Explanation::new(Engine::Classic, None, Some(classic()), &tables, Role::Count);
            let value = published(&classic);
            assert!(value["exact"].is_null() && value["kernel"]["release"].is_string());
        }
    }

    #[test]
    fn what_is_not_known_of_the_kernel_is_null_and_what_it_says_acts_on_nothing() {
        let mut facts = facts(true);
        facts.preemption = crate::facts::Preemption::Unknown;
        facts.refused.push(("window_session".into(), "EBUSY \u{202e}\u{1b}[2J".into()));
        let plan = Plan::new(&facts, plan::Wants::default()).unwrap();
        let told = Some((plan.told(&facts), (&facts).into()));
        let said = Explanation::new(Engine::Exact, told, None, &[], Role::Count);
        assert!(!said.json().contains(['\u{202e}', '\u{1b}']));
        let value = published(&said);
        assert!(value["kernel"]["preemptible"].is_null());
        assert_eq!(value["kernel"]["refused"][0]["because"], "EBUSY \u{202e}\u{1b}[2J");
    }
}
