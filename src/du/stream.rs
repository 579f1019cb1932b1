//! Lines that are printed as they are made, by all threads: what is in memory is what is under way.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::sync::mpsc::SyncSender;

use super::options::Options;
use super::printing;
use super::row::Row;
use super::row::Sink;
use super::totals::Totals;
use super::view::Shape;
use crate::exit::Failure;
use crate::limits::Shortage;
use crate::options::Format;

/// Lines that wait to be printed: a walk is faster than a slow reader, and waits for it then.
const WAITING: usize = 256;
/// Bytes that are written at once while more lines are there.
const PIECE: usize = 1 << 16;

/// Takes lines from all threads.
#[derive(Debug)]
pub struct Lines<'a> {
    lines: SyncSender<Vec<u8>>,
    gone: &'a AtomicBool,
}

impl Lines<'_> {
    /// Hands on a line, or several that belong together.
    pub fn send(&self, text: Vec<u8>) {
        // Fails only when nobody takes them any more.
        let _ = self.lines.send(text);
    }

    /// Whether nobody reads them any more.
    #[must_use]
    pub fn gone(&self) -> bool {
        self.gone.load(Relaxed)
    }
}

/// Does the work, and prints the lines that it makes as they come, after those of the `head`. The end of the work comes
/// when all of it is printed, or soon after nobody reads any more.
///
/// # Errors
/// Those of the work, and when the output cannot be written.
pub fn pump<T: Send>(
    head: Vec<u8>,
    out: &mut dyn Write,
    work: impl FnOnce(&Lines<'_>) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let (lines, made) = mpsc::sync_channel(WAITING);
    let gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lines = Lines { lines, gone: &gone };
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || work(&lines));
        let worker = worker.map_err(|_| Failure::from(Shortage::Threads))?;
        let printed = print(head, &made, out);
        // Who still has a line to hand on gets an error from now on, and whoever walks sees that it is over.
        gone.store(true, Relaxed);
        drop(made);
        let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        printed.and(done)
    })
}

fn print(mut piece: Vec<u8>, lines: &mpsc::Receiver<Vec<u8>>, out: &mut dyn Write) -> Result<(), Failure> {
    while let Ok(line) = lines.recv() {
        piece.extend(line);
        while piece.len() < PIECE {
            let Ok(line) = lines.try_recv() else { break };
            piece.extend(line);
        }
        if !printing::offer(&piece, out)? {
            return Ok(());
        }
        piece.clear();
    }
    printing::offer(&piece, out).map(drop)
}

/// Takes rows, and hands them on as lines of CSV or JSON.
struct Stream<'a> {
    format: Format,
    shape: Shape<'a>,
    least: u64,
    lines: &'a Lines<'a>,
}

impl Sink for Stream<'_> {
    fn wants(&self, totals: &Totals) -> bool {
        totals.cached().unwrap_or(0) >= self.least
    }

    fn gone(&self) -> bool {
        self.lines.gone()
    }

    fn take(&self, row: Row) {
        let mut line = Vec::new();
        self.written(&row, &mut line);
        self.hand_on(line);
    }

    fn written(&self, row: &Row, to: &mut Vec<u8>) -> bool {
        if self.wants(&row.totals) {
            // Fails where memory does.
            let _ = printing::line(self.format, row, &self.shape, to);
        }
        true
    }

    fn hand_on(&self, written: Vec<u8>) {
        if !written.is_empty() {
            self.lines.send(written);
        }
    }
}

/// Does the work, and prints the rows that it gives as they come, in no requested order.
///
/// # Errors
/// Those of the work, and when the output cannot be written.
pub fn during<T: Send>(
    options: &Options,
    out: &mut dyn Write,
    work: impl FnOnce(&dyn Sink) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let shape = options.shape();
    pump(printing::head(options.format, &shape)?, out, |lines| {
        work(&Stream { format: options.format, shape, least: options.least(), lines })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io;

    use super::super::row::Kind;
    use super::*;

    fn row(n: usize) -> Row {
        let totals = Totals { files: 1, cached: n as u64, pages: n as u64, ..Totals::default() };
        Row::new(Kind::File, format!("f{n}").into(), 1, totals, None)
    }

    fn options(format: Format, min: Option<u64>) -> Options {
        Options { format, min, ..Options::default() }
    }

    /// Takes so many bytes, and then fails with this.
    struct Narrow(usize, io::ErrorKind);

    impl Write for Narrow {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(text.len()).ok_or(self.1)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_rows_come_out_once() {
        let mut out = Vec::new();
        let page = rustix::param::page_size() as u64;
        let done = during(&options(Format::Csv, Some(3 * page)), &mut out, |sink| {
            (0..10_000).for_each(|n| sink.take(row(n)));
            Ok(7)
        });
        assert_eq!(done.unwrap(), 7);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 10_000 - 3, "names, and what has enough");
        assert!(lines[0].starts_with("type,") && lines[1].ends_with("f3") && lines[9997].ends_with("f9999"));
        let mut out = Vec::new();
        let one = |sink: &dyn Sink| {
            sink.take(row(1));
            Ok(())
        };
        during(&options(Format::Json, None), &mut out, one).unwrap();
        assert!(out.starts_with(b"{\"type\":\"file\",\"path\":\"f1\"") && out.ends_with(b"}\n"));
    }

    #[test]
    fn the_work_ends_when_nobody_reads_any_more() {
        let endless = |sink: &dyn Sink| {
            let mut n = 0;
            while !sink.gone() {
                sink.take(row(n));
                n += 1;
            }
            Ok(())
        };
        // A reader that has gone is no error, a full disk is.
        let to = |kind| during(&options(Format::Json, None), &mut Narrow(100_000, kind), endless);
        assert!(to(io::ErrorKind::BrokenPipe).is_ok());
        assert!(to(io::ErrorKind::StorageFull).unwrap_err().message.contains("cannot write the output"));
        // An error of the work is not hidden by an output that took all.
        let failed =
            during(&options(Format::Csv, None), &mut Vec::new(), |_| Err::<(), _>(Failure::usage("no")));
        assert_eq!(failed.unwrap_err().message, "no");
    }
}
