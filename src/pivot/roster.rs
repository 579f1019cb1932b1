//! Who takes part: the rows of a sample, put together by what they stand for.
//!
//! A live view makes rows of thousands of threads many times a second. So a group is known again by its key and keeps
//! the names that it was given, and counters are copied only where several rows have to be added up.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::HashSet;

use super::by::By;
use super::ended::Ended;
use super::ended::Families;
use super::filter::Filter;
use super::id::Id;
use super::id::Subject;
use super::item;
use super::item::Item;
use super::item::Key;
use crate::files::File;
use crate::names::Names;
use crate::sample::Comm;
use crate::sample::Family;
use crate::sample::Sample;
use crate::sample::Sparse;

/// Groups that have done nothing for so many rounds may be forgotten.
const KEPT: u64 = 16;
/// As many of them are no burden.
const FEW: usize = 256;
/// Where more have done nothing, only those of the last round stay: a burst of processes makes thousands in each, and a name
/// takes a kilobyte.
const MANY: usize = 2048;

/// Where the counters of a group are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this row of the sample, which is the only one.
    Row(usize),
    /// In this sum.
    Sum(usize),
}

/// What a name is made of: another one is looked up where this is not the same any more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    uid: u32,
    cgroup: u64,
    comm: Comm,
    process: Comm,
    deleted: bool,
    /// Of a row of files: its name, or the device it is on, may be another one.
    file: Option<Arc<File>>,
    version: u64,
    /// Of those that ended, the only one.
    alone: bool,
    under: Option<Family>,
}

/// A group, for as long as it does something.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its key, where that is a number.
    number: Option<u64>,
    named: Option<(Stamp, Arc<Subject>)>,
    round: u64,
    /// The last round in which it was a row, and not only counted something that rows do not show.
    listed: u64,
    born: u64,
    /// The row that it has its names from: everything is called what it was called last.
    pub latest: usize,
    /// Its counters in this round.
    pub place: Place,
    /// Processes that have ended, put together: how many, 0 where that is not known.
    pub ended: Option<u32>,
    /// Of these, whoever is above them and lives.
    under: Option<Family>,
}

/// All groups of one kind.
#[derive(Debug)]
pub(crate) struct Roster {
    by: By,
    ended: Ended,
    index: HashMap<Key, usize>,
    members: Vec<Member>,
    vacant: Vec<usize>,
    round: u64,
    /// Those that did something in this round, in the order of their first rows.
    pub present: Vec<usize>,
}

impl Roster {
    /// Nobody yet.
    pub(crate) fn new(by: By, ended: Ended) -> Self {
        let (index, members, vacant) = (HashMap::new(), Vec::new(), Vec::new());
        Self { by, ended, index, members, vacant, round: 0, present: Vec::new() }
    }

