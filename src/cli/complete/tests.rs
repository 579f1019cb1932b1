//! That what is generated offers what is taken, in each shell.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use clap::CommandFactory as _;

use crate::cli::complete;
use crate::cli::daemon;
use crate::cli::du;
use crate::cli::stat;
use crate::cli::top;

/// What bash offers for the words of a line, of which the last one is to be completed.
fn bash(script: &str, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let quoted: Vec<_> = words.iter().map(|w| format!("'{w}'")).collect();
    // Outside of a completion there is nothing that compopt could set.
    let script = format!(
        "compopt() {{ :; }}\n{script}\nCOMP_WORDS=({})\nCOMP_CWORD={last}\n_{} {} {} {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" "),
        words[0],
        words[0],
        quoted[last],
        quoted[last - 1]
    );
    let out = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    String::from_utf8(out.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_offers_what_is_taken() {
    let script = complete::bash(stat::Args::command());
    for (words, offered) in [
        (&["cachestat", "--engine", ""][..], &["exact", "classic", "both"][..]),
        (&["cachestat", "--engine", "=", "cl"], &["classic"]),
        (&["cachestat", "--engine", "="], &["exact", "classic", "both"]),
        (&["cachestat", "--engine=cl"], &["--engine=classic"]),
        (&["cachestat", "--columns", "hits,misses,hit"], &["hits,misses,hit_ratio"]),
        (&["cachestat", "--columns", "=", "hits,hit"], &["hits,hit_ratio"]),
        (&["cachestat", "--table"], &["--table-size"]),
        (&["cachestat", "--what-if", "--uni"], &["--unit"]),
        (&["cachestat", "--refus"], &[]),
        (&["cachestat", "--top", ""], &[]),
        (&["cachestat", "-r", "3", "--", "mapfil"], &["mapfile"]),
        (&["cachestat", "-u", "daemon,roo"], &["daemon,root"]),
    ] {
        assert_eq!(bash(&script, words), offered, "{words:?}");
    }
    let own = std::process::id().to_string();
    let several = [format!("1,{own}")];
    assert_eq!(bash(&script, &["cachestat", "-p", &several[0]]).first(), several.first());
    let script = complete::bash(du::Args::command());
    assert_eq!(bash(&script, &["cachedu", ""]), [""; 0], "paths, as readline knows them");
    assert_eq!(bash(&script, &["cachedu", "--columns", "pages,pag"]), [""; 0]);
    assert_eq!(bash(&script, &["cachedu", "--", "--al"]), [""; 0]);
    assert_eq!(bash(&script, &["cachedu", "-p", &own]).first(), Some(&own));
    let script = complete::bash(top::Args::command());
    assert_eq!(bash(&script, &["cachetop", "-s", "bus"]), ["busy"]);
}

#[test]
fn hidden_options_are_offered_nowhere() {
    for command in [stat::Args::command(), top::Args::command(), daemon::Args::command()] {
        for text in [complete::bash, complete::zsh, complete::fish].map(|of| of(command.clone())) {
            assert!(!text.contains("refuse") && text.contains("table-size"), "{text}");
        }
    }
}

#[test]
fn each_shell_can_read_its_script() {
    for command in [stat::Args::command(), top::Args::command(), du::Args::command(), daemon::Args::command()]
    {
        let bash = complete::bash(command.clone());
        let zsh = complete::zsh(command.clone());
        for (shell, script) in [("bash", bash), ("zsh", zsh), ("fish", complete::fish(command))] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(shell);
            std::fs::write(&file, script).unwrap();
            let out = Command::new(shell).arg("-n").arg(&file).output();
            let out = out.unwrap_or_else(|e| panic!("{shell}, which './setup.sh test' installs: {e}"));
            assert!(out.status.success(), "{shell}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}
