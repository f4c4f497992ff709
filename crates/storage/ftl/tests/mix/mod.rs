//! Builds traces, and a model of MySQL's writes.

use saiga_ftl::replay::Footprint;
use saiga_ftl::trace::{Op, Row, Trace};

pub(crate) const PAGE: u64 = 4096;

/// A builder of traces.
#[derive(Default)]
pub(crate) struct Maker {
    pub(crate) trace: Trace,
}

impl Maker {
    pub(crate) fn file(&mut self, name: &str) -> u32 {
        self.trace.files.push(name.to_owned());
        u32::try_from(self.trace.files.len() - 1).unwrap()
    }

    pub(crate) fn row(&mut self, op: Op, first: u64, pages: u64, file: u32) {
        self.trace.rows.push(Row {
            t_ns: self.trace.rows.len() as u64 * 1000,
            lba: first * PAGE,
            len: pages * PAGE,
            op,
            file: Some(file),
        });
    }

    pub(crate) fn footprint(&self) -> Footprint {
        Footprint::of(&self.trace, PAGE).unwrap()
    }
}

/// A file that is written as a ring.
struct Ring {
    file: u32,
    first: u64,
    pages: u64,
    next: u64,
}

impl Ring {
    fn write(&mut self, maker: &mut Maker, pages: u64) {
        for _ in 0..pages {
            maker.row(Op::Write, self.first + self.next, 1, self.file);
            self.next = (self.next + 1) % self.pages;
        }
    }
}

/// Shares of the writes, in percent: data, doublewrite, redo, binary log.
pub(crate) type Mix = [u64; 4];

/// A model of MySQL's writes on 131072 logical pages, `used` percent of them in use: data of which
/// a fifth gets four fifths of the writes, rings of 0.2 % (doublewrite) and 8 % (redo), and binary
/// logs of 8 % in eight files that are deleted and discarded before they are written again.
pub(crate) fn mysql(used: u64, mix: Mix) -> Maker {
    const LOGICAL: u64 = 131_072;
    let mut maker = Maker::default();
    let [data, dblwr, redo] =
        ["db/t.ibd", "#ib_16384_0.dblwr", "ib_logfile0"].map(|name| maker.file(name));
    let logs: Vec<u32> = (0..8)
        .map(|i| maker.file(&format!("mysql-bin.00000{i}")))
        .collect();
    let [dblwr_pages, redo_pages, log_pages] = [LOGICAL / 500, LOGICAL * 8 / 100, LOGICAL / 100];
    let data_pages = LOGICAL * used / 100 - dblwr_pages - redo_pages - 8 * log_pages;
    let ring = |file, first, pages| Ring {
        file,
        first,
        pages,
        next: 0,
    };
    let mut dblwr = ring(dblwr, data_pages, dblwr_pages);
    let mut redo = ring(redo, data_pages + dblwr_pages, redo_pages);
    let log_first = data_pages + dblwr_pages + redo_pages;
    let mut log_next = 0;
    maker.row(Op::Present, 0, data_pages, data);
    let mut random = fastrand::Rng::with_seed(5);
    // The logs are rewritten a whole number of times, so that a repetition continues where this
    // ends; and often, because a repetition rewrites pages in the same order, like a ring.
    let rounds = 6 * 8 * log_pages / mix[3];
    for _ in 0..rounds {
        dblwr.write(&mut maker, mix[1]);
        for _ in 0..mix[0] {
            let hot = data_pages / 5;
            let page = if random.u32(0..10) < 8 {
                random.u64(0..hot)
            } else {
                random.u64(hot..data_pages)
            };
            maker.row(Op::Write, page, 1, data);
        }
        redo.write(&mut maker, mix[2]);
        for _ in 0..mix[3] {
            let (number, page) = (log_next / log_pages, log_next % log_pages);
            let first = log_first + number * log_pages;
            let file = logs[usize::try_from(number).unwrap()];
            if page == 0 {
                maker.row(Op::Discard, first, log_pages, file);
            }
            maker.row(Op::Write, first + page, 1, file);
            log_next = (log_next + 1) % (8 * log_pages);
        }
    }
    maker
}
