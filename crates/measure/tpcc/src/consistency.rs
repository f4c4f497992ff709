//! The twelve consistency conditions of TPC-C §3.3.2. Each has a SELECT statement that returns the
//! rows that violate it.
//!
//! The statements compare whole tables, grouped once and joined. A subquery for each row, as in
//! other tools, takes minutes per warehouse. The text is the same for all database systems; sums
//! of money are rounded to cents, because SQLite adds in floating point.

use std::fmt;

/// A consistency condition and the statement that finds its violations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Number of the condition in §3.3.2.
    pub number: u32,
    /// The condition as a formula.
    pub rule: &'static str,
    /// Selects the violations: first the key, then the compared values.
    pub breaches: &'static str,
    /// Column names of `breaches`, for messages.
    pub shows: &'static [&'static str],
    /// Counts the violations: one row, one column.
    pub violations: &'static str,
    /// Whether the condition holds only after a load, because deliveries change the rows.
    pub after_load_only: bool,
}

/// Builds a [`Condition`] from the statement that selects its violations.
macro_rules! condition {
    ($number:literal, $rule:literal, $shows:expr, $breaches:expr, $after_load_only:literal) => {
        Condition {
            number: $number,
            rule: $rule,
            breaches: $breaches,
            shows: &$shows,
            violations: concat!("select count(*) from (", $breaches, ") breaches"),
            after_load_only: $after_load_only,
        }
    };
}

/// A SELECT over customers, each with the sum of its delivered order lines.
macro_rules! with_delivered {
    ($columns:literal, $rest:literal) => {
        concat!(
            "select c_w_id, c_d_id, c_id, ",
            $columns,
            " from bmsql_customer left join (
  select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered
  from bmsql_oorder join bmsql_order_line
    on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id
) o on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id",
            $rest
        )
    };
}

