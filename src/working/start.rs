//! `cachestat --working-set`: watches for a time, then says how many distinct pages were used, and by whom; as often as it is
//! wanted.

use std::io;
use std::time::Duration;

use super::Clock;
use super::Measured;
use super::view::Shown;
use super::view::Who;
use super::watch::Watch;
use crate::exit::Failure;
use crate::options::Chosen;
use crate::options::Counting;
use crate::options::OneOf as _;
use crate::pivot::By;
use crate::pivot::System;
use crate::plan::Brackets;
use crate::plan::Event;
use crate::plan::SketchBy;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::sample::Lost;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::numbers::Unit;
use crate::text::output;
use crate::text::words;
use crate::wait;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// How often rows are read, which frees those of threads that have ended, and cgroups and files that are new are looked up.
const STEP: Duration = Duration::from_secs(1);

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to watch until it is told.
    pub interval: Duration,
    /// How often it is told.
    pub count: u64,
    /// What rows stand for: processes, cgroups or files; `None`: no rows.
    pub by: Option<By>,
    /// How many rows.
    pub top: usize,
    /// Pages or bytes, in text.
    pub unit: Unit,
    /// One object of JSON instead of a table.
    pub json: bool,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
}

impl Options {
    fn owners(&self) -> SketchBy {
        match self.by {
            Some(By::Process) => SketchBy::Process,
            Some(By::Cgroup) => SketchBy::Cgroup,
            Some(By::File) => SketchBy::File,
            _ => SketchBy::Nobody,
        }
    }
}

/// How long so many intervals are; five centuries at most.
fn several(interval: Duration, intervals: u64) -> Duration {
    let nanoseconds = interval.as_nanos().saturating_mul(intervals.into());
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The end of the last interval that is over after so long.
fn ended(interval: Duration, after: Duration) -> Duration {
    let intervals = after.as_nanos() / interval.as_nanos().max(1);
    several(interval, u64::try_from(intervals).unwrap_or(u64::MAX))
}

/// Watches, and prints what was used.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn working_set(options: &Options) -> Result<(), Failure> {
    let processes = options.chosen.watch()?;
    if let Some(notice) = options.chosen.notice() {
        output::say(&format!("cachestat: notice: {notice}"));
    }
    let names = System::new();
    let (_, only) = options.chosen.look_up(&names, processes.seen)?;
    let owners = options.owners();
    let files = owners == SketchBy::File;
    let wants = Wants { sketches: Some(owners), files, ..Wants::default() };
    let mut wait = wait::System::new(processes).map_err(anyhow::Error::from)?;
    let open = || Session::open(&options.counting.session(wants, only));
    let Some(mut session) = wait.unless_asked(open)? else { return Ok(()) };
    if options.counting.explain {
        return output::print(&session.explained(Role::Count, options.json), &mut io::stdout().lock());
    }
    let functions = session.plan().brackets != Brackets::Tracepoints;
    let clock = Clock::new(several(options.interval, options.count));
    let moves = session.plan().sees(Event::ThreadCgroup);
    let watch = Watch::new(session.attached(), owners, moves, clock).map_err(anyhow::Error::from)?;
    let before = session.sample()?.lost;
    let mut told = Told { options, session, names, watch, functions, before, tables: 0 };
    Role::Count.take(&[])?;
    told.run(&mut wait)
}

/// What is not seen.
fn missing(functions: bool) -> Vec<String> {
    let mut out =
        vec!["of a page that is mapped only faults are seen: mapped files are used at least so much".into()];
    if !functions {
        out.push("on this kernel a fault that finds its page in the cache does not say which, and a write is seen when pages become dirty: at least so much".into());
    }
    out
}

/// What is being watched, and told.
struct Told<'a> {
    options: &'a Options,
    session: Session,
    names: System,
    watch: Watch,
    /// Functions are seen.
    functions: bool,
    /// What was lost before it began.
    before: Lost,
    tables: u64,
}

