//! The page of `--html` in a real browser without a screen: it lays out at 1200 and at 400 pixels, nothing sticks out, nothing is
//! fetched, every chart has its legend and its axes, tables sort, and the page's policy allows the page and nothing else.
//!
//! `browser [PAGE]...`: a page of its own, and pages that `cachestat --html` wrote. The browser is
//! `chromium-headless-shell`, or what `BROWSER` names.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::ExitCode;

use cachetop::figures::Figure;
use cachetop::report::Report;
use cachetop::report::assert::Assertion;
use cachetop::report::certificate::Before;
use cachetop::report::certificate::Certificate;
use cachetop::report::data::FileRow;
use cachetop::report::data::Latency;
use cachetop::report::data::Residency;
use cachetop::report::data::Run;
use cachetop::report::data::Tick;
use cachetop::report::data::Usage;
use cachetop::report::data::Waits;
use cachetop::report::html;

/// What the page says of itself once it is laid out.
const MEASURE: &str = r"
const refused = [];
document.addEventListener('securitypolicyviolation', e => refused.push(e.violatedDirective + ' ' + e.blockedURI));
addEventListener('load', () => {
  const out = { svg: 0, rects: 0, flat: 0, outside: 0, titles: 0 };
  for (const svg of document.querySelectorAll('svg')) {
    out.svg++;
    const box = svg.getBoundingClientRect();
    if (box.width < 100 || box.height < 20) out.flat++;
    for (const rect of svg.querySelectorAll('rect')) {
      out.rects++;
      const r = rect.getBoundingClientRect();
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
        out.outside++;
      if (rect.querySelector('title')) out.titles++;
      const fill = getComputedStyle(rect).fill;
      if (fill === 'rgb(0, 0, 0)' || fill === 'none') out.uncoloured = (out.uncoloured || 0) + 1;
    }
  }
  out.wide = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) > innerWidth;
  out.scrolls = [...document.querySelectorAll('body *')].filter(e => e.scrollWidth > e.clientWidth + 1
    && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).length;
  out.bare = [...document.querySelectorAll('figure')].filter(f => !f.querySelector('.legend li')
    || !f.querySelector('figcaption').textContent).length;
  out.small = [...document.querySelectorAll('svg text')].filter(t => getComputedStyle(t).display !== 'none'
    && t.getBoundingClientRect().height < 9).length;
  out.overlap = 0;
  for (const svg of document.querySelectorAll('svg')) {
    const boxes = [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect()).filter(b => b.width > 0)
      .sort((a, b) => a.left - b.left);
    for (let i = 1; i < boxes.length; i++) if (boxes[i].left < boxes[i - 1].right) out.overlap++;
  }
  // The table sorts: by a column, and back; what is not known stays last.
  const table = document.querySelector('table.files');
  if (table) {
    const buttons = [...table.querySelectorAll('th button')];
    const at = title => buttons.findIndex(b => b.textContent === title);
    const column = n => [...table.tBodies[0].rows].map(r => n ? r.cells[n].dataset.n : r.cells[0].textContent);
    // Of what nothing is known, there is no column.
    const press = title => { const n = at(title); if (n < 0) return []; buttons[n].click(); return column(n); };
    out.down = press('misses'); out.up = press('misses');
    out.names = press('file').map(name => name.slice(0, 40));
    out.before = press('cached before');
    out.nothing = at('writes') >= 0 || at('cached after') >= 0;
  }
  out.tables = {};
  for (const table of document.querySelectorAll('table.sorts')) {
    const kind = table.className.replace('sorts ', ''), last = [];
    const values = n => [...table.tBodies[0].rows].map(r => r.cells[n].dataset.n ?? r.cells[n].textContent);
    const buttons = table.querySelectorAll('th button');
    // Each column, down and up: in which order its values are then.
    buttons.forEach((b, n) => { b.click(); const one = values(n); b.click(); last.push([one, values(n)]); });
    out.tables[kind] = { titles: [...buttons].map(b => b.textContent), columns: last,
      shown: [...table.querySelectorAll('tbody td:not(.nothing)')].every(c => c.getBoundingClientRect().width > 0),
      colours: [...table.querySelectorAll('.passed, .failed, .unknown')].map(c => getComputedStyle(c).color) };
  }
  out.items = document.querySelectorAll('section table.items').length;
  out.paper = getComputedStyle(document.body).backgroundColor;
  out.refused = refused;
  out.fetched = performance.getEntriesByType('resource').length;
  out.findings = document.querySelectorAll('.findings li').length;
  document.body.setAttribute('data-measured', JSON.stringify(out));
});
";

