//! A connection after the log-in: sends commands and reads their answers.

use super::answer::{self, Column, End, ReadRow};
use super::fault::Fault;
use super::fields;
use super::greeting::Agreed;
use super::parts::Parts;
use super::values::{self, Backslash};
use super::wire::Wire;
use crate::db::rows::Rows;
use crate::db::value::Value;

const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_BULK_EXECUTE: u8 = 250;
const NO_BACKSLASH_ESCAPES: u16 = 1 << 9;

/// A connection with a logged-in user.
#[derive(Debug)]
pub(super) struct Link {
    wire: Wire,
    agreed: Agreed,
    /// Status flags of the session from the last answer.
    status: u16,
    /// Columns of the last answer in text format.
    columns: Vec<Column>,
}

/// A prepared statement on the server.
#[derive(Debug)]
pub(super) struct Prepared {
    id: u32,
    columns: Vec<Column>,
    /// The types of the last execution's values. The server remembers them.
    kinds: Vec<u8>,
}

impl Link {
    pub(super) fn new(wire: Wire, (agreed, status): (Agreed, u16)) -> Self {
        Self {
            wire,
            agreed,
            status,
            columns: Vec::new(),
        }
    }

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// How the session reads backslashes at the moment.
    pub(super) fn backslash(&self) -> Backslash {
        if self.status & NO_BACKSLASH_ESCAPES == 0 {
            Backslash::Escapes
        } else {
            Backslash::IsPlain
        }
    }

    /// Executes a statement with its values as literals. Numbers in `rows` have a numeric type.
    pub(super) fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<End, Fault> {
        let backslash = self.backslash();
        values::put_statement(self.begin_query(), sql, values, backslash);
        self.finish_query(fields::from_text, rows)
    }

    /// Executes a statement without parameters. All fields in `rows` are text.
    pub(super) fn query_as_written(&mut self, sql: &str, rows: &mut Rows) -> Result<End, Fault> {
        self.begin_query().extend(sql.as_bytes());
        self.finish_query(fields::as_written, rows)
    }

    /// Executes a statement that selects nothing.
    pub(super) fn command(&mut self, sql: &str) -> Result<End, Fault> {
        self.query_as_written(sql, &mut Rows::new())
    }

    /// Starts a statement. The caller appends its text.
    pub(super) fn begin_query(&mut self) -> &mut Vec<u8> {
        self.wire.command(COM_QUERY)
    }

    /// Sends the statement and reads its answer.
    pub(super) fn finish_query(&mut self, read: ReadRow, rows: &mut Rows) -> Result<End, Fault> {
        self.wire.send()?;
        let end = answer::read(&mut self.wire, self.agreed, &mut self.columns, read, rows)?;
        self.status = end.status;
        Ok(end)
    }

    /// Prepares a statement on the server.
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Prepared, Fault> {
        self.wire.command(COM_STMT_PREPARE).extend(sql.as_bytes());
        self.wire.send()?;
        let packet = self.wire.packet()?;
        let rest = match packet {
            [0x00, rest @ ..] => rest,
            [0xff, ..] => return Err(Fault::of_error(packet)),
            _ => return Err(Fault::Answer("no prepared statement")),
        };
        let mut parts = Parts(rest);
        let head = (parts.u32(), parts.u16(), parts.u16());
        let (Some(id), Some(columns), Some(params)) = head else {
            return Err(Fault::Answer("half a prepared statement"));
        };
        self.read_described(params)?;
        let columns = self.read_described(columns)?;
        let kinds = Vec::new();
        Ok(Prepared { id, columns, kinds })
    }

    fn read_described(&mut self, count: u16) -> Result<Vec<Column>, Fault> {
        let columns = answer::read_columns(&mut self.wire, count.into())?;
        if count > 0 && !self.agreed.no_eof {
            self.wire.packet()?;
        }
        Ok(columns)
    }

