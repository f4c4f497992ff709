//! Rules that compare rows, each by a statement that selects what breaks it.

use super::Finding;
use crate::consistency::{CONDITIONS, Condition};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};

/// How many examples a finding has.
const EXAMPLES: usize = 2;

/// A rule with its clause.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) clause: String,
    pub(super) rule: &'static str,
    pub(super) after_load_only: bool,
    breaches: &'static str,
    violations: &'static str,
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

/// The twelve conditions, and what of the population concerns two tables.
pub(super) fn all() -> Vec<Rule> {
    let mut all = conditions();
    all.push(Rule {
        clause: super::profile::CLAUSE.to_owned(),
        rule: "OL_DELIVERY_D of delivered orders = O_ENTRY_D",
        after_load_only: true,
        breaches: DELIVERED,
        violations: DELIVERED_COUNT,
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
            breaches: condition.breaches,
            violations: condition.violations,
            shows: condition.shows,
        }
    }

    /// At most one finding.
    pub(super) fn find(&self, session: &mut dyn Session) -> Result<Vec<Finding>, SqlError> {
        let mut rows = Rows::new();
        session.run(self.violations, &mut rows)?;
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
