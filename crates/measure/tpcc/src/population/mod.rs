//! The rows that a load writes (TPC-C §4.3.3.1).
//!
//! The seed, the table and the warehouse determine each row. Warehouses can therefore be loaded in
//! any order and by several hosts, and a load can be repeated exactly. Rows go to a [`Sink`], value
//! by value, in the order of [`Table::columns`]. Deliberately absent: any database.

mod customers;
mod orders;
mod warehouses;

use fastrand::Rng;

use crate::spec::nurand::Constants;
use crate::spec::text::{Tenth, a_string, brand_data};
use crate::spec::{DISTRICTS, ITEMS};
use crate::table::Table;

/// Receives rows, value by value.
pub trait Sink {
    /// The error of a row that could not be stored.
    type Error;

    fn int(&mut self, value: i64);
    /// A decimal number: `units` * 10^-`scale`.
    fn decimal(&mut self, units: i64, scale: u32);
    /// A text of ASCII characters without quotes, backslashes and control characters.
    fn text(&mut self, value: &str);
    /// A date, as seconds since 1970 in the database's own time zone.
    fn time(&mut self, seconds: i64);
    fn null(&mut self);
    fn end_row(&mut self) -> Result<(), Self::Error>;
}

/// The parameters of a load. They determine all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    pub seed: u64,
    /// Number of warehouses over all load hosts.
    pub warehouses: u32,
    /// NURand constants of the load (C-Load).
    pub constants: Constants,
    /// Date of the load, in seconds since 1970: C_SINCE, H_DATE and O_ENTRY_D.
    pub now: i64,
}

impl Population {
    /// A population with NURand constants that are drawn from the seed.
    #[must_use]
    pub fn new(seed: u64, warehouses: u32, now: i64) -> Self {
        let constants = Constants::of_load(&mut Rng::with_seed(seed));
        Self {
            seed,
            warehouses,
            constants,
            now,
        }
    }

    /// Writes the rows of CONFIG or ITEM, which belong to no warehouse. Writes nothing for other
    /// tables.
    pub fn write_common<S: Sink + ?Sized>(
        &self,
        table: Table,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        match table {
            Table::Config => self.write_config(sink),
            Table::Item => self.write_items(sink),
            Table::Warehouse
            | Table::District
            | Table::Stock
            | Table::Customer
            | Table::History
            | Table::Order
            | Table::OrderLine
            | Table::NewOrder => Ok(()),
        }
    }

    /// Writes the rows of a table that belong to a warehouse. Writes nothing for CONFIG and ITEM.
    pub fn write<S: Sink + ?Sized>(
        &self,
        table: Table,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        match table {
            Table::Config | Table::Item => Ok(()),
            Table::Warehouse => self.write_warehouse(w_id, sink),
            Table::District => self.write_districts(w_id, sink),
            Table::Stock => self.write_stock(w_id, sink),
            Table::Customer => self.write_customers(w_id, sink),
            Table::History => self.write_history(w_id, sink),
            Table::Order => self.write_orders(w_id, sink),
            Table::OrderLine => self.write_order_lines(w_id, sink),
            Table::NewOrder => self.write_new_orders(w_id, sink),
        }
    }

    /// The random number generator of one part of the data.
    fn rng(&self, part: Part, w_id: u32, d_id: u32) -> Rng {
        // Mixed as in SplitMix64, so that generators with neighbouring numbers are uncorrelated.
        let mut mixed = self.seed;
        for word in [part as u64, u64::from(w_id), u64::from(d_id)] {
            mixed = (mixed ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
        }
        Rng::with_seed(mixed)
    }

    fn write_config<S: Sink + ?Sized>(&self, sink: &mut S) -> Result<(), S::Error> {
        let Constants {
            last_name,
            customer,
            item,
        } = self.constants;
        for (name, value) in [
            ("warehouses", self.warehouses),
            ("nURandCLast", last_name),
            ("nURandCC_ID", customer),
            ("nURandCI_ID", item),
        ] {
            sink.text(name);
            sink.text(&value.to_string());
            sink.end_row()?;
        }
        Ok(())
    }

    fn write_items<S: Sink + ?Sized>(&self, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Part::Items, 0, 0);
        let mut original = Tenth::of(ITEMS);
        for i_id in 1..=ITEMS {
            sink.int(i_id.into());
            sink.text(&a_string(&mut rng, 14..=24));
            sink.decimal(rng.i64(100..=10_000), 2);
            let is_original = original.chooses(&mut rng);
            sink.text(&brand_data(&mut rng, is_original));
            sink.int(rng.i64(1..=10_000));
            sink.end_row()?;
        }
        Ok(())
    }

    fn write_stock<S: Sink + ?Sized>(&self, w_id: u32, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Part::Stock, w_id, 0);
        let mut original = Tenth::of(ITEMS);
        for i_id in 1..=ITEMS {
            sink.int(w_id.into());
            sink.int(i_id.into());
            sink.int(rng.i64(10..=100));
            for _never_sold in ["s_ytd", "s_order_cnt", "s_remote_cnt"] {
                sink.int(0);
            }
            let is_original = original.chooses(&mut rng);
            sink.text(&brand_data(&mut rng, is_original));
            for _ in 0..DISTRICTS {
                sink.text(&a_string(&mut rng, 24..=24));
            }
            sink.end_row()?;
        }
        Ok(())
    }
}

/// Parts of the data with their own random number generators.
#[derive(Debug, Clone, Copy)]
enum Part {
    Items,
    Stock,
    Warehouses,
    Customers,
    History,
    Orders,
    OrderLines,
}

#[cfg(test)]
mod tests;
