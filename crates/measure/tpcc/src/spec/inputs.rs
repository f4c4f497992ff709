//! The inputs of the five transactions (TPC-C §2.4.1, §2.5.1, §2.6.1, §2.7.1, §2.8.1).

use fastrand::Rng;

use super::deck::Kind;
use super::nurand::{Constants, NuRand};
use super::text::last_name;
use super::{CUSTOMERS, DISTRICTS, ITEMS};

/// The number of an item that does not exist. One New-Order in a hundred has this item and must be
/// rolled back.
pub const UNUSED_ITEM: u32 = ITEMS + 1;

/// The key of a district: a warehouse, and one of its districts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DistrictKey {
    pub w_id: u32,
    /// From 1 to 10.
    pub d_id: u32,
}

/// The selection of a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Customer {
    /// C_ID, from 1 to 3000.
    Id(u32),
    /// C_LAST. Selects the middle customer of this name in the order of C_FIRST.
    LastName(String),
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// OL_I_ID; [`UNUSED_ITEM`] in the last line of an order that will be rolled back.
    pub i_id: u32,
    pub supply_w_id: u32,
    /// OL_QUANTITY, from 1 to 10.
    pub quantity: u32,
}

/// Input of New-Order, §2.4.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// The terminal's warehouse, and a random district.
    pub district: DistrictKey,
    pub c_id: u32,
    /// From 5 to 15 lines.
    pub lines: Vec<Line>,
}

impl NewOrder {
    /// Whether the last item does not exist, so that the order must be rolled back.
    #[must_use]
    pub fn is_rollback(&self) -> bool {
        self.lines
            .last()
            .is_some_and(|line| line.i_id == UNUSED_ITEM)
    }

    /// O_ALL_LOCAL: whether the home warehouse supplies every line.
    #[must_use]
    pub fn is_all_local(&self) -> bool {
        self.lines
            .iter()
            .all(|line| line.supply_w_id == self.district.w_id)
    }
}

/// Input of Payment, §2.5.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The district that receives the payment.
    pub district: DistrictKey,
    /// The district of the customer, which may belong to another warehouse.
    pub home: DistrictKey,
    pub customer: Customer,
    /// H_AMOUNT in cents, from 1.00 to 5,000.00.
    pub amount_cents: u32,
}

/// Input of Order-Status, §2.6.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderStatus {
    /// The terminal's warehouse, and a random district.
    pub district: DistrictKey,
    pub customer: Customer,
}

/// Input of Delivery, §2.7.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// W_ID of the terminal's warehouse.
    pub w_id: u32,
    /// O_CARRIER_ID, from 1 to 10.
    pub carrier_id: u32,
}

/// Input of Stock-Level, §2.8.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockLevel {
    /// The terminal's home district.
    pub district: DistrictKey,
    /// From 10 to 20; items with a smaller stock are counted.
    pub threshold: u32,
}

/// The input of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Input {
    /// The type of the transaction.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }
}

/// Generates the inputs of one terminal.
#[derive(Debug, Clone)]
pub struct Inputs {
    rng: Rng,
    last_name: NuRand,
    customer: NuRand,
    item: NuRand,
    warehouses: u32,
}

impl Inputs {
    /// A generator for a database of `warehouses`, with the NURand constants of the run.
    #[must_use]
    pub fn new(rng: Rng, run: Constants, warehouses: u32) -> Self {
        Self {
            rng,
            last_name: NuRand::last_name(run.last_name),
            customer: NuRand::customer(run.customer),
            item: NuRand::item(run.item),
            warehouses,
        }
    }

