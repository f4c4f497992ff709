//! The five transactions (TPC-C §2.4 to §2.8), statement by statement.
//!
//! [`Performer::perform`] executes one transaction on a session. If it returns an [`Outcome`], the
//! transaction was committed, or rolled back as its input demands. If it returns an error, the
//! transaction was undone. Deliberately absent: retries and pacing (`driver`), and the screens of
//! §2.4.3, for which the data are read but not displayed.

mod customer;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use crate::db::rows::Rows;
use crate::db::statement::Statement;
use crate::db::value::Value;
use crate::db::{Session, SqlError};
use crate::spec::inputs::Input;

/// Performs transactions and reuses its buffers.
#[derive(Debug, Default)]
pub struct Performer {
    rows: Rows,
}

/// The outcome of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// A New-Order with an unused item did all its work and was rolled back (§2.4.2.3). It counts
    /// as completed.
    RolledBack,
    /// A Delivery was committed.
    Delivered {
        /// D_ID and O_ID of each delivered order, by D_ID.
        orders: Vec<(u32, u32)>,
        /// Number of districts without an undelivered order (§2.7.4.2).
        skipped: u32,
    },
}

/// A transaction in progress: a session, a buffer for its answers, and the transaction's date.
struct Transaction<'a> {
    session: &'a mut dyn Session,
    rows: &'a mut Rows,
    now: i64,
}

impl Performer {
    /// Performs a transaction; `now` is its date, as in [`Value::Time`].
    ///
    /// # Errors
    /// Any [`SqlError`]. The transaction is undone, or the session is lost.
    pub fn perform(
        &mut self,
        session: &mut dyn Session,
        input: &Input,
        now: i64,
    ) -> Result<Outcome, SqlError> {
        let rows = &mut self.rows;
        let mut transaction = Transaction { session, rows, now };
        let done = match input {
            Input::NewOrder(input) => transaction.new_order(input),
            Input::Payment(input) => transaction.payment(input),
            Input::OrderStatus(input) => transaction.order_status(input),
            Input::Delivery(input) => transaction.delivery(*input),
            Input::StockLevel(input) => transaction.stock_level(*input),
        };
        let ended = match done {
            Ok(Outcome::RolledBack) => return session.rollback().map(|()| Outcome::RolledBack),
            Ok(outcome) => session.commit().map(|()| outcome),
            Err(error) => Err(error),
        };
        // A failed commit may leave the transaction open. The next transaction would continue it.
        ended.map_err(|error| rolled_back(session, with_advice(error)))
    }
}

/// Adds advice to errors that occur only on an incomplete database.
fn with_advice(error: SqlError) -> SqlError {
    match error {
        SqlError::Unexpected { what } => SqlError::Unexpected {
            what: format!(
                "{what}; the database may be incomplete, or warehouses= wrong: run `saiga bench tpcc check`"
            ),
        },
        SqlError::Conflict { .. } | SqlError::Lost { .. } | SqlError::Refused { .. } => error,
    }
}

/// Rolls back and returns `error`. If the rollback fails, returns the error of the rollback: the
/// session is lost.
fn rolled_back(session: &mut dyn Session, error: SqlError) -> SqlError {
    if matches!(error, SqlError::Lost { .. }) {
        return error;
    }
    match session.rollback() {
        Ok(()) => error,
        Err(worse) => worse,
    }
}

impl Transaction<'_> {
    /// Sends a statement and stores its answer in `rows`. Returns the number of rows.
    fn send(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError> {
        self.session.execute(statement, params, self.rows)
    }

    /// Sends a statement that must find or change exactly one row.
    fn send_for_one(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<(), SqlError> {
        match self.send(statement, params)? {
            1 => Ok(()),
            count => Err(unexpected(statement, params, count, "one")),
        }
    }

    /// Sends a batch in which each element must change exactly one row.
    fn send_batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<(), SqlError> {
        let wanted = (params.len() / statement.params()) as u64;
        match self.session.batch(statement, params)? {
            count if count == wanted => Ok(()),
            count => Err(unexpected(statement, params, count, &wanted.to_string())),
        }
    }

    /// An identifier in the first row of the answer.
    fn id(&self, column: usize) -> Result<u32, SqlError> {
        let value = self.rows.int(0, column)?;
        u32::try_from(value).map_err(|_| SqlError::Unexpected {
            what: format!("{value} is not an identifier of TPC-C"),
        })
    }
}

fn unexpected(statement: Statement, params: &[Value<'_>], count: u64, wanted: &str) -> SqlError {
    SqlError::Unexpected {
        what: format!("{statement:?} with {params:?} found or changed {count} rows, not {wanted}"),
    }
}

fn int(value: u32) -> Value<'static> {
    Value::Int(i64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Server;
    use crate::population::Sink;
    use crate::props::Engine;
    use crate::spec::inputs::{DistrictKey, StockLevel};
    use crate::table::Table;

    /// A session that answers every statement with one row and refuses to commit.
    struct FailingCommit {
        server: Server,
        answer: &'static str,
        said: Vec<&'static str>,
    }

    impl FailingCommit {
        fn answering(answer: &'static str) -> Self {
            Self {
                server: Server {
                    engine: Engine::Sqlite,
                    version: String::new(),
                    isolation: String::new(),
                },
                answer,
                said: Vec::new(),
            }
        }

        fn asked_for_low_stock(&mut self) -> Result<Outcome, SqlError> {
            let input = Input::StockLevel(StockLevel {
                district: DistrictKey { w_id: 1, d_id: 1 },
                threshold: 10,
            });
            Performer::default().perform(self, &input, 0)
        }
    }

    impl Session for FailingCommit {
        fn server(&self) -> &Server {
            &self.server
        }

        fn execute(
            &mut self,
            _: Statement,
            _: &[Value<'_>],
            rows: &mut Rows,
        ) -> Result<u64, SqlError> {
            rows.clear();
            rows.push_text(self.answer.as_bytes());
            rows.end_row();
            Ok(1)
        }

        fn batch(&mut self, _: Statement, _: &[Value<'_>]) -> Result<u64, SqlError> {
            Ok(1)
        }

        fn commit(&mut self) -> Result<(), SqlError> {
            self.said.push("commit");
            Err(SqlError::Conflict {
                said: "at the end".to_owned(),
            })
        }

        fn rollback(&mut self) -> Result<(), SqlError> {
            self.said.push("rollback");
            Ok(())
        }

        fn run(&mut self, _: &str, _: &mut Rows) -> Result<u64, SqlError> {
            Ok(0)
        }

        fn load(
            &mut self,
            _: Table,
            _: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
        ) -> Result<(), SqlError> {
            Ok(())
        }
    }

    #[test]
    fn a_transaction_whose_commit_fails_is_rolled_back() {
        let mut session = FailingCommit::answering("1");
        let ended = session.asked_for_low_stock();
        assert!(matches!(ended, Err(SqlError::Conflict { .. })), "{ended:?}");
        assert_eq!(session.said, ["commit", "rollback"]);
    }
    #[test]
    fn an_error_of_an_incomplete_database_names_the_check() {
        let ended = FailingCommit::answering("").asked_for_low_stock();
        let said = ended.unwrap_err().to_string();
        assert!(said.contains("run `saiga bench tpcc check`"), "{said}");
    }
}
