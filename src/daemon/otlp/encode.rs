//! A request with all metrics of now.
//!
//! Names are those of the exposition with dots for its first words, and without the unit, which has a place of its own: a
//! collector that makes Prometheus' names of them gets those of `/metrics`. What the semantic conventions have a name for is
//! called so. What a container did stands below a resource that is the container.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use jiff::Timestamp;
use prost::Message as _;

use super::wire;
use super::wire::KeyValue;
use super::wire::attribute;
use crate::daemon::families::Family;
use crate::daemon::families::Kind;
use crate::daemon::families::Point;
use crate::daemon::families::Told;
use crate::daemon::families::Value;
use crate::daemon::families::bucket_end;
use crate::daemon::families::outcomes;
use crate::daemon::families::tell;
use crate::daemon::sums::Sums;
use crate::sample::Histograms;
use crate::text::foreign::Foreign;

/// What is told elsewhere: by times, attributes of the resource, and metrics of other names.
const ELSEWHERE: [&str; 4] = [
    "pagecache_build_info",
    "pagecache_sample_timestamp_seconds",
    "pagecache_cached_bytes",
    "pagecache_buffers_bytes",
];

/// Makes requests.
pub(super) struct Encoder {
    /// Of this machine.
    resource: Vec<KeyValue>,
    faults: Option<Faults>,
}

/// Page faults of all kinds, as the kernel counts them since boot.
struct Faults {
    vmstat: File,
    boot: Timestamp,
}

impl Faults {
    /// Opened while files still may be.
    fn new() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let boot = stat.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()?;
        let vmstat = File::open("/proc/vmstat").ok()?;
        Some(Self { vmstat, boot: Timestamp::from_second(boot).ok()? })
    }

    /// Major ones, and the others.
    fn read(&self) -> Option<(u64, u64)> {
        let mut text = vec![0; 1 << 16];
        let mut length = 0;
        while length < text.len() {
            match self.vmstat.read_at(text.get_mut(length..)?, length as u64).ok()? {
                0 => break,
                n => length += n,
            }
        }
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let of = |key: &str| -> Option<u64> {
            text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
        };
        let (all, major) = (of("pgfault")?, of("pgmajfault")?);
        Some((major, all.checked_sub(major)?))
    }
}

/// The name, and the unit.
fn named(name: &str) -> (String, &'static str) {
    let (name, unit) = match (name.strip_suffix("_bytes"), name.strip_suffix("_seconds")) {
        (Some(name), _) => (name, "By"),
        (_, Some(name)) => (name, "s"),
        _ => (name, annotated(name)),
    };
    let name = name.strip_prefix("pagecache_").unwrap_or(name);
    for of in ["cgroup", "mount"] {
        if let Some(name) = name.strip_prefix(of).and_then(|n| n.strip_prefix('_')) {
            return (format!("pagecache.{of}.{name}"), unit);
        }
    }
    (format!("pagecache.{name}"), unit)
}

/// What is counted, where it is no unit.
fn annotated(name: &str) -> &'static str {
    let found = [
        ("calls", "{call}"),
        ("faults", "{fault}"),
        ("windows", "{window}"),
        ("buffers", "{buffer}"),
        ("events", "{event}"),
        ("samples", "{sample}"),
        ("commands", "{command}"),
        ("moments", "{moment}"),
        ("requests", "{request}"),
        ("entries", "{entry}"),
        ("capacity", "{entry}"),
    ];
    found.into_iter().find(|(what, _)| name.contains(what)).map_or("1", |(_, unit)| unit)
}

fn attribute_of(label: &str, value: &str) -> KeyValue {
    match label {
        "device" => attribute("system.device", value),
        "mount" => attribute("system.filesystem.mountpoint", value),
        "direction" => attribute("disk.io.direction", value),
        other => attribute(format!("pagecache.{other}"), value),
    }
}

