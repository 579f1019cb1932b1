#![allow(clippy::unwrap_used)]

use super::fixtures::request;
use super::*;

/// Reads of so many pages each, at these.
fn run(setting: Setting, at: impl Iterator<Item = u64>, pages: u64, of: u64) -> Sums {
    let mut simulation = Simulation::new(setting);
    let mut before = None;
    for page in at {
        simulation.read(&request(page, pages, of, before));
        before = Some(page + pages);
    }
    let mut all = Sums::default();
    simulation.files().for_each(|(_, sums)| all.add(sums));
    all
}

#[test]
fn a_stream_waits_once_and_wastes_nothing() {
    let all = run(Setting::AsItWas, 0..1000, 1, 1000);
    assert_eq!((all.requests, all.fetched, all.used, all.waits), (1000, 1000, 1000, 1));
    // The first window is of 4 pages, the next of 8, 16, 32.
    assert_eq!(all.windows[2].pages, 4);
    assert_eq!(all.windows[3].pages, 8);
    assert_eq!(all.windows[4].pages, 16);
    assert!(all.windows[5].pages > 900);
}

#[test]
fn a_stream_that_ends_early_wastes_what_was_read_ahead() {
    let all = run(Setting::AsItWas, 0..100, 1, 1000);
    assert!(all.fetched > 100 && all.wasted() <= 64, "{all:?}");
    let more = run(Setting::Pages(256), 0..100, 1, 1000);
    assert!(more.wasted() > all.wasted(), "{more:?}");
}

#[test]
fn single_pages_here_and_there_are_read_as_they_are() {
    let at = (0..200).map(|i| 1 + i * 7919 % 100_000);
    for setting in [Setting::AsItWas, Setting::Pages(1024), Setting::Random, Setting::Sequential] {
        let all = run(setting, at.clone(), 1, 100_000);
        assert_eq!((all.fetched, all.used, all.waits), (200, 200, 200), "{setting:?}");
    }
}

#[test]
fn every_fourteenth_page_fetches_the_first_window_and_then_itself() {
    let at = (0..500).map(|i| i * 14);
    let all = run(Setting::AsItWas, at.clone(), 1, 7000);
    assert_eq!((all.fetched, all.used, all.waits), (4 + 499, 500, 500));
    let random = run(Setting::Random, at, 1, 7000);
    assert_eq!((random.fetched, random.waits), (500, 500));
}

#[test]
fn pieces_with_gaps_waste_more_with_a_longer_window() {
    // Eight pages one by one, then a gap: each piece looks like the beginning of a stream.
    let at = (0..100).flat_map(|piece| (0..8).map(move |page| piece * 1000 + page));
    let now = run(Setting::AsItWas, at.clone(), 1, 100_000);
    let more = run(Setting::Pages(1024), at.clone(), 1, 100_000);
    let random = run(Setting::Random, at, 1, 100_000);
    assert_eq!((random.fetched, random.wasted(), random.waits), (800, 0, 800));
    assert!(now.wasted() > 0 && more.wasted() > now.wasted(), "{now:?} {more:?}");
    assert!(more.waits <= now.waits && now.waits < random.waits);
}

#[test]
fn nothing_is_fetched_twice_nor_beyond_the_end() {
    for order in [0, 9] {
        for aligned in [false, true] {
            let mut simulation = Simulation::new(Setting::Pages(300));
            let mut before = None;
            for i in 0..3000_u64 {
                let (page, pages) = (i * i * 31 % 5003, 1 + i % 70);
                simulation.read(&Request { order, aligned, ..request(page, pages, 5003, before) });
                before = Some(page + pages);
            }
            let (_, sums) = simulation.files().next().unwrap();
            assert!(sums.fetched <= 5003 && sums.used <= sums.fetched, "{sums:?}");
            let windows: u64 = sums.windows.iter().map(|w| w.pages).sum();
            assert_eq!(windows, sums.fetched);
        }
    }
}

#[test]
fn without_read_ahead_each_page_is_asked_for() {
    let all = run(Setting::Pages(0), (0..10).map(|i| i * 4), 4, 40);
    assert_eq!((all.fetched, all.waits, all.wasted()), (40, 10, 0));
}

