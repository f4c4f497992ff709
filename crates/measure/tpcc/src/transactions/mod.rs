//! The five transactions (TPC-C §2.4 to §2.8), statement by statement.
//!
//! A [`Performer`] works on one session. What it returns has been committed, or was rolled back as
//! its input demands; after an error the transaction is undone. Deliberately absent: retries and
//! times (`driver`), and the screens of §2.4.3: what they would show is read, and not drawn.

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

/// Performs transactions. Its buffers are used again and again.
#[derive(Debug, Default)]
pub struct Performer {
    rows: Rows,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// A New-Order with an unused item did all its work and undid it (§2.4.2.3): done, too.
    RolledBack,
    /// A Delivery is committed.
    Delivered {
        /// District and order, in the order of the districts.
        orders: Vec<(u32, u32)>,
        /// Districts in which nothing waited (§2.7.4.2).
        skipped: u32,
    },
}

/// A transaction at work: a session, the buffer of its answers, and the transaction's date.
struct Work<'a> {
    session: &'a mut dyn Session,
    rows: &'a mut Rows,
    now: i64,
}

impl Performer {
    /// Performs a transaction; `now` is its date, as in [`Value::Time`].
    ///
    /// # Errors
    /// [`SqlError`]; the transaction is undone then, or the session is lost.
    pub fn perform(
        &mut self,
        session: &mut dyn Session,
        input: &Input,
        now: i64,
    ) -> Result<Outcome, SqlError> {
        let rows = &mut self.rows;
        let mut work = Work { session, rows, now };
        let done = match input {
            Input::NewOrder(input) => work.new_order(input),
            Input::Payment(input) => work.payment(input),
            Input::OrderStatus(input) => work.order_status(input),
            Input::Delivery(input) => work.delivery(*input),
            Input::StockLevel(input) => work.stock_level(*input),
        };
        let ended = match done {
            Ok(Outcome::RolledBack) => return session.rollback().map(|()| Outcome::RolledBack),
            Ok(outcome) => session.commit().map(|()| outcome),
            Err(error) => Err(error),
        };
        // A commit that is refused may leave the transaction open, and the next one would keep it.
        ended.map_err(|error| undone(session, hinted(error)))
    }
}

/// Answers that no complete database gives say what to do.
fn hinted(error: SqlError) -> SqlError {
    match error {
        SqlError::Unexpected { what } => SqlError::Unexpected {
            what: format!(
                "{what}: is the database fully loaded, and does warehouses= fit? `saiga bench tpcc \
                 check` tells"
            ),
        },
        SqlError::Conflict { .. } | SqlError::Lost { .. } | SqlError::Refused { .. } => error,
    }
}

/// What went wrong first, unless even undoing it fails: then the session is lost.
fn undone(session: &mut dyn Session, error: SqlError) -> SqlError {
    if matches!(error, SqlError::Lost { .. }) {
        return error;
    }
    match session.rollback() {
        Ok(()) => error,
        Err(worse) => worse,
    }
}

impl Work<'_> {
    /// Sends a statement; its answer is in `rows`.
    fn send(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError> {
        self.session.execute(statement, params, self.rows)
    }

    /// Sends a statement that must find, or change, exactly one row.
    fn send_for_one(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<(), SqlError> {
        match self.send(statement, params)? {
            1 => Ok(()),
            count => Err(unexpected(statement, params, count, "one")),
        }
    }

    /// Sends the rows of a batch, each of which must change exactly one.
    fn send_batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<(), SqlError> {
        let wanted = (params.len() / statement.params()) as u64;
        match self.session.batch(statement, params)? {
            count if count == wanted => Ok(()),
            count => Err(unexpected(statement, params, count, &wanted.to_string())),
        }
    }

    /// An identifier that a statement found.
    fn id(&self, column: usize) -> Result<u32, SqlError> {
        let value = self.rows.int(0, column)?;
        u32::try_from(value).map_err(|_| SqlError::Unexpected {
            what: format!("{value} is not an identifier of TPC-C"),
        })
    }
}

fn unexpected(statement: Statement, params: &[Value<'_>], count: u64, wanted: &str) -> SqlError {
    SqlError::Unexpected {
        what: format!("{statement:?} with {params:?} concerned {count} rows, not {wanted}"),
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
    use crate::spec::inputs::{Place, StockLevel};
    use crate::table::Table;

    /// Answers every statement with one row, and refuses to commit.
    struct Full {
        server: Server,
        answer: &'static str,
        said: Vec<&'static str>,
    }

    impl Full {
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
                place: Place { w_id: 1, d_id: 1 },
                threshold: 10,
            });
            Performer::default().perform(self, &input, 0)
        }
    }

    impl Session for Full {
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
    fn what_cannot_be_committed_is_undone() {
        let mut session = Full::answering("1");
        let ended = session.asked_for_low_stock();
        assert!(matches!(ended, Err(SqlError::Conflict { .. })), "{ended:?}");
        assert_eq!(session.said, ["commit", "rollback"]);
    }
    #[test]
    fn answers_of_half_a_database_name_the_way_out() {
        let ended = Full::answering("").asked_for_low_stock();
        let said = ended.unwrap_err().to_string();
        assert!(said.contains("`saiga bench tpcc check` tells"), "{said}");
    }
}
