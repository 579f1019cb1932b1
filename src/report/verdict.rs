//! The answer first: which run was faster, by how much, and why, in two to four sentences. A report of one run says where
//! its time went.
//!
//! Shares are of the difference in wall time (or, of one run, of its wall time), and add up to it with what is
//! unexplained. Where threads worked at the same time, it is their time that is divided, all added up, and the text says so:
//! which of them the run as a whole waited for is not known.

mod groups;
mod left;
mod whole;

use serde::Serialize;

use super::compare::worth_a_word;
use super::data::Run;
use super::findings::Finding;
use super::price::Price;
use super::stats::Ratio;
use super::time::Parts;
use super::units;
use whole::Divided;

pub use groups::of_groups;
pub use left::not_compared;
pub use whole::Whole;

/// Shares below this are not told in words.
const LEAST: f64 = 0.05;
/// Pages from which on one run can be said to have brought in more than another: 1 MiB.
const MANY: u64 = 256;

/// What a reader wants to know first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// In words.
    pub text: String,
    /// How many times as fast the later run was as the earlier; `None` of one run, and where no other ended as it did.
    pub factor: Option<f64>,
    /// What the shares of the causes are shares of; `None`: nothing is divided.
    pub divided: Option<Whole>,
    /// Where the difference (of one run: the time) went, the largest first.
    pub causes: Vec<Cause>,
}

/// A part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cause {
    /// What it is: a name that does not change.
    pub id: &'static str,
    /// Of the whole; `None` where it is too small to be divided.
    pub share: Option<f64>,
    /// Seconds gained (of one run: spent); negative where it made the later run slower; `None`: not known.
    pub seconds: Option<f64>,
}

/// The kinds of causes, in the order in which equal ones are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Faults,
    Metadata,
    Lookups,
    Writing,
    Queue,
    ColdWork,
    Cpu,
    Others,
    Unexplained,
}

const KINDS: [Kind; 10] = [
    Kind::Data,
    Kind::Faults,
    Kind::Metadata,
    Kind::Lookups,
    Kind::Writing,
    Kind::Queue,
    Kind::ColdWork,
    Kind::Cpu,
    Kind::Others,
    Kind::Unexplained,
];

impl Kind {
    const fn id(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Faults => "faults",
            Self::Metadata => "metadata",
            Self::Lookups => "names",
            Self::Writing => "writing",
            Self::Queue => "processor-queue",
            Self::ColdWork => "cold-work",
            Self::Cpu => "processor",
            Self::Others => "others",
            Self::Unexplained => "unexplained",
        }
    }

    /// What it is, of one run.
    const fn spent(self) -> &'static str {
        match self {
            Self::Data => "waiting for data",
            Self::Faults => "waiting in page faults, though next to nothing came from a device",
            Self::Metadata => "waiting for metadata",
            Self::Lookups => "work on names that the dentry cache did not have",
            Self::Writing => "waiting to write",
            Self::Queue => "waiting for a processor",
            Self::ColdWork => "work of the kernel to bring data in",
            Self::Cpu => "processor time",
            Self::Others => "waiting for others (pipes, sockets, timers, locks)",
            Self::Unexplained => "unexplained (what was not seen, or done at the same time)",
        }
    }

    /// What it is, of a difference.
    const fn differs(self) -> &'static str {
        match self {
            Self::ColdWork => {
                "work of the kernel that a cold cache costs (allocating pages, submitting I/O, reading inodes)"
            }
            Self::Cpu => "processor time of the command itself",
            other => other.spent(),
        }
    }
}

/// Seconds of a run by kind.
struct Spent([Option<f64>; 10]);

impl Spent {
    /// The parts of a run. `cold`: what of its processor time is put down to a cold cache.
    fn new(parts: &Parts, cold: Option<f64>) -> Self {
        let cpu = parts.cpu_s.map(|cpu| cpu - cold.unwrap_or(0.0));
        Self([
            parts.data_s,
            parts.faults_s,
            parts.metadata_s,
            parts.lookups_s,
            parts.writing_s,
            parts.queue_s,
            cold,
            cpu,
            parts.others_s,
            parts.unexplained_s,
        ])
    }

    fn get(&self, kind: Kind) -> Option<f64> {
        self.0[kind as usize]
    }
}

