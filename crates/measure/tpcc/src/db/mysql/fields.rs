//! Fields of rows in both formats of the protocol: text, and binary for prepared statements. Both
//! formats result in the same [`Rows`]: whole numbers as integers, decimals and times as text.

use super::answer::Column;
use super::parts::Parts;
use crate::db::rows::Rows;

/// Type numbers of columns in the protocol.
pub(super) mod kind {
    pub(in super::super) const TINY: u8 = 1;
    pub(in super::super) const SHORT: u8 = 2;
    pub(in super::super) const LONG: u8 = 3;
    pub(in super::super) const FLOAT: u8 = 4;
    pub(in super::super) const DOUBLE: u8 = 5;
    pub(in super::super) const NULL: u8 = 6;
    pub(in super::super) const TIMESTAMP: u8 = 7;
    pub(in super::super) const LONG_LONG: u8 = 8;
    pub(in super::super) const INT24: u8 = 9;
    pub(in super::super) const DATE: u8 = 10;
    pub(in super::super) const TIME: u8 = 11;
    pub(in super::super) const DATE_TIME: u8 = 12;
    pub(in super::super) const YEAR: u8 = 13;
    pub(in super::super) const NEW_DECIMAL: u8 = 246;
    pub(in super::super) const VAR_STRING: u8 = 253;
}

/// Parses a row in text format and stores every field as text.
pub(super) fn as_written(columns: &[Column], payload: &[u8], rows: &mut Rows) -> Option<()> {
    let mut parts = Parts(payload);
    for _ in columns {
        match parts.text_or_null()? {
            Some(text) => rows.push_text(text),
            None => rows.push_null(),
        }
    }
    Some(())
}

/// Parses a row in text format and converts numbers by the column's type.
pub(super) fn from_text(columns: &[Column], payload: &[u8], rows: &mut Rows) -> Option<()> {
    let mut parts = Parts(payload);
    for column in columns {
        match parts.text_or_null()? {
            Some(text) => push_written(column.kind, text, rows),
            None => rows.push_null(),
        }
    }
    Some(())
}

fn push_written(of: u8, text: &[u8], rows: &mut Rows) {
    let number = std::str::from_utf8(text).unwrap_or_default();
    let is_int = matches!(
        of,
        kind::TINY | kind::SHORT | kind::LONG | kind::LONG_LONG | kind::INT24 | kind::YEAR
    );
    let is_real = matches!(of, kind::FLOAT | kind::DOUBLE);
    match (number.parse::<i64>(), number.parse::<f64>()) {
        (Ok(int), _) if is_int => rows.push_int(int),
        (_, Ok(real)) if is_real => rows.push_real(real),
        _ => rows.push_text(text),
    }
}

/// Parses a row in binary format: a zero byte, the NULL bitmap, then the fields that are not NULL.
pub(super) fn from_binary(columns: &[Column], payload: &[u8], rows: &mut Rows) -> Option<()> {
    /// The first bits of the bitmap are unused.
    const OFFSET: usize = 2;
    let mut parts = Parts(payload);
    parts.u8().filter(|zero| *zero == 0)?;
    let nulls = parts.bytes((columns.len() + OFFSET).div_ceil(8))?;
    for (at, column) in columns.iter().enumerate() {
        let bit = at + OFFSET;
        if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
            rows.push_null();
        } else {
            push_binary(*column, &mut parts, rows)?;
        }
    }
    Some(())
}

fn push_binary(column: Column, parts: &mut Parts<'_>, rows: &mut Rows) -> Option<()> {
    let is_unsigned = column.is_unsigned;
    match column.kind {
        kind::TINY => {
            let [byte] = parts.array()?;
            rows.push_int(if is_unsigned {
                byte.into()
            } else {
                byte.cast_signed().into()
            });
        }
        kind::SHORT | kind::YEAR => {
            let short = parts.u16()?;
            rows.push_int(if is_unsigned {
                short.into()
            } else {
                short.cast_signed().into()
            });
        }
        kind::LONG | kind::INT24 => {
            let long = parts.u32()?;
            rows.push_int(if is_unsigned {
                long.into()
            } else {
                long.cast_signed().into()
            });
        }
        kind::LONG_LONG => {
            let number = u64::from_le_bytes(parts.array()?);
            match i64::try_from(number) {
                Err(_) if is_unsigned => rows.push_text(number.to_string().as_bytes()),
                _ => rows.push_int(number.cast_signed()),
            }
        }
        // The shortest decimal form of the float, as a text answer contains it.
        kind::FLOAT => rows.push_real(
            f32::from_le_bytes(parts.array()?)
                .to_string()
                .parse()
                .ok()?,
        ),
        kind::DOUBLE => rows.push_real(f64::from_le_bytes(parts.array()?)),
        kind::DATE | kind::DATE_TIME | kind::TIMESTAMP => {
            let date = DateTime::parse(Parts(parts.text()?))?;
            rows.push_text(date.shown(column).as_bytes());
        }
        kind::TIME => {
            let time = time(Parts(parts.text()?), column.decimals)?;
            rows.push_text(time.as_bytes());
        }
        kind::NULL => rows.push_null(),
        _ => rows.push_text(parts.text()?),
    }
    Some(())
}

/// A date and time. The server omits trailing parts that are zero.
#[derive(Default)]
struct DateTime {
    year: u16,
    month: u8,
    day: u8,
    time: [u8; 3],
    micros: u32,
}

impl DateTime {
    fn parse(mut parts: Parts<'_>) -> Option<Self> {
        let mut it = Self::default();
        if !parts.0.is_empty() {
            it.year = parts.u16()?;
            [it.month, it.day] = parts.array()?;
        }
        if !parts.0.is_empty() {
            it.time = parts.array()?;
        }
        if !parts.0.is_empty() {
            it.micros = parts.u32()?;
        }
        Some(it)
    }

    fn shown(&self, column: Column) -> String {
        let Self {
            year,
            month,
            day,
            time: [hour, minute, second],
            micros,
        } = self;
        let date = format!("{year:04}-{month:02}-{day:02}");
        if column.kind == kind::DATE {
            return date;
        }
        let fraction = fraction(*micros, column.decimals);
        format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}")
    }
}

/// A TIME value, a duration that can be longer than 24 hours.
fn time(mut parts: Parts<'_>, decimals: u8) -> Option<String> {
    if parts.0.is_empty() {
        return Some(format!("00:00:00{}", fraction(0, decimals)));
    }
    let sign = if parts.u8()? == 1 { "-" } else { "" };
    let days = parts.u32()?;
    let [hour, minute, second] = parts.array()?;
    let micros = if parts.0.is_empty() { 0 } else { parts.u32()? };
    let (hours, fraction) = (
        u64::from(days) * 24 + u64::from(hour),
        fraction(micros, decimals),
    );
    Some(format!(
        "{sign}{hours:02}:{minute:02}:{second:02}{fraction}"
    ))
}

/// A fraction of a second with the column's number of digits; empty if the column has none.
fn fraction(micros: u32, decimals: u8) -> String {
    match usize::from(decimals) {
        digits @ 1..=6 => format!(".{micros:06}")[..=digits].to_owned(),
        _ => String::new(),
    }
}
