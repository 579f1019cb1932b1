//! What must hold for any input: of the command line, of `/proc`, of counters, and of what is printed.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use cachetop::cli::Args;
use cachetop::columns;
use cachetop::columns::COLUMNS;
use cachetop::columns::Column;
use cachetop::columns::Line;
use cachetop::columns::Value;
use cachetop::figures::Figure;
use cachetop::figures::Figures;
use cachetop::memory;
use cachetop::model;
use cachetop::model::Interval;
use cachetop::model::Row;
use cachetop::pivot::Who;
use cachetop::plan::Brackets;
use cachetop::plan::Certainty;
use cachetop::plan::Engine;
use cachetop::plan::Plan;
use cachetop::sample::Counters;
use cachetop::sample::Lost;
use cachetop::sample::Memory;
use cachetop::text::foreign::Foreign;
use cachetop::view;
use cachetop::view::Surroundings;
use cachetop::view::View;
use cachetop::wire::COUNTERS;
use cachetop::wire::Counter;
use clap::Parser as _;
use clap::error::ErrorKind;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

// ---- the command line --------------------------------------------------------------------------------------

/// Arguments that mean something, and any bytes.
fn argument() -> impl Strategy<Value = OsString> {
    let known = "-T|-x|-p|-h|-V|--json|--csv|--bcc|--by|--by=process|process|--top|--top=3|--unit|bytes|--columns|\
                 --columns=hits,misses|--table-size|--refuse|--generate|man|--explain|--engine|exact|classic|--|-1|\
                 0|1|16|0.5|1e400|nan|inf|4294967296|18446744073709551616|hits|hits,hits|,";
    let known: Vec<&'static str> = known.split('|').map(str::trim).collect();
    prop_oneof![
        4 => proptest::sample::select(known).prop_map(OsString::from),
        1 => ".{0,12}".prop_map(OsString::from),
        1 => vec(any::<u8>(), 0..12).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #[test]
    fn any_command_line_is_understood_or_wrong_usage(args in vec(argument(), 0..8)) {
        let program = std::iter::once(OsString::from("cachestat"));
        match Args::try_parse_from(program.chain(args)) {
            Ok(args) => {
                prop_assert!(args.interval >= Duration::from_millis(10));
                prop_assert!(args.count != Some(0) && args.top > 0 && !args.filters.pid.contains(&0));
            }
            Err(e) => {
                let asked = matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                prop_assert_eq!(e.exit_code(), if asked { 0 } else { 2 });
                prop_assert!(!e.to_string().is_empty());
            }
        }
    }

    #[test]
    fn intervals_and_counts_come_back(millis in 10_u64..31_536_000_000, count in 1..=u64::MAX) {
        let interval = Duration::from_millis(millis);
        let words = [interval.as_secs_f64().to_string(), count.to_string()];
        let args = Args::try_parse_from(["cachestat", &words[0], &words[1]]).unwrap();
        // A floating-point number of seconds has the microseconds of a year, not its nanoseconds.
        prop_assert!(args.interval.abs_diff(interval) <= Duration::from_micros(1));
        prop_assert_eq!(args.count, Some(count));
    }

    #[test]
    fn any_list_of_columns_is_read_or_refused_with_a_reason(list in "[a-z_,A-Z ]{0,40}|.{0,40}") {
        match columns::parse(&list) {
            Ok(columns) => prop_assert!(!columns.is_empty()),
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
}

// ---- what the kernel tells ---------------------------------------------------------------------------------

proptest! {
    #[test]
    fn any_meminfo_is_read(text in "([A-Za-z]{0,10}:? {0,3}[0-9]{0,30} ?(kB)?\n|.{0,40}\n){0,20}") {
        let _ = memory::parse(&text);
    }

    #[test]
    fn meminfo_is_read_whatever_else_is_there(
        values in any::<[u32; 3]>(),
        noise in vec(("[A-Z][a-zA-Z_()]{0,12}", any::<u64>()), 0..8),
    ) {
        let names = ["Cached", "Buffers", "Dirty"];
        let mut text: String = noise
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()))
            .map(|(name, n)| format!("{name}:   {n} kB\n"))
            .collect();
        for (name, n) in names.iter().zip(values) {
            text += &format!("{name}:{n:>12} kB\n");
        }
        let [cached_bytes, buffers_bytes, dirty_bytes] = values.map(|n| u64::from(n) * 1024);
        prop_assert_eq!(memory::parse(&text), Memory { cached_bytes, buffers_bytes, dirty_bytes });
    }
}

/// A machine that says it has more than there can be has that much.
#[test]
fn meminfo_beyond_measure() {
    let memory = memory::parse(&format!("Cached: {} kB\nDirty: {}0 kB\n", u64::MAX, u64::MAX));
    assert_eq!((memory.cached_bytes, memory.dirty_bytes), (u64::MAX, 0));
}

// ---- counters ----------------------------------------------------------------------------------------------

fn plan(known: &[Figure]) -> Plan {
    Plan {
        engine: Engine::Exact,
        brackets: Brackets::Trampolines,
        fetch_atomics: true,
        hooks: Vec::new(),
        figures: known.iter().map(|f| (*f, Certainty::Exact)).collect(),
        at_least: Vec::new(),
    }
}

fn counters() -> impl Strategy<Value = Counters> {
    vec(0_u64..1 << 48, COUNTERS).prop_map(|v| Counters(v.try_into().unwrap()))
}

proptest! {
    /// However a run is cut into intervals, they add up to the whole.
    #[test]
    fn intervals_add_up(steps in vec(counters(), 1..20)) {
        let mut now = Counters::default();
        let mut sum = Counters::default();
        for step in &steps {
            let before = now;
            now.add(step);
            prop_assert_eq!(now.since(&before), *step);
            sum.add(&now.since(&before));
        }
        prop_assert_eq!(sum, now);
        prop_assert!(now.since(&now).is_zero());
    }

    /// A set that went back has begun anew: nothing wraps.
    #[test]
    fn no_difference_is_more_than_what_there_is(a in counters(), b in counters()) {
        let since = a.since(&b);
        prop_assert!(since.0.iter().zip(a.0).all(|(d, n)| *d <= n));
    }

    #[test]
    fn each_access_has_one_outcome(c in counters(), known in proptest::sample::subsequence(Figure::ALL, 0..Figure::ALL.len())) {
        let of = |f: &Figures, figure| f.get(figure).unwrap();
        let all = model::figures(&c, &plan(Figure::ALL));
        let parts = of(&all, Figure::Hits) + of(&all, Figure::ReadAheadHits) + of(&all, Figure::Misses);
        prop_assert_eq!(of(&all, Figure::Accesses), parts);
        prop_assert_eq!(of(&all, Figure::ReadBytes), c.get(Counter::ReadBytes));
        prop_assert!(of(&all, Figure::Fills) >= of(&all, Figure::ReadAheadPages));
        if let Some(ratio) = all.hit_ratio() {
            prop_assert!((0.0..=1.0).contains(&ratio));
        }
        // What the plan does not know is unknown, and nothing else is.
        let some = model::figures(&c, &plan(&known));
        for figure in Figure::ALL {
            let want = if known.contains(figure) { all.get(*figure) } else { None };
            prop_assert_eq!(some.get(*figure), want);
        }
    }

    #[test]
    fn losses_do_not_go_below_zero(a in any::<[u32; 3]>(), b in any::<[u32; 3]>()) {
        let lost = |n: [u32; 3]| Lost {
            by_reason: ["requests_full", "nesting", "recursion"].map(Into::into).into_iter().zip(n.map(u64::from)).collect(),
        };
        let since = lost(a).since(&lost(b));
        let want: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.saturating_sub(b))).sum();
        prop_assert_eq!(since.total(), want);
    }
}