/// The verdict of a report: the first run against the one in the middle of the rest (of two in the middle the slower one, so that no
/// more is said to be gained than most of them did); the last against a saved one; or
/// one run by itself.
#[must_use]
pub fn verdict(runs: &[Run], saved: Option<&Run>, findings: &[Finding]) -> Verdict {
    let whole: Vec<&Run> = runs.iter().filter(|r| !r.left_out).collect();
    match (whole.as_slice(), saved) {
        ([], _) => Verdict::default(),
        ([.., last], Some(then)) => between(then, last, &Words::new("the run then", "the run now"), findings),
        ([one], None) if runs.len() > 1 => {
            let told = alone(one);
            let text = told.text.replacen("It took", &format!("Run {} took", one.number), 1);
            Verdict { text, ..told }
        }
        ([one], None) => alone(one),
        ([first, rest @ ..], None) => {
            let mut order = rest.to_vec();
            order.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
            let middle = order[order.len() / 2];
            let (number, from, to) = (middle.number, rest[0].number, rest[rest.len() - 1].number);
            let now = match rest.len() {
                1 => format!("run {number}"),
                2 => format!("run {number} (the slower of runs {from} and {to})"),
                n if n % 2 == 0 => {
                    format!("run {number} (the slower of the two in the middle of runs {from} to {to})")
                }
                _ => format!("run {number} (in the middle of runs {from} to {to})"),
            };
            between(first, middle, &Words::new(&format!("run {}", first.number), &now), findings)
        }
    }
}

fn sorted(mut causes: Vec<Cause>) -> Vec<Cause> {
    let weight = |c: &Cause| c.seconds.map_or(-1.0, f64::abs);
    causes.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    causes
}

/// `62 %`, for each cause whose share is known: rounded so that they add up.
fn told(causes: &[Cause]) -> Vec<String> {
    let known: Vec<f64> = causes.iter().filter_map(|c| c.share).collect();
    let mut shown = units::shares(&known, 1.0, 0).into_iter();
    causes.iter().map(|c| c.share.and_then(|_| shown.next()).unwrap_or_default()).collect()
}

fn kind(id: &str) -> Kind {
    KINDS.into_iter().find(|k| k.id() == id).unwrap_or(Kind::Unexplained)
}

/// What the two are called that are compared.
struct Words {
    before: String,
    after: String,
    /// Of means, how many times as fast the later is, with its error.
    ratio: Option<Ratio>,
}

impl Words {
    fn new(before: &str, after: &str) -> Self {
        Self { before: before.into(), after: after.into(), ratio: None }
    }
}

fn between(then: &Run, now: &Run, words: &Words, findings: &[Finding]) -> Verdict {
    let (a, b) = Parts::of_both(then, now);
    let cold = Price::between(then, now).map(|price| price.seconds);
    // Of the colder one only: the other has none of it.
    let (ca, cb) = match cold {
        Some(s) if s > 0.0 => (Some(s), Some(0.0)),
        Some(s) => (Some(0.0), Some(-s)),
        None => (None, None),
    };
    let (sa, sb) = (Spent::new(&a, ca), Spent::new(&b, cb));
    let worth = worth_a_word(then, now);
    let divided = Divided::between((then, &a), (now, &b)).filter(|_| worth);
    let share = |s: f64| divided.map(|d| s / d.gain() + 0.0);
    let mut causes = Vec::new();
    let mut known = 0.0;
    for kind in KINDS.into_iter().filter(|k| *k != Kind::Unexplained) {
        let seconds = sa.get(kind).zip(sb.get(kind)).map(|(a, b)| a - b);
        known += seconds.unwrap_or(0.0);
        if kind == Kind::ColdWork && cold.is_none() {
            continue;
        }
        causes.push(Cause { id: kind.id(), share: seconds.and_then(share), seconds });
    }
    let overlap = a.overlap() || b.overlap();
    let rest = (!overlap).then_some(then.wall_s - now.wall_s - known);
    causes.push(Cause { id: Kind::Unexplained.id(), share: rest.and_then(share), seconds: rest });
    let causes = sorted(causes);
    let factor = (now.wall_s > 0.0).then(|| then.wall_s / now.wall_s);
    let mut text = first_sentence(then, now, words, worth);
    match divided {
        Some(divided) => text.push_str(&whys((then, now), &causes, divided, words, findings)),
        None if worth => text.push_str(&whole::undivided((then, &a), (now, &b), &causes)),
        None => {}
    }
    Verdict { text, factor, divided: divided.map(|d| d.of), causes }
}

