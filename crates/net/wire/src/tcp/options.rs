//! TCP options.
//!
//! Spec: RFC 9293 §3.2, RFC 7323 §2.2 and §3.2, RFC 2018 §2 and §3. Unknown options, and known ones
//! of another length than theirs, are skipped (MUST-6). A list with an illegal length (MUST-7) ends
//! there, and the options before it are valid, as in Linux. Absent on purpose: the rule that some
//! options are valid in SYN segments only, which the connection applies.

#[cfg(test)]
mod tests;

use super::sack::{SackBlock, SackBlocks};
use crate::SeqNum;
use crate::bytes::put_words;
use crate::checksum::Sum;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The first bytes of the timestamps option in the layout of RFC 7323 appendix A, which most
/// segments have as their only option.
const ALIGNED_TIMESTAMPS: [u8; 4] = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];
const ALIGNED_TIMESTAMPS_BYTES: usize = 12;
const BLOCK_BYTES: usize = 8;
/// Bytes that a header has for options.
const MAX_BYTES: usize = super::MAX_HEADER_BYTES - super::HEADER_BYTES;

/// The largest shift of a window (RFC 7323 §2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// The timestamps of a segment (RFC 7323 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// The sender's clock, TSval.
    pub value: u32,
    /// The latest timestamp that the sender received, TSecr.
    pub echo: u32,
}

/// The options of a segment. If an option occurs twice, the last one counts, as in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Largest payload that the sender accepts.
    pub mss: Option<u16>,
    /// Shift of the sender's windows. Larger values are read as [`MAX_WINDOW_SCALE`] (RFC 7323
    /// §2.3).
    pub window_scale: Option<u8>,
    /// The sender accepts selective acknowledgements.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// The list ended at an illegal length. Ignored by [`super::Header::emit`].
    pub malformed: bool,
}

impl Options {
    /// No options.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::NONE,
        malformed: false,
    };

    /// Reads the options of a header.
    #[inline(always)]
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::NONE;
        }
        if let Ok([a, b, c, d, rest @ ..]) = <&[u8; ALIGNED_TIMESTAMPS_BYTES]>::try_from(bytes)
            && [*a, *b, *c, *d] == ALIGNED_TIMESTAMPS
        {
            return Self {
                timestamps: Some(timestamps(rest)),
                ..Self::NONE
            };
        }
        Self::parse_list(bytes)
    }

    #[inline(always)]
    fn parse_list(mut list: &[u8]) -> Self {
        let mut options = Self::NONE;
        while let Some((&kind, rest)) = list.split_first() {
            if kind == END {
                break;
            }
            if kind == NO_OPERATION {
                list = rest;
                continue;
            }
            let length = rest.first().map_or(0, |length| usize::from(*length));
            let (Some(data), Some(behind)) = (list.get(2..length), list.get(length..)) else {
                options.malformed = true;
                break;
            };
            options.take(kind, data);
            list = behind;
        }
        options
    }

    /// Stores an option of type `kind`, given without its type and its length.
    #[inline(always)]
    fn take(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (SACK, data) => {
                let (blocks, rest) = data.as_chunks::<BLOCK_BYTES>();
                if rest.is_empty() && !blocks.is_empty() {
                    self.sack = blocks.iter().map(block).collect();
                }
            }
            (TIMESTAMPS, data) => {
                if let Ok(data) = data.try_into() {
                    self.timestamps = Some(timestamps(data));
                }
            }
            _ => {}
        }
    }

    /// Length of the options in an emitted header; a multiple of 4.
    #[inline]
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        let blocks = self.emitted_blocks();
        let sack = if blocks == 0 {
            0
        } else {
            4 + blocks * BLOCK_BYTES
        };
        self.len_without_sack() + sack
    }

    #[inline]
    const fn len_without_sack(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let times = match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => ALIGNED_TIMESTAMPS_BYTES,
            (false, true) => 4,
            (false, false) => 0,
        };
        mss + scale + times
    }

    /// Number of blocks for which the other options leave room.
    #[inline]
    const fn emitted_blocks(&self) -> usize {
        if self.sack.is_empty() {
            return 0;
        }
        let room = (MAX_BYTES - self.len_without_sack() - 4) / BLOCK_BYTES;
        let blocks = self.sack.len();
        if blocks < room { blocks } else { room }
    }

    /// Fills `buffer`, which has [`Self::len_bytes`], with the options; returns the sum of the
    /// bytes. Blocks that do not fit are left out: three blocks fit beside timestamps.
    #[inline]
    pub(super) fn fill(&self, buffer: &mut [u8]) -> Sum {
        match *self {
            _ if buffer.is_empty() => Sum::ZERO,
            Self {
                mss: None,
                window_scale: None,
                sack_permitted: false,
                timestamps: Some(Timestamps { value, echo }),
                ..
            } if buffer.len() == ALIGNED_TIMESTAMPS_BYTES => {
                let words = [u32::from_be_bytes(ALIGNED_TIMESTAMPS), value, echo];
                put_words(buffer, words);
                Sum::of_words(words)
            }
            _ => {
                self.fill_list(buffer);
                Sum::of(buffer)
            }
        }
    }

    fn fill_list(&self, buffer: &mut [u8]) {
        let mut list = List { rest: buffer };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            list.push([MSS, 4, high, low]);
        }
        match (self.timestamps, self.sack_permitted) {
            (Some(times), permitted) => {
                let mut option = aligned_timestamps(times);
                if permitted {
                    [option[0], option[1]] = [SACK_PERMITTED, 2];
                }
                list.push(option);
            }
            (None, true) => list.push([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]),
            (None, false) => {}
        }
        if let Some(shift) = self.window_scale {
            list.push([NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        let blocks = &self.sack.as_slice()[..self.emitted_blocks()];
        if !blocks.is_empty() {
            list.push([NO_OPERATION, NO_OPERATION, SACK, sack_length(blocks)]);
        }
        for block in blocks {
            list.push(block.left.0.to_be_bytes());
            list.push(block.right.0.to_be_bytes());
        }
    }
}

/// The part of the buffer that is not written yet.
struct List<'a> {
    rest: &'a mut [u8],
}

impl List<'_> {
    fn push<const N: usize>(&mut self, bytes: [u8; N]) {
        let (place, rest) = core::mem::take(&mut self.rest).split_at_mut(N);
        place.copy_from_slice(&bytes);
        self.rest = rest;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "four blocks have 34 bytes with type and length"
)]
const fn sack_length(blocks: &[SackBlock]) -> u8 {
    2 + (blocks.len() * BLOCK_BYTES) as u8
}

fn block(bytes: &[u8; BLOCK_BYTES]) -> SackBlock {
    let [a, b, c, d, e, f, g, h] = *bytes;
    SackBlock {
        left: SeqNum(u32::from_be_bytes([a, b, c, d])),
        right: SeqNum(u32::from_be_bytes([e, f, g, h])),
    }
}

#[inline]
fn timestamps(bytes: &[u8; 8]) -> Timestamps {
    let [a, b, c, d, e, f, g, h] = *bytes;
    Timestamps {
        value: u32::from_be_bytes([a, b, c, d]),
        echo: u32::from_be_bytes([e, f, g, h]),
    }
}

#[inline]
fn aligned_timestamps(times: Timestamps) -> [u8; ALIGNED_TIMESTAMPS_BYTES] {
    let [a, b, c, d] = times.value.to_be_bytes();
    let [e, f, g, h] = times.echo.to_be_bytes();
    let [n, o, kind, length] = ALIGNED_TIMESTAMPS;
    [n, o, kind, length, a, b, c, d, e, f, g, h]
}
