//! A model of the database in memory, written from the specification. It is the oracle for real
//! databases.
//!
//! It is small (two warehouses, thirty customers per district, forty items), so that orders use
//! the same stocks, customers share names, and districts run out of undelivered orders. Each
//! transaction follows its clause in the simplest way.

mod dump;
mod inputs;
mod start;

use std::collections::{BTreeMap, BTreeSet};

use saiga_tpcc::spec::inputs::{
    Customer as Named, Delivery, DistrictKey, Input, NewOrder, OrderStatus, Payment, StockLevel,
};
use saiga_tpcc::transactions::Outcome;

pub(crate) use inputs::Script;

pub(crate) const WAREHOUSES: u32 = 2;
pub(crate) const DISTRICTS: u32 = 10;
pub(crate) const CUSTOMERS: u32 = 30;
pub(crate) const ITEMS: u32 = 40;

/// The tables. Money is in cents.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    items: BTreeMap<u32, i64>,
    warehouses: BTreeMap<u32, i64>,
    districts: BTreeMap<DistrictKey, District>,
    customers: BTreeMap<(DistrictKey, u32), Customer>,
    stocks: BTreeMap<(u32, u32), Stock>,
    orders: BTreeMap<(DistrictKey, u32), Order>,
    new_orders: BTreeSet<(DistrictKey, u32)>,
    history: Vec<History>,
}

#[derive(Debug, Clone)]
struct District {
    ytd: i64,
    next_o_id: u32,
}

#[derive(Debug, Clone)]
struct Customer {
    first: String,
    last: String,
    has_bad_credit: bool,
    balance: i64,
    ytd_payment: i64,
    payments: u32,
    deliveries: u32,
    data: String,
}

#[derive(Debug, Clone)]
struct Stock {
    quantity: i64,
    ytd: i64,
    orders: u32,
    remote: u32,
}

#[derive(Debug, Clone)]
struct Order {
    c_id: u32,
    carrier: Option<u32>,
    is_all_local: bool,
    entered: i64,
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    i_id: u32,
    supply_w_id: u32,
    quantity: u32,
    amount: i64,
    delivered: Option<i64>,
}

#[derive(Debug, Clone)]
struct History {
    c_id: u32,
    home: DistrictKey,
    district: DistrictKey,
    date: i64,
    amount: i64,
    data: String,
}

/// S_DIST_xx, which no transaction changes.
fn dist_info(w_id: u32, i_id: u32, d_id: u32) -> String {
    format!("{w_id:04}-{i_id:04}-{d_id:02}'abcdefghijk")
}

fn warehouse_name(w_id: u32) -> String {
    format!("WH{w_id}")
}

fn district_name(district: DistrictKey) -> String {
    format!("D{}of{}", district.d_id, district.w_id)
}

impl Model {
    /// Performs a transaction and returns its outcome.
    pub(crate) fn perform(&mut self, input: &Input, now: i64) -> Outcome {
        match input {
            Input::NewOrder(input) => self.new_order(input, now),
            Input::Payment(input) => self.payment(input, now),
            Input::OrderStatus(_) | Input::StockLevel(_) => Outcome::Committed,
            Input::Delivery(input) => self.delivery(*input, now),
        }
    }

    /// Performs a New-Order (§2.4.2.2).
    fn new_order(&mut self, input: &NewOrder, now: i64) -> Outcome {
        if input.is_rollback() {
            return Outcome::RolledBack;
        }
        let home = input.district.w_id;
        let mut lines = Vec::new();
        for line in &input.lines {
            let stock = self
                .stocks
                .get_mut(&(line.supply_w_id, line.i_id))
                .expect("the row exists");
            let quantity = i64::from(line.quantity);
            let is_enough = stock.quantity - quantity >= 10;
            stock.quantity += if is_enough { -quantity } else { 91 - quantity };
            stock.ytd += quantity;
            stock.orders += 1;
            stock.remote += u32::from(line.supply_w_id != home);
            lines.push(Line {
                i_id: line.i_id,
                supply_w_id: line.supply_w_id,
                quantity: line.quantity,
                amount: self.items[&line.i_id] * quantity,
                delivered: None,
            });
        }
        let district = self
            .districts
            .get_mut(&input.district)
            .expect("the row exists");
        let o_id = district.next_o_id;
        district.next_o_id += 1;
        let order = Order {
            c_id: input.c_id,
            carrier: None,
            is_all_local: input.is_all_local(),
            entered: now,
            lines,
        };
        self.orders.insert((input.district, o_id), order);
        self.new_orders.insert((input.district, o_id));
        Outcome::Committed
    }

