//! The report for people, in 80 columns.

mod groups;
mod runs;

use std::fmt::Write as _;

use super::Report;
use super::data::FileRow;
use super::data::Latency;
use super::data::Residency;
use super::data::Run;
use super::findings::Finding;
use super::time::PARTS;
use super::time::Part;
use super::time::Parts;
use super::units::bytes;
use super::units::count;
use super::units::of_pages;
use super::units::page;
use super::units::percent;
use super::units::seconds;
use crate::figures::Figure;
use crate::text::foreign;
use crate::text::width::beginning;
use crate::text::width::ending;
use crate::text::wrap::paragraph;

/// Columns of a line.
const WIDTH: usize = 80;
/// Files that are shown.
const FILES: usize = 8;

/// The whole report.
#[must_use]
pub fn show(report: &Report) -> String {
    let mut out = String::new();
    line(&mut out, &format!("cachestat: {}", report.title()));
    if !report.verdict.text.is_empty() {
        out.push('\n');
        wrapped(&mut out, "", &report.verdict.text);
    }
    if !report.runs.is_empty() {
        findings(&report.findings, report.runs.len() > 1, &mut out);
    }
    if !report.about.is_empty() {
        out.push('\n');
        for about in &report.about {
            wrapped(&mut out, "  ", about);
        }
    }
    if report.runs.len() > 1 || report.compared.is_some() {
        out.push('\n');
        runs::show(report, &mut out);
    }
    if let Some(run) = report.runs.last() {
        if report.runs.len() > 1 {
            line(&mut out, &format!("\nRun {}", run.number));
        }
        out.push('\n');
        figures(run, &mut out);
        latency(run, &mut out);
        windows(run, &mut out);
        files(run, &mut out);
        notes(report, run, &mut out);
    }
    out
}

/// Adds a line, cut at the width of the page.
fn line(out: &mut String, text: &str) {
    // What is shown here was escaped where it is a name; nothing of what a file said may act either.
    let text = &foreign::lines(text.trim_end());
    out.push_str(&beginning(text, WIDTH));
    out.push('\n');
}

/// Adds a paragraph; lines after the first are indented as the first begins.
fn wrapped(out: &mut String, indent: &str, text: &str) {
    for text in paragraph(indent, text, WIDTH - 1) {
        line(out, &text);
    }
}

fn pages(n: Option<u64>) -> String {
    n.map_or_else(|| "-".into(), count)
}

fn size(n: Option<u64>) -> String {
    n.map_or_else(|| "-".into(), bytes)
}

fn secs(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), |x| format!("{x:.3}"))
}

fn ratio(n: Option<u64>, of: Option<u64>) -> String {
    match (n, of) {
        (Some(n), Some(of)) if of > 0 => percent(super::share(n, of), 1),
        _ => "-".into(),
    }
}

fn figures(run: &Run, out: &mut String) {
    times(run, out);
    reads(run, out);
    others(run, out);
}

/// Where the time went.
fn times(run: &Run, out: &mut String) {
    let u = &run.usage;
    let status = run.exit_status.map_or_else(String::new, |s| format!("   exit status {s}"));
    let times =
        format!("wall {:.3} s   user {}   system {}{status}", run.wall_s, secs(u.user_s), secs(u.system_s));
    line(out, &format!("time        {times}"));
    let parts = Parts::of(run);
    for (which, text) in PARTS {
        let part = parts.get(*which);
        if *which == Part::Unexplained && part.is_none() && parts.overlap() {
            continue;
        }
        let of_wall = part.filter(|_| run.wall_s > 0.0 && !parts.overlap());
        let of_wall = of_wall.map_or_else(String::new, |p| percent(p / run.wall_s, 1));
        line(out, &format!("  {text:<24}{:>10} s {of_wall:>8}", secs(part)));
    }
    if let Some(sum) = parts.explained().filter(|_| parts.overlap()) {
        let times = sum / run.wall_s.max(1e-9);
        let text = format!(
            "(in parallel: these are sums over all threads, together {times:.1} times the wall time. Which of them the \
             run as a whole waited for is not known.)"
        );
        wrapped(out, "  ", &text);
    } else if run.processes.len() > 1 && parts.explained().is_some() {
        let text = format!(
            "(sums over {} processes: what they did at the same time counts more than once)",
            run.processes.len()
        );
        wrapped(out, "  ", &text);
    }
}

