//! `cachetopd` from its options to its end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::time::Instant;

use super::exposition;
use super::http;
use super::options::Options;
use super::otlp;
use super::say::say;
use super::sockets;
use super::sums::Sums;
use super::textfile;
use super::textfile::Held;
use super::textfile::unwritten;
use super::used;
use super::watching::Watching;
use super::web::Web;
use crate::engines::Engines;
use crate::exit::Failure;
use crate::exit::started;
use crate::live::Beat;
use crate::live::Relief;
use crate::names::System;
use crate::only::Only;
use crate::plan::Event;
use crate::plan::SketchBy;
use crate::plan::Wants;
use crate::privilege;
use crate::privilege::Role;
use crate::record::moments::Moments;
use crate::record::writer::Writer;
use crate::record::writer::has_no_recorder;
use crate::room::Table;
use crate::sample::Sample;
use crate::sample::Source;
use crate::text::foreign::Foreign;
use crate::text::outfile;
use crate::text::output;
use crate::wait;
use crate::wait::Wait;
use crate::wait::Wake;

/// How often it is counted what of the tables in the kernel is in use.
const COUNTED: Duration = Duration::from_secs(5);

/// Counts until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn cachetopd(options: &Options) -> Result<(), Failure> {
    // Mistakes are reported before anything is loaded.
    let web = web(options)?;
    let listeners = listeners(options)?;
    let held = textfile::hold(options)?;
    let since = jiff::Timestamp::now();
    let mut wait = wait::System::new(wait::Processes::default()).map_err(anyhow::Error::from)?;
    let session = options.counting.session(wants(options), Only::default());
    let open = || Engines::open(&session, options.counting.engine);
    let Some(mut engines) = wait.unless_asked(open)? else { return Ok(()) };
    if options.counting.explain {
        return output::print(&engines.explained(Role::Daemon, false), &mut io::stdout().lock());
    }
    if let Some(notice) = engines.notice() {
        say(&format!("warning: {notice}"));
    }
    let used = used(options, &mut engines)?;
    let tables = Tables { all: engines.tables(), counted: None };
    let mut writer = match &options.record {
        Some((directory, bounds)) => Some(Writer::ring(directory, *bounds, options.interval)?),
        None => None,
    };
    // Now it is there, if the directory of the record is that of the text file.
    let _held = match held {
        Held::Later => textfile::hold(options)?,
        held => held,
    };
    let moments = options.moments().map(|at| Moments::new(at, options.moments, options.interval));
    let mut names = System::new();
    let mut sums = Sums::new(options.series, options.interval);
    sums.since = since;
    sums.unrecorded = writer.as_ref().map(|_| 0);
    let sums = Arc::new(Mutex::new(sums));
    // What `--then` runs is begun by a thread that there is before: it may write where its user may.
    let watching = Watching::new(options, engines.plan(), &sums)?;
    let writes =
        [options.record.as_ref().map(|(directory, _)| directory.as_path()), options.textfile.as_deref()];
    Role::Daemon.take(&writes.into_iter().flatten().collect::<Vec<_>>())?;
    // The first sample before anybody asks.
    let mut state = State {
        options,
        sums: &sums,
        writer: writer.as_mut(),
        moments,
        before: None,
        names: &mut names,
        said: Said::default(),
        watching,
        used,
        tables,
    };
    let beat = Beat::new(wait.now(), options.interval);
    state.tick(&mut engines, Wake::Deadline)?;
    answer(listeners, web, &sums)?;
    let sender = send(options, &sums)?;
    ready();
    state.run(&mut engines, &mut wait, beat)?;
    // What came last is sent.
    drop(sender);
    Ok(())
}

/// Where it listens. Other mistakes in what is asked for are told here, too.
fn listeners(options: &Options) -> Result<Vec<OwnedFd>, Failure> {
    let listeners = match options.listen.filter(|_| !options.counting.explain) {
        Some(address) => sockets::open(address)?,
        None => Vec::new(),
    };
    if let Some((directory, _)) = options.record.as_ref().filter(|_| !options.counting.explain) {
        has_no_recorder(directory)?;
    }
    Ok(listeners)
}

/// What is to be counted.
fn wants(options: &Options) -> Wants {
    // What a moment is to show must be counted before it comes.
    let full = options.moments().is_some();
    Wants {
        latency: options.latency || full,
        files: options.files || full,
        sketches: options.working_set.then_some(SketchBy::Cgroup),
        ..Wants::default()
    }
}

