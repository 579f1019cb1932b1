//! What a rule has found.

use serde::Serialize;
use serde_json::Value;

/// One thing that the figures prove.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A short name that does not change.
    pub id: &'static str,
    /// The runs that it is about.
    pub runs: Vec<u32>,
    /// Whether it says the same of all of them. Otherwise the figures are those of the first.
    #[serde(skip)]
    pub same: bool,
    /// In words.
    pub text: String,
    /// What can be done about it.
    pub remedy: Option<String>,
    /// The figures that prove it.
    pub evidence: Value,
}

impl Finding {
    pub(super) fn new(id: &'static str, text: String, evidence: Value) -> Option<Self> {
        // A text may begin with a share or a time in words.
        let mut letters = text.chars();
        let text = letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect());
        Some(Self { id, runs: Vec::new(), same: true, text, remedy: None, evidence })
    }

    /// The runs, and of which of them the figures are, where these differ: `runs 2 to 9, figures of run 2`.
    #[must_use]
    pub fn which(&self) -> String {
        match self.runs.first() {
            Some(first) if !self.same => format!("{}, figures of run {first}", self.named()),
            _ => self.named(),
        }
    }

    /// `run 2`, `runs 2 and 3`, `runs 2, 3 and 5`, `runs 2 to 9`.
    fn named(&self) -> String {
        let numbers: Vec<String> = self.runs.iter().map(u32::to_string).collect();
        let in_a_row = self.runs.windows(2).all(|w| matches!(w, [a, b] if *b == a + 1));
        match numbers.as_slice() {
            [] => String::new(),
            [one] => format!("run {one}"),
            [first, .., last] if in_a_row && numbers.len() > 2 => format!("runs {first} to {last}"),
            [before @ .., last] => format!("runs {} and {last}", before.join(", ")),
        }
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
