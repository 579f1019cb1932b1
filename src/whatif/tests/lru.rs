//! The kernel, the textbook's LRU, and the simulation of all and of a tenth of the pages, on one stream: docs/guide/what-if.md.

use super::super::lists::Lists;
use super::*;

/// Pages of the file.
const PAGES: u32 = 16384;

/// Measured on 6.18 with active and inactive list: what is read of a file of 64 MiB (0: Zipf's law, 1: a quarter of it
/// a scan, 2: a loop), the pages that were there, and the part of the reads whose page was not (`mincore` before each).
const MEASURED: [(u8, usize, f64); 12] = [
    (0, 4379, 0.2526),
    (0, 6452, 0.1873),
    (0, 8526, 0.1353),
    (0, 11555, 0.0734),
    (1, 4397, 0.3887),
    (1, 6429, 0.2925),
    (1, 8504, 0.1707),
    (1, 11577, 0.0603),
    (2, 4418, 0.9981),
    (2, 6436, 0.9985),
    (2, 8502, 0.9934),
    (2, 11521, 0.9945),
];

/// What the textbook keeps: what was used last. The miss ratio of the second half.
fn lru(size: usize, stream: &[u32]) -> f64 {
    let mut list = Lists::<1>::new(PAGES as usize);
    let mut misses = 0;
    for (n, page) in stream.iter().enumerate() {
        let there = list.list(*page).is_some();
        misses += usize::from(!there && n >= stream.len() / 2);
        if let Some(oldest) = list.tail(0).filter(|_| !there && list.all() >= size) {
            list.remove(oldest);
        }
        list.put(*page, 0);
    }
    misses as f64 / (stream.len() / 2) as f64
}

/// The simulation of this size, where such a part of the pages is followed.
fn simulated(rate: f64, size: usize, stream: &[u32]) -> f64 {
    let mut simulation = Simulation::new(rate, |pages| Box::new(Classic::new(pages, Statistics::Late)));
    simulation.resize(|scale| (scale == 1.0).then_some(size as f64));
    for slice in stream.chunks(stream.len() / 32) {
        for page in slice {
            simulation.touch(&Touch { page: 1 << 32 | u64::from(*page), ..read(0, Outcome::Unknown) });
        }
        simulation.flush();
        // How many accesses there are of all pages is counted, whatever is followed.
        simulation.end_slice(Some((slice.len() as u64, 0)));
    }
    let curve = Curve::new(simulation.slices(), &simulation.sizes(), MODEL_ERROR);
    let points = curve.points.unwrap();
    points.iter().find(|p| p.scale == 1.0).and_then(|p| p.miss_ratio).map_or(f64::NAN, |(ratio, _)| ratio)
}

#[test]
#[ignore = "a measurement, not a test"]
fn against_the_textbook() {
    let streams: Vec<Vec<u32>> = [false, true].map(|mix| in_a_file_of(PAGES, mix, 600_000)).into();
    let around: Vec<u32> = (0..600_000).map(|n| n % PAGES).collect();
    let mut sums = [0.0; 3];
    for (load, size, kernel) in MEASURED {
        let stream = streams.get(usize::from(load)).unwrap_or(&around);
        let of = [lru(size, stream), simulated(1.0, size, stream), simulated(0.1, size, stream)];
        let name = ["Zipf's law", "Zipf's law, a quarter of it a scan", "loop"][usize::from(load)];
        println!("| {name} | {size} | {kernel:.3} | {:.3} | {:.3} | {:.3} |", of[0], of[1], of[2]);
        sums.iter_mut().zip(of).for_each(|(sum, ratio)| *sum += (ratio - kernel).abs());
    }
    println!("mean differences: {:?}", sums.map(|sum| sum / MEASURED.len() as f64));
}
