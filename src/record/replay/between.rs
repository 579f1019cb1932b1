//! What happened between samples that are not next to each other: some of them were put together, or some are missing.

use std::collections::HashMap;

use crate::record::frame::OfFile;
use crate::record::frame::Thread;
use crate::record::frame::combine;
use crate::record::frame::combine_histograms;
use crate::record::frame::of_file;
use crate::record::frame::thread;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Histograms;
use crate::sample::Lost;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;

/// Adds samples up, and goes over gaps: what rises goes on behind one as if nothing had been counted in it.
#[derive(Default)]
pub(super) struct Between {
    /// What is added to what rises.
    total: Counters,
    by_file: Counters,
    latency: Histograms,
    lost: HashMap<String, u64>,
    at: u64,
    /// The sample before, with that.
    last: Option<Sample>,
    sum: Option<Sample>,
    threads: HashMap<Thread, usize>,
    files: HashMap<OfFile, usize>,
}

impl Between {
    /// Counting begins, or begins anew, with this sample: what came before it is in no interval.
    pub fn begin(&mut self, sample: Sample) -> anyhow::Result<Sample> {
        if let Some(last) = &self.last {
            if last.classic.is_some() || sample.classic.is_some() {
                anyhow::bail!(
                    "what is missing cannot be left out of counts of the classic engine: replay it with '--from' behind that"
                );
            }
            let minus = u64::wrapping_sub;
            self.total = combine(&last.total, &sample.total, minus);
            self.by_file =
                combine(&last.by_file.unwrap_or_default(), &sample.by_file.unwrap_or_default(), minus);
            let none = Histograms::default();
            self.latency = *combine_histograms(
                last.latency.as_deref().unwrap_or(&none),
                sample.latency.as_deref().unwrap_or(&none),
                minus,
            );
            self.at = last.at.nanos().wrapping_sub(sample.at.nanos());
            let lost = |s: &Sample| -> HashMap<String, u64> {
                s.lost.by_reason.iter().map(|(why, n)| (why.clone().into_owned(), *n)).collect()
            };
            let before = lost(last);
            self.lost = lost(&sample);
            for (why, n) in &mut self.lost {
                *n = before.get(why).copied().unwrap_or(0).wrapping_sub(*n);
            }
        }
        let shifted = self.shift(sample);
        self.last = Some(shifted.without_rows());
        Ok(shifted)
    }

    fn shift(&self, mut sample: Sample) -> Sample {
        sample.total = combine(&sample.total, &self.total, u64::wrapping_add);
        sample.by_file = sample.by_file.map(|line| combine(&line, &self.by_file, u64::wrapping_add));
        let latency = sample.latency.as_deref();
        sample.latency = latency.map(|l| combine_histograms(l, &self.latency, u64::wrapping_add));
        sample.at = Moment::from_nanos(sample.at.nanos().wrapping_add(self.at));
        let Lost { by_reason } = &mut sample.lost;
        for (why, n) in by_reason {
            *n = n.wrapping_add(self.lost.get(why.as_ref()).copied().unwrap_or(0));
        }
        sample
    }

    /// Adds a sample to the interval that is under way; its moment is returned.
    pub fn add(&mut self, sample: Sample, several: bool) -> u64 {
        let mut sample = self.shift(sample);
        let at = sample.at.nanos();
        self.last = Some(sample.without_rows());
        let before = self.sum.take();
        if several {
            let (rows, files) = (std::mem::take(&mut sample.rows), std::mem::take(&mut sample.files));
            if let Some(before) = before {
                (sample.rows, sample.files) = (before.rows, before.files);
            }
            self.merge(rows, files, &mut sample);
        }
        self.sum = Some(sample);
        at
    }

    fn merge(&mut self, rows: Vec<RowSample>, files: Vec<FileSample>, sum: &mut Sample) {
        for r in rows {
            let key = thread(&r);
            match self.threads.get(&key).and_then(|n| sum.rows.get_mut(*n)) {
                Some(old) => {
                    old.counters.add(&r.counters);
                    match (&mut old.latency, r.latency) {
                        (Some(old), Some(new)) => old.add(&new),
                        (old, new) => *old = old.take().or(new),
                    }
                }
                None => {
                    self.threads.insert(key, sum.rows.len());
                    sum.rows.push(r);
                }
            }
        }
        for f in files {
            let key = of_file(&f);
            match self.files.get(&key).and_then(|n| sum.files.get_mut(*n)) {
                Some(old) => old.counters.add(&f.counters),
                None => {
                    self.files.insert(key, sum.files.len());
                    sum.files.push(f);
                }
            }
        }
    }

    /// The interval, which is over.
    pub fn take(&mut self) -> Option<Sample> {
        self.threads.clear();
        self.files.clear();
        self.sum.take()
    }
}