// ---- what is printed ---------------------------------------------------------------------------------------

fn figures() -> impl Strategy<Value = Figures> {
    let value = option::of(prop_oneof![Just(0), 0..1_000_000_u64, any::<u64>()]);
    vec(value, Figure::ALL.len()).prop_map(|values| {
        let mut out = Figures::unknown();
        Figure::ALL.iter().zip(values).for_each(|(figure, value)| out.set(*figure, value));
        out
    })
}

/// Names as the kernel may hold them: any bytes.
fn comm() -> impl Strategy<Value = Foreign> {
    let nasty =
        proptest::sample::select(vec!["\"", "a,b", "\r\n", "\u{1b}[2J", "\u{0}", " ", "", "=1+1", "\u{85}"]);
    let bytes = vec(any::<u8>(), 0..15).prop_map(|b| Foreign::from(&b[..]));
    prop_oneof![bytes, ".{0,15}".prop_map(Foreign::from), nasty.prop_map(Foreign::from)]
}

fn interval() -> impl Strategy<Value = Interval> {
    let row = (any::<u32>(), any::<u32>(), comm(), figures()).prop_map(|(pid, uid, comm, figures)| Row {
        who: Who { pid: Some(pid), uid: Some(uid), comm: Some(comm), ..Who::default() },
        figures,
        classic: None,
        back: None,
    });
    let lost = vec(0_u64..1 << 40, 2).prop_map(|n| Lost {
        by_reason: ["requests_full", "recursion"].map(Into::into).into_iter().zip(n).collect(),
    });
    let memory = any::<[u64; 3]>().prop_map(|[cached_bytes, buffers_bytes, dirty_bytes]| Memory {
        cached_bytes,
        buffers_bytes,
        dirty_bytes,
    });
    let time = 0_i64..200_000_000_000_000;
    (figures(), vec(row, 0..5), lost, memory, time, 0.001_f64..1e8).prop_map(
        |(total, rows, lost, memory, time, seconds)| Interval {
            time: jiff::Timestamp::from_millisecond(time).unwrap(),
            seconds,
            engine: "exact",
            total,
            memory,
            lost,
            histograms: None,
            groups: rows.len(),
            rows,
            classic: None,
            back: None,
        },
    )
}

