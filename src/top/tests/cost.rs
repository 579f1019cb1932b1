//! What many rows cost: a measurement, not run by itself.
//! `cargo test --release --lib top::tests::cost -- --ignored --nocapture` prints it.

use std::io;
use std::time::Duration;
use std::time::Instant;

use ratatui::TerminalOptions;
use ratatui::Viewport;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::*;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Sample;
use crate::sample::Source;

/// Rows of a sample.
const ROWS: u32 = 10_000;
/// Frames that are measured, and frames a second that the answer is about.
const FRAMES: u32 = 200;
const RATE: f64 = 10.0;

/// Every process does something else in each interval.
struct Many {
    samples: Vec<Sample>,
    plan: Plan,
    k: usize,
}

impl Many {
    fn new() -> Self {
        let start = crate::sample::Moment::now();
        let sample = |k: u32| {
            let mut sample = fixtures::sample(start, Duration::from_millis(100 * u64::from(k)), &[]);
            sample.rows = (0..ROWS)
                .map(|i| {
                    let n = u64::from(i.wrapping_mul(2_654_435_761).wrapping_add(k * 977))
                        % (1000 + u64::from(k));
                    let comm = ["worker", "postgres", "dd", "rustc"][i as usize % 4];
                    fixtures::process(i + 100, comm, &[(Counter::ReadHits, n), (Counter::ReadMisses, 1)])
                })
                .collect();
            sample
        };
        Self { samples: (0..8).map(sample).collect(), plan: fixtures::plan(&[]), k: 0 }
    }
}

impl Source for Many {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        self.k += 1;
        Ok(self.samples[self.k % self.samples.len()].clone())
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Processor time of this thread so far.
fn spent() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is ours, and all zeroes are a value of it.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn measure(what: &str, view: View, prepare: impl Fn(&mut App)) {
    let mut source = Many::new();
    let begun = spent();
    for _ in 0..FRAMES {
        drop(std::hint::black_box(source.sample()));
    }
    let source_alone = spent() - begun;
    let names = Box::<fixtures::FakeNames>::default();
    let pivot = Pivot { by: None, top: usize::MAX, filter: Filter::default(), names };
    let mut keeper = Keeper::new(&mut source, pivot, true, Box::new(|_| true)).unwrap();
    let mut app = app((200, 60));
    app.settings.by = view.by;
    prepare(&mut app);
    let options = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, 200, 60)) };
    let mut terminal = Terminal::with_options(CrosstermBackend::new(io::sink()), options).unwrap();
    let theme = Theme::sixteen();
    // The best of many for the parts: what others do on the machine is not ours.
    let mut best = [Duration::MAX; 3];
    let begun = spent();
    for _ in 0..FRAMES {
        let a = Instant::now();
        let snapshot = keeper.tick(view).unwrap();
        let b = Instant::now();
        app.take(snapshot);
        let c = Instant::now();
        terminal.draw(|f| draw::draw(&app, &theme, f)).unwrap();
        let d = Instant::now();
        for (best, took) in best.iter_mut().zip([b - a, c - b, d - c]) {
            *best = took.min(*best);
        }
    }
    let all = spent() - begun;
    let percent = |time: Duration| time.as_secs_f64() / f64::from(FRAMES) * RATE * 100.0;
    println!(
        "{what}: {:.1} % of a core at {RATE} frames a second ({:.1} % with the making of the samples); \
         at best, rows {:?}, order {:?}, frame {:?}",
        percent(all.saturating_sub(source_alone)),
        percent(all),
        best[0],
        best[1],
        best[2]
    );
}

#[test]
#[ignore = "a measurement, not a test"]
fn cost() {
    measure("busiest processes", VIEW, |_| ());
    measure("by misses", VIEW, |app| {
        app.settings.sort = crate::top::settings::Sort::parse("misses").unwrap();
    });
    measure("by name", VIEW, |app| app.settings.sort = crate::top::settings::Sort::Name);
    measure("with a filter", VIEW, |app| app.filter = "r".into());
    measure("totals", View { show: Show::Total, ..VIEW }, |_| ());
    measure("with threads", View { threads: true, ..VIEW }, |_| ());
    measure("by command", View { by: By::Comm, ..VIEW }, |_| ());
}
