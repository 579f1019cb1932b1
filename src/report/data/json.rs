//! A run as it is written for programs, and as it is read back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Run;
use crate::figures::Figure;
use crate::figures::GROUPS;
use crate::figures::Scope;

/// What the line of an interval says of the cache as a whole: no run has it, and no key of theirs is missing.
pub(in crate::report) const SIZES: [&str; 3] = ["cached_bytes", "buffers_bytes", "dirty_bytes"];

/// All events that were lost, beside each reason.
const TOTAL: &str = "total";

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
            for figure in Figure::of_group(group) {
                // What the cache as a whole lost is the system's: see Elsewhere. Of the command it is not known.
                let value = self.get(figure).filter(|_| figure.scope() != Scope::Cache);
                map.insert(figure.key().into(), json!(value));
                if figure == Figure::Misses {
                    map.insert("hit_ratio".into(), json!(self.figures.hit_ratio()));
                }
            }
            if *group == "cache" {
                map.extend(SIZES.iter().map(|key| ((*key).into(), Value::Null)));
            }
            out.insert((*group).into(), Value::Object(map));
        }
        let mut lost = Map::new();
        lost.insert(TOTAL.into(), json!(self.lost.values().sum::<u64>()));
        lost.extend(self.lost.iter().map(|(why, n)| (why.clone(), json!(n))));
        out.insert("lost".into(), Value::Object(lost));
        out
    }

    /// Reads what [`Run::to_json`] wrote.
    ///
    /// # Errors
    /// When it is not a run.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut run: Run = serde_json::from_str(text)?;
        // It is made of the others, and older reports have none.
        run.lost.remove(TOTAL);
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
    use crate::figures::Figures;
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

    #[test]
    fn what_an_interval_has_a_run_has_too() {
        let mut run = Run::default();
        run.figures.set(Figure::Evicted, Some(7));
        assert_eq!(run.to_json()["lost"], json!({ "total": 0 }));
        run.lost = [("nesting".to_owned(), 3), ("order".to_owned(), 4)].into();
        let mut json = Value::Object(run.to_json());
        assert_eq!(json["lost"], json!({ "total": 7, "nesting": 3, "order": 4 }));
        let cache = json["cache"].as_object().unwrap();
        let keys = ["evicted", "removed", "refaulted", "cached_bytes", "buffers_bytes", "dirty_bytes"];
        assert!(keys.iter().all(|key| cache[*key].is_null()) && cache.len() == 6, "{cache:?}");
        assert!(json["readahead"].as_object().unwrap().contains_key("wasted"));
        run.figures = Figures::unknown();
        assert_eq!(Run::from_json(&json.to_string()).unwrap(), run);
        // As it was saved when there was no total.
        json["lost"].as_object_mut().unwrap().remove("total");
        json["cache"] = json!({ "refaulted": null });
        assert_eq!(Run::from_json(&json.to_string()).unwrap(), run);
    }
}
