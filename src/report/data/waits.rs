//! Where threads waited.

use serde::Deserialize;
use serde::Serialize;

use crate::sample::Counter;
use crate::sample::Counters;

/// Where the command's threads waited, nanoseconds, all threads added up. `None`: this kernel does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// In reads, for storage.
    pub read_ns: Option<u64>,
    /// In page faults, for storage.
    pub fault_ns: Option<u64>,
    /// In `execve`.
    pub exec_ns: Option<u64>,
    /// In `open`.
    pub open_ns: Option<u64>,
    /// In calls that look names up or change them.
    pub lookup_ns: Option<u64>,
    /// In `getdents`.
    pub directory_ns: Option<u64>,
    /// In writes, for storage or because too much was dirty.
    pub write_ns: Option<u64>,
    /// In `fsync` and its like, and in `close`.
    pub sync_ns: Option<u64>,
    /// For a processor.
    pub cpu_ns: Option<u64>,
    /// Of these (in all but the last), what came after the end of the wait: the thread was woken, and had no processor.
    pub woken_ns: Option<u64>,
    /// For anything else: pipes, locks, timers, children. The next five are parts of it.
    pub other_ns: Option<u64>,
    /// For pipes, sockets, terminals, events, signals.
    pub peer_ns: Option<u64>,
    /// Slept for a time.
    pub timer_ns: Option<u64>,
    /// For locks: futexes, file locks, semaphores.
    pub lock_ns: Option<u64>,
    /// For children.
    pub child_ns: Option<u64>,
    /// For asynchronous I/O to complete.
    pub completion_ns: Option<u64>,
    /// Of the writes, pauses because too much was dirty.
    pub throttled_ns: Option<u64>,
}

impl Waits {
    /// The kinds of waiting for others that have a name, in words; for children last.
    #[must_use]
    pub fn for_others(&self) -> [(Option<u64>, &'static str); 5] {
        [
            (self.peer_ns, "pipes, sockets and events"),
            (self.timer_ns, "timers"),
            (self.lock_ns, "locks"),
            (self.completion_ns, "asynchronous I/O"),
            (self.child_ns, "children"),
        ]
    }

    /// From what the kernel programs counted; `waits` and `throttle`: whether their hooks are attached.
    #[must_use]
    pub fn new(c: &Counters, waits: bool, throttle: bool) -> Self {
        let of = |counter| waits.then(|| c.get(counter));
        Self {
            read_ns: of(Counter::WaitRead),
            fault_ns: of(Counter::WaitFault),
            exec_ns: of(Counter::WaitExec),
            open_ns: of(Counter::WaitOpen),
            lookup_ns: of(Counter::WaitLookup),
            directory_ns: of(Counter::WaitDirectory),
            write_ns: of(Counter::WaitWrite),
            sync_ns: of(Counter::WaitSync),
            cpu_ns: of(Counter::WaitCpu),
            woken_ns: of(Counter::WaitWoken),
            other_ns: waits.then(|| {
                let kinds =
                    [Counter::WaitTimer, Counter::WaitLock, Counter::WaitChild, Counter::WaitCompletion];
                c.get(Counter::WaitOther)
                    + c.get(Counter::WaitPeer)
                    + kinds.map(|k| c.get(k)).iter().sum::<u64>()
            }),
            peer_ns: of(Counter::WaitPeer),
            timer_ns: of(Counter::WaitTimer),
            lock_ns: of(Counter::WaitLock),
            child_ns: of(Counter::WaitChild),
            completion_ns: of(Counter::WaitCompletion),
            throttled_ns: throttle.then(|| c.get(Counter::ThrottleNs)),
        }
    }
}
