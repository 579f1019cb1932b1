//! Rows as numbers, column by column: a row that was there before is its place in a table, and of its counters only the
//! values are written.

use std::collections::HashMap;

use crate::sample::Counter;
use crate::sample::Histograms;
use crate::sample::Sparse;
use crate::sample::written::MOST;
use crate::sample::written::TOO_MANY;

/// What cannot be read.
pub(super) type Damaged = &'static str;

/// A row: its place in the table, what it counted, its histograms.
pub(super) type Cells = (u32, Sparse, Option<Box<Histograms>>);

/// Appends a number, seven bits a byte.
pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n > 127 {
        out.push(u8::try_from(n & 127).unwrap_or(0) | 128);
        n >>= 7;
    }
    out.push(u8::try_from(n).unwrap_or(0));
}

/// Takes a number from the beginning.
pub(super) fn take(from: &mut &[u8]) -> Result<u64, Damaged> {
    let mut n = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first().ok_or("a number is cut off")?;
        *from = rest;
        n |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(n);
        }
    }
    Err("a number has no end")
}

/// Which counters a row has: few combinations come again and again.
#[derive(Debug, Default)]
pub(super) struct Sets {
    numbers: HashMap<u64, u64>,
    list: Vec<u64>,
}

impl Sets {
    fn put(&mut self, set: u64, out: &mut Vec<u8>) {
        let next = self.list.len() as u64;
        let number = *self.numbers.entry(set).or_insert(next);
        put(out, number);
        if number == next {
            self.list.push(set);
            put(out, set);
        }
    }

    fn take(&mut self, from: &mut &[u8]) -> Result<u64, Damaged> {
        let number = take(from)?;
        if number == self.list.len() as u64 {
            self.list.push(take(from)?);
        }
        let number = usize::try_from(number).map_err(|_| "a set of counters that there is not")?;
        self.list.get(number).copied().ok_or("a set of counters that there is not")
    }
}

/// How the counters of a recording are numbered, and the size of its pages.
#[derive(Debug, Clone)]
pub(super) struct Scheme {
    /// Our number of each; `None`: this version does not know it.
    pub ours: Vec<Option<usize>>,
    /// Bytes in a page.
    pub page: u64,
}

impl Scheme {
    /// Of this version.
    pub fn here(page: u64) -> Self {
        Self { ours: (0..Counter::ALL.len()).map(Some).collect(), page }
    }

    fn number(&self, counter: Counter) -> Option<usize> {
        self.ours.iter().position(|n| *n == Some(counter as usize))
    }

    /// Counters in the order in which they are written: the bytes that were read last, since they are nearly all told by the
    /// pages.
    fn order(&self) -> Vec<usize> {
        let bytes = self.number(Counter::ReadBytes);
        (0..self.ours.len().min(64)).filter(|n| Some(*n) != bytes).chain(bytes).collect()
    }

    /// What the bytes of a row would be, had all its reads been of whole pages.
    fn guess(&self, row: &Sparse) -> u64 {
        let pages = [Counter::ReadHits, Counter::ReadAheadHits, Counter::ReadMisses];
        pages.iter().fold(0_u64, |sum, c| sum.wrapping_add(row.get(*c))).wrapping_mul(self.page)
    }
}

const fn zigzag(n: u64) -> u64 {
    let n = n as i64;
    ((n << 1) ^ (n >> 63)) as u64
}

const fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// Appends rows, which are in the order of their places.
pub(super) fn put_rows(rows: &[Cells], sets: &mut Sets, scheme: &Scheme, out: &mut Vec<u8>) {
    put(out, rows.len() as u64);
    let mut last = 0;
    for (place, ..) in rows {
        put(out, u64::from(place - last));
        last = *place;
    }
    let set = |row: &Sparse| row.iter().fold(0_u64, |set, (counter, _)| set | 1 << counter);
    for (_, counters, _) in rows {
        sets.put(set(counters), out);
    }
    for counter in scheme.order() {
        for (_, counters, _) in rows {
            let value = counters.at(counter);
            if value == 0 {
                continue;
            }
            let bytes = counter == Counter::ReadBytes as usize;
            put(out, if bytes { zigzag(value.wrapping_sub(scheme.guess(counters))) } else { value });
        }
    }
    for (_, _, histograms) in rows {
        let Some(histograms) = histograms else {
            put(out, 0);
            continue;
        };
        let mut all = histograms.as_ref().clone();
        let some: Vec<_> =
            all.buckets().enumerate().filter(|(_, n)| **n != 0).map(|(i, n)| (i, *n)).collect();
        put(out, some.len() as u64 + 1);
        for (bucket, n) in some {
            put(out, bucket as u64);
            put(out, n);
        }
    }
}

/// Takes them.
pub(super) fn take_rows(from: &mut &[u8], sets: &mut Sets, scheme: &Scheme) -> Result<Vec<Cells>, Damaged> {
    let number = usize::try_from(take(from)?).map_err(|_| "too many rows")?;
    // Each has three bytes at least: a number that is a lie costs no memory.
    if number > from.len() {
        return Err("more rows than there are bytes");
    }
    if number > MOST {
        return Err(TOO_MANY);
    }
    let mut places = Vec::with_capacity(number);
    let mut last = 0_u32;
    for _ in 0..number {
        let gap = u32::try_from(take(from)?).map_err(|_| "a row that there is not")?;
        last = last.checked_add(gap).ok_or("a row that there is not")?;
        places.push(last);
    }
    let which = (0..number).map(|_| sets.take(from)).collect::<Result<Vec<_>, _>>()?;
    let mut counters = vec![Sparse::default(); number];
    let bytes = scheme.number(Counter::ReadBytes);
    for counter in scheme.order() {
        for (row, _) in counters.iter_mut().zip(&which).filter(|(_, set)| *set & (1 << counter) != 0) {
            let mut value = take(from)?;
            if Some(counter) == bytes {
                value = unzigzag(value).wrapping_add(scheme.guess(row));
            }
            if let Some(ours) = scheme.ours[counter] {
                row.set(ours, value);
            }
        }
    }
    let mut out = Vec::with_capacity(number);
    for (place, counters) in places.into_iter().zip(counters) {
        out.push((place, counters, take_histograms(from)?));
    }
    Ok(out)
}

fn take_histograms(from: &mut &[u8]) -> Result<Option<Box<Histograms>>, Damaged> {
    let Some(some) = take(from)?.checked_sub(1) else { return Ok(None) };
    let mut out = Box::<Histograms>::default();
    for _ in 0..some {
        let bucket = usize::try_from(take(from)?).map_err(|_| "a bucket that there is not")?;
        *out.buckets().nth(bucket).ok_or("a bucket that there is not")? = take(from)?;
    }
    Ok(Some(out))
}
