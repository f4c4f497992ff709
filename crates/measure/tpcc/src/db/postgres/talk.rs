//! One exchange: requests in one write, and the answers up to `ReadyForQuery`.
//!
//! A [`Bundle`] collects requests of the extended protocol (parse, bind, execute, one sync) or of
//! the simple protocol. The answers must match the requests: a missing or an additional completion
//! is a protocol error. Parameters and results are in text format. The columns of prepared
//! statements are known, so no description is requested.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend as tag;
use postgres_protocol::message::frontend;

use super::failure::Failure;
use super::frame::{Frame, Phase};
use super::link::{Broken, Link};
use super::plans::Plan;
use super::text;
use crate::db::SqlError;
use crate::db::rows::Rows;
use crate::db::value::Value;

/// Requests that are encoded but not sent.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) bytes: BytesMut,
    /// The plans that the bundle parses, in this order.
    parses: Vec<Plan>,
    /// Number of commands; `None` in the simple protocol, in which the SQL text decides.
    commands: Option<usize>,
    /// Number of commands at the start whose row counts are ignored, such as `begin`.
    silent: usize,
}

/// The answer of a server to a bundle.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Rows changed or selected by all commands that are not silent.
    pub(super) count: u64,
    /// Whether more rows can be fetched.
    pub(super) is_suspended: bool,
    /// Name and type of the columns of the last result; only in the simple protocol.
    pub(super) columns: Vec<(String, u32)>,
    /// The error of the first command that failed.
    pub(super) failure: Option<Failure>,
}

impl Bundle {
    pub(super) fn new() -> Self {
        Self {
            bytes: BytesMut::with_capacity(1 << 10),
            parses: Vec::new(),
            commands: Some(0),
            silent: 0,
        }
    }

    /// Clears the bundle for requests of the extended protocol.
    pub(super) fn restart(&mut self) {
        self.bytes.clear();
        self.parses.clear();
        (self.commands, self.silent) = (Some(0), 0);
    }

    /// Parses a plan under `name`. An empty name means that the statement is not kept.
    pub(super) fn parse(&mut self, plan: Plan, name: &str) -> Result<(), Broken> {
        self.parses.push(plan);
        Ok(frontend::parse(name, plan.sql(), [], &mut self.bytes)?)
    }

    /// Binds and executes a prepared statement. Returns at most `max_rows` rows; 0 means all.
    pub(super) fn execute(
        &mut self,
        name: &str,
        params: &[Value<'_>],
        max_rows: i32,
    ) -> Result<(), Broken> {
        let bound = frontend::bind("", name, [], params, write, [], &mut self.bytes);
        bound.map_err(|_| Broken::protocol("a value is too long to be sent"))?;
        self.proceed(max_rows)
    }

    /// Executes the bound statement, or continues its execution.
    pub(super) fn proceed(&mut self, max_rows: i32) -> Result<(), Broken> {
        self.commands = self.commands.map(|count| count + 1);
        Ok(frontend::execute("", max_rows, &mut self.bytes)?)
    }

    /// Ignores the row counts of the commands so far.
    pub(super) fn silence(&mut self) {
        self.silent = self.commands.unwrap_or(0);
    }

    pub(super) fn end(&mut self) {
        frontend::sync(&mut self.bytes);
    }

    /// Whether the bundle parses a plan.
    pub(super) fn parses(&self, plan: Plan) -> bool {
        self.parses.contains(&plan)
    }

    /// Replaces the bytes by `CopyDone`, which ends a COPY.
    pub(super) fn copy_done(&mut self) {
        self.bytes.clear();
        frontend::copy_done(&mut self.bytes);
    }

    /// Adds `Terminate`, which ends the session.
    pub(super) fn farewell(&mut self) {
        frontend::terminate(&mut self.bytes);
    }

    /// Replaces the bundle by one query of the simple protocol.
    pub(super) fn query(&mut self, sql: &str) -> Result<(), Broken> {
        self.restart();
        self.commands = None;
        Ok(frontend::query(sql, &mut self.bytes)?)
    }
}

/// A `CopyFail` message, which makes a COPY fail.
pub(super) fn copy_fail() -> Result<BytesMut, Broken> {
    let mut bytes = BytesMut::new();
    frontend::copy_fail("its rows cannot be had", &mut bytes)?;
    Ok(bytes)
}

fn write(
    value: &Value<'_>,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
    match value {
        Value::Int(value) => text::put_int(*value, out),
        Value::Decimal(value) => text::put_decimal(*value, out),
        Value::Text(value) => out.extend_from_slice(value.as_bytes()),
        Value::Time(seconds) => text::put_stamp(*seconds, out),
        Value::Null => return Ok(IsNull::Yes),
    }
    Ok(IsNull::No)
}

/// Reads answers until the server is ready for queries.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) link: &'a mut Link,
    pub(super) phase: &'a mut Phase,
    /// Whether the server has prepared a plan, indexed by [`Plan::index`].
    pub(super) known: &'a mut [bool],
    pub(super) rows: Option<&'a mut Rows>,
}

