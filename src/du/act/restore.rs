//! Reading the pages of a set into the cache.

use std::io::Write;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustix::fs::FileType;
use rustix::fs::Statx;

use super::Again;
use super::Deed;
use super::cached_of;
use super::deed;
use super::load_runs;
use super::memory;
use super::report::Report;
use super::wanted;
use crate::du::found::End;
use crate::du::opening;
use crate::du::opening::Aim;
use crate::du::options::Options;
use crate::du::progress;
use crate::du::residency::Unknown;
use crate::du::set;
use crate::du::stream;
use crate::exit::Failure;
use crate::text::numbers::bytes;

/// Opens a file of a set, if it is the one that was saved. Sets may come from others, and name what they like: that is no
/// reason to read devices, or what lies in the directory where we happen to be.
fn reopened(file: &set::File, trust: bool, aim: Aim) -> Result<(OwnedFd, Statx), Unknown> {
    if !trust && file.path.is_relative() {
        return Err(Unknown::Untrusted("not a whole path"));
    }
    let (fd, stat) = opening::open_named(&file.path, aim)?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile {
        if !trust {
            return Err(Unknown::Untrusted("not a regular file"));
        }
    } else if !file.is(&stat) {
        return Err(Unknown::Replaced);
    }
    Ok((fd, stat))
}

/// Reads the pages of a set into the cache. The set was read to its end before, so nothing is done for a damaged one; it
/// is read again while that is done, and is never in memory as a whole.
///
/// # Errors
/// Wrong usage for what is no set, and when the report cannot be written.
pub fn restore(
    set: &set::Source,
    options: &Options,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let head = set.check()?;
    if head.page_size != rustix::param::page_size() as u64 {
        return Err(Failure::failed(format!("the set was made with pages of {} bytes", head.page_size))
            .remedy("make it anew on this machine"));
    }
    let report = Report::new("restore", options);
    let (done, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let ask = options.ask();
    let so_far = || {
        let read = match read.load(Relaxed) {
            0 => String::new(),
            n => format!(", {} read", bytes(n)),
        };
        format!("{} of {} files{read}", done.load(Relaxed), head.files)
    };
    stream::pump(report.head(), out, |lines| {
        let again = Again::new(options, &report, lines);
        let one = |file: &set::File| -> Result<Deed, Unknown> {
            let aim = if options.dry_run { Aim::Look } else { Aim::Act };
            let (fd, _) = match reopened(file, options.trust, aim) {
                Err(why) if options.dry_run && why.withheld() => return Ok(deed(Err(why), Err(why))),
                opened => opened?,
            };
            if options.dry_run {
                let now = cached_of(fd.as_fd(), &file.runs, ask)?;
                return Ok(Deed { memory: memory(fd.as_fd()), ..deed(now.map(|r| r.cached), now) });
            }
            let done = load_runs(&fd, &file.runs, ask, &read);
            if done.is_err() {
                again.never(fd.as_fd());
            }
            done
        };
        report.most(head.pages);
        progress::during(options.shows_progress(), so_far, || {
            set.files()?.par_bridge().try_for_each(|file| {
                let file = file?;
                if !lines.gone() {
                    report.add(&file.path, one(&file), lines);
                    done.fetch_add(1, Relaxed);
                }
                Ok::<_, Failure>(())
            })
        })?;
        let look = |file: &set::File| {
            let Ok((fd, stat)) = reopened(file, options.trust, Aim::Look) else { return };
            let Ok(Ok(now)) = cached_of(fd.as_fd(), &file.runs, ask) else { return };
            let wanted = wanted(&file.runs, now.size);
            if now.cached < wanted && again.judged(&stat) {
                report.gone(&file.path, now.cached, wanted - now.cached, lines);
            }
        };
        if !options.dry_run && !lines.gone() {
            set.files()?.par_bridge().try_for_each(|file| file.map(|file| look(&file)))?;
        }
        report.last(lines);
        Ok(())
    })?;
    report.print(out, err)
}
