//! The same without a terminal: text or JSON, interval by interval.

use std::fmt::Write as _;
use std::io::Write;

use crate::cgroup::Held;
use crate::exit::Failure;
use crate::live::Beat;
use crate::live::keeper;
use crate::live::keeper::Keeper;
use crate::live::snapshot::Ended;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::View;
use crate::loss;
use crate::model::Row;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::sample::Lost;
use crate::sample::Source;
use crate::text::output;
use crate::top::layout::Beside;
use crate::top::layout::Layout;
use crate::top::numbers::Numbers;
use crate::top::options::Options;
use crate::top::options::Output;
use crate::top::scene::Scene;
use crate::top::settings::Settings;
use crate::top::settings::Show;
use crate::top::settings::Sort;
use crate::top::summary;
use crate::top::table;
use crate::top::table::Look;
use crate::top::table::Order;
use crate::top::table::Slot;
use crate::view::View as _;
use crate::view::json::Json;
use crate::wait::Wait;
use crate::wait::Wake;

/// A line of text has room for every column; the names that follow have the length that they have.
const WIDE: usize = 4096;

/// All that the loop touches.
pub struct World<'a> {
    /// Where samples come from.
    pub source: &'a mut dyn Source,
    /// What rows and totals are made of.
    pub pivot: Pivot,
    /// The clock, signals and the process watched.
    pub wait: &'a mut dyn Wait,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

/// Writes intervals until COUNT, a signal, the end of the process watched, or a closed pipe.
///
/// # Errors
/// When samples cannot be read or the output cannot be written.
pub fn run(options: &Options, settings: &Settings, scene: &Scene, world: World<'_>) -> Result<(), Failure> {
    let World { source, pivot, wait, out, err } = world;
    // JSON is always of the interval, whatever was kept as the way to look at a screen.
    let (show, threads) =
        if options.output == Output::Json { (Show::Count, false) } else { (settings.show, settings.threads) };
    let view = View { by: settings.by, show, threads, ended: Ended::Unasked };
    // Who lives on this machine says nothing of those in a recording.
    let alive = if scene.replay.is_some() { |_| true } else { keeper::alive };
    // What is written stays written: no row has to stay for the eye.
    let mut keeper = Keeper::new(source, pivot, scene.files, Box::new(alive))?.without_lingering();
    if show != Show::Total {
        keeper = keeper.without_totals();
    }
    let mut beat = Beat::new(wait.now(), settings.interval);
    let (mut told, mut said, mut lost) = (None, 0, Lost::default());
    for done in 1.. {
        let wake = crate::live::wait(wait, keeper.source(), beat.deadline())?;
        if wake == Wake::Over {
            break;
        }
        let snapshot = keeper.tick(view)?;
        let text = match options.output {
            Output::Json => json(options, settings.by, &snapshot),
            _ => text(options, settings, scene, &snapshot, &hold),
        };
        if !output::offer(text.as_bytes(), out).map_err(|e| output::failure(&e))? {
            return Ok(());
        }
        lost.add(&snapshot.system.lost);
        if loss::reaches_further(&mut told, &snapshot.system.lost) {
            said += snapshot.system.lost.total();
            let _ = writeln!(err, "cachetop: warning: {}", loss::sentence_with_remedy(&snapshot.system.lost));
        }
        if let Some(ended) = options.chosen.ended().filter(|_| wake == Wake::Ended) {
            let _ = writeln!(err, "cachetop: {ended}");
        }
        if wake != Wake::Deadline || options.iterations == Some(done) {
            break;
        }
        beat.advance(wait.now());
    }
    if let Some(text) = loss::over_all(&lost, said) {
        let _ = writeln!(err, "cachetop: {text}");
    }
    Ok(())
}

/// Asks the kernel what these cgroups hold of the cache.
fn hold(rows: &mut [Row]) {
    let path = |row: &Row| row.who.cgroup.as_ref().map(|path| path.raw().into_owned());
    let paths: Vec<_> = rows.iter().filter_map(path).collect();
    let groups = rows.iter_mut().filter(|row| row.who.cgroup.is_some());
    let held = Held::of(paths.iter().map(String::as_str));
    groups.zip(held).for_each(|(row, held)| row.who.held = Some(held));
}

