//! What is exposed is what was counted, as bytes, each series once; who asks badly gets an answer, or none, and does no harm.
#![allow(clippy::unwrap_used)]

mod tables;

use std::collections::HashMap;
use std::collections::HashSet;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use prost::Message as _;

use super::exposition::Format;
use super::exposition::exposition;
use super::exposition::open_metrics;
use super::exposition::prometheus;
use super::http;
use super::protobuf::Histogram;
use super::protobuf::MetricFamily;
use super::sums::Sums;
use super::used::Used;
use super::web::Web;
use crate::cgroup::Cgroup;
use crate::figures::Figure;
use crate::files::Dev;
use crate::files::File;
use crate::files::Mounts;
use crate::files::Named;
use crate::names::Names;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::FileSample;
use crate::sample::Histograms;
use crate::sample::Moment;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::text::foreign::Foreign;
use crate::view::fixtures;
use crate::view::fixtures::FakeNames;

fn sample(pages: u64, groups: u64) -> Sample {
    let counted = [(Counter::ReadHits, pages), (Counter::ReadMisses, 7), (Counter::StallNs, 1_500_000_001)];
    let mut sample = fixtures::sample(Moment::now(), Duration::from_secs(1), &counted);
    sample.rows = (1..=groups)
        .map(|cgroup| {
            let row = fixtures::process(9, "x", &[(Counter::ReadHits, 10 * cgroup)]);
            RowSample { cgroup, ..row }
        })
        .collect();
    let dev = Dev { major: 0, minor: 51 };
    let file = File { dev, inode: 1, generation: 0, block: None, name: "/f".into(), named: Named::Whole };
    sample.files = vec![FileSample {
        tgid: 9,
        uid: 0,
        cgroup: 1,
        born: 0,
        process: "x".into(),
        file: Arc::new(file),
        deleted: false,
        counters: fixtures::counters(&[(Counter::ReadHits, 3)]),
    }];
    sample.lost.by_reason = vec![("recursion".into(), 2)];
    let mut latency = Histograms::default();
    (latency.hit[0], latency.hit[31], latency.miss[3]) = (5, 1, 2);
    sample.latency = Some(Box::new(latency));
    sample
}

fn sums(room: usize, samples: Vec<Sample>, plan: &Plan) -> Sums {
    let mut sums = Sums::new(room, Duration::from_secs(1));
    for sample in samples {
        sums.add(sample, plan, &mut FakeNames::default());
    }
    sums
}

