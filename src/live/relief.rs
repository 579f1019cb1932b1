//! Long intervals: what counts has room for some seconds of a busy machine, and is read in between.

use std::time::Duration;
use std::time::Instant;

use crate::sample::Source;
use crate::wait::Wait;
use crate::wait::Wake;

/// When a source is to be relieved.
#[derive(Debug)]
pub struct Relief {
    step: Option<Duration>,
    last: Instant,
}

impl Relief {
    /// As the source asks for, which was read just now.
    pub fn new<S: Source + ?Sized>(source: &S, now: Instant) -> Self {
        Self { step: source.relief(), last: now }
    }

    /// When it is due in an interval that ends then; `None` where the end of the interval comes before or soon after.
    #[must_use]
    pub fn due(&self, deadline: Instant) -> Option<Instant> {
        let step = self.step?;
        let due = self.last + step;
        (due + step / 2 < deadline).then_some(due)
    }

    /// The source was read.
    pub const fn done(&mut self, now: Instant) {
        self.last = now;
    }
}

/// Waits for the end of an interval that began just now, or for what else there may be, and relieves the source meanwhile.
///
/// # Errors
/// When the system refuses to wait, or the source cannot be read.
pub fn wait<S: Source + ?Sized>(
    wait: &mut dyn Wait,
    source: &mut S,
    deadline: Instant,
) -> anyhow::Result<Wake> {
    let mut relief = Relief::new(source, wait.now());
    while let Some(due) = relief.due(deadline) {
        let wake = wait.until(due)?;
        if wake != Wake::Deadline {
            return Ok(wake);
        }
        source.relieve()?;
        relief.done(wait.now());
    }
    Ok(wait.until(deadline)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::VecDeque;
    use std::io;

    use super::*;
    use crate::plan::Plan;
    use crate::sample::Sample;
    use crate::view::fixtures;

    /// Asks for it every two seconds.
    struct Asks {
        plan: Plan,
        relieved: usize,
    }

    impl Source for Asks {
        fn sample(&mut self) -> anyhow::Result<Sample> {
            anyhow::bail!("nobody asks")
        }

        fn plan(&self) -> &Plan {
            &self.plan
        }

        fn relief(&self) -> Option<Duration> {
            Some(Duration::from_secs(2))
        }

        fn relieve(&mut self) -> anyhow::Result<()> {
            self.relieved += 1;
            Ok(())
        }
    }

    /// Each deadline comes, but for one, before which Ctrl-C is pressed.
    struct Clock {
        start: Instant,
        now: Instant,
        waited: Vec<u64>,
        interrupt: Option<usize>,
    }

    impl Wait for Clock {
        fn now(&self) -> Instant {
            self.now
        }

        fn until(&mut self, deadline: Instant) -> io::Result<Wake> {
            self.now = deadline;
            self.waited.push(deadline.duration_since(self.start).as_secs());
            let interrupted = self.interrupt == Some(self.waited.len());
            Ok(if interrupted { Wake::Interrupt } else { Wake::Deadline })
        }
    }

    fn waits(seconds: u64, interrupt: Option<usize>) -> (Vec<u64>, usize, Wake) {
        let start = Instant::now();
        let mut clock = Clock { start, now: start, waited: Vec::new(), interrupt };
        let mut source = Asks { plan: fixtures::plan(&[]), relieved: 0 };
        let wake = wait(&mut clock, &mut source, start + Duration::from_secs(seconds)).unwrap();
        (clock.waited, source.relieved, wake)
    }

    #[test]
    fn a_long_interval_is_relieved_and_a_short_one_is_not() {
        assert_eq!(waits(1, None), (vec![1], 0, Wake::Deadline));
        // Not just before its end.
        assert_eq!(waits(3, None), (vec![3], 0, Wake::Deadline));
        assert_eq!(waits(10, None), (vec![2, 4, 6, 8, 10], 4, Wake::Deadline));
        // What else happens ends the wait at once.
        assert_eq!(waits(10, Some(2)), (vec![2, 4], 1, Wake::Interrupt));
    }

    #[test]
    fn what_is_made_up_or_was_recorded_has_room_for_everything() {
        let made = fixtures::Made(VecDeque::new(), fixtures::plan(&[]));
        let start = Instant::now();
        assert_eq!(Relief::new(&made, start).due(start + Duration::from_secs(3600)), None);
    }
}
