//! `--try read_ahead_kb=N`: the command is run as it is, then with another setting, and what came of it stands beside what
//! was predicted from the requests of the first run.

mod change;
mod doubts;
mod outcome;
pub(super) mod shown;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::example;

pub use change::Change;
pub use outcome::Count;
pub use outcome::FileOutcome;
pub use outcome::Outcome;
pub use outcome::Predicted;
pub use outcome::Share;
pub use outcome::Sized;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;

use super::data::FileRow;
use super::data::Run;
use super::gather;
use super::units;
use crate::exit::Failure;
use crate::files::Dev;
use crate::readahead::Request;
use crate::readahead::Setting;
use crate::readahead::Simulation;
use crate::readahead::keeper::Ended;
use crate::readahead::keeper::Keeper;
use crate::text::foreign;

/// The most that can be tried, KiB: 1 GiB.
const MOST: u64 = 1 << 20;

/// A device that holds less of what was fetched is left as it is: of programs and libraries a little is read, wherever they
/// are.
const LEAST: f64 = 0.01;

/// Reads what is to be tried: `read_ahead_kb=N`.
///
/// # Errors
/// Why it makes no sense.
pub fn parse(text: &str) -> Result<u64, String> {
    let Some(number) = text.strip_prefix("read_ahead_kb=") else {
        return Err("what can be tried is read_ahead_kb=N".into());
    };
    let kb: u64 = number.parse().map_err(|_| format!("'{number}' is no number of KiB"))?;
    let page = units::page() / 1024;
    if kb > MOST {
        return Err(format!("more than {MOST} KiB"));
    }
    if kb % page != 0 {
        return Err(format!("no whole pages: take a multiple of {page} KiB"));
    }
    Ok(kb)
}

/// The first run, simulated under several settings, and the setting that is tried.
pub(super) struct Trial {
    kb: u64,
    keeper: Keeper,
    /// As it was, as it is tried, `POSIX_FADV_RANDOM`, `POSIX_FADV_SEQUENTIAL`.
    simulated: [Simulation; 4],
    /// Of run 1, and of run 2.
    lost: [u64; 2],
    changes: Vec<Change>,
    /// Numbers of the devices, or file systems, that these are of.
    set_on: BTreeSet<String>,
    /// The settings of the machine when it began: the command may set one itself.
    then: BTreeMap<String, u64>,
}

impl Trial {
    /// To be called while there is one thread only.
    ///
    /// # Errors
    /// When there can be no process that puts the setting back.
    pub(super) fn start(kb: u64) -> io::Result<Self> {
        let pages = u32::try_from(kb * 1024 / units::page()).unwrap_or(u32::MAX);
        let settings = [Setting::AsItWas, Setting::Pages(pages), Setting::Random, Setting::Sequential];
        let (simulated, changes) = (settings.map(Simulation::new), Vec::new());
        let (keeper, then) = (Keeper::start()?, gather::settings());
        Ok(Self { kb, keeper, simulated, lost: [0; 2], changes, set_on: BTreeSet::new(), then })
    }

    /// Requests as they come, and how many did not come; those of the first run are simulated.
    pub(super) fn note(&mut self, requests: &[Request], lost: u64) {
        if self.changes.is_empty() {
            self.lost[0] = lost;
        } else {
            self.lost[1] = lost.saturating_sub(self.lost[0]);
        }
        for request in requests {
            match (request.late, request.run) {
                (false, 1) => self.simulated.iter_mut().for_each(|s| s.read(request)),
                (false, _) => {}
                // Each run has waited under its own setting.
                (true, run) => {
                    if let (1..=2, [first, second, ..]) = (run, &mut self.simulated) {
                        (if run == 1 { first } else { second }).late(request);
                    }
                }
            }
        }
    }

