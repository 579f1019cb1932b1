//! `--what-if` of a run: what another size of the cache would have brought the command.

use std::time::Duration;
use std::time::Instant;

use super::data::Run;
use super::faults;
use crate::kernel::Touches;
use crate::model;
use crate::plan::Brackets;
use crate::plan::Plan;
use crate::rising;
use crate::sample::Counters;
use crate::sample::Follow;
use crate::sample::Sample;
use crate::whatif::Prediction;
use crate::whatif::feed::Feed;
use crate::whatif::feed::limited;
use crate::whatif::size::cgroup_of;

/// How long a stretch of time is at first. Where there are too many, two become one: nobody knows how long a command will run.
const STRETCH: Duration = Duration::from_millis(100);
const STRETCHES: usize = 64;

/// A run is watched page by page.
pub(super) struct Larger {
    feed: Feed,
    began: Instant,
    fetched: Instant,
    /// When the last stretch of time ended, and how long one is.
    ended: Instant,
    stretch: Duration,
    /// It went to another cgroup later: what it waited for is not known of the time since then alone.
    moved: bool,
    /// Where the run is has not been looked at yet: a command may begin by going to another cgroup.
    new: bool,
    /// What the run had counted when the last stretch of time ended. `None`: it went to another cgroup since, where nothing
    /// of a stretch counts that began before.
    counted: Option<Counters>,
}

/// The cgroup with a limit that a process is in.
fn group_of(pid: u32) -> Option<String> {
    limited(cgroup_of(pid))
}

impl Larger {
    /// Nothing is watched yet.
    pub(super) fn new(touches: Touches) -> Self {
        let now = Instant::now();
        let feed = Feed::new(touches, None);
        Self {
            feed,
            began: now,
            fetched: now,
            ended: now,
            stretch: STRETCH,
            moved: false,
            new: true,
            counted: Some(Counters::default()),
        }
    }

    /// A run begins: of what runs already, or of what is about to be started by this process.
    pub(super) fn begin(&mut self, source: &mut dyn Follow, pid: Option<u32>) -> anyhow::Result<()> {
        let group = group_of(pid.unwrap_or_else(std::process::id));
        self.feed.begin(group, source.touches_lost())?;
        source.choose(self.feed.rate());
        let now = Instant::now();
        (self.began, self.fetched, self.ended, self.stretch) = (now, now, now, STRETCH);
        (self.moved, self.new, self.counted) = (false, true, Some(Counters::default()));
        Ok(())
    }

    /// Takes what came since the last time. `alive`: the process that says where the run is, while it lives.
    pub(super) fn fetch(&mut self, source: &mut dyn Follow, alive: Option<u32>) -> anyhow::Result<()> {
        let now = Instant::now();
        self.feed.fetch(source.touches_lost(), now.duration_since(self.fetched))?;
        self.fetched = now;
        let look = self.feed.gather(now) || self.new;
        // Of what has ended nobody knows where it was.
        if let Some(pid) = alive.filter(|_| look) {
            if self.feed.is_in(group_of(pid)) {
                (self.began, self.moved) = (now, !self.new);
                if !self.new {
                    self.counted = None;
                }
            }
            self.new = false;
        }
        source.choose(self.feed.rate());
        Ok(())
    }

    /// A sample was made, and what it saw the end of was fetched. `over`: it is the last one of the run.
    pub(super) fn sample(&mut self, sample: &Sample, over: bool) {
        let now = Instant::now();
        if !over && now.duration_since(self.ended) < self.stretch {
            return;
        }
        self.ended = now;
        let Some(followed) = &sample.followed else { return };
        let mut since = followed.counters;
        let Some(counted) = self.counted.replace(followed.counters) else {
            self.feed.simulation.begin_slice();
            self.began = now;
            return;
        };
        rising::since(&mut since.0, &counted.0);
        if self.feed.simulation.slices().len() >= STRETCHES {
            self.feed.simulation.halve();
            self.stretch *= 2;
        }
        self.feed.end_slice(&model::figures(&since, &sample.known.plan()));
    }

    /// The run is over: what came of it.
    pub(super) fn finish(&mut self, source: &mut dyn Follow, run: &Run, plan: &Plan) -> Prediction {
        source.choose(0.0);
        // All that reads and faults waited for data is what had to be brought in.
        let waited = run
            .waits
            .read_ns
            .zip(faults::for_data(run))
            .map(|(read, fault)| read + fault)
            .filter(|_| !self.moved);
        let mut notes = self.feed.notes(plan.brackets != Brackets::Tracepoints);
        notes.push("as if nobody else used this cache: only what the command did was followed".into());
        // Until it ended, not until all that it did was simulated.
        let seconds = self.fetched.saturating_duration_since(self.began).as_secs_f64();
        self.feed.prediction(seconds, waited, notes)
    }
}
