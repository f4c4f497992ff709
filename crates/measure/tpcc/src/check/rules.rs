//! Rules that compare rows, each by a statement that selects what breaks it.

use super::Finding;
use crate::consistency::{CONDITIONS, Condition, Warehouses, of_warehouses};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};

/// How many examples a finding has.
pub(super) const EXAMPLES: usize = 2;
/// Warehouses in a slice: 15 million order lines after a load.
const SLICE: u32 = 50;

/// A rule with its clause.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) clause: String,
    pub(super) rule: &'static str,
    pub(super) after_load_only: bool,
    breaches: String,
    violations: String,
    shows: &'static [&'static str],
}

/// Lines of orders that the load delivered.
const DELIVERED: &str = "\
select ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_entry_d
from bmsql_oorder join bmsql_order_line
  on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where ol_delivery_d <> o_entry_d";
const DELIVERED_COUNT: &str = "\
select count(*) from bmsql_oorder join bmsql_order_line
  on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where ol_delivery_d <> o_entry_d";

/// The twelve conditions.
pub(super) fn conditions() -> Vec<Rule> {
    CONDITIONS.iter().map(Rule::of).collect()
}

/// The conditions for these warehouses alone, as far as they can be found by keys.
pub(super) fn of_sample(warehouses: &[u32]) -> Vec<Rule> {
    let sample = Warehouses::Each(warehouses.to_vec());
    let conditions = conditions().into_iter();
    let by_keys = conditions.filter(Rule::is_by_keys);
    by_keys.map(|rule| rule.narrowed(&sample)).collect()
}

/// The twelve conditions, and what of the population concerns two tables.
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

    /// Whether the rows of a warehouse are found by keys in all its tables. HISTORY has no key that
    /// begins with the warehouse: each part of it would cost a look at the whole.
    fn is_by_keys(&self) -> bool {
        !self.breaches.contains("bmsql_history")
    }

    fn narrowed(&self, warehouses: &Warehouses) -> Self {
        Self {
            breaches: of_warehouses(&self.breaches, warehouses),
            violations: of_warehouses(&self.violations, warehouses),
            ..self.clone()
        }
    }

    /// The same in slices of the warehouses, each of which the server can group in memory.
    pub(super) fn in_slices(&self, warehouses: u32) -> Vec<Self> {
        if warehouses <= SLICE || !self.is_by_keys() {
            return vec![self.clone()];
        }
        let size = usize::try_from(SLICE).unwrap_or(usize::MAX);
        let first = (1..=warehouses).step_by(size);
        let last = |first: u32| first.saturating_add(SLICE - 1).min(warehouses);
        first
            .map(|first| self.narrowed(&Warehouses::Between(first, last(first))))
            .collect()
    }

    /// At most one finding.
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

    /// `w_id 1, w_ytd 300000.01, sum(d_ytd) 300000.00`.
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
    fn slices_hold_every_warehouse_once_and_history_stays_whole() {
        let rules = conditions();
        let sliced: Vec<usize> = rules.iter().map(|rule| rule.in_slices(101).len()).collect();
        assert_eq!(sliced, [3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 3, 3]);
        let slices = rules[0].in_slices(101);
        for (slice, wanted) in slices.iter().zip(["1 and 50", "51 and 100", "101 and 101"]) {
            let between = format!("d_w_id between {wanted})");
            assert!(slice.violations.contains(&between), "{}", slice.violations);
        }
        assert_eq!(rules[0].in_slices(50)[0].violations, rules[0].violations);
    }
}
