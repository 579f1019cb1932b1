//! What an assertion can be about.

use super::bounds;
use super::bounds::number;
use crate::figures::Figure;
use crate::figures::Scope;
use crate::figures::Unit;
use crate::report::Report;
use crate::report::data::Run;
use crate::report::time::Parts;
use crate::report::units;

/// What an expression is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// Runs of a command.
    Runs,
    /// What happens in an interval: there are rates, and no runs.
    Intervals,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Figure(Figure),
    Other(&'static Other),
}

/// What is no figure.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) name: &'static str,
    unit: Kind,
    value: Known,
}

/// How something is known.
#[derive(Debug)]
enum Known {
    /// To the unit.
    Exactly(fn(&Run) -> Option<f64>),
    /// As the kernel accounts for processes that somebody waited for: of others, at least so much.
    Account(fn(&Run) -> Option<f64>),
    /// Between two values.
    Between(fn(&Run) -> Option<(f64, f64)>),
}

impl PartialEq for Other {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Other {}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Count,
    Bytes,
    Seconds,
    Nanoseconds,
    Share,
}

const OTHERS: &[Other] = &[
    Other { name: "hit_ratio", unit: Kind::Share, value: Known::Between(bounds::hit_ratio) },
    Other { name: "wall", unit: Kind::Seconds, value: Known::Exactly(|r| Some(r.wall_s)) },
    Other { name: "user", unit: Kind::Seconds, value: Known::Account(|r| r.usage.user_s) },
    Other { name: "system", unit: Kind::Seconds, value: Known::Account(|r| r.usage.system_s) },
    Other { name: "data_wait", unit: Kind::Seconds, value: Known::Exactly(|r| Parts::divide(r).data_s) },
    Other { name: "fault_wait", unit: Kind::Seconds, value: Known::Exactly(|r| Parts::divide(r).faults_s) },
    Other {
        name: "metadata_wait",
        unit: Kind::Seconds,
        value: Known::Exactly(|r| Parts::divide(r).metadata_s),
    },
    Other { name: "lookup_work", unit: Kind::Seconds, value: Known::Exactly(|r| Parts::divide(r).lookups_s) },
    Other { name: "write_wait", unit: Kind::Seconds, value: Known::Exactly(|r| Parts::divide(r).writing_s) },
    Other {
        name: "processor_wait",
        unit: Kind::Seconds,
        value: Known::Exactly(|r| Parts::divide(r).queue_s),
    },
    Other { name: "others_wait", unit: Kind::Seconds, value: Known::Exactly(|r| Parts::divide(r).others_s) },
    Other {
        name: "unexplained",
        unit: Kind::Seconds,
        value: Known::Exactly(|r| Parts::divide(r).unexplained_s),
    },
    Other {
        name: "device_read_bytes",
        unit: Kind::Bytes,
        value: Known::Account(|r| r.usage.device_read_bytes.map(number)),
    },
    Other {
        name: "device_write_bytes",
        unit: Kind::Bytes,
        value: Known::Account(|r| r.usage.device_write_bytes.map(number)),
    },
    Other {
        name: "major_faults",
        unit: Kind::Count,
        value: Known::Account(|r| r.usage.major_faults.map(number)),
    },
    Other {
        name: "minor_faults",
        unit: Kind::Count,
        value: Known::Account(|r| r.usage.minor_faults.map(number)),
    },
    Other {
        name: "dentry_misses",
        unit: Kind::Count,
        value: Known::Exactly(|r| r.lookups.dcache_misses.map(number)),
    },
    Other { name: "before.cached", unit: Kind::Share, value: Known::Between(Run::cached_before) },
    Other { name: "files", unit: Kind::Count, value: Known::Exactly(|r| Some(number(r.files_seen))) },
    Other { name: "lost", unit: Kind::Count, value: Known::Exactly(|r| Some(number(r.lost.values().sum()))) },
    Other { name: "exit_status", unit: Kind::Count, value: Known::Exactly(|r| r.exit_status.map(f64::from)) },
];

/// Those of them that any interval has.
const OF_INTERVALS: &[&str] = &["hit_ratio", "lost"];