/// All conditions, in the order of their numbers.
pub const CONDITIONS: [Condition; 12] = [
    condition!(
        1,
        "W_YTD = sum(D_YTD)",
        ["w_id", "w_ytd", "sum(d_ytd)"],
        "select w_id, w_ytd, ytd from bmsql_warehouse left join (
  select d_w_id, sum(d_ytd) as ytd from bmsql_district group by d_w_id
) d on d_w_id = w_id
where ytd is null or round(w_ytd - ytd, 2) <> 0",
        false
    ),
    condition!(
        2,
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        ["d_w_id", "d_id", "d_next_o_id", "max(o_id)", "max(no_o_id)"],
        "select d_w_id, d_id, d_next_o_id, newest, newest_open from bmsql_district left join (
  select o_w_id, o_d_id, max(o_id) as newest from bmsql_oorder group by o_w_id, o_d_id
) o on o_w_id = d_w_id and o_d_id = d_id left join (
  select no_w_id, no_d_id, max(no_o_id) as newest_open from bmsql_new_order group by no_w_id, no_d_id
) n on no_w_id = d_w_id and no_d_id = d_id
where newest is null or newest <> d_next_o_id - 1 or newest_open <> newest",
        false
    ),
    condition!(
        3,
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER in the district",
        ["no_w_id", "no_d_id", "min(no_o_id)", "max(no_o_id)", "rows"],
        "select no_w_id, no_d_id, min(no_o_id) as oldest, max(no_o_id) as newest, count(*) as present
from bmsql_new_order group by no_w_id, no_d_id
having max(no_o_id) - min(no_o_id) + 1 <> count(*)",
        false
    ),
    condition!(
        4,
        "sum(O_OL_CNT) = rows of ORDER-LINE in the district",
        ["o_w_id", "o_d_id", "sum(o_ol_cnt)", "rows"],
        "select o_w_id, o_d_id, announced, present from (
  select o_w_id, o_d_id, sum(o_ol_cnt) as announced from bmsql_oorder group by o_w_id, o_d_id
) o left join (
  select ol_w_id, ol_d_id, count(*) as present from bmsql_order_line group by ol_w_id, ol_d_id
) l on ol_w_id = o_w_id and ol_d_id = o_d_id
where present is null or present <> announced",
        false
    ),
    condition!(
        5,
        "O_CARRIER_ID is null exactly for orders in NEW-ORDER",
        ["w_id", "d_id", "o_id", "o_carrier_id", "no_o_id"],
        "select o_w_id, o_d_id, o_id, o_carrier_id, no_o_id from bmsql_oorder left join bmsql_new_order
  on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id
where (o_carrier_id is null) <> (no_o_id is not null)
union all
select no_w_id, no_d_id, no_o_id, o_carrier_id, no_o_id from bmsql_new_order left join bmsql_oorder
  on o_w_id = no_w_id and o_d_id = no_d_id and o_id = no_o_id
where o_id is null",
        false
    ),
    condition!(
        6,
        "O_OL_CNT = rows of ORDER-LINE for the order",
        ["o_w_id", "o_d_id", "o_id", "o_ol_cnt", "rows"],
        "select o_w_id, o_d_id, o_id, o_ol_cnt, present from bmsql_oorder left join (
  select ol_w_id, ol_d_id, ol_o_id, count(*) as present from bmsql_order_line
  group by ol_w_id, ol_d_id, ol_o_id
) l on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where present is null or present <> o_ol_cnt",
        false
    ),
    condition!(
        7,
        "OL_DELIVERY_D is null exactly for orders whose O_CARRIER_ID is null",
        ["ol_w_id", "ol_d_id", "ol_o_id", "ol_number", "ol_delivery_d", "o_carrier_id"],
        "select ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id
from bmsql_order_line left join bmsql_oorder
  on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id
where o_id is null or (ol_delivery_d is null) <> (o_carrier_id is null)",
        false
    ),
    condition!(
        8,
        "W_YTD = sum(H_AMOUNT) of the warehouse",
        ["w_id", "w_ytd", "sum(h_amount)"],
        "select w_id, w_ytd, paid from bmsql_warehouse left join (
  select h_w_id, sum(h_amount) as paid from bmsql_history group by h_w_id
) h on h_w_id = w_id
where paid is null or round(w_ytd - paid, 2) <> 0",
        false
    ),
    condition!(
        9,
        "D_YTD = sum(H_AMOUNT) of the district",
        ["d_w_id", "d_id", "d_ytd", "sum(h_amount)"],
        "select d_w_id, d_id, d_ytd, paid from bmsql_district left join (
  select h_w_id, h_d_id, sum(h_amount) as paid from bmsql_history group by h_w_id, h_d_id
) h on h_w_id = d_w_id and h_d_id = d_id
where paid is null or round(d_ytd - paid, 2) <> 0",
        false
    ),
    condition!(
        10,
        "C_BALANCE = sum(OL_AMOUNT of delivered orders) - sum(H_AMOUNT)",
        ["c_w_id", "c_d_id", "c_id", "c_balance", "delivered", "paid"],
        with_delivered!(
            "c_balance, delivered, paid",
            " left join (
  select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from bmsql_history
  group by h_c_w_id, h_c_d_id, h_c_id
) h on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id
where round(c_balance - coalesce(delivered, 0) + coalesce(paid, 0), 2) <> 0"
        ),
        false
    ),
    condition!(
        11,
        "rows of ORDER - rows of NEW-ORDER = 2100 in the district",
        ["o_w_id", "o_d_id", "orders", "open orders"],
        "select o_w_id, o_d_id, all_orders, open_orders from (
  select o_w_id, o_d_id, count(*) as all_orders from bmsql_oorder group by o_w_id, o_d_id
) o left join (
  select no_w_id, no_d_id, count(*) as open_orders from bmsql_new_order group by no_w_id, no_d_id
) n on no_w_id = o_w_id and no_d_id = o_d_id
where all_orders - coalesce(open_orders, 0) <> 2100",
        true
    ),
    condition!(
        12,
        "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of delivered orders)",
        ["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "delivered"],
        with_delivered!(
            "c_balance, c_ytd_payment, delivered",
            "
where round(c_balance + c_ytd_payment - coalesce(delivered, 0), 2) <> 0"
        ),
        false
    ),
];

