//! `cachestat --blame`: watches for a time, then says who pushed whose pages out.

use std::io;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use super::Bill;
use super::Raw;
use super::Room;
use super::view::Shown;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::live::Live;
use crate::live::Total;
use crate::names::Names;
use crate::options::Chosen;
use crate::options::Counting;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Event;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::output;
use crate::text::words;
use crate::wait;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// How often cgroups that are new are looked up: one that goes keeps its name.
const STEP: Duration = Duration::from_secs(1);

/// Rows of the table; JSON has all.
const ROWS: usize = 20;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to watch.
    pub time: Duration,
    /// One object of JSON instead of a table.
    pub json: bool,
    /// Whose: what these pushed out, what they brought in again, and what was charged to such a cgroup.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
}

/// Watches, and prints the bill.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn blame(options: &Options) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    let wants = Wants { blame: true, bill: true, ..Wants::default() };
    let processes = options.chosen.watch()?;
    if let Some(notice) = options.chosen.notice() {
        output::say(&format!("cachestat: notice: {notice}"));
    }
    let mut names = System::new();
    let (filter, only) = options.chosen.look_up(&names, processes.seen)?;
    let mut wait = wait::System::new(processes).map_err(anyhow::Error::from)?;
    let open = || Session::open(&options.counting.session(wants, only));
    let Some(mut session) = wait.unless_asked(open)? else { return Ok(()) };
    if options.counting.explain {
        return output::print(&session.explained(Role::Count, options.json), out);
    }
    let can = Can::of(&session);
    let mut live = Live::new(&mut session)?;
    let seen = watch(&mut live, &mut names, &mut wait, options.time)?;
    let mut bill = Bill::between(&seen.before, &seen.last);
    // Before rows are chosen: what had no room may be what is asked for.
    let notes = [can.missing(), remarks(&seen, &bill, &options.chosen)].concat();
    let some = options.chosen.any();
    // Of a cgroup alone it is known whose pages they were, and what it grew by.
    let groups = !filter.cgroups.is_empty() && !filter.by_process();
    let mut shares = seen.room.shares();
    if some {
        shares.retain(|(id, _)| {
            // What found no room may be what was chosen.
            groups && id.is_none_or(|id| filter.holds(&names.cgroup(id, 0).path))
        });
        bill.choose(|owner| groups && filter.holds(&names.cgroup(owner, 0).path));
    }
    let all = seen.total.so_far();
    let figure = |figure| all.as_ref().and_then(|all| all.total.get(figure)).filter(|_| !some);
    let shown = Shown {
        bill: &bill,
        room: (can.grows && (!some || groups)).then_some(&seen.room),
        shares: &shares,
        wakes: can.wakes,
        names: &mut names,
        seconds: seen.seconds,
        evicted: figure(Figure::Evicted),
        removed: figure(Figure::Removed),
        refaulted: figure(Figure::Refaulted),
        comes: can.comes,
        refaults: can.refaults,
        waits: can.waits,
        chosen: &options.chosen.told(options.json),
        lost: all.as_ref().map_or(0, |all| all.lost.total()),
        top: ROWS,
        notes: &notes,
    };
    output::print(&if options.json { shown.json() } else { shown.text() }, out)
}

/// What was watched.
struct Watched {
    /// What had been counted when it began.
    before: Raw,
    /// The same when it ended, with the names of files.
    last: Raw,
    room: Room,
    total: Total,
    /// Why it ended.
    wake: Wake,
    seconds: f64,
}

