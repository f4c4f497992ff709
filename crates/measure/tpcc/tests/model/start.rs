//! The initial state of the model. It satisfies all twelve conditions except number 11.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use saiga_tpcc::spec::inputs::DistrictKey;

use super::{
    CUSTOMERS, Customer, DISTRICTS, District, History, ITEMS, Line, Model, Order, Stock,
    WAREHOUSES, district_name, warehouse_name,
};

/// The first order of a district that is undelivered.
const FIRST_UNDELIVERED: u32 = 28;
const LOADED: i64 = 1_790_000_000;

/// Last names. Several customers of a district have the same name.
pub(super) const NAMES: [&str; 4] = ["BARBARBAR", "BARBAROUGHT", "O'HARA", "CALLYEINGEING"];

impl Model {
    /// The initial state for a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let districts = || {
            (1..=WAREHOUSES)
                .flat_map(|w_id| (1..=DISTRICTS).map(move |d_id| DistrictKey { w_id, d_id }))
        };
        let mut model = Self {
            items: (1..=ITEMS)
                .map(|i_id| (i_id, rng.i64(100..=10_000)))
                .collect(),
            warehouses: (1..=WAREHOUSES)
                .map(|w_id| (w_id, i64::from(DISTRICTS * CUSTOMERS) * 1000))
                .collect(),
            districts: BTreeMap::new(),
            customers: BTreeMap::new(),
            stocks: BTreeMap::new(),
            orders: BTreeMap::new(),
            new_orders: BTreeSet::new(),
            history: Vec::new(),
        };
        for key in (1..=WAREHOUSES).flat_map(|w| (1..=ITEMS).map(move |i| (w, i))) {
            let quantity = rng.i64(10..=100);
            let stock = Stock {
                quantity,
                ytd: 0,
                orders: 0,
                remote: 0,
            };
            model.stocks.insert(key, stock);
        }
        districts().for_each(|district| model.fill(district, &mut rng));
        model
    }

    fn fill(&mut self, district: DistrictKey, rng: &mut Rng) {
        let row = District {
            ytd: i64::from(CUSTOMERS) * 1000,
            next_o_id: CUSTOMERS + 1,
        };
        self.districts.insert(district, row);
        let mut owners: Vec<u32> = (1..=CUSTOMERS).collect();
        rng.shuffle(&mut owners);
        for (o_id, c_id) in (1..).zip(owners) {
            let order = order(district, o_id, c_id, rng);
            let sum: i64 = order.lines.iter().map(|line| line.amount).sum();
            let owed = if order.carrier.is_some() { sum } else { 0 };
            if order.carrier.is_none() {
                self.new_orders.insert((district, o_id));
            }
            self.orders.insert((district, o_id), order);
            self.customers
                .insert((district, c_id), customer(c_id, owed, rng));
            self.history.push(History {
                c_id,
                home: district,
                district,
                date: LOADED,
                amount: 1000,
                data: format!(
                    "{}    {}",
                    warehouse_name(district.w_id),
                    district_name(district)
                ),
            });
        }
    }
}

fn customer(c_id: u32, owed: i64, rng: &mut Rng) -> Customer {
    Customer {
        // The order by first name differs from the order by C_ID.
        first: format!("F{:02}", (c_id * 7) % 31),
        last: NAMES[c_id as usize % NAMES.len()].to_owned(),
        has_bad_credit: c_id.is_multiple_of(3),
        balance: owed - 1000,
        ytd_payment: 1000,
        payments: 1,
        deliveries: 0,
        data: "d".repeat(rng.usize(300..=500)),
    }
}

fn order(district: DistrictKey, o_id: u32, c_id: u32, rng: &mut Rng) -> Order {
    let is_delivered = o_id < FIRST_UNDELIVERED;
    let line = |rng: &mut Rng| Line {
        i_id: rng.u32(1..=ITEMS),
        supply_w_id: district.w_id,
        quantity: 5,
        amount: if is_delivered {
            0
        } else {
            rng.i64(1..=999_999)
        },
        delivered: is_delivered.then_some(LOADED),
    };
    Order {
        c_id,
        carrier: is_delivered.then(|| rng.u32(1..=10)),
        is_all_local: true,
        entered: LOADED,
        lines: (0..rng.u32(5..=15)).map(|_| line(rng)).collect(),
    }
}
