//! The command line of `cachetopd`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::ValueHint;

use super::CommandLine;
use super::Common;
use super::Generated;
use super::Habits;
use super::conflict;
use super::habits;
use super::help::Section;
use super::help::fixed;
use super::read;
use crate::daemon::moments::Condition;
use crate::daemon::moments::MOST;
use crate::daemon::options::Options;
use crate::daemon::otlp::Target;
use crate::exit::Failure;
use crate::record::writer::Bounds;
use crate::text::foreign::Foreign;

const ABOUT: &str = "Page-cache figures for as long as the machine is up: metrics, and a record";

/// What the manual page begins with.
const MANUAL: &str = "\
Counts what is read and written through the page cache for as long as it runs, answers Prometheus, and records.

Counting needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_DAC_READ_SEARCH.";

const SHORT: &str = "\
Examples:
  cachetopd                                   /metrics on 127.0.0.1:9950
  cachetopd --record /var/lib/cachetopd       and a record of the last week
  cachetopd --listen none --textfile DIR      a file for node_exporter instead

More: cachetopd --help";

const SECTIONS: &[(&str, &str)] = &[
    (
        "Metrics",
        "\
/metrics has every figure that has a metric in docs/guide/reference.md, with
'pagecache_' before its name and '_total' behind it, since cachetopd began.
Counts of pages are bytes there. pagecache_read_bytes_total summed over
'outcome' is all that was read through the cache. What this kernel does not
tell has no series. There are no ratios: rules make them (contrib/prometheus).

pagecache_cgroup_… has the same by cgroup (and container, where the path
tells), pagecache_mount_… by device and mount. --series bounds how many of
each; the rest is the series 'other', so that all of them are the whole. When
there is no room, one that did nothing for 600 samples becomes part of it.

With --working-set, pagecache_working_set_bytes{window} is how much of files
was used in the last 1m, 5m, 15m and 60m, each page once, and
pagecache_cgroup_working_set_bytes the same by cgroup: estimates (3.2 % and
6.5 %), made every 15 seconds; a window that is longer than cachetopd runs is
absent. Cgroups share pages: these do not add up. 'other' is what all cgroups
without a series of their own used together.

pagecache_read_latency_seconds has read calls by the time that they took.
/healthz answers 200 as long as samples come. Accept: application/
openmetrics-text gets OpenMetrics; application/vnd.google.protobuf Prometheus'
protobuf, with pagecache_read_latency_nanoseconds as a native histogram.",
    ),
    (
        "OTLP",
        "\
--otlp http://127.0.0.1:4318 sends the metrics to /v1/metrics there, every
minute, as cumulative sums: pagecache.read and so on, by cgroup and by mount;
system.memory.usage, system.paging.faults. A container is a resource of its
own (container.id, k8s.pod.uid). OTEL_EXPORTER_OTLP_ENDPOINT does so without
the option; _HEADERS, _TIMEOUT, _COMPRESSION, OTEL_METRIC_EXPORT_INTERVAL
(milliseconds), OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME are heeded.
There is no TLS: a collector on this machine has it. What is not taken is
sent again, later and later; of more than 4 MiB the oldest is dropped, and
counted in pagecache_otlp_requests_total. At the end 5 seconds are left for
what waits.",
    ),
    (
        "Recording",
        "\
--record DIR keeps a ring of files in DIR, which is made if it is not there
(the one above it is not), bounded by --record-size and --record-days.
'cachestat --replay DIR --from 14:00 --to 14:10' shows what was recorded. What
is written does not stay in the page cache, and is not counted. A disk that is
full is told on standard error and in pagecache_unrecorded_samples_total;
counting goes on.",
    ),
    (
        "Moments",
        "\
--when EXPR tells on standard error, and in pagecache_moments_total, when EXPR
comes to hold: once, and again only after it did not hold. EXPR is one of
'cachestat --assert' (see there), of the whole machine in an interval: any
figure, hit_ratio and lost, compared with a number or so much a second.
  --when 'misses > 10000/s for 5s'    in all intervals of 5 seconds
  --when 'hit_ratio < 50%'            not where nothing was read
  --when 'evicted > 100MiB/s'         is refused: it is counted in pages
What is not known does not hold; what this kernel does not tell is said at the
start.

With --record, each moment gets a recording of its own beside the ring, DIR/
moment-N-TIME.record: a minute before it and one behind, with files and times
of calls, also where --no-files and --no-latency keep these out of the ring.
They are counted all the time then, which costs something at each read;
--moments 0 does without. Moments whose minutes overlap share a file. The last
--moments are kept; each has 17 MiB and 11 minutes at most.

--then COMMAND gets the moment as JSON: the condition, the name of its
recording, the figures of the interval, and its ten busiest processes, files
and cgroups. One runs at a time, for 60 seconds at most, as the same user
without any capability; a second moment of the same condition meanwhile is
left out, and counted.",
    ),
    (
        "Privileges",
        "\
Beginning needs CAP_BPF and CAP_PERFMON, and to read tracefs (root, or
CAP_DAC_READ_SEARCH). From then on it holds these three and no others, gains
none (no_new_privs), and the thread that answers holds none. It answers on
loopback only, and on a socket that systemd passes on. Another address takes a
--web-config-file with TLS and passwords (or certificates), or
--listen-anywhere.",
    ),
    (
        "TLS and passwords",
        "\
--web-config-file has the keys of Prometheus' exporters:
  tls_server_config:
    cert_file: cachetopd.pem       beside the file, if the path is relative
    key_file: cachetopd.key
    min_version: TLS13             or max_version; TLS12 and TLS13 are spoken
    client_auth_type: RequireAndVerifyClientCert
    client_ca_file: clients.pem
  basic_auth_users:
    prometheus: $2y$10$...         htpasswd -nBC 10 prometheus
  http_server_config:
    headers: { X-Frame-Options: deny }
What is not heeded is refused (exit code 2). All paths want the password,
/healthz too. Files that have changed are read anew; what would guard less is
not taken until cachetopd begins anew.",
    ),
    (
        "Exit codes",
        "\
0  it was ended by SIGTERM, SIGINT or SIGHUP
1  it could not be done; the remedy is printed
2  wrong usage",
    ),
];

