//! The thread that samples. It talks to the one that draws by messages only, and may be slow.

use std::path::Path;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use crate::exit::Failure;
use crate::live::Beat;
use crate::live::Relief;
use crate::live::keeper;
use crate::live::keeper::Id;
use crate::live::keeper::Keeper;
use crate::live::machine::Watch;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::View;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::pivot::Who;
use crate::record::writer::Writer;
use crate::sample::Source;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::top::details::Details;
use crate::wait::Processes;

/// What the thread that draws asks for.
#[derive(Debug)]
pub enum Command {
    /// These rows from now on, and at once for the interval that is shown.
    View(View),
    /// Intervals of another length.
    Interval(Duration),
    /// Hold the picture, or let it go.
    Hold(bool),
    /// Show this interval of those before; `None`: the last one.
    Back(Option<u64>),
    /// This row must not go away.
    Watch(Option<Id>),
    /// What is known of a row.
    Details(By, Id, Box<Who>),
    /// So many intervals on or back in a recording.
    Step(i32),
    /// So many seconds on or back in it.
    Jump(i32),
    /// Writes what is kept of the past to this file, which was made; intervals with these numbers are marked.
    Keep(Box<Writer>, PathBuf, Vec<u64>),
    /// Command lines as they were recorded.
    CommandLines(Vec<u32>),
}

/// What comes back.
#[derive(Debug)]
pub enum Report {
    /// Rows.
    Snapshot(Box<Snapshot>),
    /// What is known of a row.
    Details(Box<Details>),
    /// Command lines as they were recorded.
    CommandLines(Vec<(u32, Option<Foreign>)>),
    /// What follows is of another time: what was before it is no part of it.
    Anew,
    /// Totals begin with the interval that follows.
    Totals,
    /// Something to be said.
    Said(String),
    /// The interval that was marked last was not kept, and why.
    NotKept(Option<u64>, String),
    /// A recording is at its end.
    Over,
    /// The processes of `-p` have ended.
    Ended,
    /// It is over.
    Failed(Failure),
}

/// What is sampled, and how.
pub struct Job<'a> {
    /// Where samples come from.
    pub source: &'a mut dyn Source,
    /// Rows, filters, names.
    pub pivot: Pivot,
    /// The source counts files.
    pub files: bool,
    /// The processes of `-p`.
    pub processes: Processes,
    /// The rows at first.
    pub view: View,
    /// Length of an interval at first.
    pub interval: Duration,
    /// What looks at the machine.
    pub machine: Option<Watch>,
}

/// A first interval is no longer than this: nobody looks at an empty screen for long.
const FIRST: Duration = Duration::from_secs(1);

/// Samples on the beat and does what it is asked until nobody listens any more.
///
/// # Errors
/// When a sample cannot be read.
pub fn work(
    job: Job<'_>,
    commands: &Receiver<Command>,
    report: &dyn Fn(Report) -> bool,
) -> anyhow::Result<()> {
    let page_size = rustix::param::page_size() as u64;
    let Job { source, pivot, files, mut processes, mut view, mut interval, machine } = job;
    let keeper = Keeper::new(source, pivot, files, Box::new(keeper::alive))?;
    let mut keeper = keeper.with_past(machine);
    let mut beat = Beat::new(keeper.read(), interval.min(FIRST));
    let read = keeper.read();
    let mut relief = Relief::new(keeper.source(), read);
    let mut early = interval > FIRST;
    let mut course = None;
    loop {
        let due = relief.due(beat.deadline());
        let left = due.unwrap_or_else(|| beat.deadline()).saturating_duration_since(Instant::now());
        let listening = match commands.recv_timeout(left) {
            Ok(Command::View(wanted)) => {
                view = wanted;
                report(Report::Snapshot(Box::new(keeper.again(view))))
            }
            Ok(Command::Details(by, id, who)) => {
                course = keeper.course(course.take(), (by, &id, &who));
                let mut details = keeper.details(by, id, &who, page_size);
                details.course.clone_from(&course);
                report(Report::Details(Box::new(details)))
            }
            Ok(Command::Interval(length)) => {
                interval = length;
                beat = Beat::new(keeper.read(), length);
                true
            }
            Ok(Command::Hold(hold)) => {
                keeper.hold(hold);
                true
            }
            Ok(Command::Back(number)) => {
                keeper.look_back(number);
                report(Report::Snapshot(Box::new(keeper.again(view))))
            }
            Ok(Command::Watch(id)) => {
                keeper.watch(id);
                true
            }
            Ok(Command::Keep(writer, path, marks)) => {
                let name = Foreign::from(path.as_path());
                report(match keeper.keep(*writer, &marks) {
                    Ok(_) => Report::Said(format!("kept in {name} (cachestat --replay reads it)")),
                    Err(e) => Report::NotKept(marks.last().copied(), not_kept(&format!("{e:#}"), &path)),
                })
            }
            // These are of recordings only.
            Ok(Command::Step(_) | Command::Jump(_) | Command::CommandLines(_)) => true,
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) if due.is_some() => {
                keeper.source().relieve()?;
                relief.done(Instant::now());
                true
            }
            Err(RecvTimeoutError::Timeout) => {
                // Asked before the sample is read: what it did last is in it.
                let ended = processes.have_ended();
                let mut snapshot = keeper.tick(view)?;
                relief.done(keeper.read());
                snapshot.early = std::mem::take(&mut early);
                if snapshot.early {
                    beat = Beat::new(keeper.read(), interval);
                } else {
                    beat.advance(Instant::now());
                }
                report(Report::Snapshot(Box::new(snapshot))) && (!ended || report(Report::Ended))
            }
        };
        if !listening {
            return Ok(());
        }
    }
}

/// Why nothing was written to a file. The reason stands first: a path may be longer than a line.
#[must_use]
pub fn not_kept(why: &str, path: &Path) -> String {
    let path = Foreign::from(path);
    let named = format!("cannot write {path}: ");
    let why = why.strip_prefix(&named).unwrap_or(why);
    format!("not kept: {}: {path}", foreign::line(why))
}

/// Sends what the command needs; `false` where nobody listens any more.
#[must_use]
pub fn ask(commands: &Sender<Command>, command: Command) -> bool {
    commands.send(command).is_ok()
}
