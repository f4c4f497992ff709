//! Bulk loads: `LOAD DATA LOCAL`, or INSERTs of many rows if the server does not allow it.
//!
//! Rows are sent while they are generated. `LOCAL` turns invalid and duplicate rows into warnings;
//! here any warning fails the load. The server's `local_infile` allows it: by default on in MariaDB
//! and off in MySQL.

use std::io::Write as _;

use super::MySql;
use super::answer::End;
use super::fault::Fault;
use super::fields;
use super::link::Link;
use super::values::{Backslash, put_literal};
use crate::db::SqlError;
use crate::db::rows::Rows;
use crate::db::value::{Decimal, Stamp, Value};
use crate::population::Sink;
use crate::table::Table;

/// Switches the checks of foreign keys off; the population's tests verify the references.
/// `unique_checks` stays on: if it is off, MariaDB since 10.6 locks an empty table as a whole, and
/// parallel workers wait for each other or deadlock.
pub(super) const WITHOUT_CHECKS: &str =
    "set @saiga_foreign = @@foreign_key_checks, foreign_key_checks = 0";
/// Restores the previous setting.
pub(super) const WITH_CHECKS: &str = "set foreign_key_checks = @saiga_foreign";

/// Size of a data packet: large enough that calls do not matter, small enough for CPU caches.
const INFILE_PACKET: usize = 64 << 10;
/// Size of one INSERT, and an upper bound for the size of a row.
const INSERT_PACKET: usize = 1 << 20;
const LONGEST_ROW: usize = 4 << 10;

/// The method of loading rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `LOAD DATA LOCAL`, with rows as lines of a file.
    Infile,
    /// INSERTs of many rows.
    Insert,
}

/// A function that writes the rows of a load.
type Fill<'f> = &'f mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>;

/// Loads rows inside a transaction that the caller ends.
pub(super) fn load(session: &mut MySql, table: Table, fill: Fill<'_>) -> Result<(), SqlError> {
    if session.form != Some(Form::Insert) {
        let sql = infile(table);
        if session.ask(&sql, |it| ask_for_data(&mut it.link, &sql))? {
            session.form = Some(Form::Infile);
            return load_infile(session, &sql, fill);
        }
        session.form = Some(Form::Insert);
    }
    let most = session.ask(MOST, |it| largest_packet(&mut it.link))?;
    let full = INSERT_PACKET.min(most.saturating_sub(LONGEST_ROW));
    load_inserts(session, &head(table), full, fill)
}

const MOST: &str = "select @@max_allowed_packet";

/// The server's limit for the size of a packet.
fn largest_packet(link: &mut Link) -> Result<usize, Fault> {
    let mut rows = Rows::new();
    link.query_as_written(MOST, &mut rows)?;
    let bytes = rows
        .int(0, 0)
        .ok()
        .and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or(Fault::Answer("no max_allowed_packet"))
}

fn infile(table: Table) -> String {
    let (name, columns) = (table.name(), table.columns().join(", "));
    // Separators are hexadecimal, because the meaning of a quoted backslash depends on sql_mode.
    format!(
        "load data local infile 'saiga' into table {name} character set utf8mb4 \
         fields terminated by x'09' escaped by x'5c' lines terminated by x'0a' ({columns})"
    )
}

fn head(table: Table) -> String {
    let (name, columns) = (table.name(), table.columns().join(", "));
    format!("insert into {name} ({columns}) values ")
}

/// Sends the LOAD DATA statement. `true` if the server expects the data now, `false` if it does not
/// allow the statement.
fn ask_for_data(link: &mut Link, sql: &str) -> Result<bool, Fault> {
    link.begin_query().extend(sql.as_bytes());
    link.wire().send()?;
    let packet = link.wire().packet()?;
    if packet.first() == Some(&0xfb) {
        return Ok(true);
    }
    match End::of(packet) {
        // "Not allowed" in old servers, MySQL and MariaDB.
        Err(Fault::Server(error)) if matches!(error.code, 1148 | 3948 | 4166) => Ok(false),
        Err(fault) => Err(fault),
        Ok(_) => Err(Fault::Answer("an OK before the data")),
    }
}

fn load_infile(session: &mut MySql, sql: &str, fill: Fill<'_>) -> Result<(), SqlError> {
    session.link.wire().reply();
    let mut lines = Bulk::new(session, sql, Form::Infile, INFILE_PACKET);
    let mut filled = fill(&mut lines);
    let rows = lines.rows;
    if filled.is_ok() {
        filled = lines.flush();
    }
    // An empty packet ends the data. If they are incomplete, the caller rolls back.
    let end = session.ask(sql, |it| {
        it.link.wire().reply();
        it.link.wire().send()?;
        End::of(it.link.wire().packet()?)
    });
    filled?;
    let end = end?;
    if end.warnings == 0 && end.rows == rows {
        return Ok(());
    }
    Err(warned(session, sql, rows, end))
}

