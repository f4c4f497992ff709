//! Checks the population of §4.3.3.1, table by table. One statement per table computes counts,
//! extremes and shares for each warehouse or district. The results are compared here with the
//! values that the clause requires.

use std::collections::BTreeSet;

use super::Finding;
use super::rules::EXAMPLES;
use crate::db::rows::Rows;
use crate::db::value::Decimal;
use crate::db::{Session, SqlError};
use crate::spec::DISTRICTS;
use crate::table::Table;

/// Clause of the specification.
pub(super) const CLAUSE: &str = "4.3.3.1";
/// Number of decimal places of compared values. No column has more.
const SCALE: u32 = 4;

/// The expected properties of one table.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    table: Table,
    /// Columns of warehouse and district, if the table has them. The statement groups by them.
    keys: &'static [&'static str],
    expectations: Vec<Expectation>,
    warehouses: u32,
    /// Whether each warehouse and district must have rows. A run may deliver all orders of one.
    needs_rows: bool,
}

/// An expected value of an aggregate, for each group.
#[derive(Debug, Clone, Copy)]
struct Expectation {
    /// SQL expression of the aggregate.
    aggregate: &'static str,
    allowed: Allowed,
    after_load_only: bool,
}

/// The allowed values of an aggregate, in units of 10^-4.
#[derive(Debug, Clone, Copy)]
enum Allowed {
    Is(i64),
    /// From a lower to an upper limit, inclusive.
    Within(i64, i64),
    /// One in ten rows of the whole table, within a relative error of 5 %.
    Tenth,
}

const fn whole(number: i64) -> i64 {
    number * 10_000
}

const fn is(aggregate: &'static str, number: i64) -> Expectation {
    Expectation {
        aggregate,
        allowed: Allowed::Is(whole(number)),
        after_load_only: false,
    }
}

const fn within(aggregate: &'static str, low: i64, high: i64) -> Expectation {
    Expectation {
        aggregate,
        allowed: Allowed::Within(whole(low), whole(high)),
        after_load_only: false,
    }
}

const fn tenth(aggregate: &'static str) -> Expectation {
    Expectation {
        aggregate,
        allowed: Allowed::Tenth,
        after_load_only: false,
    }
}

/// Marks an expectation that holds only until the first transaction.
const fn after_load(expected: Expectation) -> Expectation {
    Expectation {
        after_load_only: true,
        ..expected
    }
}

const fn fraction(aggregate: &'static str, low: i64, high: i64) -> Expectation {
    Expectation {
        aggregate,
        allowed: Allowed::Within(low, high),
        after_load_only: false,
    }
}

const ITEM: &[Expectation] = &[
    is("count(*)", 100_000),
    is("min(i_id)", 1),
    is("max(i_id)", 100_000),
    within("min(length(i_name))", 14, 24),
    within("max(length(i_name))", 14, 24),
    within("min(i_price)", 1, 100),
    within("max(i_price)", 1, 100),
    within("min(length(i_data))", 26, 50),
    within("max(length(i_data))", 26, 50),
    within("min(i_im_id)", 1, 10_000),
    within("max(i_im_id)", 1, 10_000),
    tenth("sum(case when i_data like '%ORIGINAL%' then 1 else 0 end)"),
];

const WAREHOUSE: &[Expectation] = &[
    is("count(*)", 1),
    fraction("min(w_tax)", 0, 2000),
    after_load(is("min(w_ytd)", 300_000)),
];

const DISTRICT: &[Expectation] = &[
    is("count(*)", 10),
    is("min(d_id)", 1),
    is("max(d_id)", 10),
    fraction("min(d_tax)", 0, 2000),
    fraction("max(d_tax)", 0, 2000),
    after_load(is("min(d_ytd)", 30_000)),
    after_load(is("max(d_ytd)", 30_000)),
    after_load(is("min(d_next_o_id)", 3001)),
    after_load(is("max(d_next_o_id)", 3001)),
];