fn number(n: Option<u32>) -> String {
    n.map(|n| n.to_string()).unwrap_or_default()
}

fn view(options: &str) -> Box<dyn View> {
    let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
    let zone = jiff::tz::TimeZone::UTC;
    view::new(&args.options(), Surroundings { zone, page_size: 4096, screen: Box::new(|| None) })
}

fn printed(options: &str, interval: &Interval) -> String {
    let mut out = String::new();
    let mut view = view(options);
    view.begin(&mut out);
    view.interval(interval, &mut out);
    out
}

/// Every figure of the groups that an object has is there, and as it was.
fn same_figures(of: &serde_json::Value, figures: &Figures, whole: bool) -> Result<(), TestCaseError> {
    for figure in Figure::ALL.iter().filter(|f| whole || of.get(f.group()).is_some()) {
        let got = &of[figure.group()][figure.key()];
        prop_assert_eq!(got.as_u64(), figures.get(*figure), "{:?}", figure);
        prop_assert!(got.is_u64() || got.is_null());
    }
    let ratio = of["read"]["hit_ratio"].as_f64();
    prop_assert_eq!(ratio.is_some(), figures.hit_ratio().is_some());
    let (got, want) = (ratio.unwrap_or(0.0), figures.hit_ratio().unwrap_or(0.0));
    prop_assert!((got - want).abs() <= 1e-6 + want * 1e-12);
    Ok(())
}