/// Reads, and what was read ahead of them.
fn reads(run: &Run, out: &mut String) {
    let get = |f| run.get(f);
    let all = get(Figure::Accesses);
    let read = format!("{} pages   {} asked for", pages(all), size(get(Figure::ReadBytes)));
    line(out, &format!("reads       {read}   {} from devices", size(run.usage.device_read_bytes)));
    for (figure, name, about) in [
        (Figure::Hits, "hits", "cached and used before"),
        (Figure::ReadAheadHits, "read-ahead", "first use of a page read ahead"),
        (Figure::Misses, "misses", "waited for, or a hole"),
    ] {
        let n = get(figure);
        line(
            out,
            &format!(
                "  {name:<12}{:>13} {:>10} {:>8}  {about}",
                pages(n),
                size(n.map(|n| n * page())),
                ratio(n, all)
            ),
        );
    }
    let stall = get(Figure::StallNs).map_or_else(|| "-".into(), seconds);
    let late = pages(get(Figure::Inflight));
    line(
        out,
        &format!("  stall       {stall} in reads that missed; {late} pages reached while still on their way"),
    );
    let fetched = get(Figure::ReadAheadPages);
    let windows = (pages(get(Figure::Windows)), pages(get(Figure::WindowsCut)));
    line(
        out,
        &format!(
            "read-ahead  {} pages ({}), {} windows, {} cut short by cached pages",
            pages(fetched),
            size(fetched.map(|n| n * page())),
            windows.0,
            windows.1
        ),
    );
}

/// All that is no read.
fn others(run: &Run, out: &mut String) {
    let get = |f| run.get(f);
    line(
        out,
        &format!(
            "faults      {} major   {} minor   {} around   (perf would say {} major)",
            pages(get(Figure::FaultMisses)),
            pages(get(Figure::FaultHits)),
            pages(get(Figure::FaultAround)),
            pages(run.usage.major_faults)
        ),
    );
    line(
        out,
        &format!(
            "writes      {} pages, {} hits, {} misses, {} dirtied   throttled {}",
            pages(get(Figure::WriteAccesses)),
            pages(get(Figure::WriteHits)),
            pages(get(Figure::WriteMisses)),
            pages(get(Figure::Dirtied)),
            run.waits.throttled_ns.map_or_else(|| "-".into(), seconds)
        ),
    );
    line(
        out,
        &format!(
            "direct I/O  {} read   {} written   {} fell back to the cache",
            size(get(Figure::DirectReadBytes)),
            size(get(Figure::DirectWriteBytes)),
            size(get(Figure::DirectFellBack))
        ),
    );
    line(
        out,
        &format!(
            "metadata    {} blocks, {} hits, {} read ahead, {} misses",
            pages(get(Figure::MetaAccesses)),
            pages(get(Figure::MetaHits)),
            pages(get(Figure::MetaAheadHits)),
            pages(get(Figure::MetaMisses))
        ),
    );
    line(
        out,
        &format!(
            "names       {} not in the dentry cache   {} of work on them",
            pages(run.lookups.dcache_misses),
            run.lookups.work_ns.map_or_else(|| "-".into(), seconds)
        ),
    );
    line(
        out,
        &format!(
            "the cache   {} of its pages read back after eviction; the machine evicted {}",
            pages(get(Figure::Refaulted)),
            pages(run.system.evicted)
        ),
    );
}

/// Lower edge of a bucket of latency.
fn edge(bucket: usize) -> String {
    if bucket == 0 { "0".into() } else { seconds(1 << (7 + bucket)) }
}

fn bar(n: u64, most: u64) -> String {
    const BAR: f64 = 16.0;
    let eighths = (super::share(n, most) * BAR * 8.0).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let eighths = eighths as usize;
    let part = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let mut out = "█".repeat(eighths / 8);
    out.extend((eighths % 8).checked_sub(1).and_then(|i| part.get(i)));
    out
}