const STOCK: &[Expectation] = &[
    is("count(*)", 100_000),
    is("min(s_i_id)", 1),
    is("max(s_i_id)", 100_000),
    after_load(within("min(s_quantity)", 10, 100)),
    after_load(within("max(s_quantity)", 10, 100)),
    after_load(is("max(s_ytd)", 0)),
    after_load(is("max(s_order_cnt)", 0)),
    after_load(is("max(s_remote_cnt)", 0)),
    within("min(length(s_data))", 26, 50),
    within("max(length(s_data))", 26, 50),
    is("min(length(s_dist_01))", 24),
    is("min(length(s_dist_10))", 24),
    tenth("sum(case when s_data like '%ORIGINAL%' then 1 else 0 end)"),
];

const CUSTOMER: &[Expectation] = &[
    is("count(*)", 3000),
    is("min(c_id)", 1),
    is("max(c_id)", 3000),
    is(
        "count(distinct case when c_id <= 1000 then c_last end)",
        1000,
    ),
    is("sum(case when c_middle = 'OE' then 1 else 0 end)", 3000),
    is(
        "sum(case when c_credit in ('GC', 'BC') then 1 else 0 end)",
        3000,
    ),
    is("count(c_since)", 3000),
    is("min(c_credit_lim)", 50_000),
    is("max(c_credit_lim)", 50_000),
    fraction("min(c_discount)", 0, 5000),
    fraction("max(c_discount)", 0, 5000),
    within("min(length(c_data))", 300, 500),
    within("max(length(c_data))", 300, 500),
    after_load(is("min(c_balance)", -10)),
    after_load(is("max(c_balance)", -10)),
    after_load(is("min(c_ytd_payment)", 10)),
    after_load(is("max(c_ytd_payment)", 10)),
    after_load(is("min(c_payment_cnt)", 1)),
    after_load(is("max(c_payment_cnt)", 1)),
    after_load(is("max(c_delivery_cnt)", 0)),
    tenth("sum(case when c_credit = 'BC' then 1 else 0 end)"),
];

const HISTORY: &[Expectation] = &[
    after_load(is("count(*)", 3000)),
    after_load(is("count(distinct h_c_id)", 3000)),
    after_load(is("count(h_date)", 3000)),
    after_load(is("min(h_amount)", 10)),
    after_load(is("max(h_amount)", 10)),
];

const ORDER: &[Expectation] = &[
    is("min(o_id)", 1),
    within("min(o_ol_cnt)", 5, 15),
    within("max(o_ol_cnt)", 5, 15),
    within("min(o_carrier_id)", 1, 10),
    within("max(o_carrier_id)", 1, 10),
    after_load(is("count(*)", 3000)),
    after_load(is("max(o_id)", 3000)),
    after_load(is("count(distinct o_c_id)", 3000)),
    after_load(is("min(o_c_id)", 1)),
    after_load(is("max(o_c_id)", 3000)),
    after_load(is("count(o_entry_d)", 3000)),
    after_load(is("min(o_all_local)", 1)),
    after_load(is("count(*) - count(o_carrier_id)", 900)),
    after_load(is(
        "min(case when o_carrier_id is null then o_id end)",
        2101,
    )),
    // Ten lines on average, within 5 %.
    after_load(within("sum(o_ol_cnt)", 28_500, 31_500)),
];

const ORDER_LINE: &[Expectation] = &[
    within("max(ol_number)", 5, 15),
    within("min(ol_i_id)", 1, 100_000),
    within("max(ol_i_id)", 1, 100_000),
    is("min(length(ol_dist_info))", 24),
    after_load(is("min(ol_quantity)", 5)),
    after_load(is("max(ol_quantity)", 5)),
    after_load(is(
        "sum(case when ol_supply_w_id = ol_w_id then 0 else 1 end)",
        0,
    )),
    after_load(is("max(case when ol_o_id < 2101 then ol_amount end)", 0)),
    after_load(fraction(
        "min(case when ol_o_id >= 2101 then ol_amount end)",
        100,
        99_999_900,
    )),
    after_load(fraction(
        "max(case when ol_o_id >= 2101 then ol_amount end)",
        100,
        99_999_900,
    )),
];

