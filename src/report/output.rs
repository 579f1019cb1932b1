//! Where a report goes.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use rustix::termios::Winsize;
use rustix::termios::tcgetwinsize;

use super::Report;
use super::assert;
use super::export;
use super::html;
use super::json;
use super::options::Options;
use super::text;
use crate::exit::Failure;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::outfile::Target;

/// How the text is written: as wide, and as long, as the terminal that it goes to.
fn style(options: &Options) -> text::Style {
    let size = match options.output.as_deref() {
        None => tcgetwinsize(io::stderr()),
        Some(path) if path == Path::new("-") => tcgetwinsize(io::stdout()),
        Some(_) => Err(rustix::io::Errno::NOTTY),
    };
    let columns = std::env::var("COLUMNS").ok();
    let of = |side: fn(&Winsize) -> u16| size.as_ref().ok().map(|s| usize::from(side(s)));
    text::Style::new(of(|s| s.ws_col), columns.as_deref(), options.unit, options.verbose)
        .on_lines(of(|s| s.ws_row))
}

/// The files to be written, looked at before the command runs: an hour's work must not end in "no such directory". What
/// is there stays until there is something better: the command may not even start.
pub(super) struct Outputs {
    report: Option<Target>,
    save: Option<Target>,
    html: Option<Target>,
    junit: Option<Target>,
    exports: [Option<Target>; 3],
}

/// What is exported, where to, and how it is made.
type Export<'a> = (Option<&'a Path>, fn(&Report) -> String);

fn exports(options: &Options) -> [Export<'_>; 3] {
    [
        (options.export_json.as_deref(), export::json),
        (options.export_csv.as_deref(), export::csv),
        (options.export_markdown.as_deref(), export::markdown),
    ]
}

impl Outputs {
    /// Finds out whether they can be written.
    pub(super) fn open(options: &Options) -> Result<Self, Failure> {
        let new = |path: &Path| Target::new(path).map_err(|e| e.about_the_request(path));
        let open = |path: Option<&Path>| path.map(new).transpose();
        let [json, csv, markdown] = exports(options).map(|(path, _)| open(path));
        Ok(Self {
            exports: [json?, csv?, markdown?],
            report: open(options.output.as_deref())?,
            save: open(options.save.as_deref())?,
            html: open(options.html.as_deref())?,
            junit: open(options.junit.as_deref())?,
        })
    }

    /// Whether there are any beside standard output and standard error.
    pub(super) fn any(options: &Options) -> bool {
        let mut named = exports(options).map(|(path, _)| path).into_iter().chain([
            options.output.as_deref(),
            options.save.as_deref(),
            options.html.as_deref(),
            options.junit.as_deref(),
        ]);
        named.any(|path| path.is_some_and(|path| path != Path::new("-")))
    }

    /// Writes the report to all of them.
    pub(super) fn write(self, options: &Options, report: &Report) -> Result<(), Failure> {
        let object = json::object(report);
        let shown = if options.json {
            format!("{}\n", foreign::json(&object))
        } else {
            text::show(report, style(options))
        };
        let put = |target: Option<Target>, path: Option<&Path>, text: &str| match (target, path) {
            (Some(target), Some(path)) => target.write(text.as_bytes()).map_err(|e| e.about(path)),
            _ => Ok(()),
        };
        let shown_too = self.report.is_none();
        let page = if self.html.is_some() { html::page(report) } else { String::new() };
        let seconds: f64 = report.runs.iter().map(|r| r.wall_s).sum();
        let mut written = vec![
            put(self.save, options.save.as_deref(), &format!("{}\n", foreign::json(&object))),
            put(self.html, options.html.as_deref(), &page),
            put(self.junit, options.junit.as_deref(), &assert::junit(&report.assertions, seconds)),
            put(self.report, options.output.as_deref(), &shown),
        ];
        for (target, (path, text)) in self.exports.into_iter().zip(exports(options)) {
            let text = if target.is_some() { text(report) } else { String::new() };
            written.push(put(target, path, &text));
        }
        // What a full disk has no room for is shown after all: the run may have taken hours.
        if shown_too || written.iter().any(Result::is_err) {
            match io::stderr().write_all(shown.as_bytes()) {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                    return Err(Failure::failed(format!("cannot write the report: {e}")));
                }
                _ => {}
            }
        }
        let _ = io::stderr().write_all(assert::lines(&report.assertions).as_bytes());
        // Where that runs the tests, it reads annotations from standard output.
        if std::env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true") {
            let _ = io::stdout().write_all(assert::annotations(&report.assertions).as_bytes());
        }
        written.into_iter().collect()
    }
}

/// Says why the command did not start; the exit codes are those of a shell.
pub(super) fn not_started(command: &[OsString], error: &io::Error) -> ExitCode {
    let name = command.first().map(|n| Foreign::from(n.as_os_str())).unwrap_or_default();
    let _ = writeln!(io::stderr(), "cachestat: error: cannot run {name}: {error}");
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}