/// Series and values; each is there once, below a type that was told before it.
fn parsed(text: &str) -> HashMap<String, f64> {
    let (mut out, mut types, mut helps) = (HashMap::new(), HashSet::new(), HashSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(types.insert(rest.split(' ').next().unwrap().to_owned()), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(helps.insert(rest.split(' ').next().unwrap().to_owned()), "{line}");
            continue;
        }
        if line == "# EOF" {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(out.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        let name = series.split('{').next().unwrap();
        let told = ["", "_total", "_bucket", "_count", "_info"].iter();
        assert!(told.filter_map(|end| name.strip_suffix(end)).any(|n| types.contains(n)), "{line}");
    }
    assert_eq!(types, helps);
    out
}

fn sum(all: &HashMap<String, f64>, name: &str, part: &str) -> f64 {
    let is = |s: &&String| s.split('{').next() == Some(name) && s.contains(part);
    all.iter().filter(|(series, _)| is(series)).map(|(_, n)| n).sum()
}

#[test]
fn pages_are_bytes_and_what_is_not_known_is_absent() {
    let page = rustix::param::page_size() as f64;
    let out = prometheus(&sums(10, vec![sample(1000, 2)], &fixtures::plan(&[])));
    let all = parsed(&out);
    assert!((all["pagecache_read_bytes_total{outcome=\"hit\"}"] - 1000.0 * page).abs() < 0.5);
    assert!((sum(&all, "pagecache_read_bytes_total", "") - 1007.0 * page).abs() < 0.5);
    assert!((all["pagecache_read_stall_seconds_total"] - 1.500_000_001).abs() < 1e-12);
    assert!((all["pagecache_lost_events_total{reason=\"recursion\"}"] - 2.0).abs() < 1e-9);
    assert!((all["pagecache_page_size_bytes"] - page).abs() < 1e-9);
    // Every figure that has a metric, by its name in the table.
    for metric in Figure::ALL.iter().filter_map(|f| f.metric()) {
        let (name, label) =
            metric.split_once('{').map_or((metric, String::new()), |(n, l)| (n, format!("{{{l}")));
        assert!(all.contains_key(&format!("pagecache_{name}_total{label}")), "{metric}");
    }
    assert!(!out.contains("ratio") && !out.contains("pid=") && !out.contains("path="));
    let unknown = fixtures::plan(&[Figure::Misses, Figure::StallNs, Figure::Evicted]);
    let all = parsed(&prometheus(&sums(10, vec![sample(1000, 2)], &unknown)));
    let absent = ["outcome=\"miss\"", "stall", "reclaim"];
    let unknown = |s: &&String| {
        !s.contains("latency") && !s.contains("faults") && !s.contains("write") && !s.contains("metadata")
    };
    for part in absent {
        assert!(!all.keys().filter(unknown).any(|s| s.contains(part)), "{part}");
    }
    // Before anything was read nothing is 0.
    let all = parsed(&prometheus(&Sums::new(1, Duration::from_secs(1))));
    assert!(!all.keys().any(|s| s.contains("read_bytes") || s.contains("lost")));
}

#[test]
fn what_is_used_has_a_series_for_each_window_that_is_known() {
    let page = rustix::param::page_size() as f64;
    let mut sums = sums(10, vec![sample(1000, 2)], &fixtures::plan(&[]));
    assert!(!prometheus(&sums).contains("working_set"));
    let of = |cgroup: &str, pages| (vec![("cgroup", cgroup.to_owned())], pages);
    sums.used = Some(Used { all: [None; 4], cgroups: vec![of("other", [None; 4])] });
    assert!(!prometheus(&sums).contains("working_set"));
    sums.used = Some(Used {
        all: [Some(7), Some(9), None, None],
        cgroups: vec![of("/a\"b", [Some(3), None, None, None]), of("other", [Some(0), None, None, None])],
    });
    let all = parsed(&prometheus(&sums));
    let used: HashMap<_, _> = all.iter().filter(|(s, _)| s.contains("working_set")).collect();
    assert_eq!(used.len(), 4, "{used:?}");
    for (series, pages) in [
        ("pagecache_working_set_bytes{window=\"1m\"}", 7.0),
        ("pagecache_working_set_bytes{window=\"5m\"}", 9.0),
        ("pagecache_cgroup_working_set_bytes{cgroup=\"/a\\\"b\",window=\"1m\"}", 3.0),
        ("pagecache_cgroup_working_set_bytes{cgroup=\"other\",window=\"1m\"}", 0.0),
    ] {
        assert!((all[series] - pages * page).abs() < 0.5, "{series}");
    }
    let (protobuf, _) = of_protobuf(&exposition(&sums, Format::Protobuf));
    assert!(used.keys().all(|series| protobuf.contains_key(&series.replace("\\\"", "\""))), "{protobuf:?}");
    assert!(open_metrics(&sums).contains("# TYPE pagecache_working_set_bytes gauge\n"));
}

#[test]
fn series_have_a_bound_and_add_up_to_the_whole() {
    let page = rustix::param::page_size() as f64;
    for room in [0, 1, 2, 10] {
        let mut second = sample(2000, 2);
        second.rows[0].counters = fixtures::counters(&[(Counter::ReadHits, 500)]);
        let sums = sums(room, vec![sample(1000, 2), second], &fixtures::plan(&[]));
        let all = parsed(&prometheus(&sums));
        let hits = "outcome=\"hit\"";
        assert!((sum(&all, "pagecache_cgroup_read_bytes_total", hits) - 2000.0 * page).abs() < 0.5, "{room}");
        assert!((sum(&all, "pagecache_mount_read_bytes_total", hits) - 2000.0 * page).abs() < 0.5, "{room}");
        let cgroups = all.keys().filter(|s| s.starts_with("pagecache_cgroup_read_bytes") && s.contains(hits));
        assert_eq!(cgroups.count(), 1 + room.min(2));
        let own = all.get("pagecache_cgroup_read_bytes_total{cgroup=\"/user.slice\",outcome=\"hit\"}");
        let own = own.map(|n| n / page);
        assert!(room < 2 || own.is_some_and(|n| (n - 510.0).abs() < 1e-9), "{own:?}");
        assert!(room == 0 || all.keys().any(|s| s.contains("device=\"tmpfs\",mount=\"/tmp\"")));
    }
}

/// A machine on which another image is mounted in the place of the first.
struct Remounted(FakeNames, Mounts, u64);

impl Remounted {
    fn mount(&mut self, at: &str) {
        self.1 = Mounts::parse(&format!("31 27 0:51 / {at} rw - ext4 /dev/loop1 rw"));
        self.2 += 1;
    }
}

impl Names for Remounted {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.0.user(uid)
    }

    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup> {
        self.0.cgroup(id, tgid)
    }

    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        &mut self.1
    }

    fn mounts_now(&mut self) -> &Mounts {
        &self.1
    }

    fn command_line(&mut self, _: u32) -> Option<Foreign> {
        None
    }

    fn version(&self) -> u64 {
        self.2
    }
}

