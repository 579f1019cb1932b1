//! Command lines of the processes on the screen, kept for those that end.

use std::collections::HashMap;

use crate::pivot::Who;
use crate::text::foreign::Foreign;

/// Command lines that are kept.
const KEPT: usize = 2048;
/// Bytes of each.
const LONGEST: usize = 512;
/// Intervals after which it is looked again: some processes write their state there.
const AGAIN: u32 = 5;

/// What is known of one process.
#[derive(Debug, Clone)]
struct Known {
    comm: Option<Foreign>,
    line: Option<Foreign>,
    asked: u32,
}

/// Command lines, by process.
#[derive(Debug, Clone, Default)]
pub struct Argv {
    known: HashMap<u32, Known>,
    round: u32,
}

impl Argv {
    /// Another interval has begun.
    pub fn next(&mut self) {
        self.round += 1;
    }

    /// Whether this process must be asked, now or again; it counts as asked from then on.
    pub fn asks(&mut self, who: &Who) -> Option<u32> {
        let pid = who.pid?;
        match self.known.get_mut(&pid) {
            // Under another name it is another program, or another process.
            Some(known) if known.comm == who.comm => {
                if known.asked + AGAIN > self.round {
                    return None;
                }
                known.asked = self.round;
            }
            _ => {
                self.make_room();
                let new = Known { comm: who.comm.clone(), line: None, asked: self.round };
                self.known.insert(pid, new);
            }
        }
        Some(pid)
    }

    /// What was found. A process that has ended keeps what it had.
    pub fn found(&mut self, pid: u32, line: Option<Foreign>) {
        if let (Some(known), Some(line)) = (self.known.get_mut(&pid), line) {
            let bytes = line.bytes();
            known.line = Some(bytes.get(..LONGEST).map_or_else(|| line.clone(), Foreign::from));
        }
    }

    /// The command line of a process, as far as it was seen.
    #[must_use]
    pub fn get(&self, who: &Who) -> Option<&Foreign> {
        let known = self.known.get(&who.pid?)?;
        known.line.as_ref().filter(|_| known.comm == who.comm)
    }

    /// Those that were asked longest ago go.
    fn make_room(&mut self) {
        if self.known.len() < KEPT {
            return;
        }
        let mut asked: Vec<_> = self.known.values().map(|k| k.asked).collect();
        asked.sort_unstable();
        let middle = asked.get(asked.len() / 2).copied().unwrap_or(0);
        self.known.retain(|_, k| k.asked > middle);
    }
}

/// What a process is called that has this name and this command line: directories before the program tell nothing.
#[must_use]
pub fn command(name: &str, line: &str) -> String {
    let (program, rest) = line.split_once(' ').map_or((line, ""), |(a, b)| (a, b));
    let base = program.rsplit('/').next().unwrap_or(program);
    let is_named = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or(word);
        !name.is_empty() && word.trim_start_matches('-').starts_with(name)
    };
    let text = if rest.is_empty() { base.to_owned() } else { format!("{base} {rest}") };
    // Of a script the name is its own, and the program its interpreter.
    if is_named(base) || rest.split(' ').any(is_named) { text } else { format!("{name} ({text})") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn who(pid: u32, comm: &str) -> Who {
        Who { pid: Some(pid), comm: Some(comm.into()), ..Who::default() }
    }

    #[test]
    fn names_and_lines_are_put_together() {
        for (name, line, shown) in [
            ("dd", "/usr/bin/dd if=/dev/zero", "dd if=/dev/zero"),
            ("postgres", "postgres: wal writer", "postgres: wal writer"),
            ("storm.sh", "/bin/sh /tmp/storm.sh -x", "sh /tmp/storm.sh -x"),
            ("a-name-of-fifte", "/x/a-name-of-fifteen-or-more", "a-name-of-fifteen-or-more"),
            ("bash", "-bash", "-bash"),
            ("worker", "/opt/server --all", "worker (server --all)"),
        ] {
            assert_eq!(command(name, line), shown);
        }
    }

    #[test]
    fn each_is_asked_once_in_a_while_and_kept_when_it_ends() {
        let mut argv = Argv::default();
        assert_eq!(argv.asks(&who(7, "sh")), Some(7));
        assert_eq!(argv.asks(&who(7, "sh")), None);
        argv.found(7, Some("sh -c x".into()));
        assert_eq!(argv.get(&who(7, "sh")), Some(&"sh -c x".into()));
        (0..AGAIN).for_each(|_| argv.next());
        assert_eq!(argv.asks(&who(7, "sh")), Some(7));
        argv.found(7, None);
        assert_eq!(argv.get(&who(7, "sh")), Some(&"sh -c x".into()), "it has ended");
        assert_eq!(argv.asks(&who(7, "cat")), Some(7), "it is another program");
        assert_eq!(argv.get(&who(7, "cat")), None);
    }

    #[test]
    fn there_are_never_more_than_a_few() {
        let mut argv = Argv::default();
        for pid in 0..20_000 {
            argv.asks(&who(pid, "sh"));
            argv.found(pid, Some("x".repeat(3000).into()));
            argv.next();
        }
        assert!(argv.known.len() <= KEPT);
        assert_eq!(argv.get(&who(19_999, "sh")).unwrap().bytes().len(), LONGEST);
    }
}