/// Who measures the working set, where it was asked for and can be known.
fn used(options: &Options, engines: &mut Engines) -> Result<Option<used::Watching>, Failure> {
    let moves = engines.sees(Event::ThreadCgroup);
    let used = match engines.attached().filter(|_| options.working_set) {
        Some(attached) => Some(used::Watching::new(attached, options.series, moves)?),
        None => None,
    };
    if options.working_set && used.is_none() {
        say("warning: the working set is not told: the classic engine does not know which pages are used");
    }
    Ok(used)
}

/// Begins the thread that answers, where anybody may ask.
fn answer(listeners: Vec<OwnedFd>, web: Web, sums: &Arc<Mutex<Sums>>) -> Result<(), Failure> {
    if listeners.is_empty() {
        return Ok(());
    }
    let tls = web.rules().tls.is_some();
    let names: Vec<_> = listeners.iter().map(|listener| sockets::name(listener, tls)).collect();
    let sums = Arc::clone(sums);
    let (tell, begun) = sync_channel(1);
    let answer = move || {
        // Who answers strangers needs nothing but the connection.
        let server = privilege::keep(&[]).and_then(|()| http::Server::new(listeners, web, &sums));
        let (server, told) = match server {
            Ok(server) => (Some(server), Ok(())),
            Err(e) => (None, Err(e)),
        };
        let _ = tell.send(told);
        if let Some(Err(e)) = server.map(http::Server::serve) {
            say(&format!("error: cannot answer any more: {e}"));
        }
    };
    started(std::thread::Builder::new().name("http".into()).spawn(answer))?;
    // Else it would stay, and be mute.
    started(begun.recv().unwrap_or_else(|_| Err(io::Error::other("whoever answers has ended"))))?;
    names.iter().for_each(|name| say(&format!("listening on {name}")));
    Ok(())
}

/// Begins the thread that sends, where it is asked for.
fn send(options: &Options, sums: &Arc<Mutex<Sums>>) -> Result<Option<otlp::Sender>, Failure> {
    let Some(target) = &options.otlp else { return Ok(None) };
    let sender = started(otlp::Sender::new(target, Arc::clone(sums), say))?;
    say(&format!("sending metrics to {}", Foreign::from(target.url.clone())));
    if !target.headers.is_empty() && !target.is_here() {
        say("warning: headers of requests are sent unencrypted to another machine");
    }
    Ok(Some(sender))
}

/// Who may ask, as the web configuration has it.
fn web(options: &Options) -> Result<Web, Failure> {
    let web = Web::read(options.web.as_deref()).map_err(|e| {
        Failure::usage(format!("'--web-config-file': {e}"))
            .remedy("docs/guide/cachetopd.md has the keys that are heeded")
    })?;
    let others = options.listen.is_some_and(|address| !address.ip().is_loopback());
    if others && !options.anywhere && !web.rules().closed() {
        return Err(Failure::usage("'--listen' is open to others there").remedy(
            "the web configuration needs TLS, and passwords or certificates of clients; or add '--listen-anywhere'",
        ));
    }
    if others && web.rules().tls.is_none() && !web.rules().users.is_empty() {
        say("warning: passwords come unencrypted: the web configuration has no TLS");
    }
    Ok(web)
}

/// What was said already: once for each stretch of trouble.
#[derive(Default)]
struct Said {
    unrecorded: bool,
    unkept: bool,
    unwritten: bool,
    lost: Option<crate::loss::Touches>,
    /// Losses that there were when they were said.
    losses: u64,
}

struct State<'a> {
    options: &'a Options,
    sums: &'a Mutex<Sums>,
    writer: Option<&'a mut Writer>,
    moments: Option<Moments>,
    /// The last sample, without its rows.
    before: Option<Sample>,
    names: &'a mut System,
    said: Said,
    watching: Watching,
    used: Option<used::Watching>,
    tables: Tables,
}

/// The tables in the kernel, and when it was counted what of them is in use.
struct Tables {
    all: Vec<Table>,
    counted: Option<Instant>,
}

