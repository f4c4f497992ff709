//! Random inputs within the small database.

use fastrand::Rng;
use saiga_tpcc::spec::inputs::{
    Customer, Delivery, Input, Line, NewOrder, OrderStatus, Payment, Place, StockLevel, UNUSED_ITEM,
};

use super::start::NAMES;
use super::{CUSTOMERS, DISTRICTS, ITEMS, WAREHOUSES};

/// Makes inputs, the same ones for a seed.
#[derive(Debug)]
pub(crate) struct Script(Rng);

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// Of any transaction.
    pub(crate) fn next(&mut self) -> Input {
        match self.0.u32(0..10) {
            0..4 => Input::NewOrder(self.new_order()),
            4..7 => Input::Payment(self.payment()),
            7 => Input::OrderStatus(self.order_status()),
            8 => Input::Delivery(Delivery {
                w_id: self.0.u32(1..=WAREHOUSES),
                carrier_id: self.0.u32(1..=10),
            }),
            _ => Input::StockLevel(self.stock_level()),
        }
    }

    pub(crate) fn order_status(&mut self) -> OrderStatus {
        OrderStatus {
            place: self.place(),
            customer: self.customer(),
        }
    }

    pub(crate) fn stock_level(&mut self) -> StockLevel {
        StockLevel {
            place: self.place(),
            threshold: self.0.u32(10..=50),
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let (place, c_id) = (self.place(), self.0.u32(1..=CUSTOMERS));
        let line = |rng: &mut Rng| Line {
            i_id: rng.u32(1..=ITEMS),
            supply_w_id: rng.u32(1..=WAREHOUSES),
            quantity: rng.u32(1..=10),
        };
        let count = self.0.u32(5..=15);
        let mut lines: Vec<Line> = (0..count).map(|_| line(&mut self.0)).collect();
        if self.0.u32(0..5) == 0 {
            // Other lines of this order go to a warehouse of a higher number.
            *lines.last_mut().expect("it is there") = Line {
                i_id: UNUSED_ITEM,
                supply_w_id: 1,
                quantity: 1,
            };
        }
        NewOrder { place, c_id, lines }
    }

    fn payment(&mut self) -> Payment {
        Payment {
            place: self.place(),
            home: self.place(),
            customer: self.customer(),
            amount_cents: self.0.u32(100..=500_000),
        }
    }

    fn place(&mut self) -> Place {
        Place {
            w_id: self.0.u32(1..=WAREHOUSES),
            d_id: self.0.u32(1..=DISTRICTS),
        }
    }

    fn customer(&mut self) -> Customer {
        if self.0.bool() {
            Customer::Id(self.0.u32(1..=CUSTOMERS))
        } else {
            Customer::LastName(NAMES[self.0.usize(0..NAMES.len())].to_owned())
        }
    }
}
