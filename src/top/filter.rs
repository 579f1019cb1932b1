//! What a person types to see some rows only: texts, regular expressions, figures.
//!
//! Words with blanks between them must all be true, `|` stands between alternatives, `!` before what must not be true.
//! `~` begins a regular expression, a column with `<` or `>` and a number is a figure, all else is a text. What reads like
//! a figure and is none is a mistake, that is told: as a text it would take no row, as if nothing happened. What is not known
//! of a row is neither true nor false of it: such a row is not shown.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::columns::Column;
use crate::columns::Value;
use crate::pivot::By;
use crate::pivot::Who;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use crate::top::cells;
use crate::top::layout;
use crate::top::numbers::Numbers;

/// What rows are shown.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of these, each a list of terms that must all be true, one.
    any: Vec<Vec<Term>>,
    /// Why it cannot be understood.
    mistake: Option<String>,
}

#[derive(Debug, Clone)]
struct Term {
    not: bool,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    /// A text, in upper or lower case.
    Text(String),
    Regex(Box<Regex>),
    Figure(&'static Column, Compare, f64),
    Number(NumberOf, Compare, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// How comparisons are written, the longer ones first.
const COMPARISONS: &[(&str, Compare)] = &[
    ("<=", Compare::LessOrEqual),
    (">=", Compare::GreaterOrEqual),
    ("==", Compare::Equal),
    ("!=", Compare::NotEqual),
    ("<", Compare::Less),
    (">", Compare::Greater),
    ("=", Compare::Equal),
];

/// A number that says which row it is.
type NumberOf = fn(&Who) -> Option<u32>;

const NUMBERS: &[(&str, NumberOf)] =
    &[("pid", |who| who.pid), ("tid", |who| who.tid), ("uid", |who| who.uid)];

/// A row, as far as it is asked about.
pub struct Asked<'a> {
    /// What rows stand for.
    pub by: By,
    /// Whom it is about.
    pub who: &'a Who,
    /// Its command line, where that was seen.
    pub argv: Option<&'a Foreign>,
    /// The value of a column, as it is shown.
    pub value: &'a dyn Fn(&Column) -> Value,
    /// How numbers are shown.
    pub numbers: Numbers,
}

impl Filter {
    /// Reads what was typed.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut out = Self::default();
        for alternative in split(text, '|') {
            let mut terms = Vec::new();
            for word in joined(&split(alternative, ' ')) {
                match term(&word) {
                    Ok(Some(term)) => terms.push(term),
                    Ok(None) => {}
                    Err(why) => out.mistake = Some(why),
                }
            }
            out.any.push(terms);
        }
        // An alternative that is still empty is being typed.
        if out.any.iter().any(|terms| !terms.is_empty()) {
            out.any.retain(|terms| !terms.is_empty());
        }
        out
    }

    /// Why it cannot be understood.
    #[must_use]
    pub fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }

    /// Whether everything is shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mistake.is_none() && self.any.iter().all(Vec::is_empty)
    }

    /// Whether a row is shown.
    #[must_use]
    pub fn takes(&self, row: &Asked<'_>) -> bool {
        let all = |terms: &Vec<Term>| terms.iter().all(|t| t.test.is(row).is_some_and(|yes| yes != t.not));
        self.is_empty() || self.mistake.is_none() && self.any.iter().any(all)
    }
}

/// The parts between these signs, but for those in brackets of a regular expression.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut out, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    let mut regex = false;
    let mut before = ' ';
    for (i, c) in text.char_indices() {
        match c {
            '~' if matches!(before, ' ' | '|' | '!') => regex = true,
            '(' | '[' if regex && before != '\\' => depth += 1,
            ')' | ']' if regex && before != '\\' => depth = depth.saturating_sub(1),
            c if c == at && depth == 0 => {
                out.extend(text.get(begin..i));
                (begin, regex) = (i + c.len_utf8(), false);
            }
            ' ' if depth == 0 => regex = false,
            _ => {}
        }
        before = c;
    }
    out.extend(text.get(begin..));
    out
}