const NEW_ORDER: &[Expectation] = &[
    after_load(is("count(*)", 900)),
    after_load(is("min(no_o_id)", 2101)),
    after_load(is("max(no_o_id)", 3000)),
];

/// The profiles of all tables. One without expectations still finds missing and unknown groups.
pub(super) fn all(warehouses: u32, after_load: bool) -> Vec<Profile> {
    let of = |table| {
        let (keys, expectations): (&'static [&'static str], &[Expectation]) = match table {
            Table::Config => (&[], &[]),
            Table::Item => (&[], ITEM),
            Table::Warehouse => (&["w_id"], WAREHOUSE),
            Table::District => (&["d_w_id"], DISTRICT),
            Table::Stock => (&["s_w_id"], STOCK),
            Table::Customer => (&["c_w_id", "c_d_id"], CUSTOMER),
            Table::History => (&["h_w_id", "h_d_id"], HISTORY),
            Table::Order => (&["o_w_id", "o_d_id"], ORDER),
            Table::OrderLine => (&["ol_w_id", "ol_d_id"], ORDER_LINE),
            Table::NewOrder => (&["no_w_id", "no_d_id"], NEW_ORDER),
        };
        let expectations = expectations
            .iter()
            .filter(|expected| after_load || !expected.after_load_only);
        Profile {
            table,
            keys,
            expectations: expectations.copied().collect(),
            warehouses,
            needs_rows: after_load || table != Table::NewOrder,
        }
    };
    Table::ALL
        .into_iter()
        .map(of)
        .filter(|profile| profile.table != Table::Config)
        .collect()
}

/// Warehouse and district of a group. Shorter for tables without them.
type Group = Vec<i64>;

impl Profile {
    pub(super) fn name(&self) -> String {
        format!("population of {}", self.table.name())
    }

    /// Executes the statement and returns the violations.
    pub(super) fn find(&self, session: &mut dyn Session) -> Result<Vec<Finding>, SqlError> {
        let mut rows = Rows::new();
        session.run(&self.sql(), &mut rows)?;
        let mut findings = self.missing(&rows)?;
        for (at, expected) in self.expectations.iter().enumerate() {
            let column = self.keys.len() + 1 + at;
            findings.extend(match expected.allowed {
                Allowed::Tenth => self.share(expected, &rows, column)?,
                Allowed::Is(number) => self.outside(expected, &rows, column, (number, number))?,
                Allowed::Within(low, high) => self.outside(expected, &rows, column, (low, high))?,
            });
        }
        Ok(findings)
    }

    /// The statement: keys, number of rows, and all aggregates.
    fn sql(&self) -> String {
        let keys = self.keys.iter().copied();
        let columns: Vec<&str> = keys
            .chain(["count(*)"])
            .chain(self.expectations.iter().map(|expected| expected.aggregate))
            .collect();
        let (columns, name) = (columns.join(", "), self.table.name());
        match self.keys {
            [] => format!("select {columns} from {name}"),
            keys => {
                let keys = keys.join(", ");
                format!("select {columns} from {name} group by {keys} order by {keys}")
            }
        }
    }

    /// Finds groups without rows, and rows of warehouses or districts that do not exist.
    fn missing(&self, rows: &Rows) -> Result<Vec<Finding>, SqlError> {
        let found = (0..rows.len()).map(|row| self.group(rows, row));
        let found: BTreeSet<Group> = found.collect::<Result<_, _>>()?;
        let wanted: BTreeSet<Group> = match self.keys.len() {
            0 => return Ok(Vec::new()),
            1 => (1..=self.warehouses)
                .map(|w_id| vec![w_id.into()])
                .collect(),
            _ => (1..=self.warehouses)
                .flat_map(|w_id| (1..=DISTRICTS).map(move |d_id| vec![w_id.into(), d_id.into()]))
                .collect(),
        };
        let (missing, strange) = (wanted.difference(&found), found.difference(&wanted));
        let rule = |what: &str| format!("{} has rows {what}", self.table.name());
        let absent = self.named("of every warehouse and district", missing, &rule);
        let extra = self.named("of these warehouses and districts only", strange, &rule);
        let absent = absent.filter(|_| self.needs_rows);
        Ok(absent.into_iter().chain(extra).collect())
    }

