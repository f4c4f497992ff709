//! The speed of the stack on one core, without a device, beside smoltcp in the same harness.
//!
//!     make bench-stack          # or: cargo run --release -p saiga-stack --example bench [ROW]
//!
//! ROW is a part of the names of the rows to measure, such as `close`.
//!
//! Two hosts of the same kind exchange frames in memory. A frame counts twice: one host sends it,
//! and the other one receives it. The two kinds take turns, and the median of the turns counts, so
//! that a noisy machine disturbs both in the same way.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod ours;
mod pair;
mod smol;

use std::time::{Duration, Instant};

use ours::Ours;
use pair::{Kind, Pair};
use smol::Smol;

/// Turns of each measurement, and the least time of one.
const TURNS: usize = 7;
const TURN: Duration = Duration::from_millis(300);
/// Connections for which a stack has room by default.
const USUAL: u32 = 65_536;
/// Requests that are on their way at a time, as a device with a full queue would give them.
const BATCH: usize = 32;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let is_wanted = |name: &str| name.contains(&wanted);
    println!("| what | saiga | smoltcp | ratio |");
    println!("|---|---|---|---|");
    for connections in [1, 100, 10_000] {
        let name = format!("requests of 100 bytes, {connections} connections");
        if is_wanted(&name) {
            let mut ours = Requests::new(Ours::new(Kind::Segments, USUAL), connections);
            let mut smol = Requests::new(Smol::new(Kind::Segments), connections);
            row(&name, SEGMENTS, || ours.turn(), Some(&mut || smol.turn()));
        }
    }
    let name = "requests of 100 bytes, 500,000 connections";
    if is_wanted(name) {
        let before = resident_bytes();
        let mut ours = Requests::new(Ours::new(Kind::Segments, 500_000), 500_000);
        // Each connection has two ends here.
        let each = (resident_bytes() - before) / 1_000_000;
        println!("| memory of an idle connection | {each} bytes | - | - |");
        row(name, SEGMENTS, || ours.turn(), None);
    }
    for (kind, name) in [
        (Kind::Segments, "bulk, frames of 1,514 bytes"),
        (Kind::SuperSegments, "bulk, segments of 64 KiB"),
    ] {
        if is_wanted(name) {
            let (mut ours, mut smol) = (Ours::new(kind, USUAL), Smol::new(kind));
            ours.open(1);
            smol.open(1);
            let smol = &mut || stream(&mut smol);
            row(name, ("Gbit/s", 1e9), || stream(&mut ours), Some(smol));
        }
    }
    let name = "handshake to close, both ends";
    if is_wanted(name) {
        let (mut ours, mut smol) = (Ours::new(Kind::Segments, USUAL), Smol::new(Kind::Segments));
        let smol = &mut || rate(|| smol.churn(100));
        row(
            name,
            ("thousand connections/s", 1e3),
            || rate(|| ours.churn(1_000)),
            Some(smol),
        );
    }
}

/// Unit and scale of rates of segments.
const SEGMENTS: (&str, f64) = ("million segments/s", 1e6);

/// Resident memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.expect("VmRSS") * 1024
}

/// A measurement with requests on random connections.
struct Requests<P> {
    pair: P,
    connections: usize,
    random: fastrand::Rng,
    chosen: Vec<usize>,
}

impl<P: Pair> Requests<P> {
    fn new(mut pair: P, connections: usize) -> Self {
        pair.open(connections);
        Self {
            pair,
            connections,
            random: fastrand::Rng::with_seed(1),
            chosen: Vec::new(),
        }
    }

    /// Segments in a second that both hosts send and receive.
    fn turn(&mut self) -> f64 {
        let batch = BATCH.min(self.connections);
        rate(|| {
            let before = self.pair.segments();
            // Different connections: two requests on one would share a segment.
            let first = self.random.usize(..self.connections);
            let stride = self.connections / batch;
            self.chosen.clear();
            self.chosen.extend((0..batch).map(|nth| {
                let within = self.random.usize(..stride);
                (first + nth * stride + within) % self.connections
            }));
            self.pair.exchange(&self.chosen);
            self.pair.segments() - before
        })
    }
}

/// Bits of payload in a second.
fn stream(pair: &mut impl Pair) -> f64 {
    let bytes = 4 << 20;
    rate(|| {
        pair.stream(bytes);
        8 * bytes as u64
    })
}

/// Runs between two looks at the clock, which takes as long as a segment.
const RUNS: usize = 16;

/// How much `run` does in a second of a turn.
fn rate(mut run: impl FnMut() -> u64) -> f64 {
    let begin = Instant::now();
    let mut done = 0;
    loop {
        done += (0..RUNS).map(|_| run()).sum::<u64>();
        let elapsed = begin.elapsed();
        if elapsed >= TURN {
            return done as f64 / elapsed.as_secs_f64();
        }
    }
}

/// Measures in turns, and prints a row.
fn row(
    name: &str,
    (unit, scale): (&str, f64),
    mut ours: impl FnMut() -> f64,
    mut smol: Option<&mut dyn FnMut() -> f64>,
) {
    let (mut own, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        own.push(ours() / scale);
        if let Some(smol) = &mut smol {
            other.push(smol() / scale);
            ratios.push(own[own.len() - 1] / other[other.len() - 1]);
        }
    }
    let own = median(own).unwrap_or(0.0);
    let text = |value: Option<f64>, unit: &str| match value {
        Some(value) if value < 10.0 => format!("{value:.2}{unit}"),
        Some(value) => format!("{value:.1}{unit}"),
        None => "-".to_owned(),
    };
    println!(
        "| {name} | {} {unit} | {} | {} |",
        text(Some(own), ""),
        text(median(other), ""),
        text(median(ratios), "x")
    );
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
