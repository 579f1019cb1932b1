#![allow(clippy::unwrap_used)]

use super::*;

fn parse(line: &str) -> Result<Args, clap::Error> {
    let words = std::iter::once("cachedu").chain(line.split_whitespace());
    Args::try_parse_from(words).and_then(crate::cli::checked)
}

#[test]
fn sizes() {
    for (text, bytes) in
        [("0", 0), ("12", 12), ("4k", 4096), ("1M", 1 << 20), ("2GiB", 2 << 30), ("1TB", 1 << 40)]
    {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["1iB", "1BB", "1KiBB", "1KBiB", "", "M", "-1", "1.5M", "1P", "99999999999T"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn what_does_not_go_together() {
    for line in [
        "--json --csv",
        "-t --json",
        "--tree --csv",
        "-t -f x",
        "-t --pid 1",
        "-t --restore s",
        "--columns rubbish x",
        "--watch 0 x",
        "--watch nan x",
        "--watch 1e9 x",
        "--watch 1 --json x",
        "--watch 1 --load x",
        "--columns cached --json x",
        "--no-header --map x",
        "--columns cached --restore s",
        "-v x",
        "-v --json --load x",
        "--trust x",
        "--trust --diff s s",
        "--csv --map x",
        "-0",
        "--pid 1 /etc",
        "--pid 0",
        "--pid x",
        "--all --pid 1",
        "--evict --load x",
        "--flush x",
        "--flush --load a",
        "--flush --save - a",
        "--flush --map a",
        "--flush --restore s",
        "--flush --diff s s",
        "-0 --restore s -n",
        "-0 --pid 1",
        "-0 --diff s s",
        // What has no effect.
        "--restore s --min 1M",
        "--restore s --top 3",
        "--restore s -d 1",
        "--restore s -x",
        "--restore s -f",
        "--restore s --exclude *.o",
        "--diff s s --top 3",
        "--diff s s --min 1M",
        "--diff s s --exclude *.o",
        "--diff s s --unit pages",
        "-i --min 1M",
        "-i --top 3",
        "-i -d 2",
        "-i --unit pages",
        "-i -f",
        "--evict --pid 1 -x",
        "--pid 1 -d 2",
        // All files are acted on: whoever names a part of what is shown means that part.
        "--evict --top 3 x",
        "--evict -d 1 x",
        "--load --top 3 x",
        "--load --depth 2 x",
        "--save s --top 3 x",
        "--save s -d 0 x",
        "--map --top 3 x",
        "--map -d 1 x",
        "--map --min 1M x",
        "--map --exclude *.o x",
        "-n x",
        "--save s --restore s",
        "--diff a",
        "--diff a b c",
        "--restore s x",
        "-i --json",
        "-i --pid 1",
        "--top 0",
        "-f -a x",
        "--sort rubbish",
        "--json --unit pages",
        "-j 0",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in [
        "",
        "a b",
        "-i -x --exclude *.o --sort name",
        "--evict --min 1M -x a",
        "--all --top 3",
        "-0 --files-from l",
        "--map a --json",
        "--pid 1,2 --pid 3",
        "--evict -n a",
        "--restore s -n",
        "--diff a b",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}
