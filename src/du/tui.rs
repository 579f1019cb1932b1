//! `-i`: the tree to browse. What it shows is a [`state::State`]; what it does outside is behind [`state::World`].

mod keys;
mod render;
mod state;
mod world;

use std::io;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyEventKind;

use super::cli::Args;
use super::exclude::Exclude;
use super::interrupt::Watch;
use super::run::End;
use crate::exit::Failure;
use state::State;
use state::World as _;
use world::Tree;

/// How long a signal may wait for the loop to see it.
const BEAT: Duration = Duration::from_millis(100);

/// Browses a directory until the user has seen enough.
///
/// # Errors
/// Without a terminal, or for what is no directory.
pub fn run(args: &Args, paths: &[PathBuf]) -> Result<End, Failure> {
    let [path] = paths else {
        return Err(Failure::usage("'-i' browses one directory").remedy("name one PATH"));
    };
    if !path.is_dir() {
        return Err(Failure::usage(format!("{} is no directory that can be browsed", path.display()))
            .remedy("name a directory, or leave '-i' out"));
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("'-i' needs a terminal").remedy("without it, the same tree is printed"));
    }
    let exclude = Exclude::new(&args.exclude).map_err(Failure::usage)?;
    let mut tree = Tree::new(path.clone(), args, exclude);
    // The walk shows its progress line before the screen is taken over.
    let watch = Watch::new("nothing is shown yet").context("cannot handle signals")?;
    tree.scan(args.noisy());
    drop(watch);
    let mut state = State::new(path.clone(), args.sort.unwrap_or(super::row::Sort::Cached));
    state.listed(tree.list(path));
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    // Restores the screen after a panic, too.
    let mut terminal = ratatui::try_init().context("cannot take over the terminal")?;
    let ended = browse(&mut terminal, &mut state, &mut tree, &stop);
    ratatui::restore();
    ended.map_err(Failure::from).map(|()| End::Done)
}

fn browse(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    tree: &mut Tree,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    loop {
        terminal.draw(|frame| render::render(state, frame))?;
        // Draws again only when something has come.
        while !event::poll(BEAT)? {
            // A terminal that is gone is no reason to spin.
            if stop.load(Relaxed) || rustix::termios::tcgetpgrp(io::stdin().as_fd()).is_err() {
                return Ok(());
            }
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        let Some(action) = keys::action(&key, state.mode()) else { continue };
        if let Some(slow) = state.update(action) {
            if state.busy(&slow) {
                terminal.draw(|frame| render::render(state, frame))?;
            }
            if !state::perform(state, slow, tree) {
                return Ok(());
            }
        }
    }
}
