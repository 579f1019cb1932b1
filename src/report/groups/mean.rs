//! A run that stands for several: the mean of what they did.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::figures::Figure;
use crate::report::data::Bound;
use crate::report::data::Run;

/// The mean of some runs, numbered as the first; `None` of none. What one of them does not know is not known. What cannot
/// be added up (files, the time line) is that of the run in the middle.
#[must_use]
pub fn average(runs: &[&Run]) -> Option<Run> {
    let mut order = runs.to_vec();
    order.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    let middle = (*order.get(runs.len().saturating_sub(1) / 2)?).clone();
    let first = runs.first()?;
    if runs.len() == 1 {
        return Some((*first).clone());
    }
    let mut mean = Run {
        number: first.number,
        time: first.time.clone(),
        usage: part(runs, |r| &r.usage)?,
        waits: part(runs, |r| &r.waits)?,
        lookups: part(runs, |r| &r.lookups)?,
        system: part(runs, |r| &r.system)?,
        wall_s: float(runs.iter().map(|r| r.wall_s)),
        asked_pages: whole(runs.iter().map(|r| r.asked_pages)),
        unseen_pages: whole(runs.iter().map(|r| r.unseen_pages)),
        warm_pages: whole(runs.iter().map(|r| r.warm_pages)),
        since_pages: whole(runs.iter().map(|r| r.since_pages)),
        bound: runs.iter().map(|r| r.bound).collect::<Option<Vec<_>>>().map(|all| Bound {
            warm: whole(all.iter().map(|b| b.warm)),
            other: whole(all.iter().map(|b| b.other)),
        }),
        // That one thread did it all must be so of each.
        one_thread: runs.iter().map(|r| r.one_thread).try_fold(true, |all, one| one.map(|one| all && one)),
        at_least: Figure::ALL
            .iter()
            .copied()
            .filter(|f| runs.iter().any(|r| r.at_least.contains(f)))
            .collect(),
        ..middle
    };
    mean.origin.unlisted = runs.iter().any(|r| r.origin.unlisted);
    for figure in Figure::ALL {
        let all: Option<Vec<u64>> = runs.iter().map(|r| r.get(*figure)).collect();
        mean.figures.set(*figure, all.map(|all| whole(all.into_iter())));
    }
    Some(mean)
}

fn float(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

fn whole(values: impl ExactSizeIterator<Item = u64>) -> u64 {
    float(values.map(|n| n as f64)).round() as u64
}

/// The mean of a part that has numbers only, whatever their names: what is added to it later has one, too.
fn part<T: Serialize + DeserializeOwned>(runs: &[&Run], of: fn(&Run) -> &T) -> Option<T> {
    let all: Vec<Value> = runs.iter().map(|r| serde_json::to_value(of(r))).collect::<Result<_, _>>().ok()?;
    let names: Vec<String> = all.first()?.as_object()?.keys().cloned().collect();
    let mut mean = serde_json::Map::new();
    for name in names {
        let values: Vec<&Value> = all.iter().map(|v| &v[name.as_str()]).collect();
        let whole_ones: Option<Vec<u64>> = values.iter().map(|v| v.as_u64()).collect();
        let floats: Option<Vec<f64>> = values.iter().map(|v| v.as_f64()).collect();
        let value = match (whole_ones, floats) {
            (Some(all), _) => whole(all.into_iter()).into(),
            (None, Some(all)) => float(all.into_iter()).into(),
            (None, None) => Value::Null,
        };
        mean.insert(name, value);
    }
    serde_json::from_value(Value::Object(mean)).ok()
}