impl Told<'_> {
    /// Until all is told, a signal comes, or the process that is watched has ended.
    fn run(&mut self, wait: &mut wait::System) -> Result<(), Failure> {
        let options = self.options;
        let (interval, time) = (options.interval, several(options.interval, options.count));
        self.watch.begin(self.session.attached());
        let began = self.watch.began();
        let mut due = interval;
        loop {
            let after = began.elapsed();
            let next = self.watch.ends(after).min(after + STEP).min(due);
            let wake = wait.until(began + next).map_err(anyhow::Error::from)?;
            let after = began.elapsed();
            // Requests of which nobody has seen the end yet are counted by this reading.
            let lost = self.tick()?;
            self.watch.catch_up(after);
            if wake != Wake::Deadline || after >= time {
                self.session.attached().mark_pages(0);
                let after = after.min(time);
                let measured = self.measure_at(after)?;
                return self.tell(&measured, after, wake, &lost);
            }
            // In the midst of it the slot goes on until all is read: else what is used just now would be in none of the windows.
            let told = if after >= due {
                let at = ended(interval, after);
                due = at + interval;
                Some((self.measure_at(at)?, at))
            } else {
                None
            };
            self.watch.go_on(self.session.attached(), &self.names, after)?;
            if let Some((measured, at)) = told {
                self.tell(&measured, at, wake, &lost)?;
            }
        }
    }

    /// Reads rows, and what is new. What was lost so far.
    fn tick(&mut self) -> anyhow::Result<Lost> {
        let sample = self.session.sample()?;
        self.watch.note(self.session.attached(), &mut self.names, &sample)?;
        Ok(sample.lost)
    }

    /// What was used up to then.
    fn measure_at(&mut self, after: Duration) -> anyhow::Result<Measured<Who>> {
        let windows = self.watch.windows(after);
        let sets = self.watch.sets(self.session.attached(), &windows)?;
        let mut rows = Vec::new();
        for (owner, set) in sets.owners {
            rows.push((self.watch.who(&mut self.names, &owner), set));
        }
        let other = self.options.by.is_some().then_some(sets.other);
        let measured = Measured::new(windows, sets.all, rows, other, self.options.top);
        Ok(match sets.ended {
            None => measured,
            Some((number, set)) => measured.with_ended(number, set),
        })
    }

    fn tell(
        &mut self,
        measured: &Measured<Who>,
        time: Duration,
        wake: Wake,
        lost: &Lost,
    ) -> Result<(), Failure> {
        let options = self.options;
        let (beyond, refused) = self.session.attached().sketches_lost();
        let room = self.session.attached().sketch_room();
        let lost = lost.since(&self.before);
        let mut notes = missing(self.functions);
        match wake {
            Wake::Deadline | Wake::Over => {}
            Wake::Interrupt => notes.push("interrupted before the time was over".into()),
            Wake::Ended => notes.push(format!("{} before the time was over", options.chosen.who_ended())),
        }
        if measured.other.is_some() {
            notes.push(format!(
                "under (other) is what threads without a row used, and owners for whom there was no room: {room} have a sketch"
            ));
        }
        if beyond > 0 {
            notes.push(words::many(
                beyond,
                "page of a very long request was not looked at",
                "pages of very long requests were not looked at",
            ));
        }
        if lost.total() > 0 {
            notes.push(crate::loss::sentence(&lost));
        }
        let shown = Shown {
            measured,
            at: jiff::Timestamp::now(),
            time,
            by: options.by.map(By::name),
            chosen: &options.chosen.told(options.json),
            unit: options.unit,
            refused,
            beyond,
            lost: lost.total(),
            notes: &notes,
        };
        let space = if self.tables > 0 && !options.json { "\n" } else { "" };
        self.tables += 1;
        let text = if options.json { shown.json() } else { shown.text() };
        output::print(&format!("{space}{text}"), &mut io::stdout().lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_of_an_interval_that_is_over() {
        let ms = Duration::from_millis;
        assert_eq!([99, 100, 101, 199, 350].map(|t| ended(ms(100), ms(t))), [0, 100, 100, 100, 300].map(ms));
        assert_eq!(several(ms(1500), 4), ms(6000));
        // Ten a second for ever: a time that can be waited for.
        assert_eq!(several(ms(100), u64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(ended(Duration::ZERO, ms(5)), Duration::ZERO);
    }
}
