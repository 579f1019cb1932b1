//! Lists of pages, in as little memory as can be: a page is on one of them at most.

/// A page's number: there are fewer.
type Number = u16;

const NOWHERE: Number = Number::MAX;
/// The lower half of a byte is the list, the upper one is whoever's the page is.
const LIST: u8 = 0xf;
const NO_LIST: u8 = LIST;
const FLAGS_SHIFT: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Link {
    towards_head: Number,
    towards_tail: Number,
}

/// What a page on a list takes here, bytes.
#[cfg(test)]
pub(super) const LINKS: usize = size_of::<Link>() + 1;

/// `N` lists.
#[derive(Debug)]
pub(super) struct Lists<const N: usize> {
    links: Vec<Link>,
    on: Vec<u8>,
    heads: [Number; N],
    tails: [Number; N],
    lengths: [usize; N],
}

impl<const N: usize> Lists<N> {
    /// For so many pages, on no list: 65535 at most.
    pub(super) fn new(pages: usize) -> Self {
        assert!(pages <= usize::from(NOWHERE), "numbers of pages have 16 bits");
        assert!(N < usize::from(NO_LIST), "numbers of lists have four");
        Self {
            links: vec![Link { towards_head: NOWHERE, towards_tail: NOWHERE }; pages],
            on: vec![NO_LIST; pages],
            heads: [NOWHERE; N],
            tails: [NOWHERE; N],
            lengths: [0; N],
        }
    }

    /// The list that a page is on.
    pub(super) fn list(&self, page: u32) -> Option<usize> {
        Some(usize::from(self.on[page as usize] & LIST)).filter(|list| *list < N)
    }

    /// Four bits of a page, on whichever list it is.
    pub(super) fn flags(&self, page: u32) -> u8 {
        self.on[page as usize] >> FLAGS_SHIFT
    }

    pub(super) fn set_flags(&mut self, page: u32, flags: u8) {
        let on = &mut self.on[page as usize];
        *on = flags << FLAGS_SHIFT | *on & LIST;
    }

    pub(super) const fn len(&self, list: usize) -> usize {
        self.lengths[list]
    }

    pub(super) fn all(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// The page that has been there longest.
    pub(super) fn tail(&self, list: usize) -> Option<u32> {
        Some(self.tails[list]).filter(|page| *page != NOWHERE).map(u32::from)
    }

    /// Takes a page off its list.
    pub(super) fn remove(&mut self, page: u32) {
        let Some(list) = self.list(page) else { return };
        let Link { towards_head, towards_tail } = self.links[page as usize];
        match towards_head {
            NOWHERE => self.heads[list] = towards_tail,
            other => self.links[usize::from(other)].towards_tail = towards_tail,
        }
        match towards_tail {
            NOWHERE => self.tails[list] = towards_head,
            other => self.links[usize::from(other)].towards_head = towards_head,
        }
        self.lengths[list] -= 1;
        self.on[page as usize] |= NO_LIST;
    }

    /// Puts a page at the head of a list, from wherever it is.
    pub(super) fn put(&mut self, page: u32, list: usize) {
        self.remove(page);
        let head = self.heads[list];
        self.links[page as usize] = Link { towards_head: NOWHERE, towards_tail: head };
        match head {
            NOWHERE => self.tails[list] = page as Number,
            other => self.links[usize::from(other)].towards_head = page as Number,
        }
        self.heads[list] = page as Number;
        self.is_on(page, list);
    }

    /// Puts a page at the tail of a list, from wherever it is.
    pub(super) fn put_last(&mut self, page: u32, list: usize) {
        self.remove(page);
        let tail = self.tails[list];
        self.links[page as usize] = Link { towards_head: tail, towards_tail: NOWHERE };
        match tail {
            NOWHERE => self.heads[list] = page as Number,
            other => self.links[usize::from(other)].towards_tail = page as Number,
        }
        self.tails[list] = page as Number;
        self.is_on(page, list);
    }

    fn is_on(&mut self, page: u32, list: usize) {
        self.lengths[list] += 1;
        let list = u8::try_from(list).unwrap_or(NO_LIST) & LIST;
        self.on[page as usize] = self.on[page as usize] & !LIST | list;
    }
}
