//! PostgreSQL and openGauss: our own blocking client, based on `postgres-protocol`.
//!
//! Statements are sent as pgjdbc sends them: prepared under a name at first use, or parsed each
//! time; `begin` is sent in the same write as the first statement of a transaction; a batch is one
//! write with one sync. Reading order: `link` (connection), `frame` (message), `talk` (exchange),
//! `plans` (statements), `copy` (loads), `login`. Deliberately absent: notifications, cancelling.

mod copy;
mod failure;
mod frame;
mod link;
mod login;
mod plans;
mod status;
mod talk;
mod text;
mod version;

use super::options::{Options, Protocol};
use super::rows::Rows;
use super::statement::Statement;
use super::value::Value;
use super::{ConnectError, Server, Session, SqlError};
use crate::population::Sink;
use crate::props::{Password, Url};
use crate::table::Table;
use frame::Phase;
use link::{Broken, Link};
use plans::Plan;
use talk::{Bundle, Heard, Talk, deliver, insist};

/// Maximum number of commands of a batch in one write. Each answer takes 30 bytes, so all answers
/// fit into a socket buffer, and client and server never wait for each other. pgjdbc has the same
/// limit.
const COMMANDS_AT_ONCE: usize = 256;

/// A session with a PostgreSQL or openGauss server.
#[derive(Debug)]
pub struct Postgres {
    link: Link,
    phase: Phase,
    bundle: Bundle,
    /// Whether the server has prepared a plan, indexed by [`Plan::index`].
    known: Vec<bool>,
    protocol: Protocol,
    folds_inserts: bool,
    /// Number of rows per fetch; 0 fetches all rows.
    fetch_size: i32,
    server: Server,
}

impl Postgres {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(
        url: &Url,
        user: &str,
        password: &Password,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let link = login::enter(url, user, password, options)?;
        let mut session = Self {
            link,
            phase: Phase::Idle,
            bundle: Bundle::new(),
            known: vec![false; Plan::COUNT],
            protocol: options.protocol,
            folds_inserts: options.folds_inserts,
            fetch_size: options
                .fetch_size
                .map_or(0, |rows| i32::try_from(rows).unwrap_or(i32::MAX)),
            server: Server {
                engine: url.engine,
                version: String::new(),
                isolation: String::new(),
            },
        };
        let address = options.address(url);
        session.server = version::ask(&mut session, url.engine, &address)?;
        let limited = session.link.limit_waiting(options.socket_timeout_ms);
        limited.map_err(|error| ConnectError::Unreachable {
            engine: url.engine,
            address,
            error,
        })?;
        Ok(session)
    }