#[test]
fn a_series_counts_for_what_it_is_called() {
    let mut names = Remounted(FakeNames::default(), Mounts::default(), 0);
    let mut sums = Sums::new(3, Duration::from_secs(1));
    let plan = fixtures::plan(&[]);
    let of_file = |block, pages| {
        let mut sample = sample(1000, 0);
        let file = &mut sample.files[0];
        file.counters = fixtures::counters(&[(Counter::ReadHits, pages)]);
        file.file = Arc::new(File { block, ..File::clone(&file.file) });
        sample
    };
    names.mount("/a");
    // Mounting reads the device first.
    sums.add(of_file(Some(Dev { major: 0, minor: 51 }), 5), &plan, &mut names);
    sums.add(of_file(None, 3000), &plan, &mut names);
    names.mount("/b");
    sums.add(of_file(None, 20), &plan, &mut names);
    // What is unmounted and still in use.
    names.1 = Mounts::default();
    names.2 += 1;
    sums.add(of_file(None, 1), &plan, &mut names);
    let page = rustix::param::page_size() as f64;
    let all = parsed(&prometheus(&sums));
    let of = |mount: &str| {
        sum(&all, "pagecache_mount_read_bytes_total", &format!("mount=\"{mount}\",outcome=\"hit\"")) / page
    };
    assert_eq!([of(""), of("/a"), of("/b")], [5.0, 3000.0, 21.0]);
}

