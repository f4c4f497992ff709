//! Compares the population with the numbers of §4.3.3.1.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::LazyLock;

use super::*;
use crate::spec::text::last_name;

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Int(i64),
    Decimal(i64, u32),
    Text(String),
    Time(i64),
    Null,
}

/// A sink that stores every row.
#[derive(Default)]
struct StoredRows {
    row: Vec<Value>,
    rows: Vec<Vec<Value>>,
}

impl Sink for StoredRows {
    type Error = Infallible;

    fn int(&mut self, value: i64) {
        self.row.push(Value::Int(value));
    }
    fn decimal(&mut self, units: i64, scale: u32) {
        self.row.push(Value::Decimal(units, scale));
    }
    fn text(&mut self, value: &str) {
        self.row.push(Value::Text(value.to_owned()));
    }
    fn time(&mut self, seconds: i64) {
        self.row.push(Value::Time(seconds));
    }
    fn null(&mut self) {
        self.row.push(Value::Null);
    }
    fn end_row(&mut self) -> Result<(), Infallible> {
        self.rows.push(std::mem::take(&mut self.row));
        Ok(())
    }
}

const NOW: i64 = 1_790_000_000;

fn population() -> Population {
    Population::new(42, 3, NOW)
}

/// Rows of warehouse 2, or of a table without warehouses. The rows are generated once, because
/// there are half a million.
fn rows(table: Table) -> &'static [Vec<Value>] {
    static ALL: LazyLock<BTreeMap<Table, Vec<Vec<Value>>>> = LazyLock::new(|| {
        Table::ALL
            .into_iter()
            .map(|table| (table, made(table)))
            .collect()
    });
    &ALL[&table]
}

fn made(table: Table) -> Vec<Vec<Value>> {
    let mut kept = StoredRows::default();
    population().write_common(table, &mut kept).unwrap();
    population().write(table, 2, &mut kept).unwrap();
    let width = table.columns().len();
    assert!(kept.rows.iter().all(|row| row.len() == width), "{table:?}");
    kept.rows
}

fn column(table: Table, name: &str) -> Vec<Value> {
    let at = table
        .columns()
        .iter()
        .position(|column| *column == name)
        .unwrap();
    rows(table).iter().map(|row| row[at].clone()).collect()
}

fn ints(table: Table, name: &str) -> Vec<i64> {
    let int = |value| {
        if let Value::Int(n) = value {
            n
        } else {
            panic!("{name}: {value:?}")
        }
    };
    column(table, name).into_iter().map(int).collect()
}

fn texts(table: Table, name: &str) -> Vec<String> {
    let text = |value| {
        if let Value::Text(text) = value {
            text
        } else {
            panic!("{name}: {value:?}")
        }
    };
    column(table, name).into_iter().map(text).collect()
}

/// Smallest and largest value of a decimal column.
fn span(table: Table, name: &str, wanted_scale: u32) -> (i64, i64) {
    let units = |value| match value {
        Value::Decimal(units, scale) if scale == wanted_scale => units,
        Value::Decimal(..) | Value::Int(_) | Value::Text(_) | Value::Time(_) | Value::Null => {
            panic!("{name}: {value:?}")
        }
    };
    let all: Vec<i64> = column(table, name).into_iter().map(units).collect();
    (*all.iter().min().unwrap(), *all.iter().max().unwrap())
}

#[test]
fn every_table_has_the_specified_number_of_rows() {
    let counts = Table::ALL.map(|table| rows(table).len());
    let [
        config,
        item,
        warehouse,
        district,
        stock,
        customer,
        history,
        order,
        line,
        new_order,
    ] = counts;
    assert_eq!((config, item, warehouse, district), (4, 100_000, 1, 10));
    assert_eq!((stock, customer, history), (100_000, 30_000, 30_000));
    assert_eq!((order, new_order), (30_000, 9_000));
    assert!((297_000..303_000).contains(&line), "{line}");
}

#[test]
fn fixed_values_are_as_specified() {
    assert_eq!(span(Table::Warehouse, "w_ytd", 2), (30_000_000, 30_000_000));
    assert_eq!(span(Table::District, "d_ytd", 2), (3_000_000, 3_000_000));
    assert_eq!(ints(Table::District, "d_next_o_id"), [3001; 10]);
    assert_eq!(span(Table::Customer, "c_balance", 2), (-1000, -1000));
    assert_eq!(span(Table::Customer, "c_ytd_payment", 2), (1000, 1000));
    assert_eq!(
        span(Table::Customer, "c_credit_lim", 2),
        (5_000_000, 5_000_000)
    );
    assert_eq!(span(Table::History, "h_amount", 2), (1000, 1000));
    for (table, name, value) in [
        (Table::Customer, "c_payment_cnt", 1),
        (Table::Customer, "c_delivery_cnt", 0),
        (Table::OrderLine, "ol_quantity", 5),
        (Table::OrderLine, "ol_supply_w_id", 2),
        (Table::Order, "o_all_local", 1),
        (Table::Stock, "s_ytd", 0),
        (Table::Stock, "s_order_cnt", 0),
        (Table::Stock, "s_remote_cnt", 0),
    ] {
        assert!(ints(table, name).iter().all(|n| *n == value), "{name}");
    }
    assert!(
        texts(Table::Customer, "c_middle")
            .iter()
            .all(|text| text == "OE")
    );
    assert!(
        column(Table::Customer, "c_since")
            .iter()
            .all(|time| *time == Value::Time(NOW))
    );
}