impl Name {
    /// The one that is called so: `group.key`, or the key alone where it is that of one figure.
    pub(super) fn parse(text: &str, about: About) -> Result<Self, String> {
        let others = || OTHERS.iter().filter(|o| about == About::Runs || OF_INTERVALS.contains(&o.name));
        if let Some(other) = others().find(|o| o.name == text) {
            return Ok(Self::Other(other));
        }
        // What the cache as a whole loses is no run's.
        let ours = || Figure::ALL.iter().filter(|f| about == About::Intervals || f.scope() != Scope::Cache);
        // Those of reads are what everybody means by hits and misses.
        let found = [text.to_owned(), format!("read.{text}")];
        if let Some(figure) = found.iter().find_map(|t| ours().find(|f| f.name() == t)) {
            return Ok(Self::Figure(*figure));
        }
        let by_key: Vec<&Figure> = ours().filter(|f| f.key() == text).collect();
        if let [one] = by_key.as_slice() {
            return Ok(Self::Figure(**one));
        }
        let names: Vec<String> =
            others().map(|o| o.name.to_owned()).chain(ours().map(|f| f.name().to_owned())).collect();
        Err(format!("'{text}' is no figure; there are {}", names.join(", ")))
    }

    /// The figures that it is made of.
    pub(super) fn needs(self) -> Vec<Figure> {
        match self {
            Self::Figure(f) => vec![f],
            Self::Other(o) if o.name == "hit_ratio" => vec![Figure::Hits, Figure::Accesses],
            Self::Other(_) => Vec::new(),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Figure(f) => f.name().into(),
            Self::Other(o) => o.name.into(),
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Other(o) => o.unit,
            Self::Figure(f) => match f.unit() {
                Unit::Bytes => Kind::Bytes,
                Unit::Nanoseconds => Kind::Nanoseconds,
                Unit::Pages | Unit::Events | Unit::Calls => Kind::Count,
            },
        }
    }

    /// The least and the most that it can be, in the base unit: a count, bytes, seconds, or a share of 1.
    pub(super) fn value(self, run: &Run) -> Option<(f64, f64)> {
        let scale = if self.kind() == Kind::Nanoseconds { 1e9 } else { 1.0 };
        Some(match self {
            Self::Figure(f) => {
                let (least, most) = bounds::of_figure(run, f)?;
                (least / scale, most / scale)
            }
            Self::Other(Other { value: Known::Exactly(value), .. }) => {
                let value = value(run)?;
                (value, value)
            }
            Self::Other(Other { value: Known::Account(value), .. }) => bounds::of_account(run, value(run)?),
            Self::Other(Other { value: Known::Between(value), .. }) => return value(run),
        })
    }

    /// A value as people read it, a rate or not, with so many more digits behind the point than are in general enough.
    pub(super) fn show(self, value: f64, rate: bool, more: usize) -> String {
        let value = self.as_shown(value, rate, more);
        match self.kind() {
            Kind::Share => format!("{:.*} %", 1 + more, value * 100.0),
            Kind::Seconds | Kind::Nanoseconds => format!("{value:.*} s", 6 + more),
            Kind::Bytes if value >= 1024.0 => format!("{value} ({})", units::bytes(value as u64)),
            Kind::Bytes | Kind::Count => format!("{value}"),
        }
    }

    /// What that says: the value with the digits that are shown.
    pub(super) fn as_shown(self, value: f64, rate: bool, more: usize) -> f64 {
        let (scale, digits) = match self.kind() {
            Kind::Share => (100.0, 1 + more),
            Kind::Seconds | Kind::Nanoseconds => (1.0, 6 + more),
            // A tenth more or less of a rate tells nothing.
            Kind::Bytes | Kind::Count if rate => (1.0, 1 + more),
            Kind::Bytes | Kind::Count => return value,
        };
        format!("{:.digits$}", value * scale).parse::<f64>().map_or(value, |shown| shown / scale)
    }

    /// Why it is not known, where the report says so: `not known: NAMES (WHY).`
    pub(super) fn why(self, report: &Report) -> String {
        let name = self.text();
        let lines = report.unknown.iter().filter_map(|line| line.split_once(" ("));
        let mut named = lines.filter(|(names, _)| names.split([' ', ',']).any(|n| n == name));
        named.next().map_or_else(String::new, |(_, why)| {
            let why = why.strip_suffix('.').unwrap_or(why);
            format!(": {}", why.strip_suffix(')').unwrap_or(why))
        })
    }
}
