//! What is sent is what was counted; and whatever the receiver does, or does not, harms nobody.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::mpsc::channel;

use prost::Message as _;

use super::*;
use crate::cgroup::Cgroup;
use crate::cgroup::label;
use crate::daemon::used::Used;
use crate::figures::Figure;
use crate::files::Mounts;
use crate::names::Names;
use crate::room::Kind;
use crate::room::Table;
use crate::sample::Counter;
use crate::sample::Histograms;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::view::fixtures;

const ID: &str = "4b01c2ef8f3dba6bb25dd8afcd9e2f05f0ef0f4e2a8b0e5c4b1f5f7a60e1d2c3";
const POD: &str = "3f1c2a9e-8d1b-4c5e-9f00-1234567890ab";

/// A user's, a pod's, and one whose name acts.
struct Some3(Mounts);

impl Names for Some3 {
    fn user(&mut self, _: u32) -> Option<std::rc::Rc<str>> {
        None
    }
    fn cgroup(&mut self, id: u64, _: u32) -> std::rc::Rc<Cgroup> {
        let path = match id {
            1 => "/user.slice".to_owned(),
            2 => format!("/kubepods/besteffort/pod{POD}/{ID}"),
            _ => "/a\x1b]0;x\u{202e}\n\"".to_owned(),
        };
        let label = label(&path);
        std::rc::Rc::new(Cgroup { path, label })
    }
    fn mounts_now(&mut self) -> &Mounts {
        &self.0
    }
    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }
    fn mounts(&mut self, _: crate::files::Dev) -> &mut Mounts {
        &mut self.0
    }
}

fn sample(pages: u64) -> Sample {
    let counted = [(Counter::ReadHits, pages), (Counter::ReadMisses, 7), (Counter::StallNs, 1_500_000_000)];
    let mut sample = fixtures::sample(Moment::now(), Duration::from_secs(1), &counted);
    sample.time = Timestamp::now();
    sample.rows = (1..=3)
        .map(|cgroup| {
            let row = fixtures::process(9, "x", &[(Counter::ReadHits, 10 * cgroup)]);
            RowSample { cgroup, ..row }
        })
        .collect();
    let mut latency = Histograms::default();
    (latency.hit[0], latency.hit[31], latency.miss[3]) = (5, 1, 2);
    sample.latency = Some(Box::new(latency));
    sample
}

fn sums(unknown: &[Figure]) -> Sums {
    let mut sums = Sums::new(10, Duration::from_secs(1));
    sums.since = Timestamp::now();
    let mut names = Some3(Mounts::parse(""));
    sums.add(sample(500), &fixtures::plan(unknown), &mut names);
    sums.add(sample(1000), &fixtures::plan(unknown), &mut names);
    let container = [("container", ID[..12].to_owned()), ("pod", POD.to_owned())];
    let of_pod = [vec![("cgroup", format!("/kubepods/{ID}"))], container.to_vec()].concat();
    let cgroups =
        vec![(vec![("cgroup", "other".to_owned())], [Some(1), None, None, None]), (of_pod, [Some(5); 4])];
    sums.tables = vec![Table { kind: Kind::Threads, room: Some(9), used: Some(4), bytes: Some(70) }];
    sums.used = Some(Used { all: [Some(6), Some(6), None, None], cgroups });
    sums
}

fn texts(attributes: &[wire::KeyValue]) -> HashMap<String, String> {
    let text = |a: &wire::KeyValue| (a.key.clone(), a.value.clone().unwrap().text.unwrap());
    let all: HashMap<_, _> = attributes.iter().map(text).collect();
    assert_eq!(all.len(), attributes.len(), "a key twice");
    all
}

type Told = (HashMap<String, String>, wire::Metric, HashMap<String, String>, f64, u64);

/// Every point: the resource's attributes, the metric, the point's attributes, its value, its beginning.
fn points(request: &wire::Request) -> Vec<Told> {
    let mut out = Vec::new();
    for resource in &request.resources {
        let of = texts(&resource.resource.clone().unwrap().attributes);
        for metric in resource.scopes.iter().flat_map(|scope| &scope.metrics) {
            let points = match metric.data.clone().unwrap() {
                wire::Data::Sum(sum) => {
                    assert_eq!(sum.temporality, 2);
                    sum.points
                }
                wire::Data::Gauge(gauge) => gauge.points,
                wire::Data::Histogram(_) => continue,
            };
            for point in points {
                let value = match point.value.unwrap() {
                    wire::Number::Int(n) => n as f64,
                    wire::Number::Double(n) => n,
                };
                assert!(point.start <= point.time && point.time > 0);
                out.push((of.clone(), metric.clone(), texts(&point.attributes), value, point.start));
            }
        }
    }
    out
}