    /// The random number generator, for other draws of the same terminal.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Draws the input of a transaction for a terminal with the home `district`.
    pub fn draw(&mut self, kind: Kind, district: DistrictKey) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order(district.w_id)),
            Kind::Payment => Input::Payment(self.payment(district.w_id)),
            Kind::OrderStatus => Input::OrderStatus(self.order_status(district.w_id)),
            Kind::Delivery => Input::Delivery(self.delivery(district.w_id)),
            Kind::StockLevel => Input::StockLevel(self.stock_level(district)),
        }
    }

    /// Draws the input of a New-Order at a warehouse.
    pub fn new_order(&mut self, w_id: u32) -> NewOrder {
        let district = self.random_district(w_id);
        let c_id = self.customer.draw(&mut self.rng);
        let count = self.rng.u32(5..=15);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line(w_id)).collect();
        if self.rng.u32(1..=100) == 1
            && let Some(last) = lines.last_mut()
        {
            last.i_id = UNUSED_ITEM; // §2.4.1.4
        }
        NewOrder {
            district,
            c_id,
            lines,
        }
    }

    fn line(&mut self, w_id: u32) -> Line {
        let i_id = self.item.draw(&mut self.rng);
        let is_remote = self.rng.u32(1..=100) == 1; // §2.4.1.5 (2)
        let supply_w_id = if is_remote {
            self.another_warehouse(w_id)
        } else {
            w_id
        };
        Line {
            i_id,
            supply_w_id,
            quantity: self.rng.u32(1..=10),
        }
    }

    /// Draws the input of a Payment at a warehouse.
    pub fn payment(&mut self, w_id: u32) -> Payment {
        let district = self.random_district(w_id);
        let is_remote = self.rng.u32(1..=100) > 85; // §2.5.1.2
        let home = if is_remote {
            let elsewhere = self.another_warehouse(w_id);
            self.random_district(elsewhere)
        } else {
            district
        };
        let customer = self.by_name_or_id();
        let amount_cents = self.rng.u32(100..=500_000);
        Payment {
            district,
            home,
            customer,
            amount_cents,
        }
    }

    /// Draws the input of an Order-Status at a warehouse.
    pub fn order_status(&mut self, w_id: u32) -> OrderStatus {
        OrderStatus {
            district: self.random_district(w_id),
            customer: self.by_name_or_id(),
        }
    }

    /// Draws the input of a Delivery at a warehouse.
    pub fn delivery(&mut self, w_id: u32) -> Delivery {
        Delivery {
            w_id,
            carrier_id: self.rng.u32(1..=10),
        }
    }

    /// Draws the input of a Stock-Level at a terminal's home district, which stays the same
    /// (§2.8.1.1).
    pub fn stock_level(&mut self, district: DistrictKey) -> StockLevel {
        StockLevel {
            district,
            threshold: self.rng.u32(10..=20),
        }
    }

    fn random_district(&mut self, w_id: u32) -> DistrictKey {
        DistrictKey {
            w_id,
            d_id: self.rng.u32(1..=DISTRICTS),
        }
    }

    /// Draws another warehouse. Returns `w_id` if there is no other.
    fn another_warehouse(&mut self, w_id: u32) -> u32 {
        if self.warehouses == 1 {
            return w_id;
        }
        let other = self.rng.u32(1..self.warehouses);
        if other < w_id { other } else { other + 1 }
    }

    /// Selects a customer, by last name in 60 of 100 cases (§2.5.1.2, §2.6.1.2).
    fn by_name_or_id(&mut self) -> Customer {
        if self.rng.u32(1..=100) <= 60 {
            Customer::LastName(last_name(self.last_name.draw(&mut self.rng)))
        } else {
            let c_id = self.customer.draw(&mut self.rng);
            debug_assert!(c_id <= CUSTOMERS);
            Customer::Id(c_id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Constants = Constants {
        last_name: 91,
        customer: 7,
        item: 99,
    };

    fn inputs(warehouses: u32) -> Inputs {
        Inputs::new(Rng::with_seed(11), RUN, warehouses)
    }

    fn share(count: usize, of: usize) -> f64 {
        100.0 * count as f64 / of as f64
    }

    /// The bounds are from §5.5.1.5.
    #[test]
    fn new_orders_are_within_the_bounds_of_a_valid_run() {
        let mut inputs = inputs(5);
        let orders: Vec<NewOrder> = (0..200_000).map(|_| inputs.new_order(3)).collect();
        let rollbacks = orders.iter().filter(|order| order.is_rollback()).count();
        assert!((0.9..=1.1).contains(&share(rollbacks, orders.len())));
        let lines: Vec<&Line> = orders.iter().flat_map(|order| &order.lines).collect();
        let per_order = lines.len() as f64 / orders.len() as f64;
        assert!((9.5..=10.5).contains(&per_order), "{per_order}");
        let remote = lines.iter().filter(|line| line.supply_w_id != 3).count();
        assert!((0.95..=1.05).contains(&share(remote, lines.len())));
        assert!(
            orders
                .iter()
                .all(|order| (5..=15).contains(&order.lines.len()))
        );
        assert!(lines.iter().all(|line| (1..=10).contains(&line.quantity)));
        assert!(
            lines
                .iter()
                .all(|line| (1..=UNUSED_ITEM).contains(&line.i_id))
        );
        for w_id in [1, 2, 4, 5] {
            let there = lines.iter().filter(|line| line.supply_w_id == w_id).count();
            assert!((23.0..27.0).contains(&share(there, remote)), "{w_id}");
        }
        let local = orders.iter().filter(|order| order.is_all_local()).count();
        assert!((88.0..93.0).contains(&share(local, orders.len())));
    }

    #[test]
    fn payments_are_within_the_bounds_of_a_valid_run() {
        let mut inputs = inputs(4);
        let payments: Vec<Payment> = (0..200_000).map(|_| inputs.payment(4)).collect();
        let away = |p: &&Payment| p.home.w_id != 4;
        let remote = payments.iter().filter(away).count();
        assert!((14.0..=16.0).contains(&share(remote, payments.len())));
        assert!(
            payments
                .iter()
                .filter(|p| p.home.w_id == 4)
                .all(|p| p.home == p.district)
        );
        let named = |p: &&Payment| matches!(p.customer, Customer::LastName(_));
        let by_name = payments.iter().filter(named).count();
        assert!((57.0..=63.0).contains(&share(by_name, payments.len())));
        let amounts = payments.iter().map(|p| p.amount_cents);
        assert_eq!(
            amounts
                .clone()
                .filter(|cents| !(100..=500_000).contains(cents))
                .count(),
            0
        );
        assert!(amounts.clone().any(|cents| cents < 600) && amounts.clone().any(|c| c > 499_500));
    }

    #[test]
    fn the_other_inputs_are_within_their_ranges() {
        let mut inputs = inputs(2);
        let district = DistrictKey { w_id: 2, d_id: 9 };
        for _ in 0..2000 {
            assert!((1..=10).contains(&inputs.delivery(2).carrier_id));
            let stock = inputs.stock_level(district);
            assert_eq!(stock.district, district);
            assert!((10..=20).contains(&stock.threshold));
            let status = inputs.order_status(2);
            assert_eq!(status.district.w_id, 2);
            assert!((1..=10).contains(&status.district.d_id));
        }
    }

    #[test]
    fn a_single_warehouse_supplies_itself() {
        let mut inputs = inputs(1);
        assert!((0..1000).all(|_| inputs.new_order(1).is_all_local()));
        assert!((0..1000).all(|_| inputs.payment(1).home.w_id == 1));
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let (mut a, mut b) = (inputs(3), inputs(3));
        for _ in 0..100 {
            assert_eq!(
                (a.new_order(1), a.payment(1)),
                (b.new_order(1), b.payment(1))
            );
        }
    }
}