fn term(word: &str) -> Result<Option<Term>, String> {
    let rest = word.trim_start_matches('!');
    let not = (word.len() - rest.len()) % 2 == 1;
    if rest.is_empty() || rest == "~" {
        return Ok(None);
    }
    let test = if let Some(pattern) = rest.strip_prefix('~') {
        let syntax = syntax::Config::new().case_insensitive(true).unicode(false).utf8(false);
        let size = Regex::config().nfa_size_limit(Some(1 << 20)).utf8_empty(false);
        let made = Regex::builder().syntax(syntax).configure(size).build(pattern);
        Test::Regex(Box::new(made.map_err(|_| format!("'{pattern}' is no regular expression"))?))
    } else {
        match figure(rest) {
            Some(figure) => figure?,
            None => Test::Text(rest.to_lowercase()),
        }
    };
    Ok(Some(Term { not, test }))
}

/// The words, those of a figure as one: `misses > 100` is what `misses>100` is.
fn joined(words: &[&str]) -> Vec<String> {
    let words: Vec<&str> = words.iter().copied().filter(|w| !w.is_empty()).collect();
    let sign = |word: &str| COMPARISONS.iter().any(|(sign, _)| *sign == word);
    let touches =
        |a: &str, b: &str| COMPARISONS.iter().any(|(sign, _)| a.ends_with(sign) || b.starts_with(sign));
    let (mut out, mut rest) = (Vec::new(), words.as_slice());
    while !rest.is_empty() {
        let parts = match rest {
            [_, between, _, ..] if sign(between) => 3,
            [a, b, ..] if touches(a, b) => 2,
            _ => 1,
        };
        let word: String = rest.iter().take(parts).copied().collect();
        let plain = word.trim_start_matches('!');
        let parts = if !plain.starts_with('~') && figure(plain).is_some() { parts } else { 1 };
        out.push(rest.iter().take(parts).copied().collect());
        rest = rest.get(parts..).unwrap_or_default();
    }
    out
}

/// `misses>100`, `hits<=2k`, `read_hit%<50`, `pid=1`. `None` is a text: a path may have such signs, too.
fn figure(word: &str) -> Option<Result<Test, String>> {
    let at = word.find(['<', '>', '=', '!'])?;
    let (name, rest) = (word.get(..at)?, word.get(at..)?);
    let (sign, compare) = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign))?;
    let written = rest.get(sign.len()..)?;
    let wanted = number(written);
    let sets = matches!(*sign, "=" | "==" | "!=");
    // What is set somewhere (`n=3`, `out=/tmp/x`) is a text.
    if sets && wanted.is_none() && !written.is_empty() {
        return None;
    }
    let test = if let Some(column) = cells::find(name) {
        if !cells::sorts_rows(column) {
            return (!sets).then(|| Err(format!("rows are not filtered by '{name}'; as a text: ~{word}")));
        }
        wanted.map(|wanted| Test::Figure(column, *compare, wanted))
    } else if let Some((_, of)) = NUMBERS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
        wanted.map(|wanted| Test::Number(*of, *compare, wanted))
    } else {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '.');
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(letters);
        // What has an arrow in it is a text, too.
        let asked = named && wanted.is_some() && !sets;
        return asked.then(|| Err(format!("'{name}' is no figure; as a text: ~{word}")));
    };
    Some(test.ok_or_else(|| match written {
        "" => format!("'{name}{sign}' lacks a number"),
        _ => format!("'{written}' is no number (100, 2k, 3M); as a text: ~{word}"),
    }))
}

/// A number as it is typed, with a unit or per cent.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_end_matches('%');
    let (digits, factor) = match text.char_indices().next_back()? {
        (i, 'k') => (text.get(..i)?, 1e3),
        (i, 'K') => (text.get(..i)?, 1024.0),
        (i, 'M') => (text.get(..i)?, 1024.0 * 1024.0),
        (i, 'G') => (text.get(..i)?, 1024.0 * 1024.0 * 1024.0),
        _ => (text, 1.0),
    };
    // Words are numbers to Rust, too: `nan`, `inf`.
    let plain = digits.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|n| n * factor)
}