fn run(number: u32, cold: bool) -> Run {
    let mut run = Run { number, wall_s: if cold { 9.5 } else { 0.6 }, ..Run::default() };
    run.cold = cold.then(|| "pagecache".to_owned());
    let (hits, misses) = if cold { (0, 4096) } else { (131_072, 0) };
    run.figures.set(Figure::Accesses, Some(131_072));
    run.figures.set(Figure::Hits, Some(hits));
    run.figures.set(Figure::Misses, Some(misses));
    run.figures.set(Figure::ReadAheadHits, Some(131_072 - hits - misses));
    run.figures.set(Figure::ReadAheadPages, Some(131_072 - hits - misses));
    run.figures.set(Figure::FaultMisses, Some(0));
    (run.asked_pages, run.warm_pages) = (131_072, hits);
    run.usage = Usage { user_s: Some(0.1), system_s: Some(0.4), ..Usage::zero() };
    let some = Some(if cold { 2_000_000_000 } else { 1_000_000 });
    run.waits =
        Waits { read_ns: some, fault_ns: Some(0), exec_ns: Some(0), open_ns: some, ..Waits::default() };
    (run.waits.lookup_ns, run.waits.directory_ns) = (some, Some(0));
    (run.waits.write_ns, run.waits.sync_ns, run.waits.cpu_ns) = (Some(0), Some(0), Some(10_000_000));
    run.latency = Some(Latency { hit: (0..32).map(|n| n * n).collect(), miss: (0..32).rev().collect() });
    run.window_pages = Some((0..16).map(|n| n * 3).collect());
    let ticks: u32 = if cold { 95 } else { 6 };
    run.timeline = (1..=ticks)
        .map(|n| Tick {
            at_s: f64::from(n) * 0.1,
            hits: hits / u64::from(ticks),
            misses: misses / u64::from(ticks),
            readahead_hits: u64::from(n) * 17,
            data_ns: 40_000_000,
            metadata_ns: 20_000_000,
            ..Tick::default()
        })
        .collect();
    let before = Some(Residency { cached: hits, pages: 131_072, pattern: None });
    let path = Some(format!("/data/{}", "a-very-long-name-".repeat(12)).into());
    run.files.push(FileRow { path, hits, misses, before, inode: 5, ..FileRow::default() });
    for n in 0..12 {
        let path = Some(format!("/data/{n}<script>\u{202e}</td>").into());
        run.files.push(FileRow { path, hits: 7, misses: n * n * n, inode: n, ..FileRow::default() });
    }
    let before = Before { files: 9, files_unknown: 2, ..Before::default() }.known(1000, 3, 9, 4096);
    run.certificate = Some(Certificate { before, ..Certificate::default() });
    run
}

fn made() -> String {
    let mut report = Report {
        command: vec!["sha256sum".into(), "x".repeat(300).into()],
        host: "host".into(),
        kernel: "6.12".into(),
        runs: vec![run(1, true), run(2, false), run(3, true), run(4, false)],
        unknown: vec!["not known: meta.misses (reasons).".into()],
        ..Report::default()
    };
    report.runs.push(Run { wall_s: 0.9, ..run(5, false) });
    report.conclude();
    let of = |text: &str| Assertion::parse(text).unwrap().check(&report);
    report.assertions = vec![of("misses == 0"), of("refaulted < 5"), of("cold.wall > 2 * warm.wall")];
    html::page(&report)
}