    /// Puts the rows of a sample together. What several of them add up to is returned. `gone` is asked whether a process,
    /// or a thread, has ended.
    pub(crate) fn call(
        &mut self,
        sample: &Sample,
        files: bool,
        (filter, gone): (&Filter, &mut dyn FnMut(u32) -> bool),
        names: &mut dyn Names,
    ) -> Vec<Sparse> {
        self.forget();
        self.round += 1;
        self.present.clear();
        let mut sums: Vec<Sparse> = Vec::new();
        // Mostly the same rows come in the same order: the member behind the last is looked at first.
        let mut next = 0;
        let mut processes = HashSet::new();
        let parents = self.ended == Ended::Parent;
        let families = if parents { Families::new(sample.rows.iter()) } else { Families::default() };
        let owners = matches!(self.by, By::Process | By::Thread);
        for (i, item) in item::items(sample, files).enumerate() {
            // Those that were put away count for their command or cgroup where the ended are shown by these, else for the rest.
            let away = item.is_away();
            if away && !self.ended.folds() || !filter.counts(self.by, &item, names) {
                continue;
            }
            let number = if self.by == By::Thread { item.tid } else { item.tgid };
            let ended = away || owners && self.ended.folds() && gone(number);
            let under = (ended && parents).then(|| {
                let family = item.family.or_else(|| families.of_process(item.tgid));
                families.above(family?, &item, self.by, gone)
            });
            let under = under.flatten();
            let key = match (ended, self.ended) {
                (true, Ended::Parent) => Key::EndedUnder(under.map(|f| (f.parent, f.parent_begun))),
                (true, Ended::Cgroup) => Key::EndedIn(item::path_of_cgroup(&item, names)),
                (true, _) => Key::Ended(if self.by == By::Thread { item.comm } else { item.process }),
                (false, _) => item::key(self.by, &item, names),
            };
            let at = self.find(key, next);
            next = at + 1;
            let member = &mut self.members[at];
            if ended {
                let before = if member.round == self.round { member.ended } else { Some(0) };
                let new = processes.insert((at, number));
                member.under = under;
                // A sum of those that were put away does not say how many they were.
                member.ended = match (before, member.round == self.round) {
                    _ if away => Some(0),
                    (Some(0), true) => Some(0),
                    (n, _) => Some(n.unwrap_or(0) + u32::from(new)),
                };
            }
            if member.round != self.round {
                (member.round, member.born) = (self.round, item.born);
                (member.latest, member.place) = (i, Place::Row(i));
                self.present.push(at);
                continue;
            }
            let n = match member.place {
                Place::Sum(n) => n,
                Place::Row(first) => {
                    sums.extend(counters(sample, files, first).cloned());
                    member.place = Place::Sum(sums.len() - 1);
                    sums.len() - 1
                }
            };
            sums[n].add(item.counters);
            if item.born > member.born {
                (member.born, member.latest) = (item.born, i);
            }
        }
        sums
    }

    fn find(&mut self, key: Key, guess: usize) -> usize {
        let number = if let Key::Number(n) = key { Some(n) } else { None };
        if number.is_some() && self.members.get(guess).is_some_and(|m| m.number == number) {
            return guess;
        }
        *self.index.entry(key).or_insert_with(|| {
            let place = Place::Row(0);
            let new = Member {
                number,
                named: None,
                round: 0,
                listed: 0,
                born: 0,
                latest: 0,
                place,
                ended: None,
                under: None,
            };
            if let Some(at) = self.vacant.pop() {
                self.members[at] = new;
                return at;
            }
            self.members.push(new);
            self.members.len() - 1
        })
    }

    /// Machines start thousands of processes a minute: those of long ago make room, now and then.
    fn forget(&mut self) {
        let taken = self.members.len() - self.vacant.len();
        let many = taken.saturating_sub(self.present.len()) > MANY;
        if !many && taken <= 2 * self.present.len() + FEW {
            return;
        }
        let kept = if many { 1 } else { KEPT };
        let (members, vacant, round) = (&mut self.members, &mut self.vacant, self.round);
        self.index.retain(|_, at| {
            let keep = members[*at].round + kept > round;
            if !keep {
                (members[*at].number, members[*at].named) = (None, None);
                vacant.push(*at);
            }
            keep
        });
        if self.members.len() > 4 * (self.members.len() - self.vacant.len() + FEW) {
            self.shrink();
        }
    }

    /// What a burst has made is given back. Those that stay get other places: whoever remembers one sees that another is there
    /// ([`Roster::is_present`]).
    fn shrink(&mut self) {
        let mut members = Vec::with_capacity(self.index.len());
        let mut old: Vec<_> = std::mem::take(&mut self.members).into_iter().map(Some).collect();
        for at in self.index.values_mut() {
            members.extend(old[*at].take());
            *at = members.len() - 1;
        }
        (self.members, self.vacant, self.present) = (members, Vec::new(), Vec::new());
        self.index.shrink_to_fit();
    }

    /// A group of this round.
    pub(crate) fn member(&self, at: usize) -> &Member {
        &self.members[at]
    }

    /// The group is a row of this round.
    pub(crate) fn list(&mut self, at: usize) {
        self.members[at].listed = self.round;
    }

    /// Whether the group at this place is a row of this round; `None` if it is another one by now.
    pub(crate) fn is_present(&self, at: usize, id: &Id) -> Option<bool> {
        let member = self.members.get(at)?;
        let (_, named) = member.named.as_ref()?;
        (named.id == *id).then_some(member.listed == self.round)
    }

