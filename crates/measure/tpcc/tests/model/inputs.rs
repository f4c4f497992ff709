//! Random inputs within the small database of the model.

use fastrand::Rng;
use saiga_tpcc::spec::inputs::{
    Customer, Delivery, DistrictKey, Input, Line, NewOrder, OrderStatus, Payment, StockLevel,
    UNUSED_ITEM,
};

use super::start::NAMES;
use super::{CUSTOMERS, DISTRICTS, ITEMS, WAREHOUSES};

/// A generator of inputs with a fixed seed.
#[derive(Debug)]
pub(crate) struct Script(Rng);

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// The input of a random transaction.
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
            district: self.district(),
            customer: self.customer(),
        }
    }

    pub(crate) fn stock_level(&mut self) -> StockLevel {
        StockLevel {
            district: self.district(),
            threshold: self.0.u32(10..=50),
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let (district, c_id) = (self.district(), self.0.u32(1..=CUSTOMERS));
        let line = |rng: &mut Rng| Line {
            i_id: rng.u32(1..=ITEMS),
            supply_w_id: rng.u32(1..=WAREHOUSES),
            quantity: rng.u32(1..=10),
        };
        let count = self.0.u32(5..=15);
        let mut lines: Vec<Line> = (0..count).map(|_| line(&mut self.0)).collect();
        if self.0.u32(0..5) == 0 {
            // Supplied by warehouse 1, so that sorting by stock key alone would not put it last.
            *lines.last_mut().expect("the row exists") = Line {
                i_id: UNUSED_ITEM,
                supply_w_id: 1,
                quantity: 1,
            };
        }
        NewOrder {
            district,
            c_id,
            lines,
        }
    }

    fn payment(&mut self) -> Payment {
        Payment {
            district: self.district(),
            home: self.district(),
            customer: self.customer(),
            amount_cents: self.0.u32(100..=500_000),
        }
    }

    fn district(&mut self) -> DistrictKey {
        DistrictKey {
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
