//! Frames of made-up intervals, and the whole program on a fake source with fake keys.
#![allow(clippy::unwrap_used)]

mod cost;
mod ended;
mod evictors;
mod frames;
mod keys;
mod looks;
mod moment;
mod pages;
mod parents;
mod program;
mod replay;
mod sums;
mod tree;
mod walk;

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;

use super::app::App;
use super::app::Effect;
use super::details::List;
use super::draw;
use super::draw::theme::Theme;
use super::scene::Scene;
use super::settings::Ended;
use super::settings::Settings;
use super::settings::Show;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::keeper::Id;
use crate::live::snapshot::Entry;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::State;
use crate::live::snapshot::View;
use crate::model::Row;
use crate::pivot::By;
use crate::pivot::Who;
use crate::plan::Engine;
use crate::view::fixtures;

fn scene() -> Scene {
    Scene {
        host: "shrike".into(),
        kernel: "6.18.5".into(),
        engine: Engine::Exact,
        notice: None,
        only: String::new(),
        unknown: Vec::new(),
        told_of_ends: true,
        files: true,
        evictors: false,
        by_file: false,
        latency: false,
        page_size: 4096,
        zone: jiff::tz::TimeZone::UTC,
        config: None,
        replay: None,
    }
}

const VIEW: View = View { by: By::Process, show: Show::Count, threads: false, ended: Ended::Unasked };

fn process(pid: u32, comm: &str, values: &[(Figure, u64)]) -> Row {
    let who = Who {
        pid: Some(pid),
        uid: Some(1000),
        user: Some("me".into()),
        comm: Some(comm.into()),
        cgroup: Some("/user.slice".into()),
        ..Who::default()
    };
    Row { who, figures: fixtures::figures(values), classic: None, back: None }
}

fn reads(hits: u64, ahead: u64, misses: u64) -> Vec<(Figure, u64)> {
    vec![
        (Figure::Accesses, hits + ahead + misses),
        (Figure::Hits, hits),
        (Figure::ReadAheadHits, ahead),
        (Figure::Misses, misses),
        (Figure::ReadBytes, (hits + ahead + misses) * 4096),
    ]
}

fn snapshot(rows: Vec<Row>, total: Figures) -> Snapshot {
    let entry = |row| Entry::new(By::Process, row, State::Active);
    Snapshot {
        system: fixtures::interval(total),
        entries: Arc::new(rows.into_iter().map(entry).collect()),
        threads: Arc::default(),
        ended: Some(0),
        cut: false,
        view: VIEW,
        fresh: true,
        held: false,
        early: false,
        pulse: None,
        number: 1,
        oldest: 1,
        counted: Arc::default(),
        threads_counted: Arc::default(),
    }
}

fn list((by, rows): (By, Vec<Row>)) -> List {
    List::new(by, rows, &[])
}

fn app(size: (u16, u16)) -> App {
    App::new(scene(), Settings::for_engine(Engine::Exact), size)
}

fn frame(app: &mut App) -> String {
    frame_as(app, &Theme::sixteen())
}

fn frame_as(app: &mut App, theme: &Theme) -> String {
    let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).unwrap();
    terminal.draw(|f| draw::draw(app, theme, f)).unwrap();
    terminal.backend().to_string()
}

fn key(code: KeyCode) -> Event {
    Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Types a text, `~` for Enter and `^` for Escape.
fn typed(app: &mut App, text: &str) -> Vec<Effect> {
    let code = |c| match c {
        '~' => KeyCode::Enter,
        '^' => KeyCode::Esc,
        c => KeyCode::Char(c),
    };
    text.chars().flat_map(|c| app.input(&key(code(c)))).collect()
}
