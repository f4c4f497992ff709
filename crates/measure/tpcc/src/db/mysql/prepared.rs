//! Statements in MySQL's dialect, and the statements that a session has prepared.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::fault::Fault;
use super::link::{Link, Prepared};
use crate::db::statement::Statement;
use crate::props::Engine;

/// The text and the number of parameters of a statement.
struct Form {
    sql: Cow<'static, str>,
    params: usize,
}

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let form = |statement: Statement| Form {
        sql: statement.sql(Engine::MySql),
        params: statement.params(),
    };
    Statement::all().map(form).collect()
});

/// The text of a statement, with `?` for parameters.
pub(super) fn text_of(statement: Statement) -> &'static str {
    &FORMS[statement.index()].sql
}

/// Number of parameters of a statement.
pub(super) fn params_of(statement: Statement) -> usize {
    FORMS[statement.index()].params
}

/// Whether several executions can be folded into one INSERT.
pub(super) fn inserts(statement: Statement) -> bool {
    text_of(statement).starts_with("insert")
}

/// An INSERT of `rows` rows, built from an INSERT of one row.
pub(super) fn folded(sql: &str, rows: usize) -> String {
    const VALUES: &str = " values ";
    let row = sql.rfind(VALUES).map_or("", |at| &sql[at + VALUES.len()..]);
    let mut text = String::with_capacity(sql.len() + (rows - 1) * (row.len() + 2));
    text.push_str(sql);
    for _ in 1..rows {
        text.push_str(", ");
        text.push_str(row);
    }
    text
}

/// The prepared statements of a session. Each is prepared at its first use.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Indexed by [`Statement::index`].
    single: Vec<Option<Known>>,
    /// Statement, number of rows and state. At most eleven entries, because orders have 5 to 15
    /// lines.
    folded: Vec<(Statement, usize, Known)>,
}

/// The result of the attempt to prepare a statement.
#[derive(Debug)]
enum Known {
    Prepared(Prepared),
    /// The server refused: all sessions together may prepare `max_prepared_stmt_count` statements.
    /// The statement is sent as text from then on.
    Refused,
}

/// The error ER_MAX_PREPARED_STMT_COUNT_REACHED.
const NO_ROOM: u16 = 1461;

impl Known {
    fn ask(link: &mut Link, sql: &str) -> Result<Self, Fault> {
        match link.prepare(sql) {
            Ok(prepared) => Ok(Self::Prepared(prepared)),
            Err(Fault::Server(error)) if error.code == NO_ROOM => Ok(Self::Refused),
            Err(fault) => Err(fault),
        }
    }

    fn prepared(&mut self) -> Option<&mut Prepared> {
        match self {
            Self::Prepared(prepared) => Some(prepared),
            Self::Refused => None,
        }
    }
}

impl Store {
    /// Returns the prepared statement, and prepares it first if necessary. `None` means that the
    /// statement must be sent as text.
    pub(super) fn get(
        &mut self,
        link: &mut Link,
        statement: Statement,
        rows: usize,
    ) -> Result<Option<&mut Prepared>, Fault> {
        if rows > 1 {
            return self.get_folded(link, statement, rows);
        }
        self.single.resize_with(Statement::COUNT, || None);
        let place = &mut self.single[statement.index()];
        let known = match place {
            Some(known) => known,
            None => place.insert(Known::ask(link, text_of(statement))?),
        };
        Ok(known.prepared())
    }

    fn get_folded(
        &mut self,
        link: &mut Link,
        statement: Statement,
        rows: usize,
    ) -> Result<Option<&mut Prepared>, Fault> {
        let is_it = |one: &(Statement, usize, Known)| one.0 == statement && one.1 == rows;
        let at = match self.folded.iter().position(is_it) {
            Some(at) => at,
            None => {
                let known = Known::ask(link, &folded(text_of(statement), rows))?;
                self.folded.push((statement, rows, known));
                self.folded.len() - 1
            }
        };
        Ok(self.folded[at].2.prepared())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_to_an_insert() {
        assert_eq!(
            folded("insert into t (a, b) values (?, ?)", 3),
            "insert into t (a, b) values (?, ?), (?, ?), (?, ?)"
        );
        let lines = folded(text_of(Statement::OrderLine), 15);
        assert_eq!(lines.matches('?').count(), 15 * 9);
    }

    #[test]
    fn only_inserts_are_folded() {
        assert!(inserts(Statement::OrderLine));
        assert!(!inserts(Statement::OrderStockUpdate) && !inserts(Statement::OrderStock));
    }
}
