//! Measures the time to generate the rows of a warehouse: `cargo run --release -p saiga-tpcc
//! --example population [WAREHOUSES]`.
//!
//! The rows are discarded, so that no database is measured. Prints milliseconds per warehouse.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use saiga_tpcc::population::{Population, Sink};
use saiga_tpcc::table::Table;

/// A sink that reads every value and stores none.
struct Nowhere {
    rows: u64,
    bytes: usize,
}

impl Sink for Nowhere {
    type Error = Infallible;

    fn int(&mut self, value: i64) {
        black_box(value);
    }
    fn decimal(&mut self, units: i64, scale: u32) {
        black_box((units, scale));
    }
    fn text(&mut self, value: &str) {
        self.bytes += black_box(value).len();
    }
    fn time(&mut self, seconds: i64) {
        black_box(seconds);
    }
    fn null(&mut self) {}
    fn end_row(&mut self) -> Result<(), Infallible> {
        self.rows += 1;
        Ok(())
    }
}

fn main() {
    let warehouses: u32 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(4);
    let population = Population::new(7, warehouses, 1_790_000_000);
    let mut sink = Nowhere { rows: 0, bytes: 0 };
    // Through a trait object, as in a load.
    let sink_of_load: &mut dyn Sink<Error = Infallible> = &mut sink;
    for table in Table::OF_WAREHOUSE {
        let before = Instant::now();
        for w_id in 1..=warehouses {
            let Ok(()) = population.write(table, w_id, &mut *sink_of_load);
        }
        let each = before.elapsed().as_secs_f64() * 1e3 / f64::from(warehouses);
        println!("{:<18} {each:8.2} ms", table.name());
    }
    println!("{} rows, {} bytes of text", sink.rows, sink.bytes);
}
