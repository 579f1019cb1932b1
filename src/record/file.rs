//! Frames in a file: where they begin, whether they are whole, and what is done about those that are not.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;

use flate2::Crc;
use flate2::Decompress;
use flate2::FlushDecompress;
use flate2::Status;

use crate::exit::Failure;
use crate::text::foreign::Foreign;
use crate::text::infile;
use crate::wait::Wake;

/// What a recording begins with: like PNG's, it shows that a transfer took it for text.
pub(super) const MAGIC: [u8; 12] = *b"\x89cachetop\r\n\x1a";
/// Version of the format.
pub(super) const VERSION: u32 = 1;
/// Magic, version, and nothing.
pub(super) const BEGIN: u64 = 16;
/// What a frame begins with.
const MARK: [u8; 2] = [0xca, 0x57];
/// Mark, kind, why the interval ended, length, checksum.
pub(super) const HEAD: usize = 12;
/// Of a key frame: its time, the segment before it, the last time in that.
const KEY: usize = 24;
/// Bytes of a frame at most, and what they become: 32 768 threads and as many files, all new and with long paths, are 20 MiB.
/// What is deflated can become a thousand times as much, and each byte of that some ten of memory.
const LONGEST: usize = 64 << 20;
pub(super) const LARGEST: usize = 64 << 20;
/// The complaint about what is more.
pub(super) const TOO_LARGE: &str = "it is larger than any tick";
pub(super) const TOO_LARGE_TO_WRITE: &str = "a tick is too large to be recorded";
/// What every flush of deflate ends with: it is not written.
pub(super) const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// What a segment says of itself before anything is decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub at: u64,
    /// Time of its first sample, nanoseconds since 1970.
    pub time: i64,
    /// Bytes back to the segment before it; 0 in the first.
    pub back: u64,
    /// Time of the last sample in that.
    pub before: i64,
}

fn checksum(kind: u8, wake: u8, payload: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&[kind, wake]);
    crc.update(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    crc.update(payload);
    crc.sum()
}

const fn wake_number(wake: Wake) -> u8 {
    match wake {
        Wake::Deadline | Wake::Over => 0,
        Wake::Interrupt => 1,
        Wake::Ended => 2,
    }
}

/// A frame as it is written.
///
/// # Errors
/// When it is larger than any reader takes.
pub(super) fn framed(segment: Option<Segment>, wake: Wake, compressed: &[u8]) -> io::Result<Vec<u8>> {
    let mut payload = Vec::with_capacity(compressed.len() + KEY);
    if let Some(s) = segment {
        payload.extend(s.time.to_le_bytes());
        payload.extend(s.back.to_le_bytes());
        payload.extend(s.before.to_le_bytes());
    }
    payload.extend(compressed);
    if payload.len() > LONGEST {
        return Err(io::Error::other(TOO_LARGE_TO_WRITE));
    }
    let (kind, wake) = (u8::from(segment.is_some()), wake_number(wake));
    let mut out = Vec::with_capacity(payload.len() + HEAD);
    out.extend(MARK);
    out.extend([kind, wake]);
    out.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(checksum(kind, wake, &payload).to_le_bytes());
    out.extend(payload);
    Ok(out)
}

/// What a recording begins with.
pub(super) fn beginning() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out
}

/// A frame, as it stands in the file.
pub(super) struct Raw {
    pub segment: Option<Segment>,
    pub wake: Wake,
    /// Where the next one begins.
    pub next: u64,
    payload: Vec<u8>,
}

impl Raw {
    fn compressed(&self) -> &[u8] {
        self.payload.get(if self.segment.is_some() { KEY } else { 0 }..).unwrap_or_default()
    }
}

/// What stands where a frame should be.
pub(super) enum Found {
    Frame(Raw),
    /// The end of the file.
    End,
    /// The file ends in the middle of a frame.
    Cut,
    /// Something else.
    Damaged,
}