/// Counts until the time is over, who is asked for has ended, or a signal comes.
fn watch(
    live: &mut Live<'_, Session>,
    names: &mut System,
    wait: &mut wait::System,
    time: Duration,
) -> Result<Watched, Failure> {
    let mut pivot = Pivot { by: None, top: 0, filter: Filter::default(), names: Box::new(System::new()) };
    // What grew is known from before kswapd's pages are, and below to after: none of these is without what it was taken for.
    let grown = read(live, names)?.grown;
    let before = Raw { grown, ..read(live, names)? };
    // What is in rows of files is then in those of evictors, at the beginning and at the end.
    let before = Raw { details: read(live, names)?.details, ..before };
    Role::Count.take(&[])?;
    let began = Instant::now();
    let mut total = Total::default();
    let (mut room, mut had) = (Room::default(), before.clone());
    let (wake, last) = loop {
        let next = (Instant::now() + STEP).min(began + time);
        let wake = wait.until(next).map_err(anyhow::Error::from)?;
        // Rows of threads that have ended are freed by being read.
        live.tick()?;
        total.add(&live.interval(&mut pivot));
        let last = read(live, names)?;
        room.add(&had, &last);
        if wake != Wake::Deadline || Instant::now() >= began + time {
            break (wake, last);
        }
        had = last;
    };
    let last = live.source().named(last)?;
    Ok(Watched { before, last, room, total, wake, seconds: began.elapsed().as_secs_f64() })
}

/// What is to be said beside the figures: how it ended, and what had no room.
fn remarks(seen: &Watched, bill: &Bill, chosen: &Chosen) -> Vec<String> {
    let mut notes = Vec::new();
    match (seen.wake, chosen.ended()) {
        (Wake::Deadline, _) => {}
        (Wake::Ended, Some(ended)) => notes.push(format!("{ended} before the time was over")),
        _ => notes.push("interrupted before the time was over".into()),
    }
    if bill.rows.iter().any(|(who, _)| who.who.is_none()) {
        notes.push("there was no room for all rows: some pages are put together by how they left".into());
    }
    if let Some(all) = seen.total.so_far().filter(|all| all.lost.total() > 0) {
        notes.push(crate::loss::sentence(&all.lost));
    }
    if bill.details.untimed > 0 {
        let untimed = words::many(bill.details.untimed, "wait was", "waits were");
        notes.push(format!("{untimed} not timed: no room, or the end was passed by"));
    }
    if bill.forgotten > 0 {
        let forgotten = words::many(bill.forgotten, "page that left was", "pages that left were");
        notes.push(format!("{forgotten} forgotten for want of room: what of it came back is not known"));
    }
    notes
}

/// What this kernel can tell.
struct Can {
    /// Which pages came back.
    comes: bool,
    /// What it takes itself for read back in.
    refaults: bool,
    /// How long pages that came back were waited for.
    waits: bool,
    /// Who took memory.
    grows: bool,
    /// For whom kswapd was woken.
    wakes: bool,
}

impl Can {
    fn of(session: &Session) -> Self {
        let sees = |event| session.plan().sees(event);
        Self {
            comes: sees(Event::PageBack),
            refaults: sees(Event::RefaultOf),
            waits: sees(Event::WaitOf),
            grows: sees(Event::MemoryTaken),
            wakes: sees(Event::KswapdWoken),
        }
    }

    /// What it cannot.
    fn missing(&self) -> Vec<String> {
        let all = [
            (self.comes, "which pages came back is not known here: nothing sees them being added"),
            (
                self.refaults,
                "what the kernel itself takes for read back in is not known by evictor here: no function can be attached",
            ),
            (
                self.waits,
                "how long pages that came back were waited for is not known here: no function can be attached",
            ),
            (
                self.grows,
                "for whom kswapd may have made room is not known here: nothing sees memory being taken",
            ),
        ];
        all.iter().filter(|(can, _)| !can).map(|(_, why)| String::from(*why)).collect()
    }
}

/// Reads what was counted, and looks up cgroups that are new.
fn read(live: &mut Live<'_, Session>, names: &mut System) -> anyhow::Result<Raw> {
    let raw = live.source().blame()?;
    for row in raw.rows.iter().filter_map(|(who, _)| who.who.as_ref()) {
        for id in [row.limit, row.by, row.owner].into_iter().filter(|id| *id != 0) {
            let _: Rc<_> = names.cgroup(id, 0);
        }
    }
    for id in raw.grown.keys().flatten().copied().filter(|id| *id != 0) {
        let _: Rc<_> = names.cgroup(id, 0);
    }
    for id in raw.details.readers.keys().map(|reader| reader.by).filter(|id| *id != 0) {
        let _: Rc<_> = names.cgroup(id, 0);
    }
    Ok(raw)
}
