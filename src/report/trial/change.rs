//! A setting that is changed for the second run, and put back.

use serde::Serialize;

use crate::readahead::keeper::Ended;
use crate::text::foreign::Foreign;

/// A setting that was changed for the second run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file in sysfs.
    pub path: String,
    /// What it was.
    pub before_kb: u64,
    /// Whether it is that again.
    pub restored: bool,
    /// Why not.
    pub note: Option<Foreign>,
    /// What it was when run 1 began, where it was another when that had ended.
    #[serde(skip)]
    pub(super) then_kb: Option<u64>,
    /// What it was after run 2, where that is not what was set for it.
    #[serde(skip)]
    pub(super) became: Option<Foreign>,
}

impl Change {
    pub(super) fn new(path: &str, before_kb: u64) -> Self {
        Self { path: path.into(), before_kb, restored: false, note: None, then_kb: None, became: None }
    }

    /// What became of it when it was to be put back.
    pub(super) fn end(&mut self, ended: Result<Option<Ended>, String>) {
        self.note = match ended {
            Ok(Some(Ended::Back)) => {
                self.restored = true;
                None
            }
            Ok(Some(Ended::Left(now))) => {
                // It can be what it was: then there is nothing to be put back.
                self.restored = now == self.before_kb.to_string();
                let left = format!("the command or somebody else set it to {now} meanwhile: it was left so");
                self.became = Some(now.into());
                (!self.restored).then(|| left.into())
            }
            Ok(Some(Ended::Failed(why))) | Err(why) => Some(why.into()),
            Ok(None) => None,
        };
    }

    /// Why a run did not have the setting that is told of it.
    pub(super) fn doubt(&self, kb: u64) -> Option<String> {
        let path = &self.path;
        let of_first = self.then_kb.map(|then| {
            let now = self.before_kb;
            format!("{path} was {then} when run 1 began, and {now} when it had ended: which of them it read with is not known")
        });
        let of_second = self.became.as_ref().map(|now| {
            format!("{path} was {now} when run 2 had ended, and not {kb}: what it fetched is not compared with what was predicted")
        });
        of_second.or(of_first)
    }

    /// That it is not what it was, and why.
    pub(super) fn not_restored(&self) -> String {
        let why = self.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        format!("{} was {} and is not that again{why}", self.path, self.before_kb)
    }
}
