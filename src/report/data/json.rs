//! A run as JSON, and back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Run;
use crate::figures::Figure;
use crate::figures::GROUPS;
use crate::figures::Scope;

impl Run {
    /// The run as the keys of a JSON object, figures in their groups.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let mut out = match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        for (group, _) in GROUPS {
            let mut map = Map::new();
            // What the cache as a whole lost is the system's: see Elsewhere.
            for figure in Figure::of_group(group).filter(|f| f.scope() != Scope::Cache) {
                map.insert(figure.key().into(), json!(self.get(figure)));
                if figure == Figure::Misses {
                    map.insert("hit_ratio".into(), json!(self.figures.hit_ratio()));
                }
            }
            out.insert((*group).into(), Value::Object(map));
        }
        out
    }

    /// Reads what [`Run::to_json`] wrote.
    ///
    /// # Errors
    /// When it is not a run.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut run: Run = serde_json::from_str(text)?;
        // Read for itself: to be flattened on the way in, all that is not known would have to be kept.
        run.usage = serde_json::from_str(text)?;
        let groups: Groups = serde_json::from_str(text)?;
        for figure in Figure::ALL {
            let value = groups.get(figure.group()).and_then(|g| g.get(figure.key()));
            run.figures.set(*figure, value.and_then(|v| v.as_ref()?.as_u64()));
        }
        Ok(run)
    }
}

/// Figures as they are read; see [`GROUPS`].
type Group = BTreeMap<String, Option<serde_json::Number>>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    read: Group,
    readahead: Group,
    fault: Group,
    write: Group,
    direct: Group,
    meta: Group,
    cache: Group,
}

impl Groups {
    fn get(&self, name: &str) -> Option<&Group> {
        match name {
            "read" => Some(&self.read),
            "readahead" => Some(&self.readahead),
            "fault" => Some(&self.fault),
            "write" => Some(&self.write),
            "direct" => Some(&self.direct),
            "meta" => Some(&self.meta),
            "cache" => Some(&self.cache),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::data::FileRow;

    #[test]
    fn a_run_comes_back_as_it_was_saved() {
        let mut run = Run { number: 3, wall_s: 1.5, exit_status: Some(2), ..Run::default() };
        run.figures.set(Figure::Hits, Some(7));
        run.figures.set(Figure::Misses, Some(0));
        run.usage.user_s = Some(0.25);
        run.waits.read_ns = Some(12);
        run.files.push(FileRow { path: Some("/a".into()), misses: 4, ..FileRow::default() });
        run.processes.insert(12, "dd".into());
        let json = Value::Object(run.to_json());
        assert_eq!(json["read"]["hits"], 7);
        assert!(json["read"]["readahead_hits"].is_null());
        assert_eq!(json["user_s"], 0.25);
        assert_eq!(Run::from_json(&json.to_string()).unwrap(), run);
    }
}
