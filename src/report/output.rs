//! Where a report goes.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Report;
use super::html;
use super::json;
use super::text;
use crate::cli::Args;
use crate::exit::Failure;
use crate::foreign;
use crate::foreign::Foreign;

/// The files to be written, opened before the command runs: an hour's work must not end in "no such directory".
pub(super) struct Outputs {
    report: Option<File>,
    save: Option<File>,
    html: Option<File>,
}

impl Outputs {
    /// Opens them.
    pub(super) fn open(args: &Args) -> Result<Self, Failure> {
        // What is there stays until there is something better: the command may not even start.
        let create = |p: &Path| File::options().write(true).create(true).truncate(false).open(p);
        let open = |path: Option<&Path>| path.map(|p| create(p).map_err(|e| cannot(p, &e))).transpose();
        let w = &args.watched;
        Ok(Self {
            report: open(w.output.as_deref())?,
            save: open(w.save.as_deref())?,
            html: open(w.html.as_deref())?,
        })
    }

    /// Writes the report to all of them.
    pub(super) fn write(&mut self, args: &Args, report: &Report) -> Result<(), Failure> {
        let w = &args.watched;
        let object = json::object(report);
        let shown = if args.json { format!("{}\n", foreign::json(&object)) } else { text::show(report) };
        let put = |file: &mut Option<File>, path: Option<&Path>, text: &str| match (file, path) {
            (Some(file), Some(path)) => replace(file, text).map_err(|e| cannot(path, &e)),
            _ => Ok(()),
        };
        let page = if self.html.is_some() { html::page(report) } else { String::new() };
        let written = [
            put(&mut self.save, w.save.as_deref(), &format!("{}\n", foreign::json(&object))),
            put(&mut self.html, w.html.as_deref(), &page),
            put(&mut self.report, w.output.as_deref(), &shown),
        ];
        // What a full disk has no room for is shown after all: the run may have taken hours.
        if self.report.is_none() || written.iter().any(Result::is_err) {
            match io::stderr().write_all(shown.as_bytes()) {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                    return Err(Failure::failed(format!("cannot write the report: {e}")));
                }
                _ => {}
            }
        }
        written.into_iter().collect()
    }
}

/// Writes a file anew; a pipe or a device has no end to be cut off.
fn replace(file: &mut File, text: &str) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", Foreign::from(path)))
        .remedy("name a file in a directory that is there and may be written")
}

/// Says why the command did not start; the exit codes are those of a shell.
pub(super) fn not_started(command: &[OsString], error: &io::Error) -> ExitCode {
    let name = command.first().map(|n| Foreign::from(n.as_os_str())).unwrap_or_default();
    let _ = writeln!(io::stderr(), "cachestat: error: cannot run {name}: {error}");
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}