impl Compare {
    fn holds(self, is: f64, wanted: f64) -> bool {
        // As it is shown, with two digits behind the point.
        let equal = (is - wanted).abs() < 0.005;
        match self {
            Compare::Less => is < wanted,
            Compare::LessOrEqual => is <= wanted,
            Compare::Equal => equal,
            Compare::NotEqual => !equal,
            Compare::GreaterOrEqual => is >= wanted,
            Compare::Greater => is > wanted,
        }
    }
}

impl Test {
    /// `None`: nobody knows.
    fn is(&self, row: &Asked<'_>) -> Option<bool> {
        match self {
            Test::Text(text) => Some(row.has(&|shown| contains(shown, text))),
            Test::Regex(regex) => Some(row.has(&|shown| regex.is_match(shown))),
            Test::Figure(column, compare, wanted) => {
                let value = (row.value)(column);
                let is = row.numbers.height(value)?;
                let is = match value {
                    Value::Ratio(_) => is * 100.0,
                    Value::Pages(_) if row.numbers.unit == Unit::Bytes => is * row.numbers.page_size as f64,
                    _ => is,
                };
                Some(compare.holds(is, *wanted))
            }
            Test::Number(of, compare, wanted) => Some(compare.holds(of(row.who)?.into(), *wanted)),
        }
    }
}

impl Asked<'_> {
    /// Whether anything that says what the row is passes.
    fn has(&self, test: &dyn Fn(&str) -> bool) -> bool {
        let who = self.who;
        let words = [&who.user, &who.cgroup, &who.container, &who.unit, &who.mount, &who.device];
        let mut numbers = [who.pid, who.tid].into_iter().flatten();
        // As it is, and as it is shown: what was escaped is typed as one sees it.
        let test_foreign = |text: &Foreign| test(&text.raw()) || !text.is_plain() && test(&text.to_string());
        test_foreign(&layout::name(self.by, who))
            || self.argv.is_some_and(test_foreign)
            || who.how.is_some_and(test)
            || words.into_iter().flatten().any(test_foreign)
            || numbers.any(|n| test(&n.to_string()))
    }
}