/// Page-cache figures for as long as the machine is up.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachetopd", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(override_usage = "cachetopd [OPTIONS]")]
#[command(after_help = SHORT, after_long_help = super::help::long(fixed(SECTIONS)))]
pub struct Args {
    /// Time between two samples: seconds, or with a unit (500ms, 1s, 2m)
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1", value_parser = interval)]
    pub interval: Duration,

    /// Answer there, on loopback; 'none': nowhere
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9950", value_parser = listen)]
    pub listen: Listen,

    /// Let --listen name an address that others can reach: what runs here is told to whoever asks
    #[arg(long)]
    pub listen_anywhere: bool,

    /// TLS and passwords for whoever asks, as Prometheus' exporters have them (YAML)
    #[arg(long, value_name = "FILE")]
    pub web_config_file: Option<PathBuf>,

    /// Record to a ring of files in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,

    /// Bytes of the ring at most, with a unit (500M, 2G); at least 4M
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "record", value_parser = size)]
    pub record_size: u64,

    /// Days that the ring keeps at most
    #[arg(long, value_name = "DAYS", default_value = "7", requires = "record",
          value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub record_days: u32,

    /// Write the metrics to cachetopd.prom in this directory, for node_exporter
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub textfile: Option<PathBuf>,

    /// Send the metrics there by OTLP (HTTP, protobuf); 'none': nowhere, whatever the environment says
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// Cgroups, and mounts, that have series of their own
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub series: u32,

    /// Do not count files: no series by mount, no files in the ring
    #[arg(long)]
    pub no_files: bool,

    /// Do not time read calls: no latency, no time of stalls
    #[arg(long)]
    pub no_latency: bool,

    /// Tell the working set, too: distinct bytes of files used in the last 1, 5, 15 and 60 minutes, and by cgroup
    #[arg(long)]
    pub working_set: bool,

    /// Tell when this holds ('misses > 10000/s for 5s'); repeatable
    #[arg(long, value_name = "EXPR", value_parser = Condition::parse)]
    pub when: Vec<Condition>,

    /// Recordings of moments that are kept in the directory of --record, each of a minute before and one behind; 0: none
    #[arg(long, value_name = "N", default_value = "20", requires_all = ["record", "when"],
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub moments: u32,

    /// Run this then, by sh, with the moment as JSON on its standard input
    #[arg(long, value_name = "COMMAND", requires = "when", value_hint = ValueHint::CommandString)]
    pub then: Option<String>,

    /// How it is counted, with how much room, and what the command says of itself.
    #[command(flatten)]
    pub common: Common,
}