impl Talk<'_> {
    /// Reads the answers to a bundle that was sent. Closes the connection after a protocol error.
    pub(super) fn listen(&mut self, bundle: &Bundle) -> Result<Heard, Broken> {
        let heard = self.hear(bundle);
        if matches!(heard, Err(Broken::Protocol(_))) {
            self.link.give_up();
        }
        heard
    }

    fn hear(&mut self, bundle: &Bundle) -> Result<Heard, Broken> {
        let (mut heard, mut parsed, mut completed) = (Heard::default(), 0, 0);
        loop {
            let frame = match self.link.receive() {
                Ok(frame) => frame,
                // A fatal error, followed by the end of the connection.
                Err(Broken::Closed | Broken::Io(_)) if heard.failure.is_some() => return Ok(heard),
                Err(broken) => return Err(broken),
            };
            match frame.tag {
                tag::DATA_ROW_TAG => add_row(frame, self.rows.as_deref_mut())?,
                tag::PARSE_COMPLETE_TAG => {
                    let plan = bundle.parses.get(parsed).ok_or_else(|| unasked(frame))?;
                    self.known[plan.index()] = true;
                    parsed += 1;
                }
                tag::COMMAND_COMPLETE_TAG | tag::EMPTY_QUERY_RESPONSE_TAG => {
                    let count = count_of(frame)?;
                    let meant = if completed < bundle.silent { 0 } else { count };
                    heard.count = heard.count.saturating_add(meant);
                    completed += 1;
                }
                tag::PORTAL_SUSPENDED_TAG => {
                    (heard.is_suspended, completed) = (true, completed + 1);
                }
                tag::ERROR_RESPONSE_TAG => {
                    heard.failure.get_or_insert_with(|| Failure::of(frame.body));
                }
                tag::READY_FOR_QUERY_TAG => {
                    *self.phase = frame.phase().ok_or_else(|| unasked(frame))?;
                    break;
                }
                tag::ROW_DESCRIPTION_TAG if bundle.commands.is_none() => {
                    heard.columns = frame.columns().ok_or_else(|| cut_off(frame))?;
                    if let Some(rows) = self.rows.as_deref_mut() {
                        rows.clear();
                    }
                }
                tag::BIND_COMPLETE_TAG
                | tag::NOTICE_RESPONSE_TAG
                | tag::PARAMETER_STATUS_TAG
                | tag::NOTIFICATION_RESPONSE_TAG => {}
                tag::COPY_IN_RESPONSE_TAG if bundle.commands.is_none() => {
                    heard.failure = Some(Failure::unsupported("COPY FROM STDIN has no data here"));
                    self.link.send(&copy_fail()?)?;
                }
                tag::COPY_OUT_RESPONSE_TAG if bundle.commands.is_none() => {
                    heard.failure = Some(Failure::unsupported("COPY TO STDOUT has nowhere to go"));
                }
                tag::COPY_DATA_TAG | tag::COPY_DONE_TAG if heard.failure.is_some() => {}
                _ => return Err(unasked(frame)),
            }
        }
        let is_whole = bundle.commands.is_none_or(|commands| commands == completed);
        if heard.failure.is_none() && !is_whole {
            let what = format!(
                "{completed} commands are completed, not {:?}",
                bundle.commands
            );
            return Err(Broken::protocol(what));
        }
        Ok(heard)
    }
}

/// The error that the server sent before the connection broke, if any.
fn last_words(link: &mut Link) -> Option<Failure> {
    loop {
        let frame = link.leftover()?;
        if frame.tag == tag::ERROR_RESPONSE_TAG {
            return Some(Failure::of(frame.body));
        }
    }
}

/// Sends the bytes of `sql`. If that fails, the error is the server's last message, if it sent one.
pub(super) fn deliver(link: &mut Link, bytes: &[u8], sql: &str) -> Result<(), SqlError> {
    link.send(bytes).map_err(|broken| match last_words(link) {
        Some(failure) => failure.of_statement(sql),
        None => broken.into(),
    })
}

fn add_row(frame: Frame<'_>, rows: Option<&mut Rows>) -> Result<(), Broken> {
    let Some(rows) = rows else { return Ok(()) };
    let mut fields = frame.fields().ok_or_else(|| cut_off(frame))?;
    let mut width = 0;
    while let Some(field) = fields.next().map_err(|()| cut_off(frame))? {
        width += 1;
        match field {
            Some(value) => rows.push_text(value),
            None => rows.push_null(),
        }
    }
    if !rows.is_empty() && rows.columns() != width {
        return Err(Broken::protocol("rows of one result differ in width"));
    }
    rows.end_row();
    Ok(())
}

fn count_of(frame: Frame<'_>) -> Result<u64, Broken> {
    if frame.tag == tag::EMPTY_QUERY_RESPONSE_TAG {
        return Ok(0);
    }
    frame.count().ok_or_else(|| cut_off(frame))
}

fn unasked(frame: Frame<'_>) -> Broken {
    Broken::protocol(format!(
        "a message {:?} that nothing asked for",
        char::from(frame.tag)
    ))
}

fn cut_off(frame: Frame<'_>) -> Broken {
    Broken::protocol(format!(
        "a message {:?} that is cut off",
        char::from(frame.tag)
    ))
}

/// Converts a failed command into an error.
pub(super) fn insist(heard: Result<Heard, Broken>, sql: &str) -> Result<Heard, SqlError> {
    let mut heard = heard?;
    match heard.failure.take() {
        Some(failure) => Err(failure.of_statement(sql)),
        None => Ok(heard),
    }
}
