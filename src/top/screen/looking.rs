//! Asks what the cache has of the row whose details are open, beside all else.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use super::events::Event;
use super::threads::spawn;
use crate::exit::Failure;
use crate::live::keeper::Id;
use crate::pivot::By;
use crate::pivot::Who;
use crate::privilege::Role;
use crate::top::now;
use crate::top::sampler::Report;

/// Questions that nobody has answered yet, at most: servers may be gone for good.
const OPEN: usize = 4;
/// So much of the time at most goes into answers: one in so many parts of it.
const SHARE: u32 = 20;

/// A question, and what is held until it is answered.
type Question = (By, Id, Who, Arc<()>);

/// Asks in threads of their own, which one thread begins: they may open files of others, who draws may not.
pub(super) struct Looking {
    questions: Sender<Question>,
    open: Arc<()>,
    /// Who was asked for last, and when the next question may follow.
    last: Cell<Option<(By, Id)>>,
    next: Arc<Mutex<Option<Instant>>>,
}

fn set(next: &Mutex<Option<Instant>>, to: Instant) {
    *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
}

impl Looking {
    /// Begins the thread that begins the others.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn new(sender: Sender<Event>) -> Result<Self, Failure> {
        let (questions, asked) = mpsc::channel::<Question>();
        let next: Arc<Mutex<Option<Instant>>> = Arc::default();
        let when = next.clone();
        spawn("look", move || {
            if let Err(failure) = Role::Look.take(&[]) {
                let _ = sender.send(Event::Report(Report::Failed(failure)));
                return;
            }
            for question in asked {
                let (sender, next) = (sender.clone(), when.clone());
                if spawn("look", move || answer(question, &next, &sender)).is_err() {
                    log::warn!("no thread to look into the cache");
                }
            }
        })?;
        Ok(Self { questions, open: Arc::default(), last: Cell::new(None), next })
    }

    /// Asks, unless it was asked just now; the answer is an event.
    pub(super) fn ask(&self, by: By, id: &Id, who: &Who) {
        if !now::suits(by, who) {
            return;
        }
        let row = (by, id.clone());
        let same = self.last.take().is_some_and(|last| last == row);
        self.last.set(Some(row));
        let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = next.is_some_and(|next| Instant::now() < next);
        if same && waits || Arc::strong_count(&self.open) > OPEN {
            return;
        }
        // Until there is an answer, nobody asks again for the same.
        set(&self.next, Instant::now() + Duration::from_secs(3600));
        let _ = self.questions.send((by, id.clone(), who.clone(), self.open.clone()));
    }
}

fn answer((by, id, who, open): Question, next: &Mutex<Option<Instant>>, sender: &Sender<Event>) {
    let began = Instant::now();
    let told = now::look(by, &who);
    set(next, Instant::now() + began.elapsed() * SHARE);
    drop(open);
    if let Some(told) = told {
        let _ = sender.send(Event::Now(by, id, Box::new(told)));
    }
}
