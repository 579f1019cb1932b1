//! How long read calls take: as many in each histogram as there were, and no longer than the caller's own clock says.
//! Compared with `--latency` only.

use std::os::unix::fs::FileExt;
use std::time::Instant;

use anyhow::Result;
use cachetop::figures::Figure;

use super::*;
use crate::sys;

pub const LIST: &[Scenario] = &[
    scenario("latency-warm", ALL, "100 reads that hit", |c| timed(c, true)),
    scenario("latency-cold", BLOCK, "100 reads that miss, FADV_RANDOM", |c| timed(c, false)),
    scenario("latency-mixed", BLOCK, "reads of 16 KiB with read-ahead: some miss, some do not", mixed),
];

const CALLS: u64 = 100;

fn timed(c: &mut Ctx, is_warm: bool) -> Result<Expect> {
    let (file, mut o) = if is_warm { warm(c, ODD)? } else { cold(c, ODD)? };
    sys::advise(&file, 0, 0, libc::POSIX_FADV_RANDOM)?;
    let mut buf = buffer(PAGE);
    c.begin();
    let mut clock = 0;
    for i in 0..CALLS {
        let pos = i * 5 * PAGE;
        o.read(pos, || {
            let start = Instant::now();
            let got = file.read_at(&mut buf, pos);
            clock += start.elapsed().as_nanos() as u64;
            got
        })?;
    }
    // At the end of the file a read delivers nothing, and is no call that hit or missed.
    let past = ODD.next_multiple_of(PAGE);
    o.read(past, || file.read_at(&mut buf, past))?;
    let mut e = o.expect();
    e.within(Figure::StallNs, u64::from(!is_warm), if is_warm { 0 } else { clock }, "no more than our clock");
    e.calls = Some(if is_warm { (CALLS, 0) } else { (0, CALLS) });
    e.exact(Figure::ReadCalls, CALLS).exact(Figure::ReadMissedCalls, if is_warm { 0 } else { CALLS });
    Ok(e)
}

fn mixed(c: &mut Ctx) -> Result<Expect> {
    let (file, mut o) = cold(c, ODD)?;
    let mut buf = buffer(4 * PAGE);
    c.begin();
    let (mut clock, mut calls) = (0, (0, 0));
    for pos in (0..ODD).step_by(4 * PAGE as usize) {
        let was = o.tally.misses;
        let mut took = 0;
        o.read(pos, || {
            let start = Instant::now();
            let got = file.read_at(&mut buf, pos);
            took = start.elapsed().as_nanos() as u64;
            got
        })?;
        if o.tally.misses > was {
            clock += took;
            calls.1 += 1;
        } else {
            calls.0 += 1;
        }
    }
    let mut e = o.expect();
    e.within(Figure::StallNs, 1, clock, "no more than our clock");
    e.calls = Some(calls);
    Ok(e)
}
