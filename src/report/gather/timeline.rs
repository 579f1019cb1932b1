//! How a run went, piece by piece. A wait is spread over the time that it lasted: what had not ended at the end of a piece
//! belongs to it as far as it had come, and so no piece has more waiting than its threads can do.

use std::time::Duration;

use crate::report::data::Tick;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Followed;
use crate::sample::Moment;
use crate::sample::Sample;

/// Pieces of a time line; when there are more, two become one.
const TICKS: usize = 512;

const DATA: &[Counter] = &[Counter::WaitRead, Counter::WaitFault, Counter::WaitExec];
const METADATA: &[Counter] = &[Counter::WaitOpen, Counter::WaitLookup, Counter::WaitDirectory];
const WRITING: &[Counter] = &[Counter::WaitWrite, Counter::WaitSync];

/// Pieces so far.
pub(super) struct Timeline {
    began: Moment,
    seen: Counters,
    /// Waited up to the last reading, ended or not: data, metadata, writing.
    waited: [u64; 3],
    pub(super) ticks: Vec<Tick>,
    /// Samples that make one piece.
    step: u32,
    open: u32,
}

/// The moment of which a sample tells how long threads had waited.
fn moment(sample: &Sample) -> Moment {
    let waiting = sample.followed.as_ref().and_then(|f| f.waiting);
    waiting.map_or(sample.at, |w| w.at)
}

fn waited(f: &Followed) -> [u64; 3] {
    [DATA, METADATA, WRITING].map(|kind| {
        let so_far = |c: &Counter| f.waiting.map_or(0, |w| w.so_far.get(*c));
        kind.iter().map(|c| f.counters.get(*c) + so_far(c)).sum()
    })
}

impl Timeline {
    /// From a sample on. Whoever waits by then has begun earlier: that is not the run's.
    pub(super) fn new(before: &Sample) -> Self {
        Self {
            began: moment(before),
            seen: Counters::default(),
            waited: before.followed.as_deref().map_or([0; 3], waited),
            ticks: Vec::new(),
            step: 1,
            open: 0,
        }
    }

    /// One more.
    pub(super) fn sample(&mut self, now: &Sample, followed: &Followed) {
        let new = followed.counters.since(&self.seen);
        self.seen = followed.counters;
        let sum = |of: &[Counter]| of.iter().map(|c| new.get(*c)).sum::<u64>();
        // It only rises, but for a thread of which it could not be told: then nothing is counted twice.
        let so_far = waited(followed);
        let [data_ns, metadata_ns, write_ns] =
            std::array::from_fn(|i| so_far[i].saturating_sub(self.waited[i]));
        self.waited = std::array::from_fn(|i| so_far[i].max(self.waited[i]));
        let since: Duration = moment(now).since(self.began);
        let tick = Tick {
            at_s: since.as_secs_f64(),
            hits: new.get(Counter::ReadHits),
            readahead_hits: new.get(Counter::ReadAheadHits),
            misses: new.get(Counter::ReadMisses),
            written: sum(&[Counter::WriteHits, Counter::WriteMisses]),
            direct_bytes: sum(&[Counter::DirectReadBytes, Counter::DirectWriteBytes]),
            data_ns,
            metadata_ns,
            write_ns,
        };
        match self.ticks.last_mut() {
            Some(last) if self.open < self.step => last.join(&tick),
            _ => {
                self.ticks.push(tick);
                self.open = 0;
            }
        }
        self.open += 1;
        if self.ticks.len() > TICKS {
            self.step *= 2;
            self.ticks = self.ticks.chunks(2).filter_map(Tick::sum).collect();
        }
    }
}

impl Tick {
    fn join(&mut self, later: &Tick) {
        let before = *self;
        *self = *later;
        self.hits += before.hits;
        self.readahead_hits += before.readahead_hits;
        self.misses += before.misses;
        self.written += before.written;
        self.direct_bytes += before.direct_bytes;
        self.data_ns += before.data_ns;
        self.metadata_ns += before.metadata_ns;
        self.write_ns += before.write_ns;
    }

    fn sum(pieces: &[Tick]) -> Option<Tick> {
        let (first, rest) = pieces.split_first()?;
        let mut sum = *first;
        rest.iter().for_each(|t| sum.join(t));
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Waiting;
    use crate::view::fixtures;

    const MS: u64 = 1_000_000;

    /// A reading at a time, in ms: what had ended, and what had not.
    fn reading(at: u64, ended: u64, lasts: u64) -> Sample {
        let mut followed = Followed::new(1);
        followed.counters.0[Counter::WaitRead as usize] = ended * MS;
        let mut so_far = Counters::default();
        so_far.0[Counter::WaitRead as usize] = lasts * MS;
        followed.waiting = Some(Waiting { at: Moment::from_nanos(at * MS), so_far, storage: None });
        let sample = fixtures::sample(Moment::from_nanos(0), Duration::from_millis(at + 3), &[]);
        Sample { followed: Some(Box::new(followed)), ..sample }
    }

    fn line(readings: &[Sample]) -> Vec<(u64, u64)> {
        let mut line = Timeline::new(&readings[0]);
        for now in &readings[1..] {
            if let Some(followed) = &now.followed {
                line.sample(now, followed);
            }
        }
        let ms = |t: &Tick| ((t.at_s * 1e3).round() as u64, t.data_ns / MS);
        line.ticks.iter().map(ms).collect()
    }

    #[test]
    fn a_wait_is_spread_over_the_time_that_it_lasted() {
        // One thread waits from 50 to 430 ms: 4.3 times as long as the piece in which it ends.
        let readings = [(0, 0, 0), (100, 0, 50), (200, 0, 150), (300, 0, 250), (400, 0, 350), (500, 380, 0)];
        let got = line(&readings.map(|(at, ended, lasts)| reading(at, ended, lasts)));
        assert_eq!(got, [(100, 50), (200, 100), (300, 100), (400, 100), (500, 30)]);
    }

    #[test]
    fn what_was_waited_before_is_not_the_runs() {
        // The process that is watched from here on had been waiting for 10 s.
        let readings = [(0, 0, 10_000), (100, 0, 10_100), (200, 10_150, 0)];
        let got = line(&readings.map(|(at, ended, lasts)| reading(at, ended, lasts)));
        assert_eq!(got, [(100, 100), (200, 50)]);
    }

    #[test]
    fn a_long_run_has_few_pieces_and_loses_nothing() {
        let readings: Vec<_> = (0..2000).map(|n| reading(n * 100, n * 20, n % 7)).collect();
        let got = line(&readings);
        assert!(got.len() <= TICKS, "{}", got.len());
        let sum: u64 = got.iter().map(|(_, ms)| ms).sum();
        assert!((39_980..=39_990).contains(&sum), "{sum}");
    }
}
