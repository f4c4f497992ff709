//! Generates a trace like that of TPC-C on MySQL 9.7 in docs/ftl.md: the same kinds of files with
//! the same written bytes and pages, and similar lifetimes. The same seed gives the same trace.
//!
//! `cargo run --release -p saiga-ftl --example mysql_like [SEED] >mysql.csv`

use std::error::Error;
use std::io::{self, BufWriter, Write};

use saiga_ftl::trace::{Op, Recorded, Writer};

/// Sizes of a page of the device and of InnoDB.
const PAGE: u64 = 4096;
const INNODB: u64 = 4 * PAGE;
/// Pages that InnoDB flushes at once, first to the doublewrite area.
const BATCH: u64 = 64;
/// Batches of 240 s.
const BATCHES: u64 = 7100;
const BATCH_NS: u64 = 240_000_000_000 / BATCHES;
const MIB: u64 = 1 << 20;
/// Binary logs: their size, and their number before the oldest is deleted.
const LOG_BYTES: u64 = 16 * MIB;
const LOGS: u64 = 7;

/// Files whose pages are rewritten in place: MiB of pages, MiB written in total, percent of hot
/// pages; the hot pages get the rest to 100 percent of the writes.
const IN_PLACE: [(&str, u64, u64, u64); 11] = [
    ("undo_001", 24, 972, 20),
    ("undo_002", 24, 972, 20),
    ("tpcc/bmsql_stock.ibd", 84, 1945, 20),
    ("tpcc/bmsql_order_line.ibd", 136, 1843, 10),
    ("tpcc/bmsql_customer.ibd", 48, 461, 20),
    ("tpcc/bmsql_oorder.ibd", 17, 436, 20),
    ("tpcc/bmsql_history.ibd", 21, 255, 20),
    ("tpcc/bmsql_new_order.ibd", 9, 164, 20),
    ("ibdata1", 12, 46, 20),
    ("mysql.ibd", 26, 8, 20),
    ("tpcc/bmsql_item.ibd", 100, 0, 20),
];

/// The data directory of the database.
const DIRECTORY: &str = "/srv/mysql";

/// A part of the device that is written as a ring, some bytes at a time.
struct Ring {
    first: u64,
    bytes: u64,
    next: u64,
}

impl Ring {
    /// Advances by `bytes`; returns the pages that they touch.
    fn advance(&mut self, bytes: u64) -> (u64, u64) {
        let begin = self.next / PAGE * PAGE;
        let end = (self.next + bytes).next_multiple_of(PAGE).min(self.bytes);
        self.next = (self.next + bytes) % self.bytes;
        (self.first + begin, end - begin)
    }
}

/// Allocates the bytes of the device.
#[derive(Default)]
struct Space {
    used: u64,
}

impl Space {
    fn take(&mut self, bytes: u64) -> u64 {
        self.used += bytes;
        self.used - bytes
    }

    fn ring(&mut self, bytes: u64) -> Ring {
        Ring {
            first: self.take(bytes),
            bytes,
            next: 0,
        }
    }
}

fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

/// Binary logs, which are appended to and deleted whole.
struct Logs {
    slots: Vec<u64>,
    number: u64,
    next: u64,
}

impl Logs {
    fn name(number: u64) -> String {
        path(&format!("mysql-bin.{number:06}"))
    }

    /// Appends bytes, and rewrites the page in which the previous bytes ended.
    fn append<W: Write>(
        &mut self,
        out: &mut Writer<W>,
        t_ns: u64,
        bytes: u64,
    ) -> Result<(), Box<dyn Error>> {
        let slot = |number: u64| self.slots[usize::try_from(number % (LOGS + 1)).unwrap_or(0)];
        let begin = self.next / PAGE * PAGE;
        let end = (self.next + bytes).next_multiple_of(PAGE);
        let name = Self::name(self.number);
        out.row(
            t_ns,
            slot(self.number) + begin,
            end - begin,
            Op::Write,
            Some(&name),
        )?;
        self.next += bytes;
        if self.next >= LOG_BYTES - bytes {
            self.next = 0;
            self.number += 1;
            if let Some(oldest) = self.number.checked_sub(LOGS) {
                let name = Self::name(oldest);
                out.row(t_ns, slot(oldest), LOG_BYTES, Op::Discard, Some(&name))?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args()
        .nth(1)
        .map_or(Ok(14), |seed| seed.parse())?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut space = Space::default();
    let mut out = Writer::new(BufWriter::new(io::stdout().lock()))?;
    out.directory(DIRECTORY)?;
    let tables: Vec<(String, u64, u64)> = IN_PLACE
        .iter()
        .map(|(name, mib, _, _)| (path(name), space.take(mib * MIB), mib * MIB))
        .collect();
    let mut doublewrite = space.ring(16 * MIB);
    let mut redo = space.ring(96 * MIB);
    let mut journal = space.ring(10 * MIB);
    let mut logs = Logs {
        slots: (0..=LOGS).map(|_| space.take(LOG_BYTES)).collect(),
        number: 0,
        next: 0,
    };
    for (name, first, bytes) in &tables {
        out.row(0, *first, *bytes, Op::Present, Some(name))?;
    }
    let redo_name = |offset: u64| path(&format!("#innodb_redo/#ib_redo{}", offset / (8 * MIB)));
    let all: u64 = IN_PLACE.iter().map(|(_, _, written, _)| written).sum();
    for batch in 0..BATCHES {
        let t_ns = batch * BATCH_NS;
        let (at, len) = doublewrite.advance(BATCH * INNODB);
        out.row(t_ns, at, len, Op::Write, Some(&path("#ib_16384_0.dblwr")))?;
        for page in 0..BATCH {
            let mut draw = random.u64(..all);
            let chosen = IN_PLACE.iter().position(|(_, _, written, _)| {
                let is_it = draw < *written;
                draw = draw.saturating_sub(*written);
                is_it
            });
            let number = chosen.unwrap_or(0);
            let (name, first, bytes) = &tables[number];
            let (pages, percent) = (bytes / INNODB, IN_PLACE[number].3);
            let hot = (pages * percent / 100).max(1);
            let place = if random.u64(..100) >= percent {
                random.u64(..hot)
            } else {
                random.u64(hot..pages)
            };
            out.row(t_ns, first + place * INNODB, INNODB, Op::Write, Some(name))?;
            // Commits, each of which rewrites the block in which the previous one ended.
            if page % 5 == 0 {
                let offset = redo.next;
                let (at, len) = redo.advance(3900);
                out.row(t_ns, at, len, Op::Write, Some(&redo_name(offset)))?;
                logs.append(&mut out, t_ns, 3600)?;
            }
        }
        let (at, len) = journal.advance(2 * PAGE);
        out.row(t_ns, at, len, Op::Write, None)?;
    }
    let recorded = Recorded {
        duration_ns: BATCHES * BATCH_NS,
        lost: 0,
    };
    out.finish(Some(recorded))?.flush()?;
    Ok(())
}