#[test]
fn a_request_has_bytes_by_resource_and_no_figure_that_is_unknown() {
    let page = rustix::param::page_size() as f64;
    let named =
        [("service.name".to_owned(), "mine".to_owned()), ("k8s.node.name".to_owned(), "n".to_owned())];
    let all = sums(&[Figure::Evicted]);
    let encoder = Encoder::new(&named, "exact");
    let request = encoder.request(&all).unwrap();
    assert_eq!(wire::Request::decode(encoder.body(&all).unwrap().as_slice()).unwrap().resources.len(), 2);
    let points = points(&request);
    let find = |name: &str, of: &[(&str, &str)]| -> Vec<_> {
        let fits = |p: &&Told| {
            p.1.name == name && of.iter().all(|(k, v)| p.2.get(*k).is_some_and(|value| value == v))
        };
        points.iter().filter(fits).collect()
    };
    let hit = ("pagecache.outcome", "hit");
    let [(resource, metric, _, value, start)] = find("pagecache.read", &[hit])[..] else { panic!() };
    assert!((value - 1000.0 * page).abs() < 0.5 && metric.unit == "By");
    assert_eq!(i128::from(*start), all.since.as_nanosecond());
    assert_eq!(
        ("mine", "n", Some(env!("CARGO_PKG_VERSION"))),
        (
            &*resource["service.name"],
            &*resource["k8s.node.name"],
            resource.get("service.version").map(|v| &**v)
        )
    );
    assert!(!resource.contains_key("container.id"));
    let [(_, metric, _, value, _)] = find("pagecache.read_stall", &[])[..] else { panic!() };
    assert!((value - 1.5).abs() < 1e-9 && metric.unit == "s");
    // A container stands for itself, and all cgroups are the machine.
    let groups = find("pagecache.cgroup.read", &[hit]);
    assert_eq!(groups.len(), 4);
    assert!((groups.iter().map(|p| p.3).sum::<f64>() - 1000.0 * page).abs() < 0.5);
    let pod: Vec<_> = groups.iter().filter(|p| p.0.contains_key("k8s.pod.uid")).collect();
    let [(resource, _, own, value, _)] = pod[..] else { panic!() };
    assert_eq!((&*resource["k8s.pod.uid"], &*resource["container.id"]), (POD, ID));
    assert!((value - 40.0 * page).abs() < 0.5 && own.len() == 2 && resource["k8s.node.name"] == "n");
    // So is what is used: a gauge for each window that is known.
    assert_eq!(find("pagecache.working_set", &[]).len(), 2);
    let minute = ("pagecache.window", "1m");
    assert!((find("pagecache.working_set", &[minute])[0].3 - 6.0 * page).abs() < 0.5);
    assert_eq!(find("pagecache.cgroup.working_set", &[("pagecache.cgroup", "other")]).len(), 1);
    let groups = find("pagecache.cgroup.working_set", &[minute]);
    assert!(groups.iter().any(|p| p.0.get("container.id").is_some_and(|id| id == ID)), "{groups:?}");
    let table = [("pagecache.table", "threads")];
    for (name, unit, n) in [
        ("pagecache.table_entries", "{entry}", 4.0),
        ("pagecache.table_capacity", "{entry}", 9.0),
        ("pagecache.table", "By", 70.0),
    ] {
        let [(_, metric, own, value, _)] = find(name, &table)[..] else { panic!("{name}") };
        assert!((value - n).abs() < 1e-9 && metric.unit == unit && own.len() == 1, "{name}: {value}");
    }
    // No name acts, wherever it is shown.
    let acts = |text: &String| text.contains(['\x1b', '\u{202e}', '\n']);
    assert!(points.iter().all(|p| !p.2.values().any(acts)));
    // What is not known is not there; of all others each is once.
    assert!(find("pagecache.removed", &[("pagecache.cause", "reclaim")]).is_empty());
    assert_eq!(find("pagecache.removed", &[("pagecache.cause", "other")]).len(), 1);
    let mut seen = std::collections::HashSet::new();
    for (resource, metric, own, _, _) in &points {
        let mut key: Vec<_> = resource.iter().chain(own).collect();
        key.sort();
        assert!(seen.insert(format!("{} {key:?}", metric.name)), "{} {key:?} twice", metric.name);
        assert!(
            metric.name.starts_with("pagecache.") || metric.name.starts_with("system."),
            "{}",
            metric.name
        );
        assert!(!metric.name.ends_with("bytes") || metric.name.contains("queued"), "{}", metric.name);
        assert!(!metric.unit.is_empty());
    }
    assert_eq!(find("system.memory.usage", &[]).len(), 2);
    let faults = find("system.paging.faults", &[("system.paging.fault.type", "major")]);
    assert!(faults[0].3 > 0.0 && faults[0].4 > 0 && faults[0].4 < *start);
}

