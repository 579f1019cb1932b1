//! Requests in their order, under one setting.

use std::collections::BTreeMap;
use std::collections::HashMap;

use super::PAGE_SHIFT;
use super::Request;
use super::Setting;
use super::pages::Pages;
use super::sums::Sums;
use super::window::Given;
use super::window::Reader;
use super::window::State;
use crate::files::Dev;

/// Pieces of 512 pages that are remembered at most: 64 GiB of files, in 32 MiB for each setting.
const ROOM: usize = 32768;

/// Open files whose state is remembered at most.
const OPEN: usize = 1 << 16;

/// Bytes that a pipe holds between two files: what sendfile asks for at a time.
const PIPE: u64 = 16 << PAGE_SHIFT;

/// Which file.
pub type Key = (Dev, u64);

/// One file.
#[derive(Debug, Default)]
struct File {
    pages: Pages,
    sums: Sums,
}

/// The cache under one setting.
#[derive(Debug)]
pub struct Simulation {
    setting: Setting,
    files: BTreeMap<Key, File>,
    open: HashMap<u64, (Key, State)>,
    room: usize,
    full: bool,
}

impl Simulation {
    /// Nothing is in the cache.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self { setting, files: BTreeMap::new(), open: HashMap::new(), room: 0, full: false }
    }

    /// Whether there was no room for all of it: then it says nothing.
    #[must_use]
    pub const fn full(&self) -> bool {
        self.full
    }

    /// What was done to each file.
    pub fn files(&self) -> impl Iterator<Item = (Key, &Sums)> {
        self.files.iter().map(|(key, file)| (*key, &file.sums))
    }

    /// A read waits for pages that are on their way: for those of a window of that size, if they are of one here.
    pub fn late(&mut self, r: &Request) {
        let Some(file) = self.files.get_mut(&(r.dev, r.inode)) else { return };
        if let Some(which) = file.pages.brought_by(r.pos >> PAGE_SHIFT) {
            file.sums.windows[which].late += 1;
        }
    }

    /// The next request.
    pub fn read(&mut self, r: &Request) {
        if r.count == 0 || r.pos >= r.size || self.full {
            return;
        }
        if !r.splice {
            return self.serve(r);
        }
        let (mut part, end) = (*r, r.pos.saturating_add(r.count).min(r.size));
        while part.pos < end {
            part.count = PIPE.min(end - part.pos);
            self.serve(&part);
            part.pos += part.count;
            part.before = Some(part.pos);
        }
    }

    fn serve(&mut self, r: &Request) {
        let key = (r.dev, r.inode);
        if self.open.len() >= OPEN && !self.open.contains_key(&r.file) {
            self.full = true;
            return;
        }
        let (of, state) = self.open.entry(r.file).or_default();
        // An address is that of another open file once the one before is closed.
        if *of != key || r.before.is_none() {
            (*of, *state) = (key, State::default());
        }
        let file = self.files.entry(key).or_default();
        let before = file.pages.room();
        file.sums.requests += 1;
        let (pages, random) = self.setting.of(r);
        let end = r.size.div_ceil(1 << PAGE_SHIFT);
        let given = Given {
            end,
            pages,
            io_pages: r.io_pages.into(),
            random,
            before: r.before.map(|at| at >> PAGE_SHIFT),
            order: r.order,
            aligned: r.aligned,
        };
        let File { pages, sums } = file;
        let waited = serve(
            &mut Reader { pages, sums, state, given },
            r.pos >> PAGE_SHIFT,
            r.pos.saturating_add(r.count).div_ceil(1 << PAGE_SHIFT),
        );
        file.sums.waits += u64::from(waited);
        self.room += file.pages.room() - before;
        self.full |= self.room > ROOM;
    }
}

/// `filemap_read`: pages from one to before another. Whether one of them was missing.
fn serve(reader: &mut Reader<'_>, first: u64, end: u64) -> bool {
    let (mut index, mut waited) = (first, false);
    let last = end.min(reader.given.end);
    while index < last {
        let Some(folio) = reader.pages.folio(index) else {
            waited = true;
            reader.sync(index, end - index);
            if !reader.pages.has(index) {
                // `filemap_create_folio`
                reader.add(index, 0, false, 0);
            }
            continue;
        };
        if folio.marked {
            reader.marked(folio, end - folio.first);
        }
        let next = (folio.first + (1 << folio.order)).min(last);
        for page in index..next {
            if let Some(which) = reader.pages.read(page) {
                reader.sums.used += 1;
                reader.sums.windows[which].used += 1;
            }
        }
        index = next;
    }
    waited
}
