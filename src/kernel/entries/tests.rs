#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;

use libbpf_rs::MapHandle;
use libbpf_rs::MapType;

use super::*;

/// A hash table as the kernel reads one: buckets whole, or not in this call.
#[derive(Default)]
struct Fake {
    buckets: Vec<Vec<u32>>,
    room: u32,
    /// Calls that fail: which, and how.
    fails: BTreeMap<usize, i32>,
    /// All batches fail so.
    refuses: Option<i32>,
    /// What is gone when the single entries are read.
    deleted: Vec<u32>,
    single: Option<i32>,
    /// At this key it begins anew, so often.
    anew: Cell<(u32, usize)>,
    calls: RefCell<Vec<u32>>,
}

impl Fake {
    fn of(buckets: &[usize], room: u32) -> Self {
        let mut next = 0..;
        let buckets = buckets.iter().map(|n| next.by_ref().take(*n).collect()).collect();
        Self { buckets, room, ..Self::default() }
    }

    fn keys(&self) -> Vec<u32> {
        self.buckets.concat()
    }

    fn read(&self) -> io::Result<Vec<u32>> {
        whole(self)
            .map(|all| all.iter().inspect(|(k, v)| assert_eq!(k, v)).map(|(k, _)| u32_at(k, 0)).collect())
    }
}

impl Table for Fake {
    fn room(&self) -> u32 {
        self.room
    }

    fn batch(&self, from: Option<&[u8]>, count: u32) -> (Answer, Vec<Entry>) {
        let nth = self.calls.borrow().len();
        self.calls.borrow_mut().push(count);
        if let Some(why) = self.refuses.or(self.fails.get(&nth).copied()) {
            return (Answer::Failed(io::Error::from_raw_os_error(why)), Vec::new());
        }
        let (mut at, mut read) = (from.map_or(0, |from| u32_at(from, 0) as usize), Vec::new());
        while let Some(bucket) = self.buckets.get(at) {
            if bucket.len() > count as usize - read.len() {
                if read.is_empty() {
                    return (Answer::Failed(io::Error::from_raw_os_error(libc::ENOSPC)), read);
                }
                return (Answer::More((at as u32).to_ne_bytes().to_vec()), read);
            }
            read.extend(bucket.iter().map(|n| (n.to_ne_bytes().to_vec(), n.to_ne_bytes().to_vec())));
            at += 1;
        }
        (Answer::End, read)
    }

    fn after(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        if let Some(why) = self.single {
            return Err(io::Error::from_raw_os_error(why));
        }
        let (anew, times) = self.anew.get();
        let begins = key.is_some_and(|k| u32_at(k, 0) == anew) && times > 0;
        let at = match key {
            Some(_) if begins => {
                self.anew.set((anew, times - 1));
                0
            }
            Some(key) => self.keys().iter().position(|k| *k == u32_at(key, 0)).unwrap() + 1,
            None => 0,
        };
        Ok(self.keys().get(at).map(|k| k.to_ne_bytes().to_vec()))
    }

    fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok((!self.deleted.contains(&u32_at(key, 0))).then(|| key.to_vec()))
    }
}

#[test]
fn a_bucket_that_does_not_fit_any_more_comes_with_the_next_call() {
    for buckets in
        [vec![], vec![1; 5000], vec![3; 1000], vec![1023, 2, 1024, 0, 1], vec![0; 9], vec![1024, 1024]]
    {
        let table = Fake::of(&buckets, 16384);
        assert_eq!(table.read().unwrap(), table.keys(), "{buckets:?}");
    }
}

#[test]
fn a_bucket_larger_than_a_batch_is_read() {
    let table = Fake::of(&[5, 4000, 7], 5000);
    assert_eq!(table.read().unwrap(), table.keys());
    assert_eq!(*table.calls.borrow(), [1024, 1024, 2048, 4096], "no larger than need be");
    // One that says so though there is room for all is read one by one.
    let table = Fake { refuses: Some(libc::ENOSPC), ..Fake::of(&[5, 6], 11) };
    assert_eq!(table.read().unwrap(), table.keys());
}