/// A file that is read.
pub struct Reader {
    file: File,
    /// Bytes of what looked like frames and was none: a file may be made of what looks like them.
    wasted: Cell<u64>,
    /// Its name.
    pub path: PathBuf,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When it cannot be opened (1), or is none, or one of a newer version (2).
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = Foreign::from(path);
        let failed = |e: &io::Error| match e.kind() {
            io::ErrorKind::NotFound => Failure::usage(format!("there is no recording {name}"))
                .remedy("'cachestat --record FILE' makes one"),
            _ => Failure::failed(format!("cannot read {name}: {e}")),
        };
        let file = infile::open(path).map_err(|e| failed(&e))?;
        let file = file.ok_or_else(|| Failure::usage(format!("{name} is no recording: it is no file")))?;
        let mut begin = [0; BEGIN as usize];
        if let Err(e) = file.read_exact_at(&mut begin, 0) {
            return Err(match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Failure::usage(format!("{name} is no recording: it ends before it begins"))
                }
                _ => failed(&e),
            });
        }
        let (magic, version) = begin.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Failure::usage(format!("{name} is no recording of cachestat or cachetopd"))
                .remedy("'cachestat --record FILE' makes one"));
        }
        let version = u32::from_le_bytes(version.try_into().unwrap_or_default());
        if version != VERSION {
            return Err(Failure::usage(format!(
                "{name} was written by another version: format {version}, this one reads {VERSION}"
            ))
            .remedy("replay it with the version that recorded it, or a newer one"));
        }
        Ok(Self { file, wasted: Cell::new(0), path: path.into() })
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What stands at this place.
    pub(super) fn at(&self, at: u64) -> io::Result<Found> {
        let left = self.length()?.saturating_sub(at);
        let mut head = [0; HEAD];
        let there = usize::try_from(left).unwrap_or(usize::MAX).min(HEAD);
        self.file.read_exact_at(&mut head[..there], at)?;
        let [m0, m1, kind, wake, l0, l1, l2, l3, c0, c1, c2, c3] = head;
        if left == 0 {
            return Ok(Found::End);
        }
        if there < HEAD {
            return Ok(if head[..there.min(2)] == MARK[..there.min(2)] {
                Found::Cut
            } else {
                Found::Damaged
            });
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let wake = match wake {
            0 => Wake::Deadline,
            1 => Wake::Interrupt,
            2 => Wake::Ended,
            _ => return Ok(Found::Damaged),
        };
        if [m0, m1] != MARK || kind > 1 || length > LONGEST {
            return Ok(Found::Damaged);
        }
        if left < (HEAD + length) as u64 {
            return Ok(Found::Cut);
        }
        if self.wasted.get() > 2 * (at + left) + LONGEST as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged in too many places"));
        }
        let mut payload = vec![0; length];
        self.file.read_exact_at(&mut payload, at + HEAD as u64)?;
        if checksum(kind, wake_number(wake), &payload) != u32::from_le_bytes([c0, c1, c2, c3]) {
            self.wasted.set(self.wasted.get() + (HEAD + length) as u64);
            return Ok(Found::Damaged);
        }
        let segment = match (kind, payload.first_chunk::<KEY>()) {
            (0, _) => None,
            (_, None) => return Ok(Found::Damaged),
            (_, Some(key)) => {
                let number = |i: usize| {
                    let bytes = key.get(i..i + 8).and_then(|b| b.try_into().ok()).unwrap_or_default();
                    i64::from_le_bytes(bytes)
                };
                let back = u64::from_le_bytes(number(8).to_le_bytes());
                Some(Segment { at, time: number(0), back, before: number(16) })
            }
        };
        Ok(Found::Frame(Raw { segment, wake, next: at + (HEAD + length) as u64, payload }))
    }

    fn segment(&self, at: u64) -> io::Result<Option<Segment>> {
        Ok(match self.at(at)? {
            Found::Frame(raw) => raw.segment,
            _ => None,
        })
    }

    /// The first segment that begins at or behind this place.
    pub(super) fn segment_from(&self, from: u64) -> io::Result<Option<Segment>> {
        self.search(from)?.next()
    }

    fn search(&self, from: u64) -> io::Result<Search<'_>> {
        let at = from.max(BEGIN);
        Ok(Search { reader: self, end: self.length()?, at, piece: Vec::new(), begin: at })
    }

    /// All segments, in order: from the last one back, since each says where the one before it begins. Where that does not
    /// lead to the beginning, all of the file is looked through.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn segments(&self) -> io::Result<Vec<Segment>> {
        let end = self.length()?;
        let mut window = 1_u64 << 18;
        let last = loop {
            let from = end.saturating_sub(window).max(BEGIN);
            let (mut last, mut search) = (None, self.search(from)?);
            while let Some(found) = search.next()? {
                last = Some(found);
            }
            if last.is_some() || from == BEGIN {
                break last;
            }
            window *= 8;
        };
        let mut out: Vec<_> = last.into_iter().collect();
        while let Some(s) = out.last().copied().filter(|s| s.back != 0) {
            let before = s.at.checked_sub(s.back).filter(|at| *at >= BEGIN);
            match before.map(|at| self.segment(at)).transpose()?.flatten() {
                Some(before) => out.push(before),
                None => return self.all(),
            }
        }
        out.reverse();
        if out.first().is_some_and(|s| s.at != BEGIN) { self.all() } else { Ok(out) }
    }

    fn all(&self) -> io::Result<Vec<Segment>> {
        let (mut out, mut search) = (Vec::new(), self.search(BEGIN)?);
        while let Some(found) = search.next()? {
            out.push(found);
        }
        Ok(out)
    }
}

