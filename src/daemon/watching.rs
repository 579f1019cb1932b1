//! Looks at each interval for what is to be told, and tells it.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::Value;
use serde_json::json;

use super::hook::Hook;
use super::moments::Moment;
use super::moments::Watched;
use super::options::Options;
use super::say::say;
use super::sums::Sums;
use crate::exit::Failure;
use crate::exit::started;
use crate::model;
use crate::names::System;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::record::moments::Moments;
use crate::sample::Sample;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::view::json::Json;

/// What the JSON for a command is.
const SCHEMA: &str = "cachetopd-moment-1";
/// Rows of each kind in it.
const ROWS: usize = 10;

/// The conditions, and what is run.
pub(super) struct Watching {
    all: Vec<Watched>,
    hook: Option<Hook>,
    files: bool,
}

impl Watching {
    /// Says which conditions can never hold here.
    pub(super) fn new(options: &Options, plan: &Plan, sums: &Arc<Mutex<Sums>>) -> Result<Self, Failure> {
        let known = model::known(plan);
        for condition in &options.when {
            if let Some(figure) = condition.lacks(&known) {
                say(&format!(
                    "warning: '--when {}' never holds: this kernel does not tell {}; see --explain",
                    condition.text,
                    figure.name()
                ));
            }
        }
        let all: Vec<_> = options.when.iter().cloned().map(Watched::new).collect();
        let hook = options.then.as_ref().map(|command| Hook::new(command, Arc::clone(sums), say));
        Ok(Self {
            all,
            hook: hook.map(started).transpose()?,
            files: options.files || options.moments().is_some(),
        })
    }

    /// How often each was told.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        self.all.iter().map(|w| (w.condition.text.clone(), w.count)).collect()
    }

    /// Looks at what happened between two samples. The moments that it tells, a line each; those get a recording of their own
    /// where there are such.
    pub(super) fn look(
        &mut self,
        (before, now): (&Sample, &Sample),
        plan: &Plan,
        mut moments: Option<&mut Moments>,
    ) -> Vec<String> {
        let mut told = Vec::new();
        if self.all.is_empty() {
            return told;
        }
        let interval = model::whole(before, now, plan);
        for (number, watched) in self.all.iter_mut().enumerate() {
            let Some(moment) = watched.look(&interval) else { continue };
            let line = moment.line();
            say(&format!("moment: {line}"));
            let recording = moments.as_mut().map(|m| m.tell(now, &line)).transpose();
            let recording = recording.unwrap_or_else(|why| {
                say(&format!("warning: the moment has no recording of its own: {why}"));
                None
            });
            if let Some(path) = &recording {
                say(&format!("it is recorded in {}", Foreign::from(path.as_path())));
            }
            told.push(line);
            if let Some(hook) = &self.hook {
                let recording = recording.as_deref().map(Foreign::from);
                hook.run(number, object(&moment, recording, (before, now), plan, self.files).into_bytes());
            }
        }
        told
    }
}

/// A moment for programs: the interval as `cachestat --json` has it, and its busiest rows.
fn object(
    moment: &Moment,
    recording: Option<Foreign>,
    (before, now): (&Sample, &Sample),
    plan: &Plan,
    files: bool,
) -> String {
    let mut interval = Json { pids: Vec::new(), by: None }.value(&model::whole(before, now, plan));
    let mut kinds = vec![("processes", By::Process), ("cgroups", By::Cgroup)];
    if files {
        kinds.push(("files", By::File));
    }
    if let Value::Object(interval) = &mut interval {
        for (name, by) in kinds {
            let mut pivot =
                Pivot { by: Some(by), top: ROWS, filter: Filter::default(), names: Box::new(System::new()) };
            let rows = Json { pids: Vec::new(), by: Some(by) }.value(&pivot.interval(before, now, plan));
            interval.insert(name.into(), rows["rows"].clone());
        }
    }
    foreign::json(&json!({
        "schema": SCHEMA,
        "when": moment.when,
        "found": moment.found,
        "time": crate::view::utc(moment.time),
        "since": crate::view::utc(moment.since),
        "held_s": moment.seconds,
        "host": crate::kernel::name("hostname"),
        "recording": recording,
        "interval": interval,
    }))
}

#[cfg(test)]
mod tests;