fn first_sentence(then: &Run, now: &Run, words: &Words, worth: bool) -> String {
    let walls = format!("({})", units::walls(then.wall_s, now.wall_s));
    let (before, mut after) = (&words.before, words.after.clone());
    after.get_mut(..1).map(str::make_ascii_uppercase);
    if !worth {
        return format!("{after} took about as long as {before} {walls}: no difference worth explaining.");
    }
    if now.wall_s < then.wall_s {
        format!(
            "{after} was {} times as fast as {before} {walls}.",
            words.ratio.map_or_else(|| times(then.wall_s / now.wall_s.max(1e-9)), Ratio::words)
        )
    } else {
        format!(
            "{after} took {} times as long as {before} {walls}.",
            words.ratio.map_or_else(|| times(now.wall_s / then.wall_s.max(1e-9)), |r| r.inverse().words())
        )
    }
}

/// `16.1`, `1.04`: never "1.0 times as fast".
fn times(factor: f64) -> String {
    if factor < 1.995 { format!("{factor:.2}") } else { format!("{factor:.1}") }
}

fn has(findings: &[Finding], id: &str, run: &Run) -> bool {
    findings.iter().any(|f| f.id == id && f.runs.contains(&run.number))
}

/// Why the data did not have to be waited for, or had to be.
fn of_data(then: &Run, now: &Run, before: &str, findings: &[Finding]) -> String {
    let amount = whole::warm(now);
    if now.wall_s >= then.wall_s {
        return match now.cold.is_some() && then.cold.is_none() {
            true => "waiting for data, which --cold had emptied from the cache".into(),
            false => Kind::Data.spent().into(),
        };
    }
    let from_then = now.origin.runs.iter().any(|(n, pages)| *n == then.number && pages * 2 >= now.warm_pages);
    if now.warm_pages >= MANY && from_then && has(findings, "warmed-by-earlier-run", now) {
        format!("data that {before} had left in the cache ({amount})")
    } else if now.warm_pages >= MANY && now.warm_pages > then.warm_pages {
        format!("data that was in the cache this time ({amount})")
    } else {
        Kind::Data.spent().into()
    }
}

/// What a cause is, of a difference. Of different commands nobody knows what of their work was to bring data in.
fn differs(kind: Kind, then: &Run, now: &Run) -> &'static str {
    match kind {
        Kind::Cpu if !then.is_same_command(now) => {
            "processor time of the commands (their own work, and what bringing data in cost)"
        }
        kind => kind.differs(),
    }
}

fn whys(
    (then, now): (&Run, &Run),
    causes: &[Cause],
    divided: Divided,
    names: &Words,
    findings: &[Finding],
) -> String {
    let (gain, what) = (divided.gain(), divided.word());
    let mut said = Vec::new();
    for (cause, share) in causes.iter().zip(told(causes)) {
        if cause.share.is_none_or(|s| s < LEAST) {
            continue;
        }
        let kind = kind(cause.id);
        let words = match kind {
            Kind::Data => {
                let waited = if gain > 0.0 { then } else { now };
                (of_data(then, now, &names.before, findings) + &whole::late(waited)).replace(") (", "; ")
            }
            Kind::Faults => whole::faults(if gain > 0.0 { then } else { now }).into(),
            Kind::Metadata if gain > 0.0 && has(findings, "metadata-cached-before", now) => {
                "waiting for metadata, which was in the cache this time".into()
            }
            kind => differs(kind, then, now).into(),
        };
        said.push(match said.len() {
            0 => format!(" {share} of the {what} is {words}"),
            _ => format!("{share} {words}"),
        });
    }
    // What went the other way is not part of the reason, but belongs to the sum.
    let against = causes.iter().filter(|c| c.share.is_some_and(|s| s <= -LEAST));
    let against: Vec<_> = against
        .map(|c| {
            let kind = kind(c.id);
            format!(
                "{} {} {} {}",
                units::wall(c.seconds.unwrap_or(0.0).abs()),
                if gain > 0.0 { "more" } else { "less" },
                if kind == Kind::Unexplained { "is" } else { "went into" },
                differs(kind, then, now)
            )
        })
        .collect();
    let mut text = said.join(", ");
    if !text.is_empty() {
        text.push('.');
    }
    text.insert_str(0, &divided.sentence());
    if !against.is_empty() {
        text.push_str(&format!(" Against it, {}.", against.join(", ")));
    }
    text
}

