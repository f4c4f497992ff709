//! SQL texts for the server, and the names of the prepared statements.
//!
//! All sessions of a process share one table: the commands that begin and end a transaction, each
//! [`Statement`] with `$1` for its first `?`, and each INSERT with 2, 4, ... 128 rows, as with
//! pgjdbc's `reWriteBatchedInserts`.

use std::sync::LazyLock;

use crate::db::statement::Statement;
use crate::props::Engine;

/// An INSERT has 2^0 to 2^7 rows.
const LARGEST: u32 = 7;
const SIZES: usize = LARGEST as usize + 1;
/// Commands that are not a [`Statement`].
const WORDS: [&str; 3] = ["begin", "commit", "rollback"];

/// An index into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan(usize);

impl Plan {
    pub(super) const BEGIN: Self = Self(0);
    pub(super) const COMMIT: Self = Self(1);
    pub(super) const ROLLBACK: Self = Self(2);
    /// Number of plans.
    pub(super) const COUNT: usize = WORDS.len() + Statement::COUNT * SIZES;

    pub(super) fn of(statement: Statement) -> Self {
        Self(WORDS.len() + statement.index() * SIZES)
    }

    /// The plan of an INSERT with the largest power of two of rows that is at most `rows` and at
    /// most 128. Returns the plan and its number of rows.
    pub(super) fn folded(statement: Statement, rows: usize) -> (Self, usize) {
        let size = rows.max(1).ilog2().min(LARGEST);
        (Self(Self::of(statement).0 + size as usize), 1 << size)
    }

    /// The index into the table.
    pub(super) fn index(self) -> usize {
        self.0
    }

    pub(super) fn name(self) -> &'static str {
        &TABLE[self.0].name
    }

    pub(super) fn sql(self) -> &'static str {
        &TABLE[self.0].sql
    }

    /// Number of parameters.
    pub(super) fn width(self) -> usize {
        TABLE[self.0].width
    }
}

/// Whether several executions can be folded into one statement.
pub(super) fn is_insert(statement: Statement) -> bool {
    Plan::of(statement).sql().starts_with("insert into ")
}

/// Name, text and number of parameters of a plan.
struct Entry {
    name: String,
    sql: String,
    width: usize,
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let words = WORDS.map(|word| Entry {
        name: word.to_owned(),
        sql: word.to_owned(),
        width: 0,
    });
    let statements = Statement::all().flat_map(|statement| {
        // The text is the same for PostgreSQL and openGauss.
        let sql = statement.sql(Engine::Postgres);
        (0..SIZES).map(move |size| {
            let sql = repeated(&sql, 1 << size);
            Entry {
                name: format!("s{}x{}", statement.index(), 1 << size),
                width: sql.matches('?').count(),
                sql: numbered(&sql),
            }
        })
    });
    words.into_iter().chain(statements).collect()
});

/// An INSERT with its list of values repeated `rows` times.
fn repeated(sql: &str, rows: usize) -> String {
    match sql.split_once(" values ") {
        Some((head, list)) => format!("{head} values {}", vec![list; rows].join(", ")),
        None => sql.to_owned(),
    }
}

/// Replaces each `?` by `$1`, `$2` and so on.
fn numbered(sql: &str) -> String {
    let mut pieces = sql.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(1..).fold(first, |text, (piece, number)| {
        format!("{text}${number}{piece}")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn places_are_numbered_in_their_order() {
        assert_eq!(
            Plan::of(Statement::OrderStockUpdate).sql(),
            "update bmsql_stock set s_quantity = $1, s_ytd = s_ytd + $2, \
             s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $3 \
             where s_w_id = $4 and s_i_id = $5"
        );
        assert!(
            Plan::of(Statement::OrderStock)
                .sql()
                .ends_with(" for update")
        );
        assert_eq!(Plan::ROLLBACK.sql(), "rollback");
    }

    #[test]
    fn an_insert_takes_the_rows_that_a_power_of_two_allows() {
        let (plan, rows) = Plan::folded(Statement::OrderQueue, 3);
        assert_eq!(rows, 2);
        assert_eq!(
            plan.sql(),
            "insert into bmsql_new_order (no_w_id, no_d_id, no_o_id) \
             values ($1, $2, $3), ($4, $5, $6)"
        );
        let taken = |rows| Plan::folded(Statement::OrderLine, rows).1;
        assert_eq!(
            [1, 5, 15, 127, 128, 1000].map(taken),
            [1, 4, 8, 64, 128, 128]
        );
        let (largest, _) = Plan::folded(Statement::OrderLine, 128);
        assert!(largest.sql().ends_with(", $1151, $1152)"));
    }

    #[test]
    fn every_plan_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = (0..Plan::COUNT).map(|at| Plan(at).name()).collect();
        assert_eq!(names.len(), Plan::COUNT);
        assert_eq!(TABLE.len(), Plan::COUNT);
        for statement in Statement::all() {
            assert_eq!(
                Plan::of(statement).width(),
                statement.params(),
                "{statement:?}"
            );
        }
        let inserts = Statement::all().filter(|one| is_insert(*one)).count();
        assert_eq!(inserts, 4);
    }

    #[test]
    fn opengauss_has_the_same_words() {
        for statement in Statement::all() {
            let both = [Engine::Postgres, Engine::OpenGauss].map(|engine| statement.sql(engine));
            assert_eq!(both[0], both[1], "{statement:?}");
        }
    }
}