fn json(options: &Options, by: By, snapshot: &Snapshot) -> String {
    let mut interval = snapshot.system.clone();
    interval.groups = snapshot.rows();
    let slots = table::arrange(snapshot, &Order::all(Sort::Busy, false));
    let (slots, rest) = shown(options, snapshot, slots);
    let row = |slot| if let Slot::Entry(i) = slot { snapshot.entries.get(i) } else { None };
    interval.rows = slots.into_iter().filter_map(row).map(|e| snapshot.row(e)).chain(rest).collect();
    let mut out = String::new();
    Json { pids: options.chosen.pids(), by: Some(by) }.interval(&interval, &mut out);
    out
}

/// As many of the slots as are wanted, and the row for the rest: what was the rest before, and what is not wanted.
fn shown(options: &Options, snapshot: &Snapshot, mut slots: Vec<Slot>) -> (Vec<Slot>, Option<Row>) {
    let entry = |slot: &Slot| if let Slot::Entry(i) = slot { snapshot.entries.get(*i) } else { None };
    let is_rest = |slot: &Slot| entry(slot).is_some_and(|e| e.named.who.other);
    let mut rest = slots.iter().find(|s| is_rest(s)).and_then(entry).map(|e| snapshot.row(e));
    slots.retain(|s| !is_rest(s));
    let cut = slots.split_off(slots.len().min(options.top.map_or(usize::MAX, |n| n as usize)));
    for row in cut.iter().filter_map(entry).map(|e| snapshot.row(e)) {
        rest = Some(match rest {
            Some(rest) => pivot::both(&rest, &row),
            None => Row { who: pivot::nobody(), ..row },
        });
    }
    (slots, rest)
}

/// One interval as text.
#[must_use]
pub fn text(
    options: &Options,
    settings: &Settings,
    scene: &Scene,
    snapshot: &Snapshot,
    hold: &dyn Fn(&mut [Row]),
) -> String {
    let by = snapshot.view.by;
    let mut wanted = settings.columns_of(by, scene);
    // It has all rows, and to ask about each of them is not done unasked.
    wanted.retain(|column| !column.of_cgroups() || !settings.columns_are_default);
    let layout = Layout::new(by, Beside::default(), (&wanted, 0), WIDE);
    let numbers = Numbers {
        unit: settings.unit,
        page_size: scene.page_size,
        show: snapshot.view.show,
        seconds: snapshot.system.seconds,
        counted: None,
    };
    let look = Look { layout: &layout, by, numbers };
    let slots = table::arrange(snapshot, &Order::all(settings.sort, settings.reverse));
    let number = snapshot.rows();
    let (slots, rest) = shown(options, snapshot, slots);
    let mut out = String::new();
    for line in summary::lines(settings, scene, snapshot) {
        let _ = writeln!(out, "{line}");
    }
    let what = if number == 1 { by.singular() } else { by.plural() };
    let _ = writeln!(out, "{number} {what}, {}", snapshot.view.show.title());
    let _ = writeln!(out, "\n{}", look.titles().0);
    let row = |slot| match slot {
        Slot::Entry(i) => snapshot.entries.get(i).map(|e| (snapshot.row(e), "")),
        Slot::Thread(i, _) => snapshot.threads.get(i).map(|e| (snapshot.thread(e), "  ")),
        // Trees are for the screen.
        Slot::Node(_) => None,
    };
    let (mut rows, marks): (Vec<Row>, Vec<&str>) = slots.into_iter().filter_map(row).unzip();
    // Of what was recorded nobody on this machine can be asked.
    if by == By::Cgroup && scene.replay.is_none() && layout.columns.iter().any(|(c, _)| c.of_cgroups()) {
        hold(&mut rows);
    }
    for (row, mark) in rows.iter().zip(marks) {
        let _ = writeln!(out, "{}", look.row(row, mark).trim_end());
    }
    if let Some(rest) = rest {
        let _ = writeln!(out, "{}", look.row(&rest, "").trim_end());
    }
    out.push('\n');
    out
}