/// Where to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    None,
    /// There.
    At(SocketAddr),
}

fn listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen::None);
    }
    let text =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map(Listen::At).map_err(|_| "write an address and a port: 127.0.0.1:9950, [::1]:9950".into())
}

fn interval(text: &str) -> Result<Duration, String> {
    read::time(text, "")
}

fn size(text: &str) -> Result<u64, String> {
    let unit = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let found = unit.iter().find_map(|(u, shift)| Some((text.strip_suffix(*u)?, *shift)));
    let (number, shift) = found.unwrap_or((text, 0));
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if bytes >= 4 << 20 => Ok(bytes),
        Some(_) => Err("it is less than 4M".into()),
        None => Err("it is no size: write 500M or 2G".into()),
    }
}

impl Args {
    /// Where metrics are sent, by the option and the environment.
    fn target(&self) -> Result<Option<Target>, String> {
        Target::read(self.otlp.as_deref(), &|name| std::env::var(name).ok())
    }
}

impl CommandLine for Args {
    type Task = Options;

    const SHORT: &'static str = SHORT;
    const MANUAL: &'static str = MANUAL;
    const HABITS: Habits = habits::DAEMON;

    fn sections() -> Vec<Section> {
        fixed(SECTIONS)
    }

    fn check(&self) -> Result<(), String> {
        if let Listen::At(address) = self.listen {
            if !address.ip().is_loopback() && !self.listen_anywhere && self.web_config_file.is_none() {
                return conflict(
                    "'--listen' is open to others there: take 127.0.0.1, or a '--web-config-file' with TLS and \
                     passwords, or add '--listen-anywhere'",
                );
            }
        } else if self.web_config_file.is_some() {
            return conflict("with '--listen none' nobody can ask: leave '--web-config-file' out");
        } else if self.record.is_none()
            && self.textfile.is_none()
            && !matches!(self.target(), Ok(Some(_)) | Err(_))
            && self.when.is_empty()
            && !self.common.itself.explain
        {
            return conflict(
                "with '--listen none' there is nothing to do: add '--record', '--textfile', '--otlp' or '--when'",
            );
        }
        if self.working_set && self.common.how.classic() {
            return conflict("'--working-set' needs to know which pages are used: take '--engine exact'");
        }
        if self.when.len() > MOST {
            return conflict(&format!("'--when' is given more than {MOST} times"));
        }
        for (at, condition) in self.when.iter().enumerate() {
            if self.when[..at].iter().any(|c| c.text == condition.text) {
                let text = Foreign::from(condition.text.as_str());
                return conflict(&format!("'--when \"{text}\"' is given twice"));
            }
        }
        Ok(())
    }

    fn generated(&self) -> Option<Generated> {
        self.common.itself.generate
    }

    fn task(self) -> Result<Options, Failure> {
        let age = Duration::from_secs(u64::from(self.record_days) * 24 * 3600);
        let bounds = Bounds { size: self.record_size, age };
        Ok(Options {
            interval: self.interval,
            listen: match self.listen {
                Listen::At(address) => Some(address),
                Listen::None => None,
            },
            anywhere: self.listen_anywhere,
            web: self.web_config_file.clone(),
            record: self.record.clone().map(|directory| (directory, bounds)),
            textfile: self.textfile.clone(),
            series: self.series as usize,
            files: !self.no_files,
            latency: !self.no_latency,
            working_set: self.working_set,
            when: self.when.clone(),
            moments: self.moments as usize,
            then: self.then.clone(),
            otlp: self.target().map_err(|e| Failure::usage(&e))?,
            counting: self.common.counting(),
        })
    }
}
