//! Rules that compare rows. Each rule has a statement that selects the rows that violate it.

use super::Finding;
use crate::consistency::{CONDITIONS, Condition, Warehouses, restricted_to};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};

/// Limit on the examples of a finding.
pub(super) const EXAMPLES: usize = 2;
/// Number of warehouses per range. They have 15 million order lines after a load.
const RANGE: u32 = 50;

/// A rule, its clause and its statements.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) clause: String,
    pub(super) rule: &'static str,
    pub(super) after_load_only: bool,
    breaches: String,
    violations: String,
    shows: &'static [&'static str],
}

/// Delivered order lines with a delivery date that differs from the date of the order.
const DELIVERED: &str = "\
select ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_entry_d
from bmsql_oorder join bmsql_order_line
  on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where ol_delivery_d <> o_entry_d";
const DELIVERED_COUNT: &str = "\
select count(*) from bmsql_oorder join bmsql_order_line
  on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where ol_delivery_d <> o_entry_d";

pub(super) fn conditions() -> Vec<Rule> {
    CONDITIONS.iter().map(Rule::of).collect()
}

/// The conditions that do not read HISTORY, restricted to these warehouses.
pub(super) fn of_sample(warehouses: &[u32]) -> Vec<Rule> {
    let sample = Warehouses::Each(warehouses.to_vec());
    let conditions = conditions().into_iter();
    let by_keys = conditions.filter(Rule::is_by_keys);
    by_keys.map(|rule| rule.restricted(&sample)).collect()
}

/// The twelve conditions, and the rule of the population that compares two tables.
pub(super) fn all() -> Vec<Rule> {
    let mut all = conditions();
    all.push(Rule {
        clause: super::profile::CLAUSE.to_owned(),
        rule: "OL_DELIVERY_D of delivered orders = O_ENTRY_D",
        after_load_only: true,
        breaches: DELIVERED.to_owned(),
        violations: DELIVERED_COUNT.to_owned(),
        shows: &[
            "ol_w_id",
            "ol_d_id",
            "ol_o_id",
            "ol_number",
            "ol_delivery_d",
            "o_entry_d",
        ],
    });
    all
}

impl Rule {
    fn of(condition: &Condition) -> Self {
        Self {
            clause: format!("3.3.2.{}", condition.number),
            rule: condition.rule,
            after_load_only: condition.after_load_only,
            breaches: condition.breaches.to_owned(),
            violations: condition.violations.to_owned(),
            shows: condition.shows,
        }
    }

    /// Whether all tables of the rule have a key that begins with the warehouse. HISTORY has no
    /// such key, so that each range would read the whole table.
    fn is_by_keys(&self) -> bool {
        !self.breaches.contains("bmsql_history")
    }

    fn restricted(&self, warehouses: &Warehouses) -> Self {
        Self {
            breaches: restricted_to(&self.breaches, warehouses),
            violations: restricted_to(&self.violations, warehouses),
            ..self.clone()
        }
    }

    /// Splits the rule into ranges of warehouses. Each range is small enough for the server to
    /// group its rows in memory. A rule that reads HISTORY is not split.
    pub(super) fn in_ranges(&self, warehouses: u32) -> Vec<Self> {
        if warehouses <= RANGE || !self.is_by_keys() {
            return vec![self.clone()];
        }
        let size = usize::try_from(RANGE).unwrap_or(usize::MAX);
        let first = (1..=warehouses).step_by(size);
        let last = |first: u32| first.saturating_add(RANGE - 1).min(warehouses);
        first
            .map(|first| self.restricted(&Warehouses::Between(first, last(first))))
            .collect()
    }

    /// Counts the violations and selects examples; returns at most one finding.
    pub(super) fn find(&self, session: &mut dyn Session) -> Result<Vec<Finding>, SqlError> {
        let mut rows = Rows::new();
        session.run(&self.violations, &mut rows)?;
        let count = u64::try_from(rows.int(0, 0)?).unwrap_or(0);
        if count == 0 {
            return Ok(Vec::new());
        }
        let examples = format!(
            "select * from ({}) breaches limit {EXAMPLES}",
            self.breaches
        );
        session.run(&examples, &mut rows)?;
        let examples = (0..rows.len()).map(|row| self.example(&rows, row));
        Ok(vec![Finding {
            clause: self.clause.clone(),
            rule: self.rule.to_owned(),
            count,
            examples: examples.collect::<Result<_, _>>()?,
        }])
    }

    /// An example, such as `w_id 1, w_ytd 300000.01, sum(d_ytd) 300000.00`.
    fn example(&self, rows: &Rows, row: usize) -> Result<String, SqlError> {
        let shown = self.shows.iter().enumerate().map(|(column, name)| {
            let value = rows.shown(row, column)?;
            Ok(format!(
                "{name} {}",
                if value.is_empty() { "null" } else { &value }
            ))
        });
        Ok(shown.collect::<Result<Vec<_>, SqlError>>()?.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_each_warehouse_once_and_history_is_read_whole() {
        let rules = conditions();
        let counts: Vec<usize> = rules.iter().map(|rule| rule.in_ranges(101).len()).collect();
        assert_eq!(counts, [3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 3, 3]);
        let ranges = rules[0].in_ranges(101);
        for (range, wanted) in ranges.iter().zip(["1 and 50", "51 and 100", "101 and 101"]) {
            let between = format!("d_w_id between {wanted})");
            assert!(range.violations.contains(&between), "{}", range.violations);
        }
        assert_eq!(rules[0].in_ranges(50)[0].violations, rules[0].violations);
    }
}