#[test]
fn what_is_made_anew_goes_on_counting_and_never_falls() {
    let plan = fixtures::plan(&[]);
    let mut sums = Sums::new(2, Duration::from_secs(1));
    let of = |groups: &[u64]| {
        let mut sample = sample(1000, 0);
        let row = |cgroup: &u64| RowSample {
            cgroup: *cgroup,
            ..fixtures::process(9, "x", &[(Counter::ReadHits, 100)])
        };
        sample.rows = groups.iter().map(row).collect();
        sample
    };
    let told = |sums: &Sums| {
        let all = parsed(&prometheus(sums));
        sum(&all, "pagecache_cgroup_read_bytes_total", "cgroup=\"/user.slice\"")
            / rustix::param::page_size() as f64
    };
    sums.add(of(&[1]), &plan, &mut FakeNames::default());
    // Far more than there is room for, or than anybody could remember: a tick takes no longer for it.
    let many: Vec<u64> = (10_000..40_000).collect();
    let began = std::time::Instant::now();
    for _ in 0..3 {
        sums.add(of(&many), &plan, &mut FakeNames::default());
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // The first one is gone long since, and others want its room.
    for _ in 0..700 {
        sums.add(of(&[4011, 2]), &plan, &mut FakeNames::default());
    }
    assert!((told(&sums) - 70_100.0).abs() < 0.5, "{}", told(&sums));
}

#[test]
fn the_other_format_ends_and_names_types_as_it_must() {
    let out = open_metrics(&sums(10, vec![sample(1000, 2)], &fixtures::plan(&[])));
    parsed(&out);
    assert!(out.ends_with("# EOF\n"));
    assert!(
        out.contains("# TYPE pagecache_read_bytes counter\n")
            && out.contains("# TYPE pagecache_build info\n")
    );
    assert!(!out.contains("_count"));
    let all = parsed(&prometheus(&sums(10, vec![sample(1, 1)], &fixtures::plan(&[]))));
    let bucket =
        |le: &str| all[&format!("pagecache_read_latency_seconds_bucket{{outcome=\"hit\",le=\"{le}\"}}")];
    assert_eq!((bucket("2.56e-7"), bucket("+Inf")), (5.0, 6.0));
}

#[test]
fn scrapes_have_what_there_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let all = Arc::new(Mutex::new(sums(10, vec![sample(1000, 2)], &fixtures::plan(&[]))));
    std::thread::spawn(move || {
        http::Server::new(vec![listener.into()], Web::read(None).unwrap(), &all).unwrap().serve()
    });
    let ask = |request: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request).unwrap();
        let mut out = String::new();
        stream.read_to_string(&mut out).unwrap();
        out
    };
    let out = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = out.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    parsed(body);
    assert!(ask(b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
    let accept = b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text; version=1.0.0\r\n\r\n";
    assert!(ask(accept).ends_with("# EOF\n"));
    let head = ask(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"), "{head}");
}

#[test]
fn what_is_wanted_most_is_answered() {
    let proto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    // As Prometheus asks where native histograms are on.
    let prometheus = format!(
        "{proto},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    );
    for (accept, format) in [
        ("", Format::Prometheus),
        ("*/*", Format::Prometheus),
        (prometheus.as_str(), Format::Protobuf),
        (&format!("text/plain;q=0.9,{proto};q=0.7"), Format::Prometheus),
        ("application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5", Format::OpenMetrics),
        ("application/openmetrics-text;Q=0.4 , text/plain; q=0.5", Format::Prometheus),
        ("application/vnd.google.protobuf;proto=other.Message;encoding=delimited", Format::Prometheus),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
            Format::Prometheus,
        ),
        ("application/openmetrics-text;q=rubbish", Format::Prometheus),
        ("application/openmetrics-text;q=NaN,text/plain;q=0.1", Format::Prometheus),
    ] {
        assert_eq!(Format::accepted(accept), format, "{accept}");
    }
}

/// The series of the protobuf, as the text writes them; and its native histograms.
fn of_protobuf(mut bytes: &[u8]) -> (HashMap<String, f64>, Vec<(String, Histogram)>) {
    let (mut series, mut native) = (HashMap::new(), Vec::new());
    while !bytes.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut bytes).unwrap();
        let name = family.name.unwrap();
        for metric in family.metrics {
            let labels: Vec<_> =
                metric.labels.into_iter().map(|l| (l.name.unwrap(), l.value.unwrap())).collect();
            let with = |end: &str, more: &[(String, String)]| {
                let all = labels.iter().chain(more).map(|(k, v)| format!("{k}=\"{v}\"")).collect::<Vec<_>>();
                let braces = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
                format!("{name}{end}{braces}")
            };
            let mut put = |key: String, n: f64| assert!(series.insert(key.clone(), n).is_none(), "{key}");
            for number in metric.gauge.iter().chain(&metric.counter) {
                put(with("", &[]), number.value.unwrap());
            }
            let Some(histogram) = metric.histogram else { continue };
            assert!(histogram.sum.unwrap().is_nan());
            if histogram.schema.is_some() {
                native.push((with("", &[]), histogram));
                continue;
            }
            put(with("_count", &[]), histogram.count.unwrap() as f64);
            for bucket in histogram.buckets {
                let end = bucket.upper_bound.unwrap();
                let end = if end.is_finite() { format!("{end:e}") } else { "+Inf".into() };
                put(with("_bucket", &[("le".into(), end)]), bucket.cumulative_count.unwrap() as f64);
            }
        }
    }
    (series, native)
}

#[test]
fn the_protobuf_has_what_the_text_has_and_native_histograms() {
    let all = sums(10, vec![sample(1000, 2), sample(2000, 3)], &fixtures::plan(&[]));
    let (series, native) = of_protobuf(&exposition(&all, Format::Protobuf));
    assert_eq!(series, parsed(&prometheus(&all)));
    let [(hit, of_hits), (miss, of_misses)] = native.try_into().unwrap();
    assert_eq!(
        (hit.as_str(), miss.as_str()),
        (
            "pagecache_read_latency_nanoseconds{outcome=\"hit\"}",
            "pagecache_read_latency_nanoseconds{outcome=\"miss\"}",
        )
    );
    // Five below 256 ns, and one of which only is known that it took longer than all ends.
    assert_eq!((of_hits.schema, of_hits.zero_threshold, of_hits.zero_count), (Some(0), Some(256.0), Some(5)));
    assert_eq!((of_hits.count, of_hits.positive_deltas.iter().sum::<i64>()), (Some(6), 0));
    // Two in the fourth bucket: from 1024 to 2048 ns, which is number 11.
    assert_eq!((of_misses.count, of_misses.zero_count), (Some(2), Some(0)));
    let [span] = of_misses.positive_spans.as_slice() else { panic!() };
    assert_eq!((span.offset, span.length), (Some(9), Some(30)));
    let mut n = 0;
    let counts: Vec<_> = of_misses
        .positive_deltas
        .iter()
        .map(|delta| {
            n += delta;
            n
        })
        .collect();
    assert_eq!((counts.len(), counts.iter().sum::<i64>(), counts[11 - 9]), (30, 2, 2));
}