    fn named<'a>(
        &self,
        what: &str,
        groups: impl Iterator<Item = &'a Group>,
        rule: &dyn Fn(&str) -> String,
    ) -> Option<Finding> {
        let text = |group| self.shown(group).trim_end_matches(": ").to_owned();
        let groups: Vec<String> = groups.map(text).collect();
        (!groups.is_empty()).then(|| self.finding(rule(what), groups))
    }

    fn outside(
        &self,
        expected: &Expectation,
        rows: &Rows,
        column: usize,
        (low, high): (i64, i64),
    ) -> Result<Option<Finding>, SqlError> {
        let mut groups = Vec::new();
        for row in 0..rows.len() {
            let value = aggregate(rows, row, column)?;
            if !value.is_some_and(|value| (low..=high).contains(&value)) {
                let group = self.shown(&self.group(rows, row)?);
                groups.push(format!("{group}{}", value.map_or("null".to_owned(), plain)));
            }
        }
        let wanted = match (plain(low), plain(high)) {
            (low, high) if low == high => format!("is {low}"),
            (low, high) => format!("is from {low} to {high}"),
        };
        let rule = format!("{}: {} {wanted}", self.table.name(), expected.aggregate);
        Ok((!groups.is_empty()).then(|| self.finding(rule, groups)))
    }

    /// Checks the share of selected rows in the whole table. A single district may deviate more.
    fn share(
        &self,
        expected: &Expectation,
        rows: &Rows,
        column: usize,
    ) -> Result<Option<Finding>, SqlError> {
        let (mut all, mut chosen) = (0, 0);
        for row in 0..rows.len() {
            all += rows.int(row, self.keys.len())?;
            chosen += aggregate(rows, row, column)?.unwrap_or(0) / whole(1);
        }
        let fine = (all * 95 / 1000..=all * 105 / 1000).contains(&chosen);
        let rule = format!(
            "{}: {} is 9.5 to 10.5 % of its rows",
            self.table.name(),
            expected.aggregate
        );
        Ok((!fine).then(|| self.finding(rule, vec![format!("{chosen} of {all} rows")])))
    }

    fn finding(&self, rule: String, mut groups: Vec<String>) -> Finding {
        let count = groups.len() as u64;
        groups.truncate(EXAMPLES);
        Finding {
            clause: CLAUSE.to_owned(),
            rule,
            count,
            examples: groups,
        }
    }

    fn group(&self, rows: &Rows, row: usize) -> Result<Group, SqlError> {
        (0..self.keys.len())
            .map(|column| rows.int(row, column))
            .collect()
    }

    /// The name of a group, such as `warehouse 1, district 3: `.
    fn shown(&self, group: &Group) -> String {
        match group[..] {
            [] => String::new(),
            [w_id] => format!("warehouse {w_id}: "),
            [w_id, d_id, ..] => format!("warehouse {w_id}, district {d_id}: "),
        }
    }
}

/// An aggregate in units of 10^-4; `None` if it is NULL.
fn aggregate(rows: &Rows, row: usize, column: usize) -> Result<Option<i64>, SqlError> {
    if rows.is_null(row, column)? {
        return Ok(None);
    }
    rows.decimal(row, column, SCALE).map(Some)
}

/// Formats units of 10^-4 without trailing zeros: `-10`, `0.2`.
fn plain(units: i64) -> String {
    let text = Decimal {
        units,
        scale: SCALE,
    }
    .to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
