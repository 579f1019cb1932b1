//! Rows and the row for the rest are the line above them, whatever is requested.

use proptest::prelude::*;

use super::*;
use crate::sample::machine;
use crate::sample::machine::Machine;

const ALL: [By; 8] =
    [By::Process, By::Thread, By::Comm, By::User, By::Cgroup, By::File, By::Mount, By::Device];

/// Filters that leave something.
fn filter() -> impl Strategy<Value = Filter> {
    let none = Filter::default();
    let file = Wanted { dev: TMPFS, inode: 1, name: None, block: None, path: std::path::PathBuf::new() };
    prop_oneof![
        Just(none.clone()),
        Just(Filter { pids: vec![2, 3], ..none.clone() }),
        Just(Filter { comms: vec!["dd".into(), "sh".into()], ..none.clone() }),
        Just(Filter { cgroups: vec!["/user.slice".into()], ..none.clone() }),
        Just(Filter { mount: Some(TMPFS), ..none.clone() }),
        Just(Filter { file: Some(file), comms: vec!["sh".into()], ..none }),
    ]
}

proptest! {
    #[test]
    fn rows_and_the_rest_are_the_line(ticks in machine::ticks(), filter in filter(), top in 0_usize..6) {
        let plan = fixtures::plan(&[]);
        let names = Box::<fixtures::FakeNames>::default();
        let mut pivot = Pivot { by: None, top: 0, filter, names };
        let mut machine = Machine::new();
        let mut before = machine.read(&[]);
        for (events, _) in ticks {
            let now = machine.read(&events);
            for by in ALL {
                // The last: all rows.
                for top in [top, usize::MAX] {
                    (pivot.by, pivot.top) = (Some(by), top);
                    let files = pivot.files();
                    let interval = pivot.interval(&before, &now, &plan);
                    let rest = interval.rows.iter().filter(|r| r.who.other).count();
                    prop_assert!(rest <= 1 && interval.rows.len() - rest <= top);
                    let known = known(&plan, files);
                    for figure in Figure::ALL.iter().filter(|f| known[**f as usize]) {
                        let sum = interval.rows.iter().map(|r| r.figures.get(*figure)).sum::<Option<u64>>();
                        let line = interval.total.get(*figure);
                        prop_assert_eq!(sum, line, "{:?} {:?} top {}", by, figure, top);
                    }
                }
            }
            before = now;
        }
    }
}

#[test]
fn what_has_no_row_is_the_rest_and_cannot_be_mistaken() {
    let start = crate::sample::Moment::now();
    let before = fixtures::sample(start, Duration::ZERO, &[]);
    let mut now = sample(start);
    now.rows = vec![thread(10, 10, "(other)", "(other)", 300)];
    let mut pivot = fixtures::pivot(&Args::parse_from(["cachestat", "--by", "comm"]));
    let interval = pivot.interval(&before, &now, &fixtures::plan(&[]));
    let [row, rest] = interval.rows.as_slice() else { panic!("{:?}", interval.rows) };
    assert_eq!((row.figures.get(Figure::Hits), row.who.other), (Some(300), false));
    assert_eq!((rest.figures.get(Figure::Hits), rest.who.other), (Some(700), true));
    assert_eq!(rest.figures.get(Figure::Evicted), None, "not known of rows");
    for format in ["--columns hits --csv", "--columns hits", "--json"] {
        let options = format!("cachestat --by comm {format}");
        let args = Args::parse_from(options.split_whitespace());
        let zone = jiff::tz::TimeZone::UTC;
        let here = crate::view::Surroundings { zone, page_size: 4096, screen: Box::new(|| None) };
        let mut out = String::new();
        crate::view::new(&args.options(), here).interval(&interval, &mut out);
        let count = |what: &str| out.matches(what).count();
        match format {
            "--json" => assert!(count(r#""other":true"#) == 1 && count(r#""comm":"(other)""#) == 1, "{out}"),
            _ => assert!(count("\\(other)") == 1 && count("(other)") == 2, "{out}"),
        }
    }
}