fn latency(run: &Run, out: &mut String) {
    let Some(Latency { hit, miss }) = &run.latency else {
        line(out, "\nlatency of read calls: not known on this kernel ('--explain' says why)");
        return;
    };
    if hit.iter().chain(miss).all(|n| *n == 0) {
        return;
    }
    line(out, "\nlatency of read calls, from      did not miss                  missed");
    let first = hit.iter().zip(miss).position(|(h, m)| h + m > 0).unwrap_or(0);
    let last = hit.iter().zip(miss).rposition(|(h, m)| h + m > 0).unwrap_or(0);
    let most = hit.iter().chain(miss).copied().max().unwrap_or(1);
    for i in first..=last {
        let (h, m) = (hit.get(i).copied().unwrap_or(0), miss.get(i).copied().unwrap_or(0));
        line(
            out,
            &format!(
                "{:>12} {:>12} {:<16} {:>12} {:<16}",
                edge(i),
                count(h),
                bar(h, most),
                count(m),
                bar(m, most)
            ),
        );
    }
}

fn windows(run: &Run, out: &mut String) {
    let Some(windows) = &run.window_pages else { return };
    let most = windows.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return;
    }
    line(out, "\nread-ahead windows, from");
    let first = windows.iter().position(|n| *n > 0).unwrap_or(0);
    let last = windows.iter().rposition(|n| *n > 0).unwrap_or(0);
    for (i, n) in windows.iter().enumerate().take(last + 1).skip(first) {
        line(out, &format!("{:>12} {:>12} {}", of_pages(1 << i), count(*n), bar(*n, most)));
    }
    if let Some((kb, path)) =
        run.files.iter().find_map(|f| Some((f.read_ahead_kb?, f.read_ahead_path.as_ref()?)))
    {
        line(out, &format!("{:>12} is the setting in {path}", bytes(kb * 1024)));
    }
}

fn residency(r: Option<&Residency>) -> String {
    match r {
        Some(r) if r.pages > 0 => percent(super::share(r.cached, r.pages), 0),
        _ => "-".into(),
    }
}

fn files(run: &Run, out: &mut String) {
    let shown: Vec<&FileRow> = run.files.iter().filter(|f| f.weight() > 0).take(FILES).collect();
    if shown.is_empty() {
        return;
    }
    line(out, "\nfiles HITS   RAHITS   MISSES FAULTS  WRITES DIRTIES  DIRECT CACHED before,after");
    for f in shown {
        let _ = writeln!(
            out,
            "{:>10} {:>8} {:>8} {:>6} {:>7} {:>7} {:>7} {:>12}, {}",
            f.hits,
            f.readahead_hits,
            f.misses,
            f.fault_misses + f.fault_hits,
            f.writes().map_or_else(|| "-".into(), |n| n.to_string()),
            f.dirtied,
            f.direct().map_or_else(|| "-".into(), |n| if n == 0 { "0".into() } else { bytes(n) }),
            residency(f.before.as_ref()),
            residency(f.after.as_ref())
        );
        let path = foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode));
        line(out, &format!("  {}", ending(&path, WIDTH - 2)));
    }
    let rest = run.files_seen.saturating_sub(FILES as u64);
    if rest > 0 {
        line(out, &format!("  and {} more", count(rest)));
    }
}

fn notes(report: &Report, run: &Run, out: &mut String) {
    let mut notes = Vec::new();
    if !run.left_behind.is_empty() {
        let pids: Vec<_> = run.left_behind.iter().take(5).map(u32::to_string).collect();
        notes.push(format!(
            "{} descendants still ran when the command had ended (process {}); --wait-all waits for them.",
            run.left_behind.len(),
            pids.join(", ")
        ));
    }
    if !run.lost.is_empty() {
        let lost: Vec<_> = run.lost.iter().map(|(why, n)| format!("{why} {n}")).collect();
        notes.push(format!(
            "Events of the machine that could not be accounted: {}. {}",
            lost.join(", "),
            crate::loss::consequence(run.lost.keys().map(String::as_str))
        ));
    }
    if run.origin.unlisted {
        notes.push(
            "There were more files than the lists have room for: who brought in what, and what was there before, is \
             known of a part."
                .into(),
        );
    }
    notes.extend(report.unknown.iter().cloned());
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        wrapped(out, "note: ", &note);
    }
}

fn findings(findings: &[Finding], many: bool, out: &mut String) {
    line(out, "\nfindings");
    if findings.is_empty() {
        line(out, "  none: the figures prove nothing out of the ordinary");
    }
    for finding in findings {
        let which = if many { format!("({}) ", finding.which()) } else { String::new() };
        wrapped(out, "  * ", &format!("{which}{} [{}]", finding.text, finding.id));
        if let Some(remedy) = &finding.remedy {
            wrapped(out, "    remedy: ", remedy);
        }
    }
}

#[cfg(test)]
mod tests;
