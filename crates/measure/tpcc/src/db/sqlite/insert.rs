//! Loads the rows of one table, inside the caller's transaction.

use rusqlite::types::Null;
use rusqlite::{CachedStatement, Connection, ToSql};

use super::bind::Real;
use super::failed;
use crate::db::SqlError;
use crate::db::value::Decimal;
use crate::population::Sink;
use crate::table::Table;

/// A prepared INSERT that receives rows.
pub(super) struct Inserter<'c> {
    statement: CachedStatement<'c>,
    table: Table,
    /// The position of the next parameter, from 1.
    at: usize,
    problem: Option<rusqlite::Error>,
}

impl<'c> Inserter<'c> {
    /// Prepares an INSERT for the columns of `table`.
    pub(super) fn new(connection: &'c Connection, table: Table) -> Result<Self, SqlError> {
        let columns = table.columns();
        let places = vec!["?"; columns.len()].join(", ");
        let (name, columns) = (table.name(), columns.join(", "));
        let text = format!("insert into {name} ({columns}) values ({places})");
        let prepared = connection.prepare_cached(&text);
        Ok(Self {
            statement: prepared.map_err(|error| failed(&error, &text))?,
            table,
            at: 1,
            problem: None,
        })
    }

    fn bind(&mut self, value: impl ToSql) {
        let bound = self.statement.raw_bind_parameter(self.at, value);
        self.at += 1;
        self.problem = self.problem.take().or(bound.err());
    }
}

impl Sink for Inserter<'_> {
    type Error = SqlError;

    fn int(&mut self, value: i64) {
        self.bind(value);
    }

    fn decimal(&mut self, units: i64, scale: u32) {
        self.bind(Real(Decimal { units, scale }));
    }

    fn text(&mut self, value: &str) {
        self.bind(value);
    }

    fn time(&mut self, seconds: i64) {
        self.bind(seconds);
    }

    fn null(&mut self) {
        self.bind(Null);
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.at = 1;
        let stored = match self.problem.take() {
            Some(problem) => Err(problem),
            None => self.statement.raw_execute().map(|_| ()),
        };
        stored.map_err(|error| failed(&error, &format!("insert into {}", self.table.name())))
    }
}