/// What the browser measured of a page, in a window of a width, light or dark.
fn measured(page: &str, dir: &Path, width: u32, dark: bool) -> serde_json::Value {
    let file = dir.join("page.html");
    // Ours stands before the page's policy, which holds for what follows it.
    fs::write(&file, page.replacen("<head>", &format!("<head><script>{MEASURE}</script>"), 1)).unwrap();
    let browser = std::env::var("BROWSER").unwrap_or_else(|_| "chromium-headless-shell".into());
    let out = Command::new(&browser)
        .args(["--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .args(dark.then_some("--blink-settings=preferredColorScheme=0"))
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap_or_else(|e| panic!("{browser}: {e}: install the package chromium-headless-shell"));
    let dom = String::from_utf8_lossy(&out.stdout);
    let text = dom.split_once("data-measured=\"").unwrap_or_else(|| panic!("not loaded: {dom}")).1;
    let text = text.split_once('"').unwrap().0.replace("&quot;", "\"");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

/// What must hold of any page, in any window.
fn check(m: &serde_json::Value) {
    assert!(m["svg"].as_u64().unwrap() >= 1 && m["rects"].as_u64().unwrap() >= 1, "there are charts");
    for what in ["flat", "outside", "fetched", "scrolls", "bare", "small", "overlap"] {
        assert_eq!(m[what], 0, "{what}");
    }
    assert!(m["uncoloured"].is_null());
    assert_eq!(m["titles"], m["rects"], "every bar says what it is");
    assert_eq!(m["wide"], false, "nothing sticks out of the window");
    assert_eq!(m["refused"], serde_json::json!([]), "the page's policy allows the page");
}

/// The table sorts, numbers as numbers, and what is not known is last.
fn check_sorting(m: &serde_json::Value) {
    let numbers = |key: &str| -> Vec<f64> {
        let column = m[key].as_array().unwrap().iter();
        column.filter_map(|n| n.as_str()).map(|n| n.parse().unwrap()).collect()
    };
    let down = numbers("down");
    assert!(down.len() >= 12 && down.windows(2).all(|w| w[0] >= w[1]) && down[0] > *down.last().unwrap());
    assert_eq!(numbers("up"), down.iter().rev().copied().collect::<Vec<_>>());
    let names: Vec<&str> = m["names"].as_array().unwrap().iter().filter_map(|n| n.as_str()).collect();
    assert!(names.len() == down.len() && names.is_sorted(), "{names:?}");
    let before = m["before"].as_array().unwrap();
    assert_eq!(m["nothing"], false, "of what nothing is known, there is no column");
    let unknown = before.iter().position(serde_json::Value::is_null).unwrap();
    assert!(unknown == 1 && before[unknown..].iter().all(serde_json::Value::is_null), "{before:?}");
}

/// Groups and assertions: what they say, and that each column sorts.
fn check_tables(tables: &serde_json::Value) {
    for (kind, titles) in [
        (
            "groups",
            &[
                "group",
                "runs",
                "mean ± σ",
                "minimum",
                "maximum",
                "outliers",
                "× as fast",
                "cached of its use",
            ][..],
        ),
        ("assertions", &["assertion", "result", "figure"][..]),
    ] {
        let table = &tables[kind];
        let text = |v: &serde_json::Value| -> Vec<String> {
            v.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
        };
        let shown: Vec<String> =
            text(&table["titles"]).iter().map(|t| t.trim_end_matches([' ', '▲', '▼']).to_owned()).collect();
        assert_eq!(
            (shown.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), &table["shown"]),
            (titles, &true.into())
        );
        for column in table["columns"].as_array().unwrap() {
            let (one, other) = (text(&column[0]), text(&column[1]));
            let order = |v: &[String]| -> Vec<f64> { v.iter().filter_map(|v| v.parse().ok()).collect() };
            match order(&one) {
                numbers if numbers.len() == one.len() => {
                    assert!(numbers.is_sorted_by(|a, b| a >= b) && order(&other).is_sorted(), "{column}");
                }
                numbers if numbers.is_empty() => {
                    assert!(one.is_sorted() && other.is_sorted_by(|a, b| a >= b), "{column}");
                }
                // What cannot be said of one of them stands last.
                _ => assert_eq!((one.last(), other.last()), (Some(&String::new()), Some(&String::new()))),
            }
        }
    }
    let groups = &tables["groups"]["columns"];
    assert_eq!(groups[0][0], serde_json::json!(["cold", "warm"]), "as text");
    assert_eq!(groups[1][0], serde_json::json!(["3", "2"]), "runs");
    // Least and most of the warm ones, 0.6, 0.6 and 0.9; of the cold ones 9.5 each.
    assert_eq!((&groups[3][1][0], &groups[4][1][0]), (&"0.6".into(), &"0.9".into()));
    let factor: f64 = groups[6][0][0].as_str().unwrap().parse().unwrap();
    assert!((factor - 9.5 / 0.7).abs() < 1e-9, "{factor}");
    let mut colours = tables["assertions"]["colours"].as_array().unwrap().clone();
    colours.dedup();
    assert_eq!(colours.len(), 3, "passed, failed and unknown look different: {colours:?}");
    assert_eq!(tables["assertions"]["columns"][1][0], serde_json::json!(["failed", "passed", "unknown"]));
}

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    let mut pages = vec![("its own".to_owned(), made())];
    pages.extend(std::env::args().skip(1).map(|p| (p.clone(), fs::read_to_string(p).unwrap())));
    for (name, page) in &pages {
        for (width, dark) in [(1200, false), (400, true), (400, false)] {
            let m = measured(page, dir.path(), width, dark);
            let mut told = m.clone();
            for long in ["tables", "names", "down", "up", "before"] {
                told.as_object_mut().unwrap().remove(long);
            }
            println!("{name}, {width} wide, dark {dark}: {told}");
            check(&m);
            assert_eq!(m["paper"] == "rgb(255, 255, 255)", !dark, "{}", m["paper"]);
            if name == "its own" {
                check_sorting(&m);
                check_tables(&m["tables"]);
                assert_eq!(m["items"], 5, "the state of the cache before each run");
                assert!(m["findings"].as_u64().unwrap() >= 2, "{m}");
                assert_eq!(
                    m["svg"], 30,
                    "a bar of each run, and for each one bar, pages, waits, latency, windows"
                );
            }
        }
    }
    // What somebody might get into it after all: a script, an attribute that acts, a picture from elsewhere.
    let evil = "<script>alert(1)</script><img src=\"http://127.0.0.1:9/x\" onerror=\"alert(1)\">";
    let m = measured(&pages[0].1.replace("</body>", &format!("{evil}</body>")), dir.path(), 1200, false);
    let refused: Vec<&str> = m["refused"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
    for what in ["script-src-elem", "script-src-attr", "img-src"] {
        assert!(refused.iter().any(|r| r.starts_with(what)), "{what}: {refused:?}");
    }
    println!("{} pages as they should be", pages.len());
    ExitCode::SUCCESS
}