/// Looks for segments, from one place on.
struct Search<'a> {
    reader: &'a Reader,
    end: u64,
    /// Where to look on.
    at: u64,
    /// What was read last, and where it begins: a piece may have thousands of them, and is read once.
    piece: Vec<u8>,
    begin: u64,
}

impl Search<'_> {
    fn next(&mut self) -> io::Result<Option<Segment>> {
        loop {
            let behind = usize::try_from(self.at - self.begin).unwrap_or(usize::MAX);
            let rest = self.piece.get(behind..).unwrap_or_default();
            for (i, window) in rest.windows(3).enumerate() {
                let at = self.at + i as u64;
                if window == [MARK[0], MARK[1], 1] {
                    if let Some(found) = self.reader.segment(at)? {
                        self.at = at + HEAD as u64;
                        return Ok(Some(found));
                    }
                }
            }
            let done = self.begin + self.piece.len() as u64;
            if done.max(self.at) >= self.end {
                return Ok(None);
            }
            // A mark may lie across the pieces.
            self.at = self.at.max(done.saturating_sub(2));
            let there = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(1 << 16);
            (self.begin, self.piece) = (self.at, vec![0; there]);
            self.reader.file.read_exact_at(&mut self.piece, self.at)?;
        }
    }
}

/// Undoes the compression of a segment, frame by frame.
pub(super) struct Inflate(Decompress);

impl Inflate {
    pub fn new() -> Self {
        Self(Decompress::new(false))
    }

    /// Another segment begins.
    pub fn begin(&mut self) {
        self.0.reset(false);
    }

    /// What a frame says. After an error nothing more of the segment can be read.
    pub fn frame(&mut self, raw: &Raw) -> anyhow::Result<Vec<u8>> {
        let input = [raw.compressed(), &FLUSHED].concat();
        let (begin, mut out) = (self.0.total_in(), Vec::with_capacity(input.len() * 4));
        loop {
            let done = usize::try_from(self.0.total_in() - begin)?;
            let rest = input.get(done..).unwrap_or_default();
            let (before, had) = (out.len(), done);
            let status = self.0.decompress_vec(rest, &mut out, FlushDecompress::Sync)?;
            anyhow::ensure!(out.len() <= LARGEST, TOO_LARGE);
            let taken = usize::try_from(self.0.total_in() - begin)?;
            let full = out.len() == out.capacity();
            if status == Status::StreamEnd {
                anyhow::bail!("it ends where it should go on");
            }
            if taken == input.len() && !full {
                return Ok(out);
            }
            anyhow::ensure!(full || out.len() > before || taken > had, "it cannot be decompressed");
            // Room to see that it is too much, and none for more.
            out.reserve(out.len().max(1 << 14).min(LARGEST + 1 - out.len()));
        }
    }
}
