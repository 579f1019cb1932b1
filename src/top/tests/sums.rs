//! What the keeper adds up: rows and the row for the rest are the line above them, in the interval and since the start;
//! nothing that was seen falls; and memory does not grow with the number of processes that there ever were.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use crate::figures::Figure;
use crate::live::keeper::Ended;
use crate::live::keeper::Keeper;
use crate::live::keeper::View;
use crate::model;
use crate::options::OneOf as _;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Id;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Counters;
use crate::sample::Family;
use crate::sample::Sample;
use crate::sample::Source;
use crate::sample::machine;
use crate::sample::machine::Event;
use crate::sample::machine::Machine;
use crate::top::settings::Show;
use crate::view::fixtures;

const ALL: [By; 8] =
    [By::Process, By::Thread, By::Comm, By::User, By::Cgroup, By::File, By::Mount, By::Device];

/// Hands out what was read.
struct Played {
    samples: std::vec::IntoIter<Sample>,
    plan: Plan,
}

impl Source for Played {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        Ok(self.samples.next().unwrap())
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

fn pivot(filter: Filter) -> Pivot {
    Pivot { by: None, top: usize::MAX, filter, names: Box::<fixtures::FakeNames>::default() }
}

/// What the filters below leave of an event.
fn passes(filter: &Filter, e: &Event) -> bool {
    (filter.pids.is_empty() || filter.pids.contains(&e.who.0))
        && (filter.comms.is_empty() || filter.comms.iter().any(|c| c.name() == e.comm()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn in_the_interval_and_since_the_start(
        ticks in machine::ticks(),
        filter in prop_oneof![
            Just(Filter::default()),
            Just(Filter { pids: vec![3], ..Filter::default() }),
            Just(Filter { comms: vec!["dd".into()], ..Filter::default() }),
            Just(Filter { comms: vec!["sh".into()], from_files: true, ..Filter::default() }),
        ],
    ) {
        let mut machine = Machine::new();
        let mut samples: Vec<_> =
            std::iter::once(&Vec::new()).chain(ticks.iter().map(|t| &t.0)).map(|e| machine.read(e)).collect();
        // Each has a parent; there are circles, and ids that are another one's.
        for row in samples.iter_mut().flat_map(|s| &mut s.rows) {
            let (parent, parent_name) = (row.tgid * 5 % 7, "sh".into());
            let began = |pid: u32| u64::from(pid % 5);
            row.family = Some(Family { begun: began(row.tgid), parent, parent_begun: began(parent), parent_name });
        }
        let mut source = Played { samples: samples.clone().into_iter(), plan: fixtures::plan(&[]) };
        let living = Rc::new(Cell::new(u16::MAX));
        let alive = { let living = living.clone(); move |pid: u32| living.get() & 1 << (pid % 16) != 0 };
        let keeper = Keeper::new(&mut source, pivot(filter.clone()), true, Box::new(alive)).unwrap();
        let mut keeper = keeper.with_little_room();
        let mut seen: HashMap<(&str, Id), u64> = HashMap::new();
        // What the filter leaves, as the events tell it.
        let mut events: Vec<Event> = Vec::new();
        for (k, (new, alive)) in ticks.iter().enumerate() {
            living.set(*alive);
            keeper.tick(View { by: By::Process, show: Show::Count, threads: false, ended: Ended::Unasked }).unwrap();
            events.extend(new.iter().cloned());
            let [rows, files, folded, folded_files] = keeper.kept();
            prop_assert!(rows <= 12 + 12 && files <= 12 + 12 && folded <= 20 && folded_files <= 20);
            let folded = [By::Process, By::Thread].into_iter().flat_map(|by| Ended::ALL.iter().map(move |e| (by, *e)));
            let views = ALL.into_iter().map(|by| (by, Ended::Unasked)).chain(folded);
            let views = views.flat_map(|(by, ended)| [(by, Show::Count, ended), (by, Show::Total, ended)]);
            for (by, show, ended) in views {
                let files = filter.files() || by.files();
                let snapshot = keeper.again(View { by, show, threads: false, ended });
                // Those that linger are of another interval.
                let rows: Vec<_> = snapshot.entries.iter()
                    .filter(|e| e.state.counts())
                    .map(|e| (e.id().clone(), snapshot.row(e)))
                    .collect();
                let from = if show == Show::Total { 0 } else { k };
                let mut line = model::line(&samples[from], &samples[k + 1], files);
                if !filter.is_empty() {
                    line = Counters::default();
                    let part = samples[from + 1..=k + 1].iter();
                    for s in part {
                        let rows = s.rows.iter().map(|r| (r.tgid, r.process, &r.counters));
                        let of_files = s.files.iter().map(|f| (f.tgid, f.process, &f.counters));
                        let all: Vec<_> = if files { of_files.collect() } else { rows.collect() };
                        let pid = |p: u32| filter.pids.is_empty() || filter.pids.contains(&p);
                        let taken = all.into_iter().filter(|(p, c, _)| {
                            pid(*p) && (filter.comms.is_empty() || filter.comms.contains(c))
                        });
                        taken.for_each(|(_, _, counters)| line.add_sparse(counters));
                    }
                    let listed = events.iter().filter(|e| passes(&filter, e) && files && e.has_row(true));
                    let listed = listed.map(|e| e.used().counters.get(crate::sample::Counter::ReadHits));
                    if show == Show::Total && files {
                        prop_assert_eq!(line.get(crate::sample::Counter::ReadHits), listed.sum::<u64>());
                    }
                }
                let known = pivot::known(&source_plan(), files);
                let line = model::known_figures(&line, &known);
                for figure in Figure::ALL.iter().filter(|f| known[**f as usize]) {
                    let sum = rows.iter().map(|(_, r)| r.figures.get(*figure)).sum::<Option<u64>>();
                    prop_assert_eq!(sum, line.get(*figure), "{:?} {:?} {:?} {:?} of tick {}", by, show, ended, figure, k);
                    if show == Show::Count {
                        prop_assert_eq!(snapshot.system.total.get(*figure), sum, "above {:?}: {:?} of tick {}", by, figure, k);
                    }
                }
                // Numbers of processes are used anew here.
                if show == Show::Total && !matches!(by, By::Process | By::Thread) {
                    for (id, row) in rows {
                        let now = Figure::ALL.iter().filter_map(|f| row.figures.get(*f)).sum();
                        let before = seen.insert((by.plural(), id.clone()), now).unwrap_or(0);
                        prop_assert!(now >= before, "{:?} {:?} fell from {} to {}", by, id, before, now);
                    }
                }
            }
        }
    }
}

fn source_plan() -> Plan {
    fixtures::plan(&[])
}

/// A hundred processes a second that live for a moment, each with a file of its own and one that all use.
struct Storm {
    start: crate::sample::Moment,
    plan: Plan,
    k: u32,
    total: u64,
}

const EACH: u32 = 100;

impl Source for Storm {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut out = fixtures::sample(self.start, Duration::from_secs(self.k.into()), &[]);
        for i in 0..EACH.min(self.k * EACH) {
            let pid = 1000 + self.k * EACH + i;
            let event = |file| Event {
                who: (pid, 0, 1, 0, 1),
                file,
                rows: (true, true),
                late: false,
                counter: 0,
                n: 3,
            };
            out.rows.push(event(0).thread());
            out.files.extend([event(1).used(), event(u64::from(pid)).used()]);
            self.total += 6;
        }
        let hits = crate::sample::Counter::ReadHits as usize;
        (out.total.0[hits], out.by_file.as_mut().unwrap().0[hits]) = (self.total, self.total);
        self.k += 1;
        Ok(out)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

#[test]
fn many_short_processes_take_no_more_memory_than_a_few() {
    const SECONDS: u64 = 600;
    let mut source = Storm { start: crate::sample::Moment::now(), plan: fixtures::plan(&[]), k: 0, total: 0 };
    let now = Rc::new(Cell::new(0));
    let alive = {
        let now = now.clone();
        move |pid: u32| pid >= now.get()
    };
    let mut keeper = Keeper::new(&mut source, pivot(Filter::default()), true, Box::new(alive)).unwrap();
    for second in 1..=SECONDS {
        now.set(1000 + u32::try_from(second).unwrap() * EACH);
        keeper
            .tick(View { by: By::Process, show: Show::Count, threads: false, ended: Ended::Unasked })
            .unwrap();
        let [rows, files, folded, folded_files] = keeper.kept();
        assert!(rows <= 2048 + 100 && files <= 2048 + 200, "{rows} {files}");
        assert!(folded <= 4096 && folded_files <= 4096, "{folded} {folded_files}");
    }
    let all = SECONDS * u64::from(EACH);
    let mut total = |by| {
        let snapshot = keeper.again(View { by, show: Show::Total, threads: false, ended: Ended::Unasked });
        let hits = |e: &crate::live::snapshot::Entry| snapshot.row(e).figures.get(Figure::Hits).unwrap();
        let named = snapshot.entries.iter().filter(|e| !e.named.who.other);
        let busiest = named.map(hits).max().unwrap();
        (busiest, snapshot.entries.iter().map(hits).sum::<u64>())
    };
    assert_eq!(total(By::Comm), (3 * all, 6 * all), "the one command; the other half has no rows of threads");
    assert_eq!(total(By::File).1, 6 * all);
    assert_eq!(total(By::File).0, 3 * all, "the file that all use");
    assert_eq!(total(By::Process).1, 6 * all);
}
