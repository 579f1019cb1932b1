//! All figures of one run, for those who ask for them; what is not known is left out and remembered.

use super::page::Page;
use super::page::Row;
use crate::figures::Figure;
use crate::report::data::Latency;
use crate::report::data::Run;
use crate::report::units;
use crate::report::units::bytes;
use crate::report::units::count;
use crate::report::units::seconds;
use crate::text::numbers::Unit;

/// Everything but files.
pub(super) fn show(run: &Run, page: &mut Page) {
    reads(run, page);
    others(run, page);
    latency(run, page);
    windows(run, page);
}

/// What was read of files, in a sentence.
pub(super) fn sentence(run: &Run, page: &mut Page) {
    let classes = [
        (Figure::Hits, "hits"),
        (Figure::ReadAheadHits, "first use of read-ahead"),
        (Figure::Misses, "misses"),
    ];
    let Some(parts) = classes.iter().map(|(figure, _)| run.get(*figure)).collect::<Option<Vec<u64>>>() else {
        page.note_unknown("reads");
        return;
    };
    let shown = page.sum(&parts);
    let told: Vec<String> = (0..classes.len())
        .filter(|i| parts[*i] > 0)
        .map(|i| format!("{} {}", shown[i], classes[i].1))
        .collect();
    let sum = match page.style.unit {
        Unit::Pages => page.amount(parts.iter().sum()),
        Unit::Bytes => format!("{} in whole pages", shown[classes.len()]),
    };
    let mut text = match told.as_slice() {
        [] => "nothing of files".to_owned(),
        told => format!("{sum} ({})", told.join(", ")),
    };
    match run.usage.device_read_bytes {
        Some(0) => {}
        Some(n) => text.push_str(&format!("; {} from devices", page.amount_of_bytes(n))),
        None => page.note_unknown("reads of devices"),
    }
    page.wrapped("", &format!("read: {text}"));
}

/// Reads, and what was read ahead of them.
fn reads(run: &Run, page: &mut Page) {
    let get = |f| run.get(f);
    let classes = [
        (Figure::Hits, "hits", "cached and used before"),
        (Figure::ReadAheadHits, "read-ahead", "first use of a page read ahead"),
        (Figure::Misses, "misses", "waited for, or a hole"),
    ];
    if let Some(parts) = classes.iter().map(|(f, ..)| get(*f)).collect::<Option<Vec<u64>>>() {
        let sum: u64 = parts.iter().sum();
        let shown = page.sum(&parts);
        let shares = units::shares(&parts.iter().map(|n| *n as f64).collect::<Vec<_>>(), sum as f64, 1);
        let mut table = vec![Row::new(page.heading("reads"), vec![shown[classes.len()].clone()])];
        for (i, (_, name, about)) in classes.iter().enumerate().filter(|_| sum > 0) {
            let cells = vec![shown[i].clone(), shares[i].clone()];
            table.push(Row { about: (*about).into(), ..Row::new(format!("  {name}"), cells) });
        }
        page.table(&table);
        // What stands above is more than what was asked for, and why.
        let asked = get(Figure::ReadBytes)
            .map(|n| page.amount_of_bytes(n))
            .filter(|asked| *asked != page.amount(sum));
        if let Some(asked) = asked.filter(|_| sum > 0) {
            page.wrapped("  ", &format!("(a page counts as a whole: the calls asked for {asked} of them)"));
        }
    } else {
        page.note_unknown("reads");
    }
    let stall = get(Figure::StallNs).map(|n| format!("{} in reads that missed", seconds(n)));
    let flight = get(Figure::Inflight).map(|n| format!("{} reached on their way", page.amount(n)));
    let devices = run.usage.device_read_bytes.map(|n| format!("{} read from them", page.amount_of_bytes(n)));
    let ahead = get(Figure::ReadAheadPages).map(|n| format!("{} fetched", page.amount(n)));
    page.parts("  asked for", &[("bytes read", get(Figure::ReadBytes).map(|n| page.amount_of_bytes(n)))]);
    page.parts("  devices", &[("reads of devices", devices)]);
    page.parts("  stall", &[("stalls", stall), ("pages in flight", flight)]);
    let windows = get(Figure::Windows).map(|n| format!("{} windows", count(n)));
    let cut = get(Figure::WindowsCut).map(|n| format!("{} cut short by cached pages", count(n)));
    page.parts("read-ahead", &[("read-ahead", ahead), ("windows", windows), ("windows", cut)]);
}