/// The container and the pod of a point's labels, as attributes of a resource.
fn container(labels: &[(&'static str, &str)]) -> Vec<KeyValue> {
    let of = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
    let mut out = Vec::new();
    if let Some(pod) = of("pod") {
        out.push(attribute("k8s.pod.uid", pod));
    }
    if let Some(container) = of("container") {
        let (_, name) = container.split_once(':').unwrap_or(("", container));
        // The label has its beginning, the path all of it.
        let id = of("cgroup").and_then(|path| {
            let mut runs = path.split(|c: char| !c.is_ascii_hexdigit());
            runs.rfind(|run| run.len() == 64 && run.starts_with(name))
        });
        out.push(match id {
            Some(id) => attribute("container.id", id),
            None => attribute("container.name", name),
        });
    }
    out
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}

/// Since when; 0, which is "not known", where the clock was set back since.
fn start(since: Timestamp, time: Timestamp) -> u64 {
    if since <= time { nanoseconds(since) } else { 0 }
}

fn number(value: Value) -> wire::Number {
    match value {
        Value::Whole(n) => i64::try_from(n).map_or(wire::Number::Double(value.float()), wire::Number::Int),
        _ => wire::Number::Double(value.float()),
    }
}

fn sum(points: Vec<wire::NumberPoint>, monotonic: bool) -> wire::Data {
    wire::Data::Sum(wire::Sum { points, temporality: wire::CUMULATIVE, monotonic })
}

/// Metrics by the resource that they are of; the first one is the machine.
struct Resources {
    all: Vec<(Vec<KeyValue>, Vec<wire::Metric>)>,
    index: HashMap<Vec<KeyValue>, usize>,
    time: Timestamp,
}

impl Resources {
    fn metric(&mut self, resource: usize, name: &str, unit: &str, about: &str, data: wire::Data) {
        if let Some((_, metrics)) = self.all.get_mut(resource) {
            let (name, description, unit) = (name.into(), about.into(), unit.into());
            metrics.push(wire::Metric { name, description, unit, data: Some(data) });
        }
    }

    fn of(&mut self, point: &Point<'_>) -> usize {
        let attributes = container(&point.labels);
        if attributes.is_empty() {
            return 0;
        }
        let next = self.all.len();
        let at = *self.index.entry(attributes.clone()).or_insert(next);
        if at == next {
            self.all.push((attributes, Vec::new()));
        }
        at
    }

    fn family(&mut self, family: &Family<'_>) {
        let (name, unit) = named(&family.name);
        let mut points: Vec<(usize, Vec<wire::NumberPoint>)> = Vec::new();
        for point in &family.points {
            let own = point.labels.iter().filter(|(key, _)| !matches!(*key, "container" | "pod"));
            let new = wire::NumberPoint {
                start: if family.kind == Kind::Counter { start(point.since, self.time) } else { 0 },
                time: nanoseconds(self.time),
                value: Some(number(point.value)),
                attributes: own.map(|(key, value)| attribute_of(key, value)).collect(),
            };
            let resource = self.of(point);
            match points.iter_mut().find(|(of, _)| *of == resource) {
                Some((_, points)) => points.push(new),
                None => points.push((resource, vec![new])),
            }
        }
        for (resource, points) in points {
            let data = match family.kind {
                Kind::Counter => sum(points, true),
                Kind::Gauge | Kind::Info => wire::Data::Gauge(wire::Gauge { points }),
            };
            self.metric(resource, &name, unit, &family.help, data);
        }
    }

    /// With the ends that were counted, and no sum: what they took together is not known.
    fn latency(&mut self, latency: &Histograms, since: Timestamp) {
        let point = |(outcome, counts): (&str, &[u64])| wire::HistogramPoint {
            start: start(since, self.time),
            time: nanoseconds(self.time),
            count: counts.iter().fold(0, |sum, n| sum.saturating_add(*n)),
            sum: None,
            counts: counts.to_vec(),
            bounds: (0..counts.len()).filter_map(|i| bucket_end(i, counts.len())).collect(),
            attributes: vec![attribute("pagecache.outcome", outcome)],
        };
        let points = outcomes(latency).into_iter().map(point).collect();
        let data = wire::Data::Histogram(wire::Histogram { points, temporality: wire::CUMULATIVE });
        self.metric(0, "pagecache.read_latency", "s", crate::daemon::families::LATENCY_HELP, data);
    }

    /// What the semantic conventions have names for.
    fn system(&mut self, sums: &Sums, faults: Option<&Faults>) {
        let time = self.time;
        let point = |key: &str, kind: &str, n: u64, start: u64| wire::NumberPoint {
            start,
            time: nanoseconds(time),
            value: Some(number(Value::Whole(n.into()))),
            attributes: vec![attribute(key, kind)],
        };
        if let Some(sample) = &sums.last {
            let key = "system.memory.state";
            let points = vec![
                point(key, "cached", sample.memory.cached_bytes, 0),
                point(key, "buffers", sample.memory.buffers_bytes, 0),
            ];
            let about = "Cached and Buffers of /proc/meminfo";
            self.metric(0, "system.memory.usage", "By", about, sum(points, false));
        }
        if let Some((faults, (major, minor))) = faults.and_then(|f| Some((f, f.read()?))) {
            let key = "system.paging.fault.type";
            let since = start(faults.boot, time);
            let points = vec![point(key, "major", major, since), point(key, "minor", minor, since)];
            let about = "page faults of all kinds since boot, by /proc/vmstat";
            self.metric(0, "system.paging.faults", "{fault}", about, sum(points, true));
        }
    }
}

impl Encoder {
    /// Of this machine, with these attributes, which go before those that are found.
    pub(super) fn new(named: &[(String, String)], engine: &str) -> Self {
        let host = crate::kernel::name("hostname").map(|name| Foreign::from(name).to_string());
        let found = [
            ("service.name", Some("cachetopd".to_owned())),
            ("service.version", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("host.name", host),
            ("os.type", Some("linux".to_owned())),
            ("pagecache.engine", Some(engine.to_owned())),
        ];
        let mut resource: Vec<_> = named.iter().map(|(key, value)| attribute(key, value)).collect();
        for (key, value) in found {
            let known = named.iter().any(|(k, _)| k == key);
            resource.extend(value.filter(|_| !known).map(|value| attribute(key, value)));
        }
        Self { resource, faults: Faults::new() }
    }

    /// All metrics of the last sample, with its time; `None` before there is one.
    pub(super) fn request(&self, sums: &Sums) -> Option<wire::Request> {
        let time = sums.last.as_ref()?.time;
        let mut resources = Resources { all: vec![(Vec::new(), Vec::new())], index: HashMap::new(), time };
        tell(sums, &mut |told| match told {
            Told::Family(family) if ELSEWHERE.contains(&family.name.as_str()) => {}
            Told::Family(family) => resources.family(&family),
            Told::Latency(latency) => resources.latency(latency, sums.since),
        });
        resources.system(sums, self.faults.as_ref());
        let resource = |(own, metrics): (Vec<KeyValue>, Vec<wire::Metric>)| wire::ResourceMetrics {
            resource: Some(wire::Resource { attributes: self.resource.iter().cloned().chain(own).collect() }),
            scopes: vec![wire::ScopeMetrics {
                scope: Some(wire::Scope {
                    name: env!("CARGO_PKG_NAME").into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                }),
                metrics,
            }],
        };
        Some(wire::Request { resources: resources.all.into_iter().map(resource).collect() })
    }

    /// The same, as it is sent.
    pub(super) fn body(&self, sums: &Sums) -> Option<Vec<u8>> {
        Some(self.request(sums)?.encode_to_vec())
    }
}
