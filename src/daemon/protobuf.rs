//! Metrics as Prometheus' protobuf: what the text has, and latency once more, as a native histogram.
//!
//! The buckets of latency end at powers of two of nanoseconds. No schema of native histograms has these ends in seconds (at
//! the closest one they are seven parts in a hundred off), so the native one is in nanoseconds, where schema 0 has them
//! exactly, and has a name of its own. What took longer than the last end is in its count alone: it is in no bucket that
//! has an end. The sum is not known: not a number.

use prost::Message;

use super::families::FIRST_END;
use super::families::Family;
use super::families::Kind;
use super::families::LATENCY_HELP;
use super::families::Told;
use super::families::bucket_end;
use super::families::outcomes;
use super::families::tell;
use super::sums::Sums;
use crate::sample::Histograms;

const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
const HISTOGRAM: i32 = 4;

// As io.prometheus.client has them; of each message what is used here.

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub help: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// A gauge or a counter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Number {
    #[prost(double, optional, tag = "1")]
    pub value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub buckets: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub positive_spans: Vec<Span>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub positive_deltas: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub upper_bound: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(sint32, optional, tag = "1")]
    pub offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub length: Option<u32>,
}

fn labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<LabelPair> {
    let pair = |(name, value): (&str, &str)| LabelPair { name: Some(name.into()), value: Some(value.into()) };
    labels.into_iter().map(pair).collect()
}

fn family(family: &Family<'_>) -> MetricFamily {
    let counts = family.kind == Kind::Counter;
    let metric = |point: &super::families::Point<'_>| {
        let number = Some(Number { value: Some(point.value.float()) });
        let (counter, gauge) = if counts { (number, None) } else { (None, number) };
        Metric { labels: labels(point.labels.iter().copied()), gauge, counter, histogram: None }
    };
    MetricFamily {
        name: Some(format!("{}{}", family.name, if counts { "_total" } else { "" })),
        help: Some(family.help.clone()),
        kind: Some(if counts { COUNTER } else { GAUGE }),
        metrics: family.points.iter().map(metric).collect(),
    }
}

/// Buckets with ends in seconds, for those who do not take native ones.
fn classic(buckets: &[u64]) -> Histogram {
    let mut sum = 0_u64;
    let mut out = Histogram { sum: Some(f64::NAN), ..Histogram::default() };
    for (i, n) in buckets.iter().enumerate() {
        sum = sum.saturating_add(*n);
        let end = bucket_end(i, buckets.len()).unwrap_or(f64::INFINITY);
        out.buckets.push(Bucket { cumulative_count: Some(sum), upper_bound: Some(end) });
    }
    out.count = Some(sum);
    out
}

/// Of nanoseconds: bucket n ends at 2 to the power of n.
fn native(buckets: &[u64]) -> Histogram {
    let zero = buckets.first().copied().unwrap_or(0);
    let ends = buckets.get(1..buckets.len().saturating_sub(1)).unwrap_or_default();
    let mut before = 0_i64;
    let deltas = ends.iter().map(|n| {
        let n = i64::try_from(*n).unwrap_or(i64::MAX);
        n - std::mem::replace(&mut before, n)
    });
    let deltas = deltas.collect();
    let span = Span { offset: Some(FIRST_END + 1), length: u32::try_from(ends.len()).ok() };
    Histogram {
        count: Some(buckets.iter().fold(0, |sum, n| sum.saturating_add(*n))),
        sum: Some(f64::NAN),
        buckets: Vec::new(),
        schema: Some(0),
        zero_threshold: Some(f64::from(FIRST_END).exp2()),
        zero_count: Some(zero),
        positive_spans: vec![span],
        positive_deltas: deltas,
    }
}

fn latency(latency: &Histograms, name: &str, histogram: fn(&[u64]) -> Histogram) -> MetricFamily {
    let metric = |(outcome, buckets): (&str, &[u64])| Metric {
        labels: labels([("outcome", outcome)]),
        histogram: Some(histogram(buckets)),
        ..Metric::default()
    };
    MetricFamily {
        name: Some(name.into()),
        help: Some(LATENCY_HELP.into()),
        kind: Some(HISTOGRAM),
        metrics: outcomes(latency).into_iter().map(metric).collect(),
    }
}

/// All metrics of now, each family behind its length.
pub(super) fn exposition(sums: &Sums) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 << 14);
    let mut put = |family: MetricFamily| out.extend_from_slice(&family.encode_length_delimited_to_vec());
    tell(sums, &mut |told| match told {
        Told::Family(f) => put(family(&f)),
        Told::Latency(l) => {
            put(latency(l, "pagecache_read_latency_seconds", classic));
            put(latency(l, "pagecache_read_latency_nanoseconds", native));
        }
    });
    out
}
