//! One message of the server, and functions that parse its body.
//!
//! Format: PostgreSQL's "Message Formats". A truncated message results in `None`, never in a panic.

/// A message: its type and its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Splits a complete message: tag, four bytes of length, body.
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self {
            tag: message.first().copied().unwrap_or(0),
            body: message.get(5..).unwrap_or_default(),
        }
    }

    /// The fields of a `DataRow`; a field is `None` for NULL.
    pub(super) fn fields(self) -> Option<Fields<'a>> {
        let mut rest = self.body;
        let left = take_u16(&mut rest)?;
        Some(Fields { left, rest })
    }

    /// Name and type (OID) of each column of a `RowDescription`.
    pub(super) fn columns(self) -> Option<Vec<(String, u32)>> {
        let mut rest = self.body;
        let count = take_u16(&mut rest)?;
        (0..count)
            .map(|_| {
                let name = String::from_utf8_lossy(take_text(&mut rest)?).into_owned();
                let _table_and_column: [u8; 6] = take(&mut rest)?;
                let oid = u32::from_be_bytes(take(&mut rest)?);
                let _size_modifier_format: [u8; 8] = take(&mut rest)?;
                Some((name, oid))
            })
            .collect()
    }

    /// The number at the end of a `CommandComplete`, as in `INSERT 0 5`; 0 if there is no number.
    pub(super) fn count(self) -> Option<u64> {
        let tag = self.body.strip_suffix(b"\0")?;
        let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let digits = &tag[tag.len() - digits.count()..];
        let sum = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(*digit - b'0'));
        digits.iter().try_fold(0, sum)
    }

    /// The transaction status in a `ReadyForQuery`.
    pub(super) fn phase(self) -> Option<Phase> {
        match self.body {
            b"I" => Some(Phase::Idle),
            b"T" => Some(Phase::Open),
            b"E" => Some(Phase::Failed),
            _ => None,
        }
    }
}

/// The transaction status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No transaction is open.
    Idle,
    /// A transaction is open.
    Open,
    /// The transaction has failed and can only be rolled back.
    Failed,
}

/// Iterates over the fields of a row.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Returns `Ok(None)` after the last field, and `Err` if the message is truncated or has excess
    /// bytes.
    pub(super) fn next(&mut self) -> Result<Option<Option<&'a [u8]>>, ()> {
        if self.left == 0 {
            return if self.rest.is_empty() {
                Ok(None)
            } else {
                Err(())
            };
        }
        self.left -= 1;
        let length = i32::from_be_bytes(take(&mut self.rest).ok_or(())?);
        if length == -1 {
            return Ok(Some(None));
        }
        let length = usize::try_from(length).map_err(|_| ())?;
        let (value, rest) = self.rest.split_at_checked(length).ok_or(())?;
        self.rest = rest;
        Ok(Some(Some(value)))
    }
}

/// Removes the next `N` bytes.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

/// Removes the next zero byte and returns the bytes before it.
pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (text, tail) = rest.split_at(end);
    *rest = &tail[1..];
    Some(text)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &[u8]) -> Frame<'_> {
        Frame { tag: b'?', body }
    }

    fn all(body: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
        let mut fields = frame(body).fields()?;
        let mut found = Vec::new();
        while let Some(field) = fields.next().ok()? {
            found.push(field.map(<[u8]>::to_vec));
        }
        Some(found)
    }

    #[test]
    fn rows_are_read_to_their_end_and_no_further() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(
            all(row),
            Some(vec![Some(b"ab".to_vec()), None, Some(Vec::new())])
        );
        assert_eq!(all(b"\0\0"), Some(Vec::new()));
        for cut in 0..row.len() {
            assert_eq!(all(&row[..cut]), None, "{cut}");
        }
        assert_eq!(all(b"\0\x01\0\0\0\x01ab"), None);
        assert_eq!(all(b"\0\x01\xff\xff\xff\xfe"), None);
        assert_eq!(all(b"\0\x01\x7f\xff\xff\xff"), None);
    }

    #[test]
    fn counts_are_the_last_number_of_a_tag() {
        for (tag, count) in [
            (&b"INSERT 0 5\0"[..], Some(5)),
            (b"SELECT 12\0", Some(12)),
            (b"BEGIN\0", Some(0)),
            (b"\0", Some(0)),
            (b"UPDATE 1", None),
            (b"UPDATE 99999999999999999999\0", None),
        ] {
            assert_eq!(frame(tag).count(), count, "{tag:?}");
        }
    }

    #[test]
    fn columns_have_names_and_types() {
        let body = b"\0\x01name\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0";
        assert_eq!(frame(body).columns(), Some(vec![("name".to_owned(), 20)]));
        for cut in 0..body.len() {
            assert_eq!(frame(&body[..cut]).columns(), None, "{cut}");
        }
    }
}
