//! What counts, seen and recorded at once: what is shown goes through what is written, so that a replay shows the same.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use super::names::Sink;
use super::writer::Writer;
use crate::names::Names;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::sample::Source;
use crate::wait::Wait;
use crate::wait::Wake;

/// A source whose samples are written down as they are taken.
pub struct Recording<'a> {
    source: &'a mut dyn Source,
    names: &'a mut dyn Names,
    writer: &'a mut Writer,
    sink: Sink,
    wake: Rc<Cell<Wake>>,
}

impl<'a> Recording<'a> {
    /// Writes what `source` gives; what is looked up for it goes to `sink`, too. The second value tells why the interval
    /// ended: see [`Noting`].
    pub fn new(
        source: &'a mut dyn Source,
        names: &'a mut dyn Names,
        writer: &'a mut Writer,
        sink: Sink,
    ) -> (Self, Rc<Cell<Wake>>) {
        let wake = Rc::new(Cell::new(Wake::Deadline));
        (Self { source, names, writer, sink, wake: Rc::clone(&wake) }, wake)
    }
}

impl Source for Recording<'_> {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut sample = self.source.sample()?;
        let news = self.writer.write(&mut sample, self.names, self.wake.get());
        let (segment, names) = news.map_err(|e| e.context("cannot write the recording"))?;
        // Each sample is the end of an interval.
        self.sink.borrow_mut().add(names, segment, true);
        Ok(sample)
    }

    fn plan(&self) -> &Plan {
        self.source.plan()
    }

    fn relief(&self) -> Option<Duration> {
        self.source.relief()
    }

    fn relieve(&mut self) -> anyhow::Result<()> {
        self.source.relieve()
    }
}

/// A clock that tells the recording why an interval ended.
pub struct Noting<'a> {
    /// The clock.
    pub wait: &'a mut dyn Wait,
    /// What it said last.
    pub wake: Rc<Cell<Wake>>,
}

impl Wait for Noting<'_> {
    fn now(&self) -> Instant {
        self.wait.now()
    }

    fn until(&mut self, deadline: Instant) -> io::Result<Wake> {
        let wake = self.wait.until(deadline)?;
        self.wake.set(wake);
        Ok(wake)
    }
}
