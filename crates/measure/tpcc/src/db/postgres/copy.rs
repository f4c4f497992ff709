//! Loads a table by `COPY ... FROM STDIN` in text format.
//!
//! A COPY outside a transaction block is a transaction of its own: either all rows are stored or
//! none. Data is sent in messages of about 64 KiB. Before each message, errors of the server are
//! read, so that a full disk ends a load at once and not after its last row.

use bytes::BufMut as _;
use postgres_protocol::message::backend as tag;

use super::Postgres;
use super::failure::Failure;
use super::link::{Broken, Link};
use super::talk::{Heard, Talk, copy_fail, deliver, insist};
use super::text;
use crate::db::SqlError;
use crate::db::value::Decimal;
use crate::population::Sink;
use crate::table::Table;

/// Size at which a message is sent.
const MESSAGE_BYTES: usize = 64 << 10;
/// Tag and length at the start of a message.
const HEAD_BYTES: usize = 5;

/// Loads the rows that `fill` writes.
pub(super) fn load(
    session: &mut Postgres,
    table: Table,
    fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let (name, columns) = (table.name(), table.columns().join(", "));
    let sql = format!("copy {name} ({columns}) from stdin");
    session.bundle.query(&sql)?;
    deliver(&mut session.link, &session.bundle.bytes, &sql)?;
    if let Some(failure) = refusal(&mut session.link)? {
        return close(session, &sql, Some(failure));
    }
    let mut copier = Copier::new(&mut session.link);
    let filled = fill(&mut copier).and_then(|()| copier.flush());
    let failure = copier.failure.take();
    match filled {
        // The server has ended the COPY already.
        _ if failure.is_some() => close(session, &sql, failure),
        Ok(()) => {
            session.bundle.copy_done();
            deliver(&mut session.link, &session.bundle.bytes, &sql)?;
            close(session, &sql, None)
        }
        Err(error) => {
            deliver(&mut session.link, &copy_fail()?, &sql)?;
            // The server only reports the failure that `copy_fail` requested.
            match close(session, &sql, None) {
                Err(lost @ SqlError::Lost { .. }) => Err(lost),
                Ok(()) | Err(_) => Err(error),
            }
        }
    }
}

/// Waits until the server accepts data. Returns the error if it does not.
fn refusal(link: &mut Link) -> Result<Option<Failure>, Broken> {
    loop {
        let frame = link.receive()?;
        match frame.tag {
            tag::COPY_IN_RESPONSE_TAG => return Ok(None),
            tag::ERROR_RESPONSE_TAG => return Ok(Some(Failure::of(frame.body))),
            tag::NOTICE_RESPONSE_TAG | tag::PARAMETER_STATUS_TAG => {}
            other => {
                let what = format!("a message {:?} in answer to COPY", char::from(other));
                link.give_up();
                return Err(Broken::protocol(what));
            }
        }
    }
}

/// Reads the end of the COPY. `failure` is an error that was read before.
fn close(session: &mut Postgres, sql: &str, failure: Option<Failure>) -> Result<(), SqlError> {
    if failure.as_ref().is_some_and(|failure| failure.is_fatal) {
        session.link.give_up();
    }
    let heard = if session.link.is_broken() {
        Ok(Heard::default())
    } else {
        let Postgres {
            link,
            phase,
            bundle,
            known,
            ..
        } = session;
        let mut talk = Talk {
            link,
            phase,
            known,
            rows: None,
        };
        talk.listen(bundle)
    };
    match failure {
        Some(failure) => Err(failure.of_statement(sql)),
        None => insist(heard, sql).map(|_| ()),
    }
}

/// Writes rows in COPY's text format: tabs between values, `\N` for NULL.
struct Copier<'a> {
    link: &'a mut Link,
    /// An incomplete message: an empty header, then data.
    message: Vec<u8>,
    /// Whether the next value is the first of its row.
    is_first: bool,
    /// The error with which the server ended the COPY.
    failure: Option<Failure>,
}

impl<'a> Copier<'a> {
    fn new(link: &'a mut Link) -> Self {
        let mut message = Vec::with_capacity(MESSAGE_BYTES + (MESSAGE_BYTES >> 4));
        message.put_bytes(0, HEAD_BYTES);
        Self {
            link,
            message,
            is_first: true,
            failure: None,
        }
    }

    /// Sends the collected data.
    fn flush(&mut self) -> Result<(), SqlError> {
        self.listen()?;
        if self.message.len() == HEAD_BYTES {
            return Ok(());
        }
        let length = u32::try_from(self.message.len() - 1).unwrap_or(u32::MAX);
        self.message[0] = b'd';
        self.message[1..HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
        deliver(self.link, &self.message, "copy")?;
        self.message.truncate(HEAD_BYTES);
        Ok(())
    }

    /// Reads messages that the server has sent during the COPY, and returns its error, if any.
    fn listen(&mut self) -> Result<(), SqlError> {
        while self.link.has_news()? {
            let frame = self.link.receive()?;
            match frame.tag {
                tag::ERROR_RESPONSE_TAG => {
                    let failure = self.failure.insert(Failure::of(frame.body));
                    return Err(failure.clone().of_statement("copy"));
                }
                tag::NOTICE_RESPONSE_TAG | tag::PARAMETER_STATUS_TAG => {}
                other => {
                    let what = format!("a message {:?} amid a COPY", char::from(other));
                    self.link.give_up();
                    return Err(Broken::protocol(what).into());
                }
            }
        }
        Ok(())
    }

    fn separate(&mut self) {
        if !self.is_first {
            self.message.push(b'\t');
        }
        self.is_first = false;
    }
}

impl Sink for Copier<'_> {
    type Error = SqlError;

    fn int(&mut self, value: i64) {
        self.separate();
        text::put_int(value, &mut self.message);
    }

    fn decimal(&mut self, units: i64, scale: u32) {
        self.separate();
        text::put_decimal(Decimal { units, scale }, &mut self.message);
    }

    fn text(&mut self, value: &str) {
        self.separate();
        put_escaped(value, &mut self.message);
    }

    fn time(&mut self, seconds: i64) {
        self.separate();
        text::put_stamp(seconds, &mut self.message);
    }

    fn null(&mut self) {
        self.separate();
        self.message.extend_from_slice(b"\\N");
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.message.push(b'\n');
        self.is_first = true;
        if self.message.len() < MESSAGE_BYTES {
            return Ok(());
        }
        self.flush()
    }
}

/// Escapes the characters that have a meaning in COPY's text format.
fn put_escaped(value: &str, out: &mut Vec<u8>) {
    let mut rest = value.as_bytes();
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        out.push(b'\\');
        out.push(match rest[at] {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            other => other,
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_copy_would_misread_is_escaped() {
        let mut out = Vec::new();
        put_escaped("a\tb\\N\r\n'\u{fc}", &mut out);
        assert_eq!(out, "a\\tb\\\\N\\r\\n'\u{fc}".as_bytes());
    }
}
