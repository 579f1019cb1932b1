//! The report for people: the verdict, what was found, where the time went; and, where that is asked for, all figures.

mod details;
mod files;
mod groups;
mod left;
mod page;
mod pushed;
mod runs;
mod state;
mod times;
mod trial;
mod whatif;

use super::Report;
use super::data::Run;
use super::findings::Finding;
use super::units;
use page::Page;
pub use page::Style;

/// Lines for a command that did next to nothing.
const SHORT: usize = 15;
/// What such a command used at most, bytes, and how long it took, seconds.
const LITTLE: (u64, f64) = (16 << 20, 1.0);
/// Rows of parts of the time that are shown at least, where there are as many.
const ROWS: usize = 3;

/// The whole report.
#[must_use]
pub fn show(report: &Report, style: Style) -> String {
    let page = &mut Page::new(style);
    page.line(&format!("cachestat: {}", report.title()));
    if !report.verdict.text.is_empty() {
        page.gap();
        page.wrapped("", &report.verdict.text);
    }
    state::show(report, page);
    trial::show(report, page);
    let Some(run) = report.runs.last() else {
        notes(report, None, page);
        return std::mem::take(&mut page.out);
    };
    // What comes behind is written first: the findings have the room that it leaves.
    let one = report.runs.len() == 1 && report.compared.is_none();
    let mut end = ends(report, run, !one, page);
    let mut all = page.blank();
    if !one {
        runs::all(report, &mut all);
        if report.runs.len() > 1 {
            all.line(&format!("\nRun {}", run.number));
        }
        all.gap();
    }
    details::show(run, &mut all);
    files::files(run, &mut all);
    let mut last = page.blank();
    notes(report, Some(run), &mut last);
    let mut times = page.blank();
    let rows = match one {
        true => times::one(run, usize::MAX, &mut times),
        false => times::several(report, &mut times),
    };
    let mut unknown = page.blank();
    for other in [&times, &end, &all] {
        other.unknown.iter().for_each(|what| unknown.note_unknown(what));
    }
    not_known(&mut unknown);

    let screen = match (style.verbose, trivial(report)) {
        (true, _) => usize::MAX,
        (_, true) => SHORT,
        _ => style.lines,
    };
    // What was read is no answer: the verdict goes before it, and must not be out of sight for it. Findings
    // need a line at least, and an empty one stands before the times.
    let least = page.length() + times.length() + last.length() + unknown.length() + 2;
    if !one && least + end.length() > screen {
        end = ends(report, run, false, page);
    }
    let behind = end.length() + last.length() + unknown.length();
    let least = if one { times.length().min(times::least(run).max(ROWS) + 1) } else { times.length() };
    // An empty line stands before the findings, and before the times.
    findings(report, screen.saturating_sub(page.length() + least + behind + 2), page);
    let over = (page.length() + 1 + times.length() + behind).saturating_sub(screen);
    if one && over > 0 {
        times = page.blank();
        times::one(run, rows.saturating_sub(over).max(ROWS), &mut times);
    }
    page.gap();
    page.append(times);
    page.append(end);
    if style.verbose && all.length() > 0 {
        page.gap();
        page.append(all);
        page.gap();
    }
    whatif::show(run, report.runs.len() > 1, page);
    page.append(last);
    page.append(unknown);
    std::mem::take(&mut page.out)
}

/// What stands behind the times: of several runs what they read, if `reads`, and their groups; of one a sentence. Who pushed pages out.
fn ends(report: &Report, run: &Run, reads: bool, page: &Page) -> Page {
    let one = report.runs.len() == 1 && report.compared.is_none();
    let mut end = page.blank();
    if one {
        details::sentence(run, &mut end);
    } else {
        if reads {
            runs::reads(report, &mut end);
        }
        groups::show(report, &mut end);
        if let Some(then) = &report.compared {
            groups::saved(&then.groups, &mut end);
        }
    }
    pushed::show(run, !one && report.runs.len() > 1, &mut end);
    end
}

/// Whether a command did next to nothing, of which there is not much to be said.
fn trivial(report: &Report) -> bool {
    let (bytes, seconds) = LITTLE;
    let little = |run: &Run| {
        let written = run.usage.device_write_bytes.unwrap_or(0);
        run.wall_s < seconds && run.asked_pages.saturating_mul(units::page()).max(written) < bytes
    };
    report.compared.is_none() && matches!(report.runs.as_slice(), [run] if little(run))
}