/// Tables with keys that begin with the warehouse, and the name of that column. HISTORY is missing:
/// its rows name two warehouses (of the payment and of the customer), and its key contains neither.
const OF_WAREHOUSE: [(&str, &str); 6] = [
    ("bmsql_warehouse", "w_id"),
    ("bmsql_district", "d_w_id"),
    ("bmsql_customer", "c_w_id"),
    ("bmsql_new_order", "no_w_id"),
    ("bmsql_oorder", "o_w_id"),
    ("bmsql_order_line", "ol_w_id"),
];

/// A subset of the warehouses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warehouses {
    Each(Vec<u32>),
    /// From the first to the last number, inclusive.
    Between(u32, u32),
}

impl fmt::Display for Warehouses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(numbers) => {
                let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
                write!(f, "in ({})", list.join(", "))
            }
            Self::Between(first, last) => write!(f, "between {first} and {last}"),
        }
    }
}

/// Restricts `statement` to some warehouses: it reads only their rows from each table with a
/// warehouse key.
#[must_use]
pub fn restricted_to(statement: &str, warehouses: &Warehouses) -> String {
    let mut text = String::with_capacity(statement.len() * 2);
    let mut rest = statement;
    while let Some(at) = rest.find("bmsql_") {
        let (before, from) = rest.split_at(at);
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        text.push_str(before);
        match OF_WAREHOUSE.iter().find(|(table, _)| *table == name) {
            Some((_, column)) => text.push_str(&format!(
                "(select * from {name} where {column} {warehouses}) {name}"
            )),
            None => text.push_str(name),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Session;
    use crate::db::rows::Rows;
    use crate::db::sqlite::Sqlite;
    use crate::population::Population;
    use crate::props::Url;
    use crate::script::{self, Step};
    use crate::table::Table;

    /// A database of one warehouse after its load.
    fn loaded() -> Sqlite {
        let mut session = Sqlite::open(&Url::parse("jdbc:sqlite::memory:").unwrap()).unwrap();
        let run = |session: &mut Sqlite, step| {
            for statement in script::find(None, "sqlite", step).unwrap().statements {
                session.run(&statement, &mut Rows::new()).unwrap();
            }
        };
        run(&mut session, Step::TableCreates);
        let population = Population::new(7, 1, 1_790_000_000);
        for table in Table::ALL {
            let fill = |sink: &mut dyn crate::population::Sink<Error = _>| {
                population.write_common(table, sink)?;
                population.write(table, 1, sink)
            };
            session.load(table, &mut { fill }).unwrap();
        }
        for step in Step::AFTER_LOAD {
            run(&mut session, step);
        }
        session
    }

    /// The violated conditions, each with the number of violations.
    fn violations(session: &mut Sqlite) -> Vec<(u32, i64)> {
        let mut rows = Rows::new();
        let mut count = |condition: &Condition| {
            session.run(condition.violations, &mut rows).unwrap();
            (condition.number, rows.int(0, 0).unwrap())
        };
        let all: Vec<_> = CONDITIONS.iter().map(&mut count).collect();
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Updates that break conditions, with the conditions and the number of violations of each.
    const FAULTS: [(&str, &[(u32, i64)]); 13] = [
        (
            "update bmsql_warehouse set w_ytd = w_ytd + 0.01",
            &[(1, 1), (8, 1)],
        ),
        (
            "update bmsql_district set d_ytd = d_ytd - 0.01 where d_id = 3",
            &[(1, 1), (9, 1)],
        ),
        (
            "update bmsql_district set d_next_o_id = 3002 where d_id = 3",
            &[(2, 1)],
        ),
        (
            "delete from bmsql_new_order where no_d_id = 2 and no_o_id = 2500",
            &[(3, 1), (5, 1), (11, 1)],
        ),
        (
            "delete from bmsql_new_order where no_d_id = 2 and no_o_id = 3000",
            &[(2, 1), (5, 1), (11, 1)],
        ),
        (
            "insert into bmsql_new_order values (1, 2, 2100)",
            &[(5, 1), (11, 1)],
        ),
        (
            "insert into bmsql_new_order values (1, 2, 3001)",
            &[(2, 1), (5, 1), (11, 1)],
        ),
        (
            "delete from bmsql_order_line where ol_d_id = 4 and ol_o_id = 9 and ol_number = 1",
            &[(4, 1), (6, 1)],
        ),
        (
            "update bmsql_oorder set o_carrier_id = 3 where o_d_id = 4 and o_id = 3000 and o_ol_cnt = \
             (select count(*) from bmsql_order_line where ol_d_id = 4 and ol_o_id = 3000)",
            &[(5, 1), (7, 0)],
        ),
        (
            "update bmsql_order_line set ol_delivery_d = null \
             where ol_d_id = 4 and ol_o_id = 9 and ol_number = 1",
            &[(7, 1)],
        ),
        (
            "update bmsql_order_line set ol_amount = 0.01 \
             where ol_d_id = 4 and ol_o_id = 9 and ol_number = 1",
            &[(10, 1), (12, 1)],
        ),
        (
            "update bmsql_customer set c_balance = -10.01 where c_d_id = 1 and c_id = 1",
            &[(10, 1), (12, 1)],
        ),
        (
            "update bmsql_customer set c_ytd_payment = 10.01 where c_d_id = 1 and c_id = 1",
            &[(12, 1)],
        ),
    ];

    #[test]
    fn a_statement_is_restricted_at_every_table() {
        assert_eq!(
            restricted_to(
                "select 1 from bmsql_oorder join bmsql_order_line\n  on o_id = ol_o_id",
                &Warehouses::Each(vec![3, 7])
            ),
            "select 1 from (select * from bmsql_oorder where o_w_id in (3, 7)) bmsql_oorder join \
             (select * from bmsql_order_line where ol_w_id in (3, 7)) bmsql_order_line\n  \
             on o_id = ol_o_id"
        );
        let without_history = |one: &&Condition| !one.breaches.contains("bmsql_history");
        for condition in CONDITIONS.iter().filter(without_history) {
            let tables = condition.breaches.matches("bmsql_").count();
            let restricted = restricted_to(condition.breaches, &Warehouses::Between(2, 9));
            let count = restricted.matches("_id between 2 and 9) bmsql_").count();
            assert_eq!(count, tables, "{restricted}");
        }
    }

    /// The only warehouse has a fault: statements restricted to other warehouses do not find it.
    #[test]
    fn a_fault_is_found_only_in_its_own_warehouse() {
        let mut session = loaded();
        let mut rows = Rows::new();
        session
            .run(
                "update bmsql_district set d_next_o_id = 3002 where d_id = 3",
                &mut rows,
            )
            .unwrap();
        for (warehouses, wanted) in [
            (Warehouses::Each(vec![1, 5]), 1),
            (Warehouses::Each(vec![2, 5]), 0),
            (Warehouses::Between(1, 50), 1),
            (Warehouses::Between(51, 100), 0),
        ] {
            let statement = restricted_to(CONDITIONS[1].violations, &warehouses);
            session.run(&statement, &mut rows).unwrap();
            assert_eq!(rows.int(0, 0), Ok(wanted), "{statement}");
        }
    }

    #[test]
    fn a_loaded_database_is_consistent_and_every_fault_is_found() {
        let mut session = loaded();
        let run = |session: &mut Sqlite, sql: &str| session.run(sql, &mut Rows::new());
        assert_eq!(violations(&mut session), []);
        for (fault, wanted) in FAULTS {
            run(&mut session, "savepoint whole").unwrap();
            assert_eq!(run(&mut session, fault), Ok(1), "{fault}");
            let mut found = violations(&mut session);
            // The changed order violates condition 7 with each of its lines; their number is
            // random.
            let lines = |(number, count): &mut (u32, i64)| {
                if *number == 7 && wanted.contains(&(7, 0)) && (5..=15).contains(count) {
                    *count = 0;
                }
            };
            found.iter_mut().for_each(lines);
            assert_eq!(found, wanted, "{fault}");
            run(&mut session, "rollback to whole").unwrap();
            run(&mut session, "release whole").unwrap();
        }
        assert_eq!(violations(&mut session), []);
    }
}