#[test]
fn what_fails_for_now_is_tried_again() {
    for why in [libc::EINTR, libc::EAGAIN] {
        let fails = (1..=TRIES as usize).map(|n| (n, why)).collect();
        let table = Fake { fails, ..Fake::of(&[3; 700], 2100) };
        assert_eq!(table.read().unwrap(), table.keys());
        assert_eq!(table.calls.borrow().len(), 3 + TRIES as usize);
        let table = Fake { refuses: Some(why), ..Fake::of(&[3; 700], 2100) };
        assert_eq!(table.read().unwrap(), table.keys(), "one by one");
    }
}

#[test]
fn what_fails_is_read_one_by_one_or_an_error() {
    for why in [libc::EFAULT, libc::ENOMEM, libc::EINVAL, libc::EPERM, libc::EBADF, libc::EOPNOTSUPP, 524] {
        for first in [0, 1, 2] {
            let some = |single| Fake { fails: [(first, why)].into(), single, ..Fake::of(&[3; 1000], 3000) };
            let table = some(None);
            assert_eq!(table.read().unwrap(), table.keys(), "none twice: error {why} of call {first}");
            let e = some(Some(libc::EIO)).read().unwrap_err();
            assert_eq!(e.raw_os_error(), Some(why), "call {first}");
        }
    }
}

#[test]
fn one_by_one_a_table_that_changes_is_read_as_well() {
    let table = Fake { refuses: Some(libc::ENOMEM), deleted: vec![2], ..Fake::of(&[4], 4) };
    table.anew.set((2, 2));
    assert_eq!(table.read().unwrap(), [0, 1, 3]);
    // It never ends.
    table.anew.set((3, usize::MAX));
    assert_eq!(table.read().unwrap_err().raw_os_error(), Some(libc::ENOMEM));
}

/// A table of the kernel's. Takes root, as whom tests run: whoever is not is told, and not that all is well.
fn table(kind: MapType, room: u32) -> MapHandle {
    let opts = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    MapHandle::create(kind, None::<&str>, 4, 8, room, &opts).expect("root may make a table")
}

#[test]
fn the_kernels_tables_are_read_whole() {
    for (room, used) in [(1, 0), (1, 1), (1024, 1024), (16384, 1025), (16384, 16384), (4096, 3000)] {
        let table = table(MapType::Hash, room);
        for n in 0..used {
            let value = u64::from(n) << 20;
            table.update(&u32::to_ne_bytes(n), &value.to_ne_bytes(), MapFlags::ANY).unwrap();
        }
        let one_by_one = one_by_one(&Kernel(&table)).unwrap();
        for mut all in [entries(&table).unwrap(), one_by_one] {
            all.sort_by_key(|(k, _)| u32_at(k, 0));
            let all: Vec<_> = all.iter().map(|(k, v)| (u32_at(k, 0), u64_at(v, 0))).collect();
            assert!(
                all == (0..used).map(|n| (n, u64::from(n) << 20)).collect::<Vec<_>>(),
                "{used} of {room}: {}",
                all.len()
            );
        }
    }
    for room in [1, 512, 513, 5000] {
        let table = table(MapType::Array, room);
        for n in 0..room {
            table.update(&n.to_ne_bytes(), &u64::from(n).to_ne_bytes(), MapFlags::ANY).unwrap();
        }
        let all: Vec<_> = values(&table, 512).map(|v| u64_at(&v.unwrap(), 0)).collect();
        assert_eq!(all, (0..u64::from(room)).collect::<Vec<_>>());
    }
}

#[test]
fn a_table_whose_descriptor_is_something_else_is_an_error() {
    let table = table(MapType::Hash, 8);
    // A ring has no entries that anybody could read.
    let ring = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let ring = MapHandle::create(MapType::RingBuf, None::<&str>, 0, 0, 4096, &ring).unwrap();
    assert!(entries(&table).unwrap().is_empty());
    assert!(entries(&ring).is_err());
}