/// Findings, in the lines that there are; those for which there is no room are named.
fn findings(report: &Report, room: usize, page: &mut Page) {
    // Where its time went stands below: that some of it was work needs no line that another finding could have.
    let all: Vec<&Finding> =
        report.findings.iter().filter(|f| page.style.verbose || f.id != "processor-time").collect();
    if all.is_empty() {
        // Not as the last line of a table.
        if report.trial.is_some() && page.style.verbose {
            page.gap();
        }
        page.wrapped("", "findings: none (the figures prove nothing out of the ordinary)");
        return;
    }
    let many = report.runs.len() > 1;
    let shown = |finding: &Finding, remedy: bool| {
        let mut out = Page::new(page.style);
        let which = if many { format!("({}) ", finding.which()) } else { String::new() };
        out.wrapped("  * ", &format!("{which}{} [{}]", finding.text, finding.id));
        if let Some(remedy) = finding.remedy.as_ref().filter(|_| remedy) {
            out.wrapped("    remedy: ", remedy);
        }
        out
    };
    let whole: Vec<Page> = all.iter().map(|f| shown(f, true)).collect();
    // What a finding says goes before what can be done about another.
    let mut left = room.saturating_sub(1);
    let mut told: Vec<Page> = Vec::new();
    if whole.iter().map(Page::length).sum::<usize>() <= left {
        told = whole;
    } else {
        let named = |from: usize| also(&all[from..], page).length();
        for (i, finding) in all.iter().enumerate() {
            let brief = shown(finding, false);
            if brief.length() + named(i + 1).max(1) > left {
                break;
            }
            left -= brief.length();
            told.push(brief);
        }
        left = left.saturating_sub(named(told.len()).max(1));
        for (brief, whole) in told.iter_mut().zip(whole) {
            let more = whole.length() - brief.length();
            if more > left {
                break;
            }
            left -= more;
            *brief = whole;
        }
    }
    if told.is_empty() {
        let names: Vec<&str> = all.iter().map(|f| f.id).collect();
        page.wrapped("findings (-v tells more): ", &names.join(", "));
        return;
    }
    page.gap();
    page.line("findings");
    let rest = also(&all[told.len()..], page);
    let cut = told.iter().zip(&all).any(|(page, f)| f.remedy.is_some() && !page.out.contains("remedy: "));
    told.into_iter().for_each(|finding| page.append(finding));
    if rest.length() > 0 {
        page.append(rest);
    } else if cut {
        page.line("    (-v tells the remedies)");
    }
}

/// Findings by their names.
fn also(findings: &[&Finding], page: &Page) -> Page {
    let mut out = page.blank();
    if !findings.is_empty() {
        let names: Vec<&str> = findings.iter().map(|f| f.id).collect();
        out.wrapped("  * also (-v tells more): ", &names.join(", "));
    }
    out
}

/// What a reader must know besides.
fn notes(report: &Report, run: Option<&Run>, page: &mut Page) {
    let mut notes = report.about.clone();
    notes.extend(left::behind(&report.runs));
    notes.extend(left::unwaited(&report.runs));
    if let Some(run) = run {
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
                "There were more files than the lists have room for: who brought in what, and what was there before, \
                 is known of a part."
                    .into(),
            );
        }
    }
    // Figures that are not known have a line of their own.
    notes.extend(report.unknown.iter().filter(|n| !n.starts_with("not known: ")).cloned());
    for note in notes {
        page.wrapped("note: ", &note);
    }
}

/// What this kernel cannot tell: one line, as far as it goes, or all of it.
fn not_known(page: &mut Page) {
    const WHAT: &str = "not known here: ";
    const WHY: &str = " (--explain)";
    let names = page.unknown.clone();
    let all = format!("{}{WHY}", names.join(", "));
    if names.is_empty() {
        return;
    }
    let room = page.style.width - 1 - WHAT.len();
    if page.style.verbose || all.chars().count() <= room {
        page.wrapped(WHAT, &all);
        return;
    }
    // As many as one line has room for, in order.
    let with = |n: usize| format!("{}, {} more{WHY}", names[..n].join(", "), names.len() - n);
    let fits = (1..names.len()).rev().map(with).find(|text| text.chars().count() <= room);
    let text = fits.unwrap_or_else(|| format!("{} kinds of figures{WHY}", names.len()));
    page.line(&format!("{WHAT}{text}"));
}

#[cfg(test)]
mod tests;