impl State<'_> {
    /// On the beat, until a signal asks for the end.
    fn run(&mut self, engines: &mut Engines, wait: &mut wait::System, mut beat: Beat) -> Result<(), Failure> {
        let mut relief = Relief::new(engines, wait.now());
        loop {
            let slot = self.used.as_ref().map(used::Watching::due);
            let due = relief.due(beat.deadline());
            let until = slot.into_iter().chain(due).fold(beat.deadline(), std::cmp::min);
            let wake = wait.until(until).map_err(anyhow::Error::from)?;
            self.turn(engines)?;
            if wake == Wake::Deadline && wait.now() < beat.deadline() {
                if due.is_some_and(|due| due <= wait.now()) {
                    engines.relieve()?;
                    relief.done(wait.now());
                }
                continue;
            }
            self.tick(engines, wake)?;
            relief.done(wait.now());
            if wake != Wake::Deadline {
                return Ok(());
            }
            beat.advance(wait.now());
        }
    }

    fn tick(&mut self, engines: &mut Engines, wake: Wake) -> Result<(), Failure> {
        self.count(engines);
        let mut sample = engines.sample()?;
        let total = sample.lost.total();
        if crate::loss::reaches_further(&mut self.said.lost, &sample.lost) {
            say(&format!("warning: {}", crate::loss::sentence(&sample.lost)));
            self.said.losses = total;
        }
        if let Some(text) =
            crate::loss::over_all(&sample.lost, self.said.losses).filter(|_| wake != Wake::Deadline)
        {
            say(&text);
        }
        // Not while the sums are held: what is run then counts there, too. And before it is written, so that the mark is in it.
        let before = self.before.replace(sample.without_rows());
        let told = before
            .map(|before| self.watching.look((&before, &sample), engines.plan(), self.moments.as_mut()));
        self.keep(&mut sample, wake);
        let mut failed = false;
        if let Some(writer) = self.writer.as_deref_mut() {
            told.into_iter().flatten().for_each(|line| writer.mark(line));
            match writer.write(&mut sample, self.names, wake) {
                Ok(_) => over(&mut self.said.unrecorded, "it is recorded again"),
                Err(e) => {
                    failed = true;
                    if !std::mem::replace(&mut self.said.unrecorded, true) {
                        say(&format!("warning: nothing is recorded: {e:#}"));
                    }
                }
            }
            while let Some(text) = writer.hindrance() {
                say(&format!("warning: {text}"));
            }
        }
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.unrecorded = sums.unrecorded.map(|n| n + u64::from(failed));
        sums.moments = self.watching.counts();
        sums.add(sample, engines.plan(), self.names);
        if let Some(directory) = &self.options.textfile {
            let text = exposition::prometheus(&sums);
            drop(sums);
            self.write(directory, &text);
        }
        Ok(())
    }

    /// Counts what of the tables is in use, if it is time: before a reading, which gives room back.
    fn count(&mut self, engines: &mut Engines) {
        let tables = &mut self.tables;
        if tables.counted.is_none_or(|then| then.elapsed() >= COUNTED) {
            engines.count(&mut tables.all, false);
            tables.counted = Some(Instant::now());
            self.sums.lock().unwrap_or_else(PoisonError::into_inner).tables.clone_from(&tables.all);
        }
    }

    /// Measures what is used, if it is time.
    fn turn(&mut self, engines: &mut Engines) -> Result<(), Failure> {
        let Some((used, attached)) = self.used.as_mut().zip(engines.attached()) else { return Ok(()) };
        if let Some(told) = used.turn(attached, self.names)? {
            self.sums.lock().unwrap_or_else(PoisonError::into_inner).used = Some(told);
        }
        Ok(())
    }

    /// Takes the sample in for moments, with everything; what goes on has what is requested.
    fn keep(&mut self, sample: &mut Sample, wake: Wake) {
        let Some(moments) = &mut self.moments else { return };
        match moments.write(sample, self.names, wake) {
            Ok(()) => self.said.unkept = false,
            Err(e) => {
                if !std::mem::replace(&mut self.said.unkept, true) {
                    say(&format!("warning: the recording of the moment lacks what comes now: {e:#}"));
                }
            }
        }
        if let Some(text) = moments.hindrance() {
            say(&format!("warning: {text}"));
        }
        if !self.options.files {
            (sample.by_file, sample.files) = (None, Vec::new());
        }
        if !self.options.latency {
            sample.latency = None;
            sample.rows.iter_mut().for_each(|row| row.latency = None);
        }
    }

    fn write(&mut self, directory: &Path, text: &str) {
        let path = directory.join("cachetopd.prom");
        match outfile::write(&path, text.as_bytes()) {
            Ok(()) => over(&mut self.said.unwritten, "the text file is written again"),
            Err(e) => {
                if !std::mem::replace(&mut self.said.unwritten, true) {
                    let Failure { message, remedy, .. } = unwritten(&path, &e);
                    say(&format!("warning: {message}"));
                    remedy.iter().for_each(|remedy| say(&format!("remedy: {remedy}")));
                }
            }
        }
    }
}

/// A stretch of trouble, if there was one, is over.
fn over(said: &mut bool, text: &str) {
    if std::mem::take(said) {
        say(text);
    }
}

/// Tells systemd, where it waits for that.
fn ready() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let path = path.to_string_lossy().into_owned();
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let told = address.and_then(|a| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &a));
    if let Err(e) = told {
        say(&format!("warning: cannot tell systemd: {e}"));
    }
}