fn contains(text: &str, wanted: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(wanted);
    }
    text.as_bytes().windows(wanted.len().max(1)).any(|w| w.eq_ignore_ascii_case(wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Line;
    use crate::figures::Figure;
    use crate::live::snapshot::Show;
    use crate::model::Row;
    use crate::view::fixtures;

    fn takes(filter: &str, argv: Option<&str>) -> bool {
        let mut figures = fixtures::figures(&[
            (Figure::Accesses, 200),
            (Figure::Hits, 50),
            (Figure::Misses, 150),
            (Figure::ReadBytes, 3 << 20),
        ]);
        figures.set(Figure::Dirtied, None);
        let who = Who {
            pid: Some(1234),
            comm: Some("Postgres".into()),
            user: Some("me".into()),
            unit: Some("db.service".into()),
            ..Who::default()
        };
        let row = Row { who, figures, classic: None, back: None };
        let numbers =
            Numbers { unit: Unit::Pages, page_size: 4096, show: Show::Rate, seconds: 2.0, counted: None };
        let argv = argv.map(Foreign::from);
        Filter::new(filter).takes(&Asked {
            by: By::Process,
            who: &row.who,
            argv: argv.as_ref(),
            value: &|column| column.value(&Line::from(&row)),
            numbers,
        })
    }

    #[test]
    fn words_alternatives_and_what_must_not_be() {
        for yes in [
            "",
            "post",
            "GRES",
            "123",
            "me",
            "db.serv",
            "post me",
            "!dd",
            "dd|post",
            "!!post",
            "~^post",
            "~g.es$",
            "~(dd|post)g",
            "!~^dd",
            "~",
            "!",
            "~[ab] | me",
        ] {
            assert!(takes(yes, None), "{yes}");
        }
        for no in ["dd", "dd|", "!post", "post dd", "~^gres", "dd|!me", "~(dd|x)$"] {
            assert!(!takes(no, None), "{no}");
        }
        assert!(takes("writer", Some("postgres: wal writer")) && !takes("writer", None));
    }

    #[test]
    fn a_name_is_found_as_it_is_and_as_it_is_shown() {
        let argv = Some("cat /srv/bidi\u{202e}abc \\x");
        for yes in ["\u{202e}abc", "\\u{202e}abc", "\\U{202E}", "BIDI", "\\x", "\\\\x", r"~bidi\\u.202e.abc"]
        {
            assert!(takes(yes, argv), "{yes}");
        }
        for no in ["\\u{202d}", "!\\u{202e}"] {
            assert!(!takes(no, argv), "{no}");
        }
    }

    #[test]
    fn figures_are_those_that_are_shown() {
        for yes in
            ["misses>70", "misses=75", "hits<=25", "read_hit%<30", "hitratio>=25%", "read>1M", "misses<1k"]
        {
            assert!(takes(yes, None), "{yes}");
        }
        // Nobody knows how many pages it dirtied.
        for no in ["misses>75", "hits>25", "dirtied>=0", "!dirtied>0", "dirtied<1 | hits>25"] {
            assert!(!takes(no, None), "{no}");
        }
    }

    #[test]
    fn blanks_around_a_comparison_are_nothing() {
        for yes in [
            "misses > 70",
            "misses >70",
            "misses> 70",
            "post misses  >  70 me",
            "!misses > 75",
            "misses >= 70 hits < 30",
            "dd | misses == 75",
            "misses != 70",
        ] {
            assert!(takes(yes, None), "{yes}");
        }
        for no in ["misses > 75", "post misses > 75", "misses != 75", "!misses > 70"] {
            assert!(!takes(no, None), "{no}");
            assert_eq!(Filter::new(no).mistake(), None, "{no}");
        }
    }

    #[test]
    fn a_row_has_numbers() {
        for yes in ["pid=1234", "PID = 1234", "pid!=1", "pid>1000", "!pid=1"] {
            assert!(takes(yes, None), "{yes}");
        }
        // Whose it is, is not known here, nor has it a thread.
        for no in ["pid=123", "uid=0", "!uid=0", "tid=1"] {
            assert!(!takes(no, None), "{no}");
        }
    }

    #[test]
    fn what_is_in_a_path_stays_a_text() {
        for text in [
            "--config=x",
            "a>b",
            "n=3",
            "x=>5",
            "a->5",
            "user=me",
            "=",
            ">5",
            "--hits>x",
            "1>2",
            "a!b",
            "x==1",
            "foo!=3",
            "--pid=9",
            "a > b",
        ] {
            assert_eq!(Filter::new(text).mistake(), None, "{text}");
            assert!(takes(text, Some(&format!("cmd {text}"))) && !takes(text, None), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let filter = Filter::new("~(post");
        assert_eq!(filter.mistake(), Some("'(post' is no regular expression"));
        assert!(!filter.is_empty() && !takes("~(post", None));
        for (text, why) in [
            ("misses>abc", "'abc' is no number (100, 2k, 3M); as a text: ~misses>abc"),
            ("misses > abc", "'abc' is no number (100, 2k, 3M); as a text: ~misses>abc"),
            ("misses>nan", "'nan' is no number (100, 2k, 3M); as a text: ~misses>nan"),
            ("misses > 10/s", "'10/s' is no number (100, 2k, 3M); as a text: ~misses>10/s"),
            ("misses>", "'misses>' lacks a number"),
            ("misses >", "'misses>' lacks a number"),
            ("dd | !misses =", "'misses=' lacks a number"),
            ("foo>1", "'foo' is no figure; as a text: ~foo>1"),
            ("foo <= 2k", "'foo' is no figure; as a text: ~foo<=2k"),
            ("pid>abc", "'abc' is no number (100, 2k, 3M); as a text: ~pid>abc"),
            ("held_bytes>1M", "rows are not filtered by 'held_bytes'; as a text: ~held_bytes>1M"),
        ] {
            assert_eq!(Filter::new(text).mistake(), Some(why), "{text}");
        }
    }
}
