//! The population of §4.3.3.1, table by table: one statement takes counts, extremes and shares of
//! each warehouse or district, and they are compared here.

use std::collections::BTreeSet;

use super::Finding;
use crate::db::rows::Rows;
use crate::db::value::Decimal;
use crate::db::{Session, SqlError};
use crate::spec::DISTRICTS;
use crate::table::Table;

/// Of the specification.
pub(super) const CLAUSE: &str = "4.3.3.1";
/// How many examples a finding has.
const EXAMPLES: usize = 2;
/// Figures are compared in units of 10^-4, which no column is finer than.
const SCALE: u32 = 4;

/// What is taken of one table.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    table: Table,
    /// Warehouse and district, as far as its rows have them.
    keys: &'static [&'static str],
    facts: Vec<Fact>,
    warehouses: u32,
}

/// A figure of each group.
#[derive(Debug, Clone, Copy)]
struct Fact {
    /// What is selected.
    figure: &'static str,
    wanted: Wanted,
    after_load_only: bool,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Exactly.
    Is(i64),
    /// Between these, in units of 10^-4.
    Within(i64, i64),
    /// Of all rows of the table one in ten, give or take a twentieth of that.
    Tenth,
}

const fn whole(number: i64) -> i64 {
    number * 10_000
}

const fn is(figure: &'static str, number: i64) -> Fact {
    Fact {
        figure,
        wanted: Wanted::Is(whole(number)),
        after_load_only: false,
    }
}

const fn within(figure: &'static str, low: i64, high: i64) -> Fact {
    Fact {
        figure,
        wanted: Wanted::Within(whole(low), whole(high)),
        after_load_only: false,
    }
}

const fn tenth(figure: &'static str) -> Fact {
    Fact {
        figure,
        wanted: Wanted::Tenth,
        after_load_only: false,
    }
}

/// Transactions change it.
const fn fresh(fact: Fact) -> Fact {
    Fact {
        after_load_only: true,
        ..fact
    }
}

const fn fraction(figure: &'static str, low: i64, high: i64) -> Fact {
    Fact {
        figure,
        wanted: Wanted::Within(low, high),
        after_load_only: false,
    }
}