    /// Executes a prepared statement.
    pub(super) fn execute(
        &mut self,
        statement: &mut Prepared,
        values: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<End, Fault> {
        put_execute(self.wire.command(COM_STMT_EXECUTE), statement, values);
        self.wire.send()?;
        self.read_executed(statement, rows)
    }

    /// Executes a prepared statement once per `width` values. Returns the sum of the rows changed.
    pub(super) fn execute_all(
        &mut self,
        statement: &mut Prepared,
        width: usize,
        values: &[Value<'_>],
    ) -> Result<u64, Fault> {
        if self.agreed.bulk && have_same_kinds(values, width) {
            let out = self.wire.command(COM_STMT_BULK_EXECUTE);
            put_bulk(out, statement, width, values);
            self.wire.send()?;
            let end = self.read_executed(statement, &mut Rows::new())?;
            return Ok(end.rows);
        }
        self.execute_in_one_write(statement, width, values)
    }

    /// Sends one command per row and reads all answers. Returns the first error.
    fn execute_in_one_write(
        &mut self,
        statement: &mut Prepared,
        width: usize,
        values: &[Value<'_>],
    ) -> Result<u64, Fault> {
        let mut each = values.chunks(width);
        let first = each.next().unwrap_or_default();
        put_execute(self.wire.command(COM_STMT_EXECUTE), statement, first);
        for values in each {
            put_execute(self.wire.next_command(COM_STMT_EXECUTE)?, statement, values);
        }
        self.wire.send()?;
        let mut sum = Ok(0);
        for _ in values.chunks(width) {
            self.wire.next_answer();
            match self.read_executed(statement, &mut Rows::new()) {
                Ok(end) => sum = sum.map(|rows: u64| rows + end.rows),
                Err(fault) if fault.ends_session() => return Err(fault),
                // The other commands still have answers, which must be read.
                Err(fault) => sum = sum.and(Err(fault)),
            }
        }
        sum
    }

    fn read_executed(&mut self, statement: &mut Prepared, rows: &mut Rows) -> Result<End, Fault> {
        let columns = &mut statement.columns;
        let read = fields::from_binary;
        let end = answer::read(&mut self.wire, self.agreed, columns, read, rows);
        if end.is_err() {
            // It is unknown whether the server has remembered the types.
            statement.kinds.clear();
        }
        let end = end?;
        self.status = end.status;
        Ok(end)
    }
}

/// Whether each column of the values has one type throughout, and the first row has no NULL.
fn have_same_kinds(values: &[Value<'_>], width: usize) -> bool {
    let (first, _) = values.split_at(width.min(values.len()));
    let mut rows = values.chunks(width);
    !first.contains(&Value::Null)
        && rows.all(|row| {
            row.iter()
                .map(values::kind_of)
                .eq(first.iter().map(values::kind_of))
        })
}

/// Appends the parameters of MariaDB's COM_STMT_BULK_EXECUTE.
fn put_bulk(out: &mut Vec<u8>, statement: &mut Prepared, width: usize, values: &[Value<'_>]) {
    const WITH_KINDS: u16 = 128;
    const HAS_VALUE: u8 = 0;
    out.extend(statement.id.to_le_bytes());
    out.extend(WITH_KINDS.to_le_bytes());
    let kinds = values.iter().take(width).map(values::kind_of);
    out.extend(kinds.flat_map(|kind| [kind, 0]));
    // It is not documented that a later single execution can rely on these types.
    statement.kinds.clear();
    for value in values {
        out.push(HAS_VALUE);
        values::put_binary(out, value);
    }
}

/// Appends the parameters of COM_STMT_EXECUTE.
fn put_execute(out: &mut Vec<u8>, statement: &mut Prepared, values: &[Value<'_>]) {
    const NO_CURSOR: u8 = 0;
    const ONCE: u32 = 1;
    out.extend(statement.id.to_le_bytes());
    out.push(NO_CURSOR);
    out.extend(ONCE.to_le_bytes());
    if values.is_empty() {
        return;
    }
    values::put_nulls(out, values);
    let are_known = values
        .iter()
        .map(values::kind_of)
        .eq(statement.kinds.iter().copied());
    out.push(u8::from(!are_known));
    if !are_known {
        statement.kinds = values.iter().map(values::kind_of).collect();
        out.extend(statement.kinds.iter().flat_map(|kind| [*kind, 0]));
    }
    for value in values {
        values::put_binary(out, value);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // After COM_QUIT, the server ends the session at once and does not count it as aborted. The
        // connection may be lost already.
        self.wire.command(COM_QUIT);
        let _ = self.wire.send();
    }
}
