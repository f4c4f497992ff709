//! Parameter values in the binary form of prepared statements, and as literals in a statement's
//! text.

use std::io::Write as _;

use super::fields::kind;
use super::parts::put_text;
use crate::db::value::{Stamp, Value};

/// The protocol's type number of a value.
pub(super) fn kind_of(value: &Value<'_>) -> u8 {
    match value {
        Value::Int(_) => kind::LONG_LONG,
        Value::Decimal(_) => kind::NEW_DECIMAL,
        Value::Text(_) => kind::VAR_STRING,
        Value::Time(_) => kind::DATE_TIME,
        Value::Null => kind::NULL,
    }
}

/// Appends the NULL bitmap, one bit per value.
pub(super) fn put_nulls(out: &mut Vec<u8>, values: &[Value<'_>]) {
    for eight in values.chunks(8) {
        let bit = |(at, value): (usize, &Value<'_>)| u8::from(*value == Value::Null) << at;
        out.push(eight.iter().enumerate().map(bit).sum());
    }
}

/// Appends a value in binary form; nothing for NULL.
pub(super) fn put_binary(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Int(int) => out.extend(int.to_le_bytes()),
        Value::Decimal(decimal) => {
            // The text is short, so its length takes one byte, which is set afterwards.
            let at = out.len();
            out.push(0);
            let written = write!(out, "{decimal}");
            debug_assert!(written.is_ok(), "a vector takes all");
            out[at] = u8::try_from(out.len() - at - 1).unwrap_or(0);
        }
        Value::Text(text) => put_text(out, text.as_bytes()),
        Value::Time(seconds) => put_time(out, Stamp::of(*seconds)),
        Value::Null => {}
    }
}

fn put_time(out: &mut Vec<u8>, stamp: Stamp) {
    const LENGTH: u8 = 7;
    let ((year, month, day), (hour, minute, second)) = (stamp.date, stamp.time);
    out.push(LENGTH);
    out.extend(u16::try_from(year).unwrap_or(0).to_le_bytes());
    for part in [month, day, hour, minute, second] {
        out.push(u8::try_from(part).unwrap_or(0));
    }
}

/// How the session reads backslashes in quoted strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    /// A backslash starts an escape sequence.
    Escapes,
    /// A backslash is an ordinary character (`NO_BACKSLASH_ESCAPES` in `sql_mode`).
    IsPlain,
}

/// Appends a statement with each `?` replaced by its value.
pub(super) fn put_statement(
    out: &mut Vec<u8>,
    sql: &str,
    values: &[Value<'_>],
    backslash: Backslash,
) {
    let mut values = values.iter();
    let mut pieces = sql.split('?');
    out.extend(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        put_literal(out, values.next().unwrap_or(&Value::Null), backslash);
        out.extend(piece.as_bytes());
    }
}

/// Appends a value as an SQL literal.
pub(super) fn put_literal(out: &mut Vec<u8>, value: &Value<'_>, backslash: Backslash) {
    let written = match value {
        Value::Int(int) => write!(out, "{int}"),
        Value::Decimal(decimal) => write!(out, "{decimal}"),
        Value::Time(seconds) => write!(out, "'{}'", Stamp::of(*seconds)),
        Value::Null => out.write_all(b"NULL"),
        Value::Text(text) => {
            put_quoted(out, text, backslash);
            Ok(())
        }
    };
    debug_assert!(written.is_ok(), "a vector takes all");
}

fn put_quoted(out: &mut Vec<u8>, text: &str, backslash: Backslash) {
    out.push(b'\'');
    for byte in text.bytes() {
        let is_twice = byte == b'\'' || (byte == b'\\' && backslash == Backslash::Escapes);
        out.push(byte);
        if is_twice {
            out.push(byte);
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::value::Decimal;

    #[test]
    fn texts_are_quoted_as_the_session_reads_them() {
        let quoted = |backslash| {
            let mut out = Vec::new();
            put_literal(&mut out, &Value::Text(r"O'Neil \' ?"), backslash);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(quoted(Backslash::Escapes), r"'O''Neil \\'' ?'");
        assert_eq!(quoted(Backslash::IsPlain), r"'O''Neil \'' ?'");
    }

    #[test]
    fn values_take_the_places_of_question_marks() {
        let values = [
            Value::Text("what?"),
            Value::Decimal(Decimal::cents(-5)),
            Value::Null,
            Value::Time(0),
            Value::Int(-7),
        ];
        let mut out = Vec::new();
        put_statement(
            &mut out,
            "set a = ?, b=?, c = ?, d = ? where e = ?",
            &values,
            Backslash::Escapes,
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "set a = 'what?', b=-0.05, c = NULL, d = '1970-01-01 00:00:00' where e = -7"
        );
    }

    #[test]
    fn binary_values_are_as_the_protocol_has_them() {
        let mut out = Vec::new();
        for value in [
            Value::Int(-2),
            Value::Decimal(Decimal::cents(1234)),
            Value::Text("ab"),
            Value::Time(951_782_399),
            Value::Null,
        ] {
            put_binary(&mut out, &value);
        }
        let int = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let time = [7, 0xd0, 7, 2, 28, 23, 59, 59];
        let texts = [&[5][..], b"12.34", &[2], b"ab"].concat();
        assert_eq!(out, [&int[..], &texts, &time].concat());
    }

    #[test]
    fn nulls_are_bits_from_the_lowest() {
        let (some, none) = (Value::Int(1), Value::Null);
        let mut out = Vec::new();
        put_nulls(
            &mut out,
            &[none, some, none, some, some, some, some, none, none],
        );
        assert_eq!(out, [0b1000_0101, 1]);
    }
}