#[test]
fn latency_has_the_ends_that_were_counted_and_no_sum() {
    let request = Encoder::new(&[], "exact").request(&sums(&[])).unwrap();
    let metrics = request.resources[0].scopes[0].metrics.iter();
    let mut found = metrics.filter_map(|m| match m.data.as_ref().unwrap() {
        wire::Data::Histogram(h) => Some((m, h)),
        _ => None,
    });
    let (metric, histogram) = found.next().unwrap();
    assert_eq!((metric.name.as_str(), metric.unit.as_str()), ("pagecache.read_latency", "s"));
    for (point, outcome, count) in
        histogram.points.iter().zip(["hit", "miss"]).zip([6, 2]).map(|((p, o), c)| (p, o, c))
    {
        assert_eq!(texts(&point.attributes)["pagecache.outcome"], outcome);
        assert_eq!((point.count, point.sum, point.counts.iter().sum::<u64>()), (count, None, count));
        assert_eq!((point.counts.len(), point.bounds.len()), (32, 31));
        assert!((point.bounds[0] - 256e-9).abs() < 1e-15 && point.bounds.windows(2).all(|w| w[0] < w[1]));
    }
    assert!(found.next().is_none());
    assert!(Encoder::new(&[], "exact").request(&Sums::new(1, Duration::from_secs(1))).is_none());
}

#[test]
fn a_clock_set_back_makes_the_beginning_unknown() {
    let mut all = sums(&[]);
    all.since = Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let request = Encoder::new(&[], "exact").request(&all).unwrap();
    let points = points(&request);
    assert!(points.iter().any(|p| p.1.name == "pagecache.read" && p.4 == 0));
}

/// Reads a request; its head and its body.
fn asked(stream: &mut TcpStream) -> (String, Vec<u8>) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
            let length: usize =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().parse().unwrap();
            if all.len() >= end + 4 + length {
                return (head, all[end + 4..].to_vec());
            }
        }
        match stream.read(&mut piece).unwrap() {
            0 => panic!("cut off"),
            n => all.extend_from_slice(&piece[..n]),
        }
    }
}

fn target(listener: &TcpListener, variables: &[(&str, &str)]) -> Target {
    let url = format!("http://{}", listener.local_addr().unwrap());
    let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    Target::read(Some(&url), &get).unwrap().unwrap()
}

const QUICK: Patience = Patience {
    first: Duration::from_millis(20),
    most: Duration::from_millis(100),
    told: Duration::from_secs(2),
};

fn quiet(_: &str) {}

fn pushed(sums: &Mutex<Sums>) -> Pushed {
    sums.lock().unwrap().pushed.unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A new sample now and then, as a monitor has it.
fn ticks(sums: &Arc<Mutex<Sums>>) -> impl Drop + use<> {
    struct End(Option<SyncSender<()>>);
    impl Drop for End {
        fn drop(&mut self) {
            drop(self.0.take());
        }
    }
    let (over, ended) = sync_channel(0);
    let sums = Arc::clone(sums);
    std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
            let mut names = Some3(Mounts::parse(""));
            sums.lock().unwrap().add(sample(2000), &fixtures::plan(&[]), &mut names);
        }
    });
    End(Some(over))
}

