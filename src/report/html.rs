//! The report as one page with charts, for a browser: nothing from a network, light and dark, as wide as the window. The
//! page allows itself its own style and its own script, which sorts tables, by their hashes, and nothing else.

mod charts;
mod escape;
mod files;
mod hash;
mod pushed;
mod table;
mod tables;
mod trial;
mod whatif;

use std::fmt::Write as _;

use super::Report;
use super::data::Run;
use super::time::PARTS;
use super::time::Parts;
use super::units;
use super::units::percent;
use crate::figures::Figure;
use crate::whatif::Prediction;
use escape::escape;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");

/// Until where what it is about begins.
fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>cachestat: {title}</title>\n<style>{STYLE}</style>\n\
         <script>{SCRIPT}</script>\n</head>\n<body>\n<h1><code>{title}</code></h1>\n",
        hash::source(STYLE),
        hash::source(SCRIPT),
    )
}

/// Where and when.
fn about(host: &str, kernel: &str, when: &str, out: &mut String) {
    let (host, kernel, when) = (escape(host), escape(kernel), escape(when));
    let _ = writeln!(out, "<p class=\"about\">{host} · Linux {kernel} · {when}</p>");
}

/// The page of `--what-if SECONDS`, for whom `chosen` says in words.
#[must_use]
pub fn predicted(what_if: &Prediction, chosen: &str) -> String {
    let whose = if chosen.is_empty() { "the whole system" } else { chosen };
    let mut out = head(&format!("--what-if, for {whose}"));
    let name = |what: &str| crate::kernel::name(what).unwrap_or_else(|| "?".into());
    about(&name("hostname"), &name("osrelease"), &crate::view::utc(jiff::Timestamp::now()), &mut out);
    out.push_str("<h2>What if there were more memory, or less</h2>\n");
    whatif::show(what_if, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

/// The page.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut out = head(&report.title());
    let when = report.runs.first().map_or("", |r| r.time.as_str());
    about(&report.host.to_string(), &report.kernel, when, &mut out);
    if !report.verdict.text.is_empty() {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&report.verdict.text));
    }
    for about in &report.about {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", escape(about));
    }
    tables::assertions(report, &mut out);
    findings(report, &mut out);
    tables::groups(report, &mut out);
    if report.runs.len() > 1 || report.compared.is_some() {
        times(report, &mut out);
    }
    trial::show(report, &mut out);
    for run in &report.runs {
        one(run, report.runs.len() > 1, &mut out);
    }
    if !report.unknown.is_empty() {
        out.push_str("<h2>Not known on this kernel</h2>\n<ul class=\"about\">\n");
        for unknown in &report.unknown {
            let _ = writeln!(out, "<li>{}</li>", escape(unknown));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn findings(report: &Report, out: &mut String) {
    out.push_str("<h2>Findings</h2>\n");
    if report.findings.is_empty() {
        out.push_str("<p>None: the figures prove nothing out of the ordinary.</p>\n");
        return;
    }
    out.push_str("<ul class=\"findings\">\n");
    for f in &report.findings {
        let runs = if report.runs.len() > 1 { format!(" · {}", f.which()) } else { String::new() };
        let _ = write!(out, "<li id=\"{0}\"><span class=\"id\">{0}{runs}</span>{1}", f.id, escape(&f.text));
        if let Some(remedy) = &f.remedy {
            let _ = write!(out, "<span class=\"remedy\">{}</span>", escape(remedy));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
}

/// Bars of all runs on one scale.
fn times(report: &Report, out: &mut String) {
    out.push_str("<h2>Where the time went</h2>\n");
    let mut bars: Vec<(String, &Run)> = Vec::new();
    bars.extend(report.compared.as_ref().map(|s| ("then".to_owned(), &s.run)));
    bars.extend(report.runs.iter().map(|r| (called(r), r)));
    // Of what no run has, there is no colour to be explained.
    let some = |part| bars.iter().any(|(_, r)| Parts::divide(r).get(part).is_some_and(|s| s >= 0.0005));
    let key = |i: usize| PARTS.get(i).filter(|(part, _)| some(*part)).map(|(_, text)| (*text).to_owned());
    charts::bars(&bars, key, out);
    for d in &report.differences {
        let (wall, rows) = d.told();
        let _ = writeln!(out, "<h3>{}: {wall}</h3>\n<table class=\"differences\"><tbody>", escape(&d.title));
        for row in rows {
            let cells: String = row.cells.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
            let _ = writeln!(out, "<tr><td>{}</td>{cells}</tr>", row.name);
        }
        out.push_str("</tbody></table>\n");
        for note in &d.notes {
            let _ = writeln!(out, "<p class=\"about\">{}</p>", escape(note));
        }
    }
}

/// A run by its number, and the letter of its command.
fn called(run: &Run) -> String {
    run.label
        .as_ref()
        .map_or_else(|| format!("run {}", run.number), |label| format!("run {}, {label}", run.number))
}

fn tile(name: &str, value: &str, out: &mut String) {
    let _ = writeln!(out, "<div class=\"tile\"><b>{value}</b><span>{name}</span></div>");
}

fn one(run: &Run, many: bool, out: &mut String) {
    let _ = writeln!(out, "<section id=\"run-{}\">", run.number);
    if many {
        let _ = writeln!(out, "<h2>{}</h2>", escape(&called(run).replacen('r', "R", 1)));
    }
    out.push_str("<div class=\"tiles\">\n");
    tile("wall", &format!("{:.3} s", run.wall_s), out);
    // What is not known here is told in its own place.
    let volume = |f: Figure| run.get(f).map(|n| run.volume(n));
    let tiles = [
        ("hits of what was read", run.figures.hit_ratio().map(|r| percent(r, 1))),
        ("read, in whole pages", volume(Figure::Accesses)),
        ("misses", volume(Figure::Misses)),
        ("from devices", run.usage.device_read_bytes.map(|n| run.volume_of_bytes(n))),
        ("dentry misses", run.lookups.dcache_misses.map(units::count)),
    ];
    for (name, value) in tiles {
        if let Some(value) = value {
            tile(name, &escape(&value), out);
        }
    }
    out.push_str("</div>\n");
    tables::certificate(run, out);
    let parts = Parts::divide(run);
    let _ = writeln!(out, "<h3>Where the time {}went</h3>", if many { "of this run " } else { "" });
    let key = |i: usize| {
        let (part, text) = PARTS.get(i)?;
        parts.get(*part).filter(|s| *s >= 0.0005).map(|s| format!("{text} {s:.3} s"))
    };
    charts::bars(&[(called(run), run)], key, out);
    if parts.overlap() {
        out.push_str(
            "<p class=\"about\">In parallel: these are sums over all threads, more than the wall time. Which of them the \
             run as a whole waited for is not known.</p>\n",
        );
    }
    out.push_str("<h3>Reads and writes over time</h3>\n");
    charts::pages(run, out);
    out.push_str("<h3>Waiting over time</h3>\n");
    charts::waits(run, out);
    if let Some(latency) = &run.latency {
        out.push_str("<h3>Read calls by latency</h3>\n");
        charts::latency(latency, out);
    }
    if let Some(windows) = &run.window_pages {
        out.push_str("<h3>Read-ahead windows by size</h3>\n");
        charts::windows(windows, run.unit, out);
    }
    if let Some(what_if) = &run.what_if {
        out.push_str("<h3>What if there were more memory, or less</h3>\n");
        whatif::show(what_if, out);
    }
    pushed::show(run, out);
    files::table(run, out);
    out.push_str("</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::FileRow;
    use crate::report::data::Latency;
    use crate::report::data::Tick;

    fn report() -> Report {
        let mut run = Run { number: 1, wall_s: 2.0, ..Run::default() };
        run.latency = Some(Latency { hit: vec![3; 32], miss: vec![1; 32] });
        run.window_pages = Some(vec![1; 16]);
        run.timeline = (1..20)
            .map(|n| Tick {
                at_s: f64::from(n) * 0.1,
                misses: 7,
                hits: 100,
                data_ns: 50_000_000,
                ..Tick::default()
            })
            .collect();
        let evil = crate::text::foreign::Foreign::from("<b>&\"'\u{202e}");
        let by = crate::report::pushed::By { cgroup: Some(evil.clone()), process: Some(evil.clone()) };
        let row = crate::report::pushed::Row {
            how: Some("limit"),
            kind: None,
            owner: Some(evil.clone()),
            by: by.clone(),
            limit_of: Some(evil.clone()),
            own: false,
            other: false,
            out_pages: 9,
            back_pages: None,
            again_pages: Some(3),
            waited_s: Some(0.25),
        };
        let of_file = crate::report::pushed::FileRow {
            path: Some(evil),
            how: Some("limit"),
            by,
            own: false,
            other: false,
            out_pages: 9,
            again_pages: Some(3),
            waited_s: None,
        };
        run.blame = Some(crate::report::pushed::Pushed {
            rows: vec![row],
            files: vec![of_file],
            forgotten_pages: 1,
            ..Default::default()
        });
        run.files.push(FileRow { path: Some("/\u{202e}gnp.exe".into()), misses: 1, ..FileRow::default() });
        run.files.push(FileRow { path: Some("/tmp/<b>&\"'".into()), hits: 1, ..FileRow::default() });
        let command = vec!["sh".into(), "-c".into(), "<script>alert(1)</script>".into()];
        Report { command, runs: vec![run.clone(), Run { number: 2, ..run }], ..Report::default() }
    }

    #[test]
    fn nothing_of_the_command_becomes_html() {
        let page = page(&report());
        assert!(!page.contains("<script>alert") && !page.contains("<b>&\""), "{page}");
        assert_eq!((page.matches("<script").count(), page.matches("</style").count()), (1, 1));
        assert!(!page.contains('\u{202e}') && page.contains("/\\u{202e}"), "{page}");
        assert!(!page.contains(" style=") && !page.contains(" onclick="), "the policy refuses them");
        assert!(page.contains("&lt;script&gt;") && page.contains("/tmp/&lt;b&gt;&amp;&quot;&#39;"));
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let page = page(&report());
        for word in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            let found = page.matches(word).count();
            assert_eq!(found, 0, "{word}");
        }
    }

    #[test]
    fn every_tag_is_closed_and_no_number_is_none() {
        for report in
            [report(), Report::default(), Report { runs: vec![Run::default()], ..Report::default() }]
        {
            let page = page(&report);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
            for tag in [
                "svg", "figure", "table", "button", "script", "style", "tbody", "section", "ul", "li", "div",
                "h2", "h3", "g", "text", "title", "p",
            ] {
                let open =
                    page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
                assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
            }
        }
    }
}
