//! What the figures of a sample are worth: as much of the plan as a reader needs who was not there.

use std::collections::HashMap;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use crate::figures::Figure;
use crate::plan::Brackets;
use crate::plan::Certainty;
use crate::plan::Engine;
use crate::plan::Plan;

/// Which figures are known in a sample, how well, and what counted them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What counted.
    pub engine: Engine,
    /// How requests were seen.
    pub brackets: Brackets,
    /// What each figure is worth; one that is not here is unknown.
    pub figures: Vec<(Figure, Certainty)>,
    /// Those that are at least so much, as [`Plan::at_least`].
    pub at_least: Vec<Figure>,
    /// The kernel programs that counted.
    pub programs: Vec<String>,
}

impl Known {
    /// What samples are worth that are taken by this plan.
    #[must_use]
    pub fn by(plan: &Plan) -> Self {
        Self {
            engine: plan.engine,
            brackets: plan.brackets,
            figures: plan.figures.clone(),
            at_least: plan.at_least.clone(),
            programs: plan.hooks.iter().map(|h| h.program.to_owned()).collect(),
        }
    }

    /// A plan of the same worth, by which figures are made. It has no hooks: nothing can be attached by it.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let (engine, brackets) = (self.engine, self.brackets);
        let (figures, at_least) = (self.figures.clone(), self.at_least.clone());
        Plan { engine, brackets, fetch_atomics: false, hooks: Vec::new(), figures, at_least }
    }

    /// Whether a kernel program counted.
    #[must_use]
    pub fn uses(&self, program: &str) -> bool {
        self.programs.iter().any(|p| p == program)
    }
}

/// As it is written: figures by their names, each text once.
#[derive(Serialize, Deserialize)]
struct Written {
    engine: Engine,
    brackets: Brackets,
    exact: Vec<String>,
    /// A figure, and the number of the text that says why.
    bounded: Vec<(String, usize)>,
    unknown: Vec<(String, usize)>,
    /// Not there where there are none, nor in what was written before this was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at_least: Vec<String>,
    texts: Vec<String>,
    programs: Vec<String>,
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (mut exact, mut bounded, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut texts: Vec<String> = Vec::new();
        let mut number = |text: &String| {
            texts.iter().position(|t| t == text).unwrap_or_else(|| {
                texts.push(text.clone());
                texts.len() - 1
            })
        };
        for (figure, certainty) in &self.figures {
            match certainty {
                Certainty::Exact => exact.push(figure.name().to_owned()),
                Certainty::Bounded(why) => bounded.push((figure.name().to_owned(), number(why))),
                Certainty::Unknown(why) => unknown.push((figure.name().to_owned(), number(why))),
            }
        }
        let programs = self.programs.clone();
        let at_least = self.at_least.iter().map(|f| f.name().to_owned()).collect();
        let (engine, brackets) = (self.engine, self.brackets);
        Written { engine, brackets, exact, bounded, unknown, at_least, texts, programs }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let w = Written::deserialize(from)?;
        let text = |n: usize| w.texts.get(n).cloned().unwrap_or_default();
        let exact = w.exact.iter().map(|f| (f, Certainty::Exact));
        let bounded = w.bounded.iter().map(|(f, n)| (f, Certainty::Bounded(text(*n))));
        let unknown = w.unknown.iter().map(|(f, n)| (f, Certainty::Unknown(text(*n))));
        let mut all: HashMap<&str, _> =
            exact.chain(bounded).chain(unknown).map(|(f, c)| (f.as_str(), c)).collect();
        // A figure that this version does not have is of no use to it.
        let figures = Figure::ALL.iter().filter_map(|f| Some((*f, all.remove(f.name())?))).collect();
        let at_least =
            Figure::ALL.iter().copied().filter(|f| w.at_least.iter().any(|n| n == f.name())).collect();
        Ok(Self { engine: w.engine, brackets: w.brackets, figures, at_least, programs: w.programs })
    }
}
