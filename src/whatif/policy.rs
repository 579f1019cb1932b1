//! What a policy of the kernel is asked, whichever it is.

/// How a page is used, as far as the kernel's lists see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// By a call, which marks it (`folio_mark_accessed`).
    Marked,
    /// By a call that goes on where the last one ended, inside the page: not marked again.
    Unmarked,
    /// By a call that writes: it is not marked, and what comes for it is not what the cache has missed.
    Written,
    /// Through a mapping: the processor's bit in the page table, which is looked at when memory is short.
    Mapped,
}

/// A policy of the kernel at one size. Pages are small numbers.
pub trait Policy {
    /// A page is used: true if it was there, and not by read-ahead alone. It is afterwards.
    fn touch(&mut self, page: u32, how: Use) -> bool {
        let there = self.has(page);
        if !there {
            self.add(page, how);
        }
        let ahead = self.ahead(page);
        self.set_ahead(page, false);
        match how {
            Use::Mapped => self.young(page),
            // What is new is marked by whoever brought it in.
            Use::Unmarked if there => {}
            Use::Marked | Use::Unmarked => self.mark(page),
            Use::Written => {}
        }
        there && !ahead
    }

    /// A page is read ahead, and takes room from then on: true if it was not there.
    fn bring(&mut self, page: u32) -> bool {
        let absent = !self.has(page);
        if absent {
            self.add(page, Use::Unmarked);
            self.set_ahead(page, true);
        }
        absent
    }

    /// A page comes that is not there, for such a use; others go for it.
    fn add(&mut self, page: u32, how: Use);

    /// A page that is there is used, and the kernel marks it.
    fn mark(&mut self, page: u32);

    /// A page that is there is used through a mapping.
    fn young(&mut self, page: u32);

    /// Whether the page is there.
    fn has(&self, page: u32) -> bool;

    /// How much of the page is there: where two answers are known, a half if it is in one of them.
    fn share(&self, page: u32) -> f64 {
        f64::from(u8::from(self.has(page)))
    }

    /// Whether the page is there, and nobody has used it since it was read ahead.
    fn ahead(&self, page: u32) -> bool;

    /// Whether a page that is there is so from now on.
    fn set_ahead(&mut self, page: u32, ahead: bool);

    /// A page goes for another reason than want of memory, and nothing remembers it.
    fn remove(&mut self, page: u32);

    /// Whether the page is there, or so lately gone that the policy would remember it.
    fn remembers(&self, page: u32) -> bool;

    /// The size, in pages that are followed, each of which stands for `each` pages.
    fn resize(&mut self, pages: usize, each: f64);

    /// Statistics that the kernel gathers only now and then are gathered.
    fn flush(&mut self) {}

    /// Whether a page had to go for another one: until then what was there before nobody knows.
    fn full(&self) -> bool;

    /// Of the last touch, where two answers are known: 1 if only the second one found its page, -1 if only the first.
    fn apart(&self) -> f64 {
        0.0
    }
}