#[test]
fn a_request_longer_than_the_device_takes_gets_windows() {
    // 1 MiB is more than read-ahead, and no more than the device takes at once: it is read as it is.
    let plain = run(Setting::AsItWas, (0..8).map(|i| 10_000 + i * 2000), 256, 100_000);
    assert_eq!((plain.waits, plain.fetched, plain.windows[0].pages), (8, 8 * 256, 8 * 256));
    // 1.6 MiB is more than that: windows as long as the device takes.
    let long = run(Setting::AsItWas, (0..8).map(|i| 10_000 + i * 2000), 400, 100_000);
    assert_eq!(long.waits, 8);
    assert!(long.fetched > 8 * 400 && long.windows[8].pages > 0, "{long:?}");
}

#[test]
fn advice_for_one_file_is_kept_with_another_setting() {
    let sequential = Request { pages: 64, ..request(0, 1, 10, None) };
    assert_eq!(Setting::Pages(100).of(&sequential), (200, false));
    assert_eq!(Setting::Pages(100).of(&request(0, 1, 10, None)), (100, false));
    assert_eq!(Setting::Pages(100).of(&Request { pages: 7, ..sequential }), (7, false));
    assert_eq!(Setting::Sequential.of(&sequential), (64, false));
    assert_eq!(Setting::Random.of(&Request { random: true, ..sequential }), (64, true));
}

#[test]
fn an_open_file_begins_anew_where_another_was() {
    let mut simulation = Simulation::new(Setting::AsItWas);
    simulation.read(&request(0, 1, 1000, None));
    // The same address, opened again: not the next page of a stream.
    simulation.read(&request(500, 1, 1000, None));
    let (_, sums) = simulation.files().next().unwrap();
    assert_eq!(sums.fetched, 4 + 1);
}

#[test]
fn what_a_pipe_holds_is_a_request() {
    let mut simulation = Simulation::new(Setting::AsItWas);
    simulation.read(&Request { splice: true, ..request(0, 1000, 1000, None) });
    let (_, sums) = simulation.files().next().unwrap();
    assert_eq!((sums.requests, sums.fetched, sums.used), (63, 1000, 1000));
}

#[test]
fn beyond_the_end_nothing_is_read() {
    let mut simulation = Simulation::new(Setting::AsItWas);
    simulation.read(&request(1000, 1, 1000, None));
    simulation.read(&request(0, 0, 1000, None));
    assert_eq!(simulation.files().count(), 0);
}

#[test]
fn a_page_that_is_waited_for_is_of_the_window_that_brought_it_in() {
    let mut simulation = Simulation::new(Setting::AsItWas);
    let mut before = None;
    for page in 0..30 {
        simulation.read(&request(page, 1, 1000, before));
        before = Some(page + 1);
    }
    // Windows of 4, 8, 16 and 32 pages; of those behind there is none yet, and of another file nothing is known.
    for page in [0, 3, 4, 11, 12, 27, 28, 999] {
        simulation.late(&Request { late: true, ..request(page, 1, 0, None) });
    }
    simulation.late(&Request { late: true, inode: 3, ..request(0, 1, 0, None) });
    let (_, sums) = simulation.files().next().unwrap();
    assert_eq!(sums.windows.map(|w| w.late)[..7], [0, 0, 2, 2, 2, 1, 0]);
    assert_eq!(simulation.files().count(), 1);
}

/// Linux 6.12 with XFS, and 6.18: the mark of a first window lies in a folio that the request reads, or behind it.
#[test]
fn the_folios_of_a_first_window() {
    let strided = |aligned| {
        let mut simulation = Simulation::new(Setting::AsItWas);
        for n in 0..96_u64 {
            let before = n.checked_sub(1).map(|n| n * 64 + 5);
            simulation.read(&Request { order: 9, aligned, ..request(n * 64, 5, 6144, before) });
        }
        let (_, sums) = simulation.files().next().unwrap();
        (sums.fetched, sums.wasted())
    };
    assert_eq!(strided(false), (523, 43));
    assert_eq!(strided(true), (491, 11));
}

/// Two streams through one open file, page by page, on Linux 6.18 and ext4, with 128 KiB: what `mincore` told before each of
/// the first 6000 reads, each a millisecond after the one before.
#[test]
fn two_streams_through_one_open_file_miss_what_walks_leave_out() {
    let mut simulation = Simulation::new(Setting::AsItWas);
    let mut before = None;
    for page in (0..3000).flat_map(|n| [n, n + 12_800]) {
        simulation.read(&Request { order: 9, aligned: true, ..request(page, 1, 25_600, before) });
        before = Some(page + 1);
    }
    let (_, sums) = simulation.files().next().unwrap();
    assert_eq!(sums.waits, 71);
}
