//! Answers of the server: OK, error, or columns and rows.

use super::fault::Fault;
use super::greeting::Agreed;
use super::parts::Parts;
use super::wire::Wire;
use crate::db::rows::Rows;

const MORE_RESULTS: u16 = 1 << 3;
const UNSIGNED: u16 = 1 << 5;

/// The result of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct End {
    /// Rows found, inserted or deleted; for a select, rows received.
    pub(super) rows: u64,
    /// Status flags of the session.
    pub(super) status: u16,
    pub(super) warnings: u16,
}

/// The properties of a column that are needed to parse its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) kind: u8,
    pub(super) is_unsigned: bool,
    /// Fractional digits of a time.
    pub(super) decimals: u8,
}

/// Parses the fields of a row into a [`Rows`]. `None` if the row does not fit the columns.
pub(super) type ReadRow = fn(&[Column], &[u8], &mut Rows) -> Option<()>;

/// Reads all answers to a statement. The rows of the first answer that has rows go to `rows`.
/// `columns` keeps the last description of the columns, which the server may not repeat.
pub(super) fn read(
    wire: &mut Wire,
    agreed: Agreed,
    columns: &mut Vec<Column>,
    read_row: ReadRow,
    rows: &mut Rows,
) -> Result<End, Fault> {
    let mut end = read_one(wire, agreed, columns, read_row, rows)?;
    while end.status & MORE_RESULTS != 0 {
        let mut others = Rows::new();
        let to = if rows.is_empty() {
            &mut *rows
        } else {
            &mut others
        };
        let next = read_one(wire, agreed, columns, read_row, to)?;
        end = End {
            rows: end.rows.max(next.rows),
            ..next
        };
    }
    Ok(end)
}

fn read_one(
    wire: &mut Wire,
    agreed: Agreed,
    columns: &mut Vec<Column>,
    read_row: ReadRow,
    rows: &mut Rows,
) -> Result<End, Fault> {
    let packet = wire.packet()?;
    match packet {
        [0x00, ..] | [0xff, ..] => End::of(packet),
        [0xfb, ..] => {
            // The server requests a file. Only `bulk` sends data; here the answer is an empty file.
            wire.reply();
            wire.send()?;
            End::of(wire.packet()?)
        }
        _ => {
            let mut parts = Parts(packet);
            let count = parts.number().and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or(Fault::Answer("a result without its number of columns"))?;
            let is_described = !agreed.cached_columns || parts.u8() != Some(0);
            if is_described {
                *columns = read_columns(wire, count)?;
            } else if columns.len() != count {
                return Err(Fault::Answer("rows before their columns were described"));
            }
            if !agreed.no_eof {
                wire.packet()?;
            }
            read_rows(wire, agreed, columns, read_row, rows)
        }
    }
}

/// Reads the descriptions of `count` columns.
pub(super) fn read_columns(wire: &mut Wire, count: usize) -> Result<Vec<Column>, Fault> {
    let column = |_| {
        let packet = wire.packet()?;
        Column::parse(packet).ok_or(Fault::Answer("an incomplete description of a column"))
    };
    (0..count).map(column).collect()
}

fn read_rows(
    wire: &mut Wire,
    agreed: Agreed,
    columns: &[Column],
    read_row: ReadRow,
    rows: &mut Rows,
) -> Result<End, Fault> {
    let before = rows.len();
    loop {
        let packet = wire.packet()?;
        match packet {
            [0xff, ..] => return Err(Fault::of_error(packet)),
            // A row can start with this byte, too, if its first field has at least 16 MiB.
            [0xfe, rest @ ..] if agreed.no_eof || rest.len() < 8 => {
                let end = if agreed.no_eof {
                    End::of_ok(rest)
                } else {
                    End::of_eof(rest)
                };
                let end = end.ok_or(Fault::Answer("an incomplete end of rows"))?;
                let rows = (rows.len() - before) as u64;
                return Ok(End { rows, ..end });
            }
            _ => {
                read_row(columns, packet, rows).ok_or(Fault::Answer("an incomplete row"))?;
                rows.end_row();
            }
        }
    }
}

impl End {
    /// Parses an OK packet or an error packet.
    pub(super) fn of(packet: &[u8]) -> Result<Self, Fault> {
        match packet {
            [0x00, rest @ ..] => Self::of_ok(rest).ok_or(Fault::Answer("an incomplete OK packet")),
            [0xff, ..] => Err(Fault::of_error(packet)),
            _ => Err(Fault::Answer("neither an OK packet nor an error")),
        }
    }

    fn of_ok(rest: &[u8]) -> Option<Self> {
        let mut parts = Parts(rest);
        let rows = parts.number()?;
        let _last_insert_id = parts.number()?;
        Some(Self {
            rows,
            status: parts.u16()?,
            warnings: parts.u16()?,
        })
    }

    fn of_eof(rest: &[u8]) -> Option<Self> {
        let mut parts = Parts(rest);
        let warnings = parts.u16()?;
        Some(Self {
            rows: 0,
            status: parts.u16()?,
            warnings,
        })
    }
}

impl Column {
    /// A column description: six strings with names, then the type and its properties.
    fn parse(payload: &[u8]) -> Option<Self> {
        let mut parts = Parts(payload);
        for _name in ["catalog", "schema", "alias", "table", "label", "column"] {
            parts.text()?;
        }
        let mut fixed = Parts(parts.text()?);
        let _charset = fixed.u16()?;
        let _length = fixed.u32()?;
        let kind = fixed.u8()?;
        let flags = fixed.u16()?;
        Some(Self {
            kind,
            is_unsigned: flags & UNSIGNED != 0,
            decimals: fixed.u8()?,
        })
    }
}
