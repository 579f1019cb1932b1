//! Pages or bytes, in every sentence.

use super::*;
use crate::report::certificate::Before;
use crate::report::certificate::Certificate;
use crate::report::certificate::Others;

/// In pages, no sentence of verdict, findings and certificates counts bytes, in text as in HTML; in bytes, none counts pages.
#[test]
fn sentences_have_the_unit_of_the_report() {
    let sized = [" kib", " mib", " gib", " b "];
    for (unit, absent) in [(Unit::Pages, &sized[..]), (Unit::Bytes, &[" pages ", " pages)", "1 page "][..])] {
        let mut report = report(vec![cold(), warm()], Vec::new());
        report.unit = unit;
        for run in &mut report.runs {
            let before = Before { files: 2, ..Before::default() }.known(1000, 3, 9, 4096);
            let others =
                Others { read_bytes: Some(7 << 20), brought_in_bytes: Some(6144), ..Others::default() };
            run.certificate = Some(Certificate { before, others, ..Certificate::default() });
        }
        report.conclude();
        let text = shown(&report, Style { unit, verbose: true, ..wide(4000) });
        let sentences = text.lines().filter(|l| {
            // A setting has the unit in which it is set; a figure has its heading, and no name of a unit.
            !["is the setting in", "read-ahead windows", "Read-ahead is limited", "in whole windows"]
                .iter()
                .any(|setting| l.contains(setting))
        });
        let html = crate::report::html::page(&report);
        let html = html.split_once("<h1>").unwrap().1;
        let page =
            html.lines().filter(|l| !l.contains("Read-ahead is limited") && !l.contains("in whole windows"));
        for line in sentences.chain(page) {
            // No amounts, but what is counted.
            let line = ["whole pages", "of the pages", "by pages that", "pages in flight"]
                .iter()
                .fold(line.to_lowercase(), |line, words| line.replace(words, ""));
            let bad = absent.iter().find(|word| line.contains(**word));
            assert!(bad.is_none(), "{unit:?}: {bad:?} in: {line}");
        }
    }
}
