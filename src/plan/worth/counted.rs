//! By which events each figure is counted.

use crate::figures::Evidence;
use crate::plan::Event;
use crate::plan::Event::*;

/// Requests that read.
const REQUESTS: &[Event] = &[
    Read,
    ReadEnded,
    ReadCut,
    UringRequest,
    Splice,
    SpliceEnded,
    TmpfsRead,
    TmpfsReadEnded,
    TmpfsSplice,
    TmpfsSpliceEnded,
];
/// What they ask for where it is not there.
const ASKED: &[Event] = &[ReadMisses, ReadAheadDue];
const WINDOWS: &[Event] = &[Window, WindowEnded, WindowLarge, WindowLargeEnded];
const FAULTS: &[Event] = &[Fault, FaultEnded, TmpfsFault, TmpfsFaultEnded];
const AROUND: &[Event] = &[MappedAround, MappedAroundEnded];
const MAPPED: &[Event] = &[PagesMapped, HugeMapped];
const WRITES: &[Event] = &[Write, WriteEnded, WriteIomap, WriteIomapEnded, WriteBtrfs, WriteBtrfsEnded];
const DIRECT: &[Event] = &[
    DeviceDirect,
    DeviceDirectEnded,
    DirectSubmitted,
    DirectQueued,
    DirectEnded,
    DirectShortEnded,
    DirectBuffersEnded,
];
const METADATA: &[Event] = &[BlockFound, BlockAhead, TreeFound, TreeMade, TreeRead, TreeAhead];
const ADDED: &[Event] = &[PageAdded];
/// What ends that a page was read ahead and not used.
const SPENT: &[Event] = &[PageDeleted, PageDirtied];

/// The events that a figure is made of, and those that decide which of several figures it is.
pub(in crate::plan) const fn events(evidence: Evidence) -> &'static [&'static [Event]] {
    match evidence {
        Evidence::Reads | Evidence::TimedReads => &[REQUESTS, ASKED, ADDED, SPENT],
        Evidence::Flights => &[REQUESTS, ADDED, &[InFlight]],
        Evidence::Fills => &[REQUESTS, ASKED, WINDOWS, ADDED],
        Evidence::Waste => &[REQUESTS, WINDOWS, FAULTS, AROUND, WRITES, ADDED, SPENT],
        Evidence::Windows => &[WINDOWS, ADDED],
        Evidence::Faults => &[FAULTS, ADDED],
        Evidence::CachedFaults => &[FAULTS, AROUND, &[HugeMapped], ADDED],
        Evidence::MappedAround => &[AROUND, MAPPED],
        Evidence::Writes => &[WRITES, &[TmpfsAdded], ADDED],
        Evidence::Dirtied => &[&[PageDirtied]],
        Evidence::Buffers => &[&[BufferDirtied]],
        Evidence::Direct => &[DIRECT],
        Evidence::FellBack => &[&[Read, ReadEnded], WRITES],
        Evidence::Metadata => &[METADATA, ADDED],
        Evidence::Removals => &[&[PageDeleted]],
        Evidence::Refaults => &[&[ReadBack]],
    }
}