/// The error for rows that were not loaded as sent, with the server's first warning.
fn warned(session: &mut MySql, sql: &str, sent: u64, end: End) -> SqlError {
    let mut warnings = Rows::new();
    let asked = session.ask(sql, |it| {
        it.link
            .query_as_written("show warnings limit 1", &mut warnings)
    });
    if let Err(error) = asked {
        return error;
    }
    let field = |column| warnings.shown(0, column).unwrap_or_default();
    SqlError::Refused {
        code: field(1),
        said: format!(
            "of {sent} rows {} were taken, with {} warnings: ERROR {}: {}",
            end.rows,
            end.warnings,
            field(1),
            field(2)
        ),
        sql: crate::db::beginning(sql),
    }
}

fn load_inserts(
    session: &mut MySql,
    head: &str,
    full: usize,
    fill: Fill<'_>,
) -> Result<(), SqlError> {
    session.link.begin_query().extend(head.as_bytes());
    let mut inserts = Bulk::new(session, head, Form::Insert, full);
    fill(&mut inserts)?;
    inserts.flush()
}

/// Collects rows in a packet and sends full packets.
struct Bulk<'s> {
    session: &'s mut MySql,
    sql: &'s str,
    form: Form,
    backslash: Backslash,
    /// Size at which a packet is sent.
    full: usize,
    /// Number of all rows; `waiting` is the number of rows in the current packet.
    rows: u64,
    waiting: u64,
    is_row_begun: bool,
}

impl<'s> Bulk<'s> {
    fn new(session: &'s mut MySql, sql: &'s str, form: Form, full: usize) -> Self {
        let backslash = session.link.backslash();
        Self {
            session,
            sql,
            form,
            backslash,
            full,
            rows: 0,
            waiting: 0,
            is_row_begun: false,
        }
    }

    /// Appends the separator before the next value and returns the buffer for the value.
    fn place(&mut self) -> &mut Vec<u8> {
        let (is_first_value, is_first_row) = (!self.is_row_begun, self.waiting == 0);
        self.is_row_begun = true;
        let out = self.session.link.wire().payload();
        match (self.form, is_first_value) {
            (Form::Infile, true) => {}
            (Form::Infile, false) => out.push(b'\t'),
            (Form::Insert, true) if is_first_row => out.push(b'('),
            (Form::Insert, true) => out.extend(b",("),
            (Form::Insert, false) => out.push(b','),
        }
        out
    }

    fn put(&mut self, value: Value<'_>) {
        let (form, backslash) = (self.form, self.backslash);
        let out = self.place();
        match form {
            Form::Insert => put_literal(out, &value, backslash),
            Form::Infile => put_field(out, &value),
        }
    }

    /// Sends the collected rows.
    fn flush(&mut self) -> Result<(), SqlError> {
        if self.waiting == 0 {
            return Ok(());
        }
        let (form, head) = (self.form, self.sql);
        self.session.ask(head, |it| match form {
            Form::Infile => {
                it.link.wire().send()?;
                it.link.wire().reply();
                Ok(())
            }
            Form::Insert => {
                it.link.finish_query(fields::as_written, &mut Rows::new())?;
                it.link.begin_query().extend(head.as_bytes());
                Ok(())
            }
        })?;
        self.waiting = 0;
        Ok(())
    }
}

impl Sink for Bulk<'_> {
    type Error = SqlError;

    fn int(&mut self, value: i64) {
        self.put(Value::Int(value));
    }

    fn decimal(&mut self, units: i64, scale: u32) {
        self.put(Value::Decimal(Decimal { units, scale }));
    }

    fn text(&mut self, value: &str) {
        self.put(Value::Text(value));
    }

    fn time(&mut self, seconds: i64) {
        self.put(Value::Time(seconds));
    }

    fn null(&mut self) {
        self.put(Value::Null);
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        let wire = self.session.link.wire();
        wire.payload().push(if self.form == Form::Infile {
            b'\n'
        } else {
            b')'
        });
        self.is_row_begun = false;
        self.rows += 1;
        self.waiting += 1;
        if self.session.link.wire().pending() < self.full {
            return Ok(());
        }
        self.flush()
    }
}

/// Appends a value as a field of a line.
fn put_field(out: &mut Vec<u8>, value: &Value<'_>) {
    let written = match value {
        Value::Int(int) => write!(out, "{int}"),
        Value::Decimal(decimal) => write!(out, "{decimal}"),
        Value::Time(seconds) => write!(out, "{}", Stamp::of(*seconds)),
        Value::Null => out.write_all(b"\\N"),
        Value::Text(text) => {
            put_escaped(out, text);
            Ok(())
        }
    };
    debug_assert!(written.is_ok(), "a vector takes all");
}

fn put_escaped(out: &mut Vec<u8>, text: &str) {
    let is_special = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\\' | 0);
    if !text.bytes().any(|byte| is_special(&byte)) {
        out.extend(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        match byte {
            0 => out.extend(b"\\0"),
            byte if is_special(&byte) => out.extend([b'\\', byte]),
            byte => out.push(byte),
        }
    }
}