const ITEM: &[Fact] = &[
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

const WAREHOUSE: &[Fact] = &[
    is("count(*)", 1),
    fraction("min(w_tax)", 0, 2000),
    fresh(is("min(w_ytd)", 300_000)),
];

const DISTRICT: &[Fact] = &[
    is("count(*)", 10),
    is("min(d_id)", 1),
    is("max(d_id)", 10),
    fraction("min(d_tax)", 0, 2000),
    fraction("max(d_tax)", 0, 2000),
    fresh(is("min(d_ytd)", 30_000)),
    fresh(is("max(d_ytd)", 30_000)),
    fresh(is("min(d_next_o_id)", 3001)),
    fresh(is("max(d_next_o_id)", 3001)),
];

const STOCK: &[Fact] = &[
    is("count(*)", 100_000),
    is("min(s_i_id)", 1),
    is("max(s_i_id)", 100_000),
    fresh(within("min(s_quantity)", 10, 100)),
    fresh(within("max(s_quantity)", 10, 100)),
    fresh(is("max(s_ytd)", 0)),
    fresh(is("max(s_order_cnt)", 0)),
    fresh(is("max(s_remote_cnt)", 0)),
    within("min(length(s_data))", 26, 50),
    within("max(length(s_data))", 26, 50),
    is("min(length(s_dist_01))", 24),
    is("min(length(s_dist_10))", 24),
    tenth("sum(case when s_data like '%ORIGINAL%' then 1 else 0 end)"),
];

const CUSTOMER: &[Fact] = &[
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
    fresh(is("min(c_balance)", -10)),
    fresh(is("max(c_balance)", -10)),
    fresh(is("min(c_ytd_payment)", 10)),
    fresh(is("max(c_ytd_payment)", 10)),
    fresh(is("min(c_payment_cnt)", 1)),
    fresh(is("max(c_payment_cnt)", 1)),
    fresh(is("max(c_delivery_cnt)", 0)),
    tenth("sum(case when c_credit = 'BC' then 1 else 0 end)"),
];

const HISTORY: &[Fact] = &[
    fresh(is("count(*)", 3000)),
    fresh(is("count(distinct h_c_id)", 3000)),
    fresh(is("count(h_date)", 3000)),
    fresh(is("min(h_amount)", 10)),
    fresh(is("max(h_amount)", 10)),
];

const ORDER: &[Fact] = &[
    is("min(o_id)", 1),
    within("min(o_ol_cnt)", 5, 15),
    within("max(o_ol_cnt)", 5, 15),
    within("min(o_carrier_id)", 1, 10),
    within("max(o_carrier_id)", 1, 10),
    fresh(is("count(*)", 3000)),
    fresh(is("max(o_id)", 3000)),
    fresh(is("count(distinct o_c_id)", 3000)),
    fresh(is("min(o_c_id)", 1)),
    fresh(is("max(o_c_id)", 3000)),
    fresh(is("count(o_entry_d)", 3000)),
    fresh(is("min(o_all_local)", 1)),
    fresh(is("count(*) - count(o_carrier_id)", 900)),
    fresh(is(
        "min(case when o_carrier_id is null then o_id end)",
        2101,
    )),
    // Ten lines on the average, give or take a twentieth.
    fresh(within("sum(o_ol_cnt)", 28_500, 31_500)),
];

const ORDER_LINE: &[Fact] = &[
    within("max(ol_number)", 5, 15),
    within("min(ol_i_id)", 1, 100_000),
    within("max(ol_i_id)", 1, 100_000),
    is("min(length(ol_dist_info))", 24),
    fresh(is("min(ol_quantity)", 5)),
    fresh(is("max(ol_quantity)", 5)),
    fresh(is(
        "sum(case when ol_supply_w_id = ol_w_id then 0 else 1 end)",
        0,
    )),
    fresh(is("max(case when ol_o_id < 2101 then ol_amount end)", 0)),
    fresh(fraction(
        "min(case when ol_o_id >= 2101 then ol_amount end)",
        100,
        99_999_900,
    )),
    fresh(fraction(
        "max(case when ol_o_id >= 2101 then ol_amount end)",
        100,
        99_999_900,
    )),
];

const NEW_ORDER: &[Fact] = &[
    fresh(is("count(*)", 900)),
    fresh(is("min(no_o_id)", 2101)),
    fresh(is("max(no_o_id)", 3000)),
];

/// Those that have something to say.
pub(super) fn all(warehouses: u32, after_load: bool) -> Vec<Profile> {
    let of = |table| {
        let (keys, facts): (&'static [&'static str], &[Fact]) = match table {
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
        let facts = facts
            .iter()
            .filter(|fact| after_load || !fact.after_load_only);
        Profile {
            table,
            keys,
            facts: facts.copied().collect(),
            warehouses,
        }
    };
    Table::ALL
        .into_iter()
        .map(of)
        .filter(|profile| !profile.facts.is_empty())
        .collect()
}

/// Warehouse and district of a group, as far as it has them.
type Group = Vec<i64>;

impl Profile {
    /// What it is about.
    pub(super) fn name(&self) -> String {
        format!("population of {}", self.table.name())
    }

    /// What is wrong.
    pub(super) fn find(&self, session: &mut dyn Session) -> Result<Vec<Finding>, SqlError> {
        let mut rows = Rows::new();
        session.run(&self.sql(), &mut rows)?;
        let mut findings = self.missing(&rows)?;
        for (at, fact) in self.facts.iter().enumerate() {
            let column = self.keys.len() + 1 + at;
            findings.extend(match fact.wanted {
                Wanted::Tenth => self.share(fact, &rows, column)?,
                Wanted::Is(number) => self.outside(fact, &rows, column, (number, number))?,
                Wanted::Within(low, high) => self.outside(fact, &rows, column, (low, high))?,
            });
        }
        Ok(findings)
    }

    /// Groups with their sizes and figures.
    fn sql(&self) -> String {
        let keys = self.keys.iter().copied();
        let columns: Vec<&str> = keys
            .chain(["count(*)"])
            .chain(self.facts.iter().map(|fact| fact.figure))
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

    /// Groups without any row, and rows of warehouses that there are not.
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
        // A run may deliver all orders of a district.
        let may_be_empty = self.table == Table::NewOrder;
        let rule = |what: &str| format!("{} has rows {what}", self.table.name());
        let absent = self.named("of every warehouse and district", missing, &rule);
        let extra = self.named("of these warehouses and districts only", strange, &rule);
        let absent = absent.filter(|_| !may_be_empty || self.facts.len() == NEW_ORDER.len());
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
        fact: &Fact,
        rows: &Rows,
        column: usize,
        (low, high): (i64, i64),
    ) -> Result<Option<Finding>, SqlError> {
        let mut groups = Vec::new();
        for row in 0..rows.len() {
            let value = figure(rows, row, column)?;
            if !value.is_some_and(|value| (low..=high).contains(&value)) {
                let group = self.shown(&self.group(rows, row)?);
                groups.push(format!("{group}{}", value.map_or("null".to_owned(), plain)));
            }
        }
        let wanted = match (plain(low), plain(high)) {
            (low, high) if low == high => format!("is {low}"),
            (low, high) => format!("is from {low} to {high}"),
        };
        let rule = format!("{}: {} {wanted}", self.table.name(), fact.figure);
        Ok((!groups.is_empty()).then(|| self.finding(rule, groups)))
    }

    /// The share of all rows: of a single district it may well be another.
    fn share(&self, fact: &Fact, rows: &Rows, column: usize) -> Result<Option<Finding>, SqlError> {
        let (mut all, mut chosen) = (0, 0);
        for row in 0..rows.len() {
            all += rows.int(row, self.keys.len())?;
            chosen += figure(rows, row, column)?.unwrap_or(0) / whole(1);
        }
        let fine = (all * 95 / 1000..=all * 105 / 1000).contains(&chosen);
        let rule = format!(
            "{}: {} is 9.5 to 10.5 % of its rows",
            self.table.name(),
            fact.figure
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

    /// `warehouse 1, district 3: `.
    fn shown(&self, group: &Group) -> String {
        match group[..] {
            [] => String::new(),
            [w_id] => format!("warehouse {w_id}: "),
            [w_id, d_id, ..] => format!("warehouse {w_id}, district {d_id}: "),
        }
    }
}

/// A figure in units of 10^-4; `None` when there is no row to take it from.
fn figure(rows: &Rows, row: usize, column: usize) -> Result<Option<i64>, SqlError> {
    if rows.is_null(row, column)? {
        return Ok(None);
    }
    rows.decimal(row, column, SCALE).map(Some)
}

/// `-10`, `0.2`.
fn plain(units: i64) -> String {
    let text = Decimal {
        units,
        scale: SCALE,
    }
    .to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