proptest! {
    #[test]
    fn json_comes_back(interval in interval()) {
        let text = printed("--json --by process --top 3", &interval);
        prop_assert_eq!(text.matches('\n').count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        prop_assert_eq!(time, interval.time);
        prop_assert!((line["interval_s"].as_f64().unwrap() - interval.seconds).abs() <= 1e-6);
        same_figures(&line, &interval.total, true)?;
        prop_assert_eq!(line["cache"]["cached_bytes"].as_u64(), Some(interval.memory.cached_bytes));
        prop_assert_eq!(line["cache"]["dirty_bytes"].as_u64(), Some(interval.memory.dirty_bytes));
        prop_assert_eq!(line["lost"]["total"].as_u64(), Some(interval.lost.total()));
        let rows = line["rows"].as_array().unwrap();
        prop_assert_eq!(rows.len(), interval.rows.len());
        for (got, want) in rows.iter().zip(&interval.rows) {
            prop_assert_eq!(got["pid"].as_u64(), want.who.pid.map(u64::from));
            prop_assert_eq!(got["uid"].as_u64(), want.who.uid.map(u64::from));
            let comm = want.who.comm.as_ref().map(Foreign::raw);
            prop_assert_eq!(got["comm"].as_str(), comm.as_deref());
            same_figures(got, &want.figures, false)?;
        }
    }

    #[test]
    fn csv_comes_back(interval in interval()) {
        let all: Vec<&Column> = COLUMNS.iter().filter(|c| c.id != "interval_s").collect();
        let ids: Vec<&str> = all.iter().map(|c| c.id).collect();
        let text = printed(&format!("--csv --by process --top 3 --columns {}", ids.join(",")), &interval);
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> = table.headers().unwrap().iter().map(String::from).collect();
        prop_assert_eq!(&names[..5], ["time", "interval_s", "pid", "uid", "comm"]);
        prop_assert_eq!(&names[5..], ids);
        let records: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
        prop_assert_eq!(records.len(), 1 + interval.rows.len());
        let lines = std::iter::once((None, Line::from(&interval)))
            .chain(interval.rows.iter().map(|row| (Some(row), Line::from(row))));
        for (record, (row, line)) in records.iter().zip(lines) {
            prop_assert_eq!(record[0].parse::<jiff::Timestamp>().unwrap(), interval.time);
            // A name that is empty is told from the empty field of the interval's own line.
            let named = |name: &Foreign| if name.bytes().is_empty() { "\\0".into() } else { name.cell() };
            let who = row.map(|r| [number(r.who.pid), number(r.who.uid), r.who.comm.as_ref().map(named).unwrap_or_default()]).unwrap_or_default();
            prop_assert_eq!([&record[2], &record[3], &record[4]], who);
            for (column, cell) in all.iter().zip(record.iter().skip(5)) {
                match column.value(&line) {
                    Value::Unknown => prop_assert_eq!(cell, ""),
                    Value::Pages(n) | Value::Events(n) | Value::Bytes(n) | Value::Size(n) => {
                        prop_assert_eq!(cell.parse(), Ok(n), "{}", column.id);
                    }
                    Value::SignedPages(n) => prop_assert_eq!(cell.parse(), Ok(n), "{}", column.id),
                    Value::Ratio(x) | Value::Seconds(x) => {
                        let got: f64 = cell.parse().unwrap();
                        prop_assert!((got - x).abs() <= 1e-6 + x * 1e-12, "{}: {cell} {x}", column.id);
                    }
                }
            }
        }
    }

    /// One line for each line, whatever a process is called, and nothing that a terminal would act on.
    #[test]
    fn text_is_plain(interval in interval(), options in "(-x|-T|--unit bytes|--bcc)?") {
        let by = if options == "--bcc" { "" } else { "--by process --top 3" };
        let text = printed(&format!("{options} {by}"), &interval);
        let rows = if by.is_empty() { 0 } else { interval.rows.len() };
        prop_assert_eq!(text.lines().count(), 2 + rows, "{}", text);
        let odd = text.chars().find(|c| (c.is_control() || ('\u{2028}'..='\u{202e}').contains(c)) && *c != '\n');
        prop_assert_eq!(odd, None, "{:?}", text);
    }
}