#[test]
fn every_answer_has_its_consequence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target(
        &listener,
        &[
            ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
            // Long: a busy machine must not make it ask once more.
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10000"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
        ],
    );
    let status = wire::Status { message: "no\x1b room".into() }.encode_to_vec();
    let partial = wire::Response { partial: Some(wire::Partial { rejected: 3, message: "odd".into() }) };
    let partial = partial.encode_to_vec();
    let with = |status: &str, more: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    // What is answered, and whether the same comes again.
    let answers: Vec<(Vec<u8>, bool)> = vec![
        (with("200 OK", "", b""), false),
        (with("503 Service Unavailable", "Retry-After: 1\r\n", &status), true),
        (with("200 OK", "", b"\xff\xff garbage"), false),
        (with("429 Too Many Requests", "Retry-After: rubbish\r\n", b""), true),
        (with("502 Bad Gateway", "", b"<html>"), true),
        (with("504 Gateway Timeout", "", b""), true),
        (with("400 Bad Request", "", &status), false),
        (with("404 Not Found", "", &vec![b'x'; 1 << 20]), false),
        (with("301 Moved Permanently", "Location: http://127.0.0.1:1/\r\n", b""), false),
        (b"garbage\r\n\r\n".to_vec(), true),
        (Vec::new(), true),
        (with("200 OK", "", &partial), false),
    ];
    let all = Arc::new(Mutex::new(sums(&[])));
    let ticking = ticks(&all);
    let sender = Sender::with(&target, Arc::clone(&all), quiet, QUICK, ROOM, FLUSH).unwrap();
    let (mut last, mut asked_at): (Option<Vec<u8>>, Instant) = (None, Instant::now());
    let mut waited = Vec::new();
    for (answer, again) in &answers {
        let (mut stream, _) = listener.accept().unwrap();
        let (head, body) = asked(&mut stream);
        waited.push(asked_at.elapsed());
        assert!(head.starts_with("post /v1/metrics http/1.1"), "{head}");
        assert!(
            head.contains("content-type: application/x-protobuf") && head.contains("x-key: a b"),
            "{head}"
        );
        assert!(!wire::Request::decode(body.as_slice()).unwrap().resources.is_empty());
        if let Some(last) = last.take() {
            assert!(last == body, "what was not taken comes again");
        }
        last = again.then_some(body);
        // Nobody reads a megabyte of an error to its end.
        let _ = io::Write::write_all(&mut stream, answer);
        asked_at = Instant::now();
    }
    assert!(waited[2] >= Duration::from_millis(950), "as long as it was told to: {:?}", waited[2]);
    until("all are counted", || pushed(&all).refused_points == 3);
    let now = pushed(&all);
    assert_eq!((now.ok, now.refused, now.retried, now.dropped), (3, 3, 6, 0), "{now:?}");
    drop(ticking);
    drop(listener);
    drop(sender);
}

#[test]
fn one_that_never_answers_costs_a_bounded_queue_and_a_bounded_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let variables = [("OTEL_METRIC_EXPORT_INTERVAL", "10"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "30000")];
    let mut target = target(&listener, &variables);
    target.timeout = Duration::from_millis(100);
    let all = Arc::new(Mutex::new(sums(&[])));
    let ticking = ticks(&all);
    let room = 40_000;
    let flush = Duration::from_millis(500);
    let sender = Sender::with(&target, Arc::clone(&all), quiet, QUICK, room, flush).unwrap();
    until("the oldest are dropped", || pushed(&all).dropped >= 3);
    assert!(pushed(&all).queued_bytes <= room as u64 && pushed(&all).ok == 0);
    let begun = Instant::now();
    drop(sender);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // Even in the midst of an attempt that would take longer.
    target.timeout = Duration::from_secs(30);
    let sender = Sender::with(&target, Arc::clone(&all), quiet, QUICK, room, flush).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    drop(sender);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(ticking);
}

#[test]
fn the_end_sends_what_came_last_compressed_if_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target(&listener, &[("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")]);
    let all = Arc::new(Mutex::new(sums(&[])));
    let expected = Encoder::new(&[], "exact");
    let (send, got) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        send.send(asked(&mut stream)).unwrap();
        io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let sender = Sender::new(&target, Arc::clone(&all), quiet).unwrap();
    drop(sender);
    let (head, body) = got.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(head.contains("content-encoding: gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).unwrap();
    let request = wire::Request::decode(plain.as_slice()).unwrap();
    assert_eq!(request.resources.len(), expected.request(&all.lock().unwrap()).unwrap().resources.len());
    assert_eq!(pushed(&all).ok, 1);
}