    /// Sets it on the devices from which the run has read.
    ///
    /// # Errors
    /// Where there is nothing to be tried, or it cannot be set. Then nothing is changed.
    pub(super) fn set(&mut self, run: &Run) -> Result<(), Failure> {
        let (paths, set_on) = devices(&run.every, gather::setting);
        if paths.is_empty() {
            let failure = Failure::usage("the command read nothing from a device that has a read_ahead_kb");
            return Err(failure.remedy("--try is for commands that read files by system calls"));
        }
        if paths.values().all(|before| *before == self.kb) {
            let names: Vec<&str> = paths.keys().map(String::as_str).collect();
            let failure = Failure::usage(format!("{} is {} already", names.join(", "), self.kb));
            return Err(failure.remedy("try another number"));
        }
        for path in paths.keys() {
            match self.keeper.set(path, self.kb) {
                Ok(before_kb) => {
                    let then_kb = self.then.get(path).copied().filter(|kb| *kb != before_kb);
                    self.changes.push(Change { then_kb, ..Change::new(path, before_kb) });
                }
                Err(why) => {
                    self.restore();
                    return Err(Failure::usage(format!(
                        "cannot try {} KiB: {}",
                        self.kb,
                        foreign::line(&why)
                    )));
                }
            }
        }
        self.set_on = set_on;
        Ok(())
    }

    /// Puts all back.
    fn restore(&mut self) {
        let ended = self.keeper.restore();
        for change in &mut self.changes {
            let of = |all: &Vec<(String, Ended)>| all.iter().find(|(p, _)| *p == change.path).cloned();
            change.end(ended.as_ref().map(|all| of(all).map(|(_, end)| end)).map_err(Clone::clone));
        }
    }

    /// Puts all back, and tells what came of it; `None` where nothing was tried. Also what could not be put back, where there is
    /// no outcome that says so.
    pub(super) fn finish(mut self, runs: &[Run]) -> (Option<Outcome>, Vec<String>) {
        self.restore();
        let tried = (self.changes, self.set_on);
        match runs {
            [first, second, ..] if !tried.0.is_empty() => {
                (Some(Outcome::new(self.kb, tried, &self.simulated, self.lost, [first, second])), Vec::new())
            }
            _ => (None, tried.0.iter().filter(|c| !c.restored).map(Change::not_restored).collect()),
        }
    }
}

/// The settings of the devices that hold what was fetched, and what they are; and the numbers of these devices. `setting`: of a
/// device.
fn devices(
    files: &[FileRow],
    setting: impl Fn(Dev) -> Option<(u64, String)>,
) -> (BTreeMap<String, u64>, BTreeSet<String>) {
    let fetched = |f: &FileRow| f.misses + f.readahead_pages;
    let all: u64 = files.iter().map(fetched).sum();
    let mut by_device: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for file in files {
        let btrfs = file.fs.as_deref() == Some("btrfs");
        *by_device.entry((&file.dev, btrfs)).or_default() += fetched(file);
    }
    let mut by_path: BTreeMap<String, (u64, u64, Vec<&str>)> = BTreeMap::new();
    for ((dev, btrfs), pages) in by_device {
        let Some((kb, path)) = device(dev).and_then(&setting) else { continue };
        // The numbers of btrfs name no device, and are like those of file systems without one.
        if path.contains("/btrfs-") && !btrfs {
            continue;
        }
        // Two names of one setting are one.
        let path = std::fs::canonicalize(&path).map_or(path, |p| p.display().to_string());
        let (_, sum, of) = by_path.entry(path).or_insert((kb, 0, Vec::new()));
        *sum += pages;
        of.push(dev);
    }
    by_path.retain(|_, (_, n, _)| *n > 0 && super::units::share(*n, all) >= LEAST);
    let set_on = by_path.values().flat_map(|(_, _, of)| of).map(|dev| (*dev).to_owned()).collect();
    (by_path.into_iter().map(|(path, (kb, ..))| (path, kb)).collect(), set_on)
}

fn device(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev { major: major.parse().ok()?, minor: minor.parse().ok()? })
}
