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
    let mut session = Session::open(&options.counting.session(wants, only))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if options.counting.explain {
        return output::print(&session.explained(Role::Count, options.json), out);
    }
    let missing = missing(&session);
    let refaults = session.plan().sees(Event::RefaultOf);
    let comes = session.plan().sees(Event::PageBack);
    let waits = session.plan().sees(Event::WaitOf);
    let grows = session.plan().sees(Event::MemoryTaken);
    let wakes = session.plan().sees(Event::KswapdWoken);
    let mut pivot = Pivot { by: None, top: 0, filter: Filter::default(), names: Box::new(System::new()) };
    let mut wait = wait::System::new(processes).map_err(anyhow::Error::from)?;
    let mut live = Live::new(&mut session)?;
    // What grew is known from before kswapd's pages are, and below to after: none of these is without what it was taken for.
    let grown = read(&mut live, &mut names)?.grown;
    let before = Raw { grown, ..read(&mut live, &mut names)? };
    // What is in rows of files is then in those of evictors, at the beginning and at the end.
    let before = Raw { details: read(&mut live, &mut names)?.details, ..before };
    Role::Count.take(&[])?;
    let began = Instant::now();
    let mut total = Total::default();
    let (mut room, mut had) = (Room::default(), before.clone());
    let (wake, last) = loop {
        let next = (Instant::now() + STEP).min(began + options.time);
        let wake = wait.until(next).map_err(anyhow::Error::from)?;
        // Rows of threads that have ended are freed by being read.
        live.tick()?;
        total.add(&live.interval(&mut pivot));
        let last = read(&mut live, &mut names)?;
        room.add(&had, &last);
        if wake != Wake::Deadline || Instant::now() >= began + options.time {
            break (wake, last);
        }
        had = last;
    };
    let last = live.source().named(last)?;
    let mut bill = Bill::between(&before, &last);
    let some = options.chosen.any();
    let figure = |figure| total.so_far().and_then(|all| all.total.get(figure)).filter(|_| !some);
    let mut notes = missing;
    match (wake, options.chosen.ended()) {
        (Wake::Deadline, _) => {}
        (Wake::Ended, Some(ended)) => notes.push(format!("{ended} before the time was over")),
        _ => notes.push("interrupted before the time was over".into()),
    }
    if bill.rows.iter().any(|(who, _)| who.who.is_none()) {
        notes.push("there was no room for all rows: some pages are put together by how they left".into());
    }
    let lost = total.so_far().map_or(0, |all| all.lost.total());
    if let Some(all) = total.so_far().filter(|_| lost > 0) {
        notes.push(crate::loss::sentence(&all.lost));
    }
    // Of a cgroup alone it is known whose pages they were, and what it grew by.
    let groups = !filter.cgroups.is_empty() && !filter.by_process();
    let mut shares = room.shares();
    if some {
        shares.retain(|(id, _)| {
            // What found no room may be what was chosen.
            groups && id.is_none_or(|id| filter.holds(&names.cgroup(id, 0).path))
        });
        bill.choose(|owner| groups && filter.holds(&names.cgroup(owner, 0).path));
    }
    if bill.details.untimed > 0 {
        let untimed = words::many(bill.details.untimed, "wait was", "waits were");
        notes.push(format!("{untimed} not timed: no room, or the end was passed by"));
    }
    if bill.forgotten > 0 {
        let forgotten = words::many(bill.forgotten, "page that left was", "pages that left were");
        notes.push(format!("{forgotten} forgotten for want of room: what of it came back is not known"));
    }
    let shown = Shown {
        bill: &bill,
        room: (grows && (!some || groups)).then_some(&room),
        shares: &shares,
        wakes,
        names: &mut names,
        seconds: began.elapsed().as_secs_f64(),
        evicted: figure(Figure::Evicted),
        removed: figure(Figure::Removed),
        refaulted: figure(Figure::Refaulted),
        comes,
        refaults,
        waits,
        chosen: &options.chosen.told(options.json),
        lost,
        top: ROWS,
        notes: &notes,
    };
    output::print(&if options.json { shown.json() } else { shown.text() }, out)
}

/// What this kernel cannot tell.
fn missing(session: &Session) -> Vec<String> {
    let mut out = Vec::new();
    if !session.plan().sees(Event::PageBack) {
        out.push("which pages came back is not known here: nothing sees them being added".into());
    }
    if !session.plan().sees(Event::RefaultOf) {
        out.push("what the kernel itself takes for read back in is not known by evictor here: no function can be attached".into());
    }
    if !session.plan().sees(Event::WaitOf) {
        out.push(
            "how long pages that came back were waited for is not known here: no function can be attached"
                .into(),
        );
    }
    if !session.plan().sees(Event::MemoryTaken) {
        out.push(
            "for whom kswapd may have made room is not known here: nothing sees memory being taken".into(),
        );
    }
    out
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
