//! Rows that are printed as they are found: CSV and JSON in no requested order. What is in memory is what is under way.

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
use crate::exit::Failure;
use crate::options::Format;

/// Rows that wait to be printed: a walk is faster than a slow reader, and waits for it then.
const WAITING: usize = 256;
/// Bytes that are written at once while more rows are there.
const PIECE: usize = 1 << 16;

/// Takes rows, and hands them on as lines.
struct Stream<'a> {
    format: Format,
    least: u64,
    lines: SyncSender<Vec<u8>>,
    gone: &'a AtomicBool,
}

impl Sink for Stream<'_> {
    fn wants(&self, totals: &Totals) -> bool {
        totals.cached().unwrap_or(0) >= self.least
    }

    fn gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    fn take(&self, row: Row) {
        if !self.wants(&row.totals) {
            return;
        }
        // Fails only when nobody takes them any more.
        if let Ok(line) = printing::lines(self.format, std::slice::from_ref(&row)) {
            let _ = self.lines.send(line);
        }
    }
}

/// Does the work, and prints what it gives as it comes. The end of the work comes when all of it is printed, or soon after
/// nobody reads any more.
///
/// # Errors
/// Those of the work, and when the output cannot be written.
pub fn during<T: Send>(
    options: &Options,
    out: &mut dyn Write,
    work: impl FnOnce(&dyn Sink) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let (lines, rows) = mpsc::sync_channel(WAITING);
    let gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stream = Stream { format: options.format, least: options.least(), lines, gone: &gone };
        let worker = scope.spawn(move || work(&stream));
        let printed = print(options.format, &rows, out);
        // Who still has a row to hand on gets an error from now on, and whoever walks sees that it is over.
        gone.store(true, Relaxed);
        drop(rows);
        let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        printed.and(done)
    })
}

fn print(format: Format, rows: &mpsc::Receiver<Vec<u8>>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut piece = printing::head(format)?;
    while let Ok(line) = rows.recv() {
        piece.extend(line);
        while piece.len() < PIECE
            && let Ok(line) = rows.try_recv()
        {
            piece.extend(line);
        }
        if !printing::offer(&piece, out)? {
            return Ok(());
        }
        piece.clear();
    }
    printing::offer(&piece, out).map(drop)
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