/// What of all that a run was seen to use was in the cache before it, as far as that is known. A note tells of what was not seen.
fn before(run: &Run) -> String {
    let past = match run.past_pages() {
        n if n >= MANY => {
            format!(
                " It read {} past the cache (O_DIRECT), which asks the device whatever is cached.",
                run.volume(n)
            )
        }
        _ => String::new(),
    };
    of_the_cached(run) + &past
}

/// The same of what it did not read past the cache.
fn of_the_cached(run: &Run) -> String {
    let used = run.seen_cached_pages().unwrap_or(0);
    let Some((least, most)) = run.seen_before().filter(|_| used >= MANY) else {
        return String::new();
    };
    let part = |share: f64| if share == 0.0 { "nothing".into() } else { units::percent(share, 0) };
    let came = if run.unseen_pages > 0 { "was seen to hit or bring in" } else { "hit or brought in" };
    let of = format!("the {} that it {came}", run.volume(used));
    // No disk has those, whatever was emptied.
    let memory = match run.memory_pages {
        n if n >= MANY && n * 20 >= used => {
            format!(", {} of it in files that are in memory only (tmpfs)", run.volume(n))
        }
        _ => String::new(),
    };
    match (part(least), part(most)) {
        (a, b) if a == b => format!(" Of {of}, {a} was in the cache before{memory}."),
        _ if least < 0.01 && most > 0.99 => {
            format!(" How much of {of} was in the cache before is not known.")
        }
        // Not "at least <1 %".
        (_, b) if least < 0.01 => {
            format!(" Of {of}, at most {} was in the cache before.", b.trim_start_matches('<'))
        }
        // What lies between is little, or all the rest. Not "at least >99 %".
        (a, _) if most > 0.99 || most - least <= 0.1 => {
            format!(" Of {of}, at least {} was in the cache before{memory}.", a.trim_start_matches('>'))
        }
        (a, b) => format!(" Of {of}, {a} to {b} was in the cache before{memory}."),
    }
}

fn alone(run: &Run) -> Verdict {
    let parts = Parts::divide(run);
    let spent = Spent::new(&parts, None);
    let divided = Divided::divide(run, &parts);
    let share = |s: f64| divided.map(|d| s / d.then);
    let causes = KINDS.into_iter().filter(|k| *k != Kind::ColdWork).map(|kind| {
        let seconds = spent.get(kind);
        Cause { id: kind.id(), share: seconds.and_then(share), seconds }
    });
    let causes = sorted(causes.collect());
    if let Some(asleep) = &run.asleep {
        let did = match asleep.stopped + asleep.traced {
            0 => "slept",
            n if n >= asleep.threads => "was stopped",
            _ => "slept, or was stopped,",
        };
        let text = format!("It {did} all the time ({}): none of its threads ran.", units::wall(run.wall_s));
        return Verdict { text, factor: None, divided: divided.map(|d| d.of), causes };
    }
    if let Some(hung) = run.hung.as_ref().filter(|hung| hung.others_slept) {
        let who = if hung.threads == hung.of { "it" } else { "a part of it" };
        let text = format!(
            "It hung all the time ({}): none of its threads ran, and {who} was in an uninterruptible wait (D).",
            units::wall(run.wall_s)
        );
        return Verdict { text, factor: None, divided: divided.map(|d| d.of), causes };
    }
    let mut text = format!("It took {}", units::wall(run.wall_s));
    let least = divided.map_or(LEAST, Divided::least);
    let said: Vec<_> = causes
        .iter()
        .zip(told(&causes))
        .filter(|(c, _)| c.share.is_some_and(|s| s >= least))
        .map(|(c, share)| match kind(c.id) {
            Kind::Data => format!("{share} {}{}", Kind::Data.spent(), whole::late(run)),
            Kind::Faults => format!("{share} {}", whole::faults(run)),
            kind => format!("{share} {}", kind.spent()),
        })
        .collect();
    text.push_str(&whole::of_one(run, divided, &said.join(", ")));
    text.push_str(&before(run));
    Verdict { text, factor: None, divided: divided.map(|d| d.of), causes }
}

/// Whether the verdict of one run names a part of its time that took so long.
#[must_use]
pub fn names(run: &Run, seconds: f64) -> bool {
    Divided::divide(run, &Parts::divide(run)).is_some_and(|whole| seconds / whole.then >= whole.least())
}

#[cfg(test)]
mod tests;