#[test]
fn random_values_fill_their_ranges() {
    for (table, name, low, high) in [
        (Table::Item, "i_im_id", 1, 10_000),
        (Table::Stock, "s_quantity", 10, 100),
        (Table::Order, "o_ol_cnt", 5, 15),
        (Table::OrderLine, "ol_i_id", 1, 100_000),
    ] {
        let all = ints(table, name);
        let (least, most) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
        let slack = (high - low) / 1000;
        assert!(least >= low && least <= low + slack, "{name} {least}");
        assert!(most <= high && most >= high - slack, "{name} {most}");
    }
    assert_eq!(span(Table::Item, "i_price", 2), (100, 10_000));
    assert_eq!(span(Table::Customer, "c_discount", 4), (0, 5000));
    let (least, most) = span(Table::District, "d_tax", 4);
    assert!(least >= 0 && most <= 2000 && least < most);
    for (table, name, low, high) in [
        (Table::Item, "i_name", 14, 24),
        (Table::Customer, "c_first", 8, 16),
        (Table::Customer, "c_data", 300, 500),
        (Table::Customer, "c_phone", 16, 16),
        (Table::Stock, "s_dist_07", 24, 24),
        (Table::History, "h_data", 12, 24),
    ] {
        let lengths: Vec<usize> = texts(table, name).iter().map(String::len).collect();
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(&low), Some(&high)),
            "{name}"
        );
    }
}

#[test]
fn shares_are_as_specified() {
    let bad = texts(Table::Customer, "c_credit")
        .iter()
        .filter(|text| *text == "BC")
        .count();
    assert_eq!(bad, 3000);
    for (table, name) in [(Table::Item, "i_data"), (Table::Stock, "s_data")] {
        let original = texts(table, name)
            .iter()
            .filter(|text| text.contains("ORIGINAL"))
            .count();
        assert_eq!(original, 10_000, "{name}");
    }
}

#[test]
fn the_first_thousand_customers_have_the_thousand_names() {
    let names = texts(Table::Customer, "c_last");
    for district in names.chunks(3000) {
        let first: Vec<String> = (0..1000).map(last_name).collect();
        assert_eq!(district[..1000], first);
        let known: BTreeSet<&String> = first.iter().collect();
        assert!(district[1000..].iter().all(|name| known.contains(name)));
    }
}

#[test]
fn orders_are_a_permutation_of_the_customers_and_the_last_900_are_open() {
    let (districts, customers) = (ints(Table::Order, "o_d_id"), ints(Table::Order, "o_c_id"));
    let mut of_district: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for (district, customer) in districts.into_iter().zip(customers.iter()) {
        of_district.entry(district).or_default().insert(*customer);
    }
    assert!(of_district.values().all(|set| set.len() == 3000));
    assert_ne!(customers[..3000], customers[3000..6000]);
    assert!(!customers[..3000].is_sorted());
    let orders = ints(Table::Order, "o_id")
        .into_iter()
        .zip(column(Table::Order, "o_carrier_id"));
    for (o_id, carrier) in orders {
        match carrier {
            Value::Null => assert!(o_id >= 2101),
            Value::Int(carrier) => assert!(o_id < 2101 && (1..=10).contains(&carrier)),
            Value::Decimal(..) | Value::Text(_) | Value::Time(_) => panic!("{carrier:?}"),
        }
    }
    assert_eq!(
        *ints(Table::NewOrder, "no_o_id").iter().min().unwrap(),
        2101
    );
}

#[test]
fn lines_belong_to_their_orders() {
    let key = |row: &[Value]| (row[1].clone(), row[2].clone());
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows(Table::OrderLine) {
        *counts.entry(format!("{:?}", key(row))).or_default() += 1;
        let delivered = matches!(&row[2], Value::Int(o_id) if *o_id < 2101);
        match (&row[5], &row[6]) {
            (Value::Time(time), Value::Decimal(0, 2)) => assert!(delivered && *time == NOW),
            (Value::Null, Value::Decimal(1..=999_999, 2)) => assert!(!delivered),
            other => panic!("{other:?}"),
        }
    }
    for row in rows(Table::Order) {
        let count = counts.remove(&format!("{:?}", key(row))).unwrap();
        assert_eq!(row[5], Value::Int(count));
    }
    assert_eq!(counts, BTreeMap::new());
}

#[test]
fn a_seed_makes_the_same_rows_again_and_another_seed_other_rows() {
    let all = |seed, w_id| {
        let mut kept = StoredRows::default();
        Population::new(seed, 3, NOW)
            .write(Table::District, w_id, &mut kept)
            .unwrap();
        Population::new(seed, 3, NOW)
            .write(Table::Order, w_id, &mut kept)
            .unwrap();
        kept.rows
            .into_iter()
            .map(|row| row[3..].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(all(1, 1), all(1, 1));
    assert_ne!(all(1, 1), all(2, 1));
    assert_ne!(all(1, 1), all(1, 2));
}

#[test]
fn config_has_the_parameters_that_runs_need() {
    let wanted =
        |name: &str, value: u32| vec![Value::Text(name.to_owned()), Value::Text(value.to_string())];
    let Constants {
        last_name,
        customer,
        item,
    } = population().constants;
    assert_eq!(
        rows(Table::Config),
        [
            wanted("warehouses", 3),
            wanted("nURandCLast", last_name),
            wanted("nURandCC_ID", customer),
            wanted("nURandCI_ID", item),
        ]
    );
}
