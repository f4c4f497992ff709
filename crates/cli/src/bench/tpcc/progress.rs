//! Progress of a build on stderr: a bar on a terminal, otherwise a line every ten seconds.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use saiga_tpcc::build::Event;
use saiga_tpcc::spec::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS, ORDERS};

use crate::exit;
use saiga_document::number::{counted, time};

/// Time between two lines without a terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);
/// Rows of a warehouse: stock, customers and their history, orders with ten lines each, new orders,
/// districts, and the row of the warehouse itself.
const ROWS_OF_WAREHOUSE: u64 = ITEMS as u64
    + DISTRICTS as u64
        * (2 * CUSTOMERS as u64 + 11 * ORDERS as u64 + (ORDERS + 1 - FIRST_UNDELIVERED) as u64 + 1)
    + 1;

pub(super) struct Progress {
    bar: ProgressBar,
    terminal: bool,
    load: Mutex<Load>,
}

struct Load {
    since: Instant,
    last_line: Instant,
    warehouses: u32,
    done: u32,
    rows: u64,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // The template is a constant; on an error the default style is used.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
            bar.set_style(style);
        }
        let now = Instant::now();
        Self {
            terminal: !bar.is_hidden(),
            bar,
            load: Mutex::new(Load {
                since: now,
                last_line: now,
                warehouses: 0,
                done: 0,
                rows: 0,
            }),
        }
    }

    /// Handles an event; callable from any thread.
    pub(super) fn on(&self, event: Event<'_>) {
        match event {
            Event::Step { step, source } => {
                self.bar.set_message(format!("{}: {source}", step.name()));
                self.line(&format!("{}: {source}", step.name()));
            }
            Event::StepDone {
                step,
                statements,
                took,
            } => {
                let took = time(took);
                let statements =
                    counted(u32::try_from(statements).unwrap_or(u32::MAX), "statement");
                self.line(&format!("{}: {statements}, {took}", step.name()));
            }
            Event::Loading {
                warehouses,
                workers,
                seed,
            } => {
                let mut load = self.load();
                load.warehouses = warehouses;
                (load.since, load.last_line) = (Instant::now(), Instant::now());
                self.bar
                    .set_length(u64::from(warehouses) * ROWS_OF_WAREHOUSE);
                let warehouses = counted(warehouses, "warehouse");
                let workers = counted(u32::try_from(workers).unwrap_or(u32::MAX), "worker");
                self.line(&format!("rows: {warehouses}, {workers}, seed {seed}"));
            }
            Event::SlowLoad(why) => self.line(why),
            Event::Rows(rows) => self.rows(rows),
            Event::Warehouse(_) => self.load().done += 1,
            Event::Loaded { took } => {
                let rows = self.load().rows;
                self.line(&format!("rows: {rows}, {}", time(took)));
            }
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn rows(&self, more: u64) {
        let mut load = self.load();
        load.rows += more;
        self.bar.set_position(load.rows);
        if self.terminal {
            self.bar.set_message(load.to_string());
        } else if load.last_line.elapsed() >= LINE_PAUSE {
            load.last_line = Instant::now();
            self.line(&load.to_string());
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| exit::say(text));
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            since,
            warehouses,
            done,
            rows,
            ..
        } = self;
        let seconds = since.elapsed().as_secs_f64();
        let pace = *rows as f64 / seconds.max(1e-3);
        let left = (u64::from(*warehouses) * ROWS_OF_WAREHOUSE).saturating_sub(*rows);
        let left = left as f64 / pace.max(1.0);
        write!(
            f,
            "{done} of {warehouses} warehouses, {pace:.0} rows/s, {:.0} min {:02.0} s left",
            (left / 60.0).floor(),
            (left % 60.0).floor()
        )
    }
}
