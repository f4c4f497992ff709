//! Packs rows into 24 bytes each: the trace of a long recording has a hundred million rows.

use super::{Op, Row, SECTOR_BYTES};

/// Rows in order of insertion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows(Vec<Packed>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed {
    t_ns: u64,
    lba: u64,
    sectors: u32,
    label: Label,
}

/// An operation and an optional file number in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(u32);

impl Label {
    /// File numbers are less than this.
    pub(crate) const FILES: u32 = (1 << 30) - 1;

    pub(crate) fn new(op: Op, file: Option<u32>) -> Self {
        debug_assert!(file.is_none_or(|file| file < Self::FILES));
        let op = match op {
            Op::Present => 0,
            Op::Write => 1,
            Op::Discard => 2,
        };
        Self(file.map_or(0, |file| file + 1) << 2 | op)
    }

    pub(crate) fn op(self) -> Op {
        match self.0 & 3 {
            0 => Op::Present,
            1 => Op::Write,
            _ => Op::Discard,
        }
    }

    pub(crate) fn file(self) -> Option<u32> {
        (self.0 >> 2).checked_sub(1)
    }
}

impl Rows {
    /// Maximum length of a packed row in bytes.
    const MOST_BYTES: u64 = u32::MAX as u64 * SECTOR_BYTES;
    /// The largest page size. Parts of a longer row end at multiples of it, so that no page is in
    /// two parts.
    const SEAM_BYTES: u64 = 1 << 20;

    /// Appends a row, whose length is a multiple of the sector size. A row of 2 TiB or more is
    /// divided into parts.
    pub fn push(&mut self, row: Row) {
        let (mut lba, mut left) = (row.lba, row.len);
        while left > 0 {
            let len = if left > Self::MOST_BYTES {
                (lba + Self::MOST_BYTES) / Self::SEAM_BYTES * Self::SEAM_BYTES - lba
            } else {
                left
            };
            self.0.push(Packed {
                t_ns: row.t_ns,
                lba,
                // At most 2^32 - 1.
                sectors: u32::try_from(len / SECTOR_BYTES).unwrap_or(u32::MAX),
                label: Label::new(row.op, row.file),
            });
            left -= len;
            lba += len;
        }
    }

    /// Returns all rows. Each part of a divided row is a separate row.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row> + ExactSizeIterator + '_ {
        self.0.iter().map(|packed| Row {
            t_ns: packed.t_ns,
            lba: packed.lba,
            len: u64::from(packed.sectors) * SECTOR_BYTES,
            op: packed.label.op(),
            file: packed.label.file(),
        })
    }

    /// Returns the number of rows, in which each part of a divided row counts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Row> for Rows {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(row));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lba: u64, len: u64, op: Op, file: Option<u32>) -> Row {
        Row {
            t_ns: u64::MAX,
            lba,
            len,
            op,
            file,
        }
    }

    #[test]
    fn a_row_takes_24_bytes_and_is_read_back() {
        assert_eq!(size_of::<Packed>(), 24);
        let rows = [
            row(0, 512, Op::Present, None),
            row(u64::MAX - 511 - 4096, 4096, Op::Write, Some(0)),
            row(1 << 40, 1 << 40, Op::Discard, Some(Label::FILES - 1)),
        ];
        let packed: Rows = rows.into_iter().collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn long_rows_are_divided() {
        let long = 3 * Rows::MOST_BYTES - 512;
        for (begin, count) in [(0, 4), (512, 4), (u64::MAX - long - 511, 4)] {
            let packed: Rows = [row(begin, long, Op::Discard, None)].into_iter().collect();
            let parts: Vec<Row> = packed.iter().collect();
            assert_eq!(parts.len(), count);
            let mut next = begin;
            for part in &parts {
                assert_eq!((part.lba, part.op), (next, Op::Discard));
                assert!(part.len <= Rows::MOST_BYTES);
                next += part.len;
                assert!(
                    next % Rows::SEAM_BYTES == 0 || next == begin + long,
                    "{next}"
                );
            }
            assert_eq!(next, begin + long);
        }
    }
}