/// All that is no read.
fn others(run: &Run, page: &mut Page) {
    let get = |f| run.get(f);
    let number = |f: Figure, name: &str| get(f).map(|n| format!("{} {name}", count(n)));
    let around = get(Figure::FaultAround).map(|n| format!("{} mapped around them", page.amount(n)));
    page.parts(
        "faults",
        &[
            ("faults", number(Figure::FaultMisses, "major")),
            ("faults", number(Figure::FaultHits, "minor")),
            ("fault-around", around),
            ("perf's faults", run.usage.major_faults.map(|n| format!("perf would say {} major", count(n)))),
        ],
    );
    let accesses = match [Figure::WriteHits, Figure::WriteMisses].map(get) {
        [Some(hits), Some(misses)] => {
            let shown = page.sum(&[hits, misses]);
            Some(format!("{} = {} hits + {} misses", shown[2], shown[0], shown[1]))
        }
        _ => None,
    };
    let dirtied = get(Figure::Dirtied).map(|n| format!("{} dirtied", page.amount(n)));
    let throttled = run.waits.throttled_ns.map(|n| format!("throttled for {}", seconds(n)));
    page.parts("writes", &[("write hits", accesses), ("dirtied pages", dirtied), ("throttling", throttled)]);
    let direct = |f: Figure, name: &str| get(f).map(|n| format!("{} {name}", page.amount_of_bytes(n)));
    page.parts(
        "direct I/O",
        &[
            ("direct I/O", direct(Figure::DirectReadBytes, "read")),
            ("direct I/O", direct(Figure::DirectWriteBytes, "written")),
            ("fall-back", direct(Figure::DirectFellBack, "fell back to the cache")),
        ],
    );
    page.parts(
        "metadata",
        &[
            ("metadata", number(Figure::MetaAccesses, "blocks")),
            ("metadata", number(Figure::MetaHits, "hits")),
            ("metadata", number(Figure::MetaAheadHits, "read ahead")),
            ("metadata", number(Figure::MetaMisses, "misses")),
        ],
    );
    let names = run.lookups.dcache_misses.map(|n| format!("{} not in the dentry cache", count(n)));
    let work = run.lookups.work_ns.map(|n| format!("{} of work on them", seconds(n)));
    page.parts("names", &[("look-ups", names), ("look-ups", work)]);
    let back = get(Figure::Refaulted).map(|n| format!("{} read back after eviction", page.amount(n)));
    let evicted = run.system.evicted.map(|n| format!("the machine evicted {}", page.amount(n)));
    page.parts("the cache", &[("refaults", back), ("evictions", evicted)]);
}

/// Lower edge of a bucket of latency.
fn edge(bucket: usize) -> String {
    if bucket == 0 { "0".into() } else { seconds(1 << (7 + bucket)) }
}

fn bar(n: u64, most: u64) -> String {
    const BAR: f64 = 16.0;
    let eighths = (crate::report::units::share(n, most) * BAR * 8.0).ceil();
    let eighths = eighths as usize;
    let part = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let mut out = "█".repeat(eighths / 8);
    out.extend((eighths % 8).checked_sub(1).and_then(|i| part.get(i)));
    out
}

fn latency(run: &Run, page: &mut Page) {
    let Some(Latency { hit, miss }) = &run.latency else {
        page.note_unknown("latency");
        return;
    };
    if hit.iter().chain(miss).all(|n| *n == 0) {
        return;
    }
    page.line("\nlatency of read calls, from      did not miss                  missed");
    let first = hit.iter().zip(miss).position(|(h, m)| h + m > 0).unwrap_or(0);
    let last = hit.iter().zip(miss).rposition(|(h, m)| h + m > 0).unwrap_or(0);
    let most = hit.iter().chain(miss).copied().max().unwrap_or(1);
    for i in first..=last {
        let (h, m) = (hit.get(i).copied().unwrap_or(0), miss.get(i).copied().unwrap_or(0));
        page.line(&format!(
            "{:>12} {:>12} {:<16} {:>12} {:<16}",
            edge(i),
            count(h),
            bar(h, most),
            count(m),
            bar(m, most)
        ));
    }
}

fn windows(run: &Run, page: &mut Page) {
    let Some(windows) = &run.window_pages else { return };
    let most = windows.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return;
    }
    page.line("\nread-ahead windows, from");
    let first = windows.iter().position(|n| *n > 0).unwrap_or(0);
    let last = windows.iter().rposition(|n| *n > 0).unwrap_or(0);
    for (i, n) in windows.iter().enumerate().take(last + 1).skip(first) {
        page.line(&format!("{:>12} {:>12} {}", page.amount(1 << i), count(*n), bar(*n, most)));
    }
    if let Some((kb, path)) =
        run.files.iter().find_map(|f| Some((f.read_ahead_kb?, f.read_ahead_path.as_ref()?)))
    {
        page.line(&format!("{:>12} is the setting in {path}", bytes(kb * 1024)));
    }
}