    /// What a group of this round is called.
    pub(crate) fn named(
        &mut self,
        at: usize,
        sample: &Sample,
        files: bool,
        names: &mut dyn Names,
    ) -> Option<Arc<Subject>> {
        let by = self.by;
        let member = &mut self.members[at];
        let item = item::item(sample, files, member.latest)?;
        let alone = member.ended == Some(1);
        let under = member.under.map(|f| Family { begun: 0, ..f });
        let stamp = stamp(by, (&item, alone, under), names.version());
        if let Some((_, named)) = member.named.as_ref().filter(|(old, _)| *old == stamp) {
            return Some(named.clone());
        }
        let who = item::who(by, &item, names);
        let named = Arc::new(match member.ended {
            Some(_) if self.ended == Ended::Parent => Ended::below(under),
            Some(_) => self.ended.together(&who, alone),
            None => Subject { id: Id::new(by, &who), who },
        });
        // Looking it up may have taught the names something.
        member.named = Some((self::stamp(by, (&item, alone, under), names.version()), named.clone()));
        Some(named)
    }
}

/// The counters of a row.
pub(crate) fn counters(sample: &Sample, files: bool, row: usize) -> Option<&Sparse> {
    item::item(sample, files, row).map(|item| item.counters)
}

fn stamp(by: By, (item, alone, under): (&Item<'_>, bool, Option<Family>), version: u64) -> Stamp {
    let Item { uid, cgroup, comm, process, .. } = *item;
    let deleted = item.file.is_some_and(|(_, deleted)| deleted);
    let file = item.file.filter(|_| by.files()).map(|(file, _)| file.clone());
    Stamp { uid, cgroup, comm, process, deleted, file, version, alone, under }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;
    use crate::sample::Counter;
    use crate::sample::RowSample;
    use crate::view::fixtures;

    fn sample(rows: Vec<RowSample>) -> Sample {
        Sample { rows, ..fixtures::sample(crate::sample::Moment::now(), Duration::from_secs(1), &[]) }
    }

    fn row(tgid: u32, tid: u32, comm: &str, n: u64) -> RowSample {
        RowSample { tid, born: n, ..fixtures::process(tgid, comm, &[(Counter::ReadHits, n)]) }
    }

    /// Ids, names and hits of a round, as many as there are.
    fn call(roster: &mut Roster, sample: &Sample) -> Vec<(Id, String, u64)> {
        let mut names = fixtures::FakeNames::default();
        let sums = roster.call(sample, false, (&Filter::default(), &mut |_| false), &mut names);
        let all: Vec<usize> = roster.present.clone();
        let mut out = Vec::new();
        for at in all {
            roster.list(at);
            let named = roster.named(at, sample, false, &mut names).unwrap();
            let hits = match roster.member(at).place {
                Place::Row(i) => counters(sample, false, i).unwrap(),
                Place::Sum(n) => &sums[n],
            };
            let comm = named.who.comm.as_ref().unwrap().to_string();
            out.push((named.id.clone(), comm, hits.get(Counter::ReadHits)));
        }
        out
    }

    #[test]
    fn threads_add_up_and_the_name_is_the_latest() {
        let mut roster = Roster::new(By::Process, Ended::Unasked);
        let first = sample(vec![row(10, 10, "old", 1), row(20, 20, "dd", 5), row(10, 11, "new", 2)]);
        let expected = [(Id::Number(10), "new".into(), 3), (Id::Number(20), "dd".into(), 5)];
        assert_eq!(call(&mut roster, &first), expected);
        // The sums of a round are no part of the next one, and names that have changed are looked up.
        let second = sample(vec![row(20, 20, "sh", 7)]);
        assert_eq!(call(&mut roster, &second), [(Id::Number(20), "sh".into(), 7)]);
        assert_eq!(roster.is_present(0, &Id::Number(10)), Some(false));
        assert_eq!(roster.is_present(1, &Id::Number(20)), Some(true));
        // What counted something that is no figure of rows is no row.
        roster.call(
            &second,
            false,
            (&Filter::default(), &mut |_| false),
            &mut fixtures::FakeNames::default(),
        );
        assert_eq!(roster.is_present(1, &Id::Number(20)), Some(false));
    }

    #[test]
    fn a_file_that_gets_another_name_is_called_by_it() {
        let mut roster = Roster::new(By::File, Ended::Unasked);
        let mut names = fixtures::FakeNames::default();
        let mut path = |name: &str| {
            let dev = crate::files::Dev { major: 0, minor: 51 };
            let named = crate::files::Named::Loose;
            let file = File { dev, inode: 7, generation: 0, block: None, name: name.into(), named };
            let file = crate::sample::FileSample {
                tgid: 10,
                uid: 0,
                cgroup: 1,
                born: 1,
                process: "dd".into(),
                file: Arc::new(file),
                deleted: false,
                counters: fixtures::counters(&[(Counter::ReadHits, 1)]),
            };
            let some = Sample { files: vec![file], ..sample(Vec::new()) };
            roster.call(&some, true, (&Filter::default(), &mut |_| false), &mut names);
            let named = roster.named(0, &some, true, &mut names).unwrap();
            (named.who.path.as_ref().unwrap().to_string(), named.id.clone())
        };
        let (first, second) = (path("first"), path("second"));
        assert!(first.0.ends_with("first") && second.0.ends_with("second"), "{first:?} {second:?}");
        assert_eq!(first.1, second.1, "it is the same file");
    }

    #[test]
    fn names_are_made_once() {
        let mut roster = Roster::new(By::Process, Ended::Unasked);
        let mut names = fixtures::FakeNames::default();
        let some = sample(vec![row(10, 10, "dd", 1)]);
        let mut named = || {
            roster.call(&some, false, (&Filter::default(), &mut |_| false), &mut names);
            roster.named(0, &some, false, &mut names).unwrap()
        };
        assert!(Arc::ptr_eq(&named(), &named()));
    }

    #[test]
    fn those_of_long_ago_make_room() {
        let mut roster = Roster::new(By::Process, Ended::Unasked);
        for i in 0..200 {
            let storm = (0..100).map(|k| row(1000 + i * 100 + k, 1000 + i * 100 + k, "sh", 1)).collect();
            assert_eq!(call(&mut roster, &sample(storm)).len(), 100);
        }
        // Those of the last rounds, and a few.
        let most = 100 * (usize::try_from(KEPT).unwrap() + 2) + FEW;
        assert!(roster.members.len() < most, "{}", roster.members.len());
        // Its place has another owner now.
        assert_eq!(roster.is_present(0, &Id::Number(1000)), None);
    }

    #[test]
    fn a_burst_is_given_back() {
        const BURST: u32 = 4000;
        let mut roster = Roster::new(By::Process, Ended::Unasked);
        let lasting = |n| row(7, 7, "lasting", n);
        let mut most = 0;
        for i in 1..12 {
            let mut all: Vec<_> = (0..BURST).map(|k| row(i * BURST + k, i * BURST + k, "sh", 1)).collect();
            all.push(lasting(i.into()));
            assert_eq!(call(&mut roster, &sample(all)).len(), BURST as usize + 1);
            most = most.max(roster.members.len());
        }
        assert!(most <= 2 * BURST as usize + 2 * FEW, "{most}: those of this round, and of the last");
        let held = |roster: &Roster| {
            let of = [roster.members.capacity(), roster.index.capacity(), roster.vacant.capacity()];
            of.into_iter().chain([roster.present.capacity()]).max()
        };
        for i in 12..15 {
            assert_eq!(call(&mut roster, &sample(vec![lasting(i)])), [(Id::Number(7), "lasting".into(), i)]);
        }
        assert!(held(&roster) <= Some(8 * FEW), "{:?}", held(&roster));
        // Who has another place by now is found there, and those that shared it are not taken for it.
        let at = roster.present[0];
        assert_eq!(roster.is_present(at, &Id::Number(7)), Some(true));
        assert_eq!(roster.is_present(at, &Id::Number(12)), None);
    }
}