    /// Performs a Payment (§2.5.2.2).
    fn payment(&mut self, input: &Payment, now: i64) -> Outcome {
        let (district, home, amount) = (input.district, input.home, i64::from(input.amount_cents));
        let c_id = self.selected(home, &input.customer);
        *self
            .warehouses
            .get_mut(&district.w_id)
            .expect("the row exists") += amount;
        self.districts
            .get_mut(&district)
            .expect("the row exists")
            .ytd += amount;
        let customer = self
            .customers
            .get_mut(&(home, c_id))
            .expect("the row exists");
        customer.balance -= amount;
        customer.ytd_payment += amount;
        customer.payments += 1;
        if customer.has_bad_credit {
            let DistrictKey {
                w_id: c_w,
                d_id: c_d,
            } = home;
            let DistrictKey { w_id, d_id } = district;
            let (whole, cents) = (amount / 100, amount % 100);
            let noted = format!("{c_id} {c_d} {c_w} {d_id} {w_id} {whole}.{cents:02} ");
            customer.data = (noted + &customer.data).chars().take(500).collect();
        }
        let data = format!(
            "{}    {}",
            warehouse_name(district.w_id),
            district_name(district)
        );
        self.history.push(History {
            c_id,
            home,
            district,
            date: now,
            amount,
            data,
        });
        Outcome::Committed
    }

    /// Performs a Delivery (§2.7.4.2).
    fn delivery(&mut self, input: Delivery, now: i64) -> Outcome {
        let (mut orders, mut skipped) = (Vec::new(), 0);
        for d_id in 1..=DISTRICTS {
            let district = DistrictKey {
                w_id: input.w_id,
                d_id,
            };
            let Some(oldest) = self
                .new_orders
                .range((district, 0)..=(district, u32::MAX))
                .next()
            else {
                skipped += 1;
                continue;
            };
            let oldest = *oldest;
            self.new_orders.remove(&oldest);
            let order = self.orders.get_mut(&oldest).expect("the row exists");
            order.carrier = Some(input.carrier_id);
            order
                .lines
                .iter_mut()
                .for_each(|line| line.delivered = Some(now));
            let sum: i64 = order.lines.iter().map(|line| line.amount).sum();
            let customer = self
                .customers
                .get_mut(&(district, order.c_id))
                .expect("the row exists");
            customer.balance += sum;
            customer.deliveries += 1;
            orders.push((d_id, oldest.1));
        }
        Outcome::Delivered { orders, skipped }
    }

    /// The selected customer (§2.5.2.2). If n customers have the name, it is the customer at
    /// position n/2, rounded up, in the order of first names.
    fn selected(&self, home: DistrictKey, selection: &Named) -> u32 {
        let name = match selection {
            Named::Id(c_id) => return *c_id,
            Named::LastName(name) => name,
        };
        let all = self.customers.range((home, 0)..=(home, u32::MAX));
        let named = all.filter(|(_, customer)| customer.last == *name);
        let mut by_first: Vec<(&str, u32)> = named
            .map(|((_, c_id), customer)| (customer.first.as_str(), *c_id))
            .collect();
        by_first.sort_unstable();
        by_first[by_first.len().div_ceil(2) - 1].1
    }

    /// The selected customer, and number, carrier and lines of the customer's last order
    /// (§2.6.2.2).
    pub(crate) fn last_order(&self, input: &OrderStatus) -> (u32, u32, Option<u32>, Vec<[i64; 4]>) {
        let c_id = self.selected(input.district, &input.customer);
        let all = self
            .orders
            .range((input.district, 0)..=(input.district, u32::MAX));
        let ((_, o_id), order) = all
            .rev()
            .find(|(_, order)| order.c_id == c_id)
            .expect("the row exists");
        let line = |line: &Line| {
            let [i_id, supply, quantity] = [line.i_id, line.supply_w_id, line.quantity];
            [
                i64::from(i_id),
                i64::from(supply),
                i64::from(quantity),
                line.amount,
            ]
        };
        (
            c_id,
            *o_id,
            order.carrier,
            order.lines.iter().map(line).collect(),
        )
    }

    /// The number of distinct items that occur in the last twenty orders and have a stock below the
    /// threshold (§2.8.2.2).
    pub(crate) fn low_stock(&self, input: &StockLevel) -> i64 {
        let next = self.districts[&input.district].next_o_id;
        let last = (input.district, next.saturating_sub(20))..(input.district, next);
        let items: BTreeSet<u32> = self
            .orders
            .range(last)
            .flat_map(|(_, order)| &order.lines)
            .map(|l| l.i_id)
            .collect();
        let is_low = |i_id: &&u32| {
            self.stocks[&(input.district.w_id, **i_id)].quantity < i64::from(input.threshold)
        };
        i64::try_from(items.iter().filter(is_low).count()).expect("the number is small")
    }
}
