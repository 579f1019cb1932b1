#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[test]
fn names_are_unique_and_titles_fit() {
    let mut names = HashSet::new();
    for c in COLUMNS {
        assert!(names.insert(c.id.to_lowercase()), "{}", c.id);
        if !c.id.eq_ignore_ascii_case(c.title) {
            assert!(names.insert(c.title.to_lowercase()), "{}", c.title);
        }
        assert!(c.title.len() <= c.width, "{} is wider than its column", c.title);
        assert!(!c.about().is_empty());
    }
}

#[test]
fn the_sets_name_columns_that_exist() {
    for ids in [DEFAULT, WIDE] {
        assert_eq!(set(ids).len(), ids.len());
    }
    assert!(DEFAULT.iter().all(|id| WIDE.contains(id)), "the wide set holds the default one");
}

#[test]
fn every_figure_has_a_column() {
    for figure in Figure::ALL {
        let shown = COLUMNS.iter().any(|c| matches!(c.from, Origin::Figure(f) if f == *figure));
        assert!(shown, "{figure:?}");
    }
}

#[test]
fn a_list_names_columns_by_name_or_title() {
    let ids: Vec<_> = parse("hits, MISSES,BUFFERS_MB ,hit_ratio").unwrap().iter().map(|c| c.id).collect();
    assert_eq!(ids, ["hits", "misses", "buffers_bytes", "hit_ratio"]);
}

#[test]
fn wrong_lists_say_what_is_wrong() {
    for (list, part) in [
        ("", "missing"),
        ("hits,,misses", "missing"),
        ("hits,", "missing"),
        ("hits,rubbish", "no column 'rubbish'"),
        ("hits,HITS", "listed twice"),
        ("buffers_bytes,BUFFERS_MB", "listed twice"),
        ("hits misses", "no column 'hits misses'"),
    ] {
        let error = parse(list).unwrap_err();
        assert!(error.contains(part), "{list:?}: {error}");
    }
}

#[test]
fn a_row_has_no_state_of_the_system() {
    let mut figures = Figures::unknown();
    figures.set(Figure::Hits, Some(3));
    let line = Line { figures: &figures, classic: None, system: None, back: None, held: None };
    for (id, value) in [
        ("hits", Value::Pages(3)),
        ("misses", Value::Unknown),
        ("cached_bytes", Value::Unknown),
        ("lost", Value::Unknown),
        ("hit_ratio", Value::Unknown),
    ] {
        assert_eq!(find(id).unwrap().value(&line), value, "{id}");
    }
}

#[test]
fn the_unknown_sorts_below_zero() {
    assert!(Value::Unknown.sort_key() < Value::Pages(0).sort_key());
    assert!(Value::Ratio(0.5).sort_key() < Value::Ratio(0.75).sort_key());
}

proptest! {
    #[test]
    fn any_list_is_read_or_refused(list in ".{0,60}") {
        if let Ok(columns) = parse(&list) {
            prop_assert_eq!(columns.len(), list.split(',').count());
        }
    }

    #[test]
    fn what_was_listed_comes_back(
        chosen in proptest::sample::subsequence((0..COLUMNS.len()).collect::<Vec<_>>(), 1..8).prop_shuffle(),
        title in any::<bool>(),
        blanks in "[ ]{0,2}",
    ) {
        let names: Vec<_> = chosen
            .iter()
            .map(|i| if title { COLUMNS[*i].title } else { COLUMNS[*i].id })
            .collect();
        let parsed = parse(&names.join(&format!("{blanks},{blanks}"))).unwrap();
        let ids: Vec<_> = parsed.iter().map(|c| c.id).collect();
        let expected: Vec<_> = chosen.iter().map(|i| COLUMNS[*i].id).collect();
        prop_assert_eq!(ids, expected);
    }
}
