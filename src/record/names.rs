//! Names that come with the samples that they belong to.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::cgroup::Cgroup;
use crate::cgroup::Held;
use crate::files::Dev;
use crate::files::Mounts;
use crate::names::Names;
use crate::names::Recorded;
use crate::text::foreign::Foreign;

/// Where whoever has samples puts what was looked up for them: `true` if all that was before may be forgotten.
pub type Sink = Rc<RefCell<VecDeque<(bool, Recorded)>>>;

/// The names of the last sample and of those before it.
#[derive(Default)]
pub struct Told {
    book: Recorded,
    news: Sink,
}

impl Told {
    /// With nothing in it, and where to put what comes.
    #[must_use]
    pub fn new() -> (Self, Sink) {
        let news = Sink::default();
        (Self { book: Recorded::default(), news: Rc::clone(&news) }, news)
    }

    fn book(&mut self) -> &mut Recorded {
        for (fresh, new) in self.news.borrow_mut().drain(..) {
            if fresh {
                self.book = Recorded::default();
            }
            self.book.merge(new);
        }
        &mut self.book
    }
}

impl Names for Told {
    fn user(&mut self, uid: u32) -> Option<Rc<str>> {
        self.book().user(uid)
    }

    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup> {
        self.book().cgroup(id, tgid)
    }

    fn mounts(&mut self, dev: Dev) -> &mut Mounts {
        self.book().mounts(dev)
    }

    fn mounts_now(&mut self) -> &Mounts {
        self.book().mounts_now()
    }

    fn command_line(&mut self, pid: u32) -> Option<Foreign> {
        self.book().command_line(pid)
    }

    fn held(&mut self, paths: &[String]) -> Vec<Held> {
        // It is shown while it is recorded, and not kept.
        Held::of(paths.iter().map(String::as_str))
    }
}