    /// Adds the execution of a plan to the bundle, and parses the plan first if necessary.
    fn ask(&mut self, plan: Plan, params: &[Value<'_>], max_rows: i32) -> Result<(), SqlError> {
        let name = match self.protocol {
            Protocol::Prepared => plan.name(),
            Protocol::Text => "",
        };
        let is_kept = self.protocol == Protocol::Prepared
            && (self.known[plan.index()] || self.bundle.parses(plan));
        if !is_kept {
            self.bundle.parse(plan, name)?;
        }
        Ok(self.bundle.execute(name, params, max_rows)?)
    }

    /// Starts a bundle. If no transaction is open, the bundle begins one.
    fn begin(&mut self) -> Result<(), SqlError> {
        self.bundle.restart();
        if self.phase == Phase::Idle {
            self.ask(Plan::BEGIN, &[], 0)?;
            self.bundle.silence();
        }
        Ok(())
    }

    /// Sends the bundle and reads its answers.
    fn finish(&mut self, sql: &str, rows: Option<&mut Rows>) -> Result<Heard, SqlError> {
        let Self {
            link,
            phase,
            bundle,
            known,
            ..
        } = self;
        deliver(link, &bundle.bytes, sql)?;
        let mut talk = Talk {
            link,
            phase,
            known,
            rows,
        };
        insist(talk.listen(bundle), sql)
    }

    /// Sends `commit` or `rollback`.
    fn end_by(&mut self, word: Plan) -> Result<(), SqlError> {
        self.bundle.restart();
        self.ask(word, &[], 0)?;
        self.bundle.end();
        self.finish(word.sql(), None).map(|_| ())
    }

    /// Sends the bundle and fetches the selected rows, `fetch_size` rows at a time.
    fn fetch(&mut self, sql: &str, rows: &mut Rows) -> Result<Heard, SqlError> {
        let mut before = rows.len();
        let mut heard = self.finish(sql, Some(rows))?;
        while heard.is_suspended {
            if rows.len() == before {
                self.link.give_up();
                return Err(SqlError::Lost {
                    said: "the server sends no rows and says that there are more".to_owned(),
                });
            }
            before = rows.len();
            self.bundle.restart();
            self.bundle.proceed(self.fetch_size)?;
            self.bundle.end();
            heard = self.finish(sql, Some(rows))?;
        }
        Ok(heard)
    }

    /// Sends one write of a batch. `params` contains the parameters of all its rows.
    fn batch_part(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        width: usize,
    ) -> Result<u64, SqlError> {
        self.begin()?;
        let mut rest = params;
        while !rest.is_empty() {
            let (plan, rows) = if self.folds_inserts && plans::is_insert(statement) {
                Plan::folded(statement, rest.len() / width)
            } else {
                (Plan::of(statement), 1)
            };
            let (own, others) = rest.split_at(rows * width);
            self.ask(plan, own, 0)?;
            rest = others;
        }
        self.bundle.end();
        let heard = self.finish(Plan::of(statement).sql(), None)?;
        Ok(heard.count)
    }

    /// Executes SQL by the simple query protocol.
    fn simple(&mut self, sql: &str, rows: &mut Rows) -> Result<Heard, SqlError> {
        rows.clear();
        self.insist_on_idle()?;
        if sql.contains('\0') {
            let what = "a statement holds a zero byte".to_owned();
            return Err(SqlError::Unexpected { what });
        }
        self.bundle.query(sql)?;
        let heard = self.finish(sql, Some(rows));
        if heard.is_err() {
            rows.clear();
        }
        if self.phase != Phase::Idle {
            self.rollback()?;
            let what = format!("a transaction was left open, and is rolled back (by: {sql})");
            return heard.and(Err(SqlError::Unexpected { what }));
        }
        heard
    }

    /// Fails if the connection is broken, because the phase is then unknown.
    fn insist_on_link(&self) -> Result<(), SqlError> {
        if self.link.is_broken() {
            return Err(Broken::Before.into());
        }
        Ok(())
    }

    fn insist_on_idle(&self) -> Result<(), SqlError> {
        self.insist_on_link()?;
        match self.phase {
            Phase::Idle => Ok(()),
            Phase::Open | Phase::Failed => Err(SqlError::Unexpected {
                what: "a transaction is open; commit it or roll it back first".to_owned(),
            }),
        }
    }
}

/// Number of rows in `params`.
fn rows_of(statement: Statement, params: &[Value<'_>], wanted: &str) -> Result<usize, SqlError> {
    let width = Plan::of(statement).width();
    if width > 0 && params.len().is_multiple_of(width) {
        return Ok(params.len() / width);
    }
    let given = params.len();
    let what = format!("{statement:?} takes {wanted}{width} parameters, not {given}");
    Err(SqlError::Unexpected { what })
}

impl Session for Postgres {
    fn server(&self) -> &Server {
        &self.server
    }

    fn execute(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError> {
        rows.clear();
        if rows_of(statement, params, "")? != 1 {
            let what = format!("{statement:?} was given the parameters of several rows");
            return Err(SqlError::Unexpected { what });
        }
        let plan = Plan::of(statement);
        let selects = statement.selects();
        let max_rows = if selects { self.fetch_size } else { 0 };
        self.begin()?;
        self.ask(plan, params, max_rows)?;
        self.bundle.end();
        match self.fetch(plan.sql(), rows) {
            Ok(_) if selects => Ok(rows.len() as u64),
            Ok(heard) => Ok(heard.count),
            Err(error) => {
                rows.clear();
                Err(error)
            }
        }
    }

    fn batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError> {
        let rows = rows_of(statement, params, "a multiple of ")?;
        if rows == 0 {
            return Ok(0);
        }
        let width = params.len() / rows;
        let mut parts = params.chunks(COMMANDS_AT_ONCE * width);
        parts.try_fold(0u64, |sum, part| {
            Ok(sum.saturating_add(self.batch_part(statement, part, width)?))
        })
    }

    fn commit(&mut self) -> Result<(), SqlError> {
        self.insist_on_link()?;
        match self.phase {
            Phase::Idle => Ok(()),
            Phase::Open => self.end_by(Plan::COMMIT),
            Phase::Failed => Err(SqlError::Unexpected {
                what: "the transaction has failed and cannot be committed; roll it back".to_owned(),
            }),
        }
    }

    fn rollback(&mut self) -> Result<(), SqlError> {
        self.insist_on_link()?;
        if self.phase == Phase::Idle {
            return Ok(());
        }
        self.end_by(Plan::ROLLBACK).map_err(|error| {
            self.link.give_up();
            if matches!(error, SqlError::Lost { .. }) {
                return error;
            }
            SqlError::Lost {
                said: error.to_string(),
            }
        })
    }

    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<u64, SqlError> {
        self.simple(sql, rows).map(|heard| heard.count)
    }

    fn load(
        &mut self,
        table: Table,
        fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.insist_on_idle()?;
        copy::load(self, table, fill)
    }

    fn status(&mut self) -> Result<Vec<(String, f64)>, SqlError> {
        status::counters(self)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.bundle.restart();
        self.bundle.farewell();
        // The connection may be broken already; the server also notices its end.
        let _ = self.link.send(&self.bundle.bytes);
    }
}
