//! The Internet checksum and its incremental update.
//!
//! Spec: RFC 1071, RFC 1624 equation 3. The one's complement sum of 16-bit words does not depend on
//! the byte order in which the words are added (RFC 1071 §2.B). So slices are added in the order of
//! the machine, 32 bytes per round, and only the result of a slice is converted.

#[cfg(test)]
mod tests;

/// A one's complement sum of bytes that follow each other in a packet.
///
/// The bytes may be added in parts of any length: the sum keeps the parity of their number.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    /// Sum of 16-bit words in network byte order, not folded.
    total: u64,
    /// Whether the number of bytes so far is odd.
    odd: bool,
}

impl Sum {
    /// The sum of no bytes.
    pub const ZERO: Self = Self {
        total: 0,
        odd: false,
    };

    /// The sum of `bytes`, which are at most 16 GiB.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::ZERO.bytes(bytes)
    }

    /// The sum of slices that follow each other.
    #[must_use]
    pub fn of_slices(slices: &[&[u8]]) -> Self {
        slices
            .iter()
            .fold(Self::ZERO, |sum, bytes| sum.bytes(bytes))
    }

    /// Adds `bytes` behind the bytes added so far.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let word = u16::from_be(fold(native_total(bytes)));
        self.append(word, !bytes.len().is_multiple_of(2))
    }

    /// Adds two bytes, given as an integer in network byte order.
    #[inline]
    #[must_use]
    pub const fn u16(self, value: u16) -> Self {
        self.append(value, false)
    }

    /// Adds four bytes, given as an integer in network byte order.
    #[inline]
    #[must_use]
    pub const fn u32(self, value: u32) -> Self {
        self.append(fold(value as u64), false)
    }

    /// The sum of integers in network byte order.
    #[inline]
    pub(crate) fn of_words<const N: usize>(words: [u32; N]) -> Self {
        Self {
            total: words.into_iter().map(u64::from).sum(),
            odd: false,
        }
    }

    /// Adds the sum of bytes that follow the bytes added so far.
    #[inline]
    #[must_use]
    pub const fn then(self, later: Self) -> Self {
        self.append(later.value(), later.odd)
    }

    /// The sum folded to 16 bits, not complemented. The value is 0 only if all bytes are 0.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u16 {
        fold(self.total)
    }

    /// The checksum: the one's complement of the sum.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.value()
    }

    /// Whether the checksum is right; the sum must include the checksum field.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.value() == 0xffff
    }

    #[inline]
    const fn append(self, word: u16, odd: bool) -> Self {
        let word = if self.odd { word.swap_bytes() } else { word };
        Self {
            total: self.total + word as u64,
            odd: self.odd ^ odd,
        }
    }
}

/// The checksum of a packet in which the bytes summed in `old` are replaced by those of `new`.
///
/// Both sums must cover the same bytes and begin at an even offset of the packet. The result equals
/// a new computation unless all other bytes of the new packet are 0. An IP header, or a TCP segment
/// with its pseudo header, is never so; an ICMP echo reply may be.
#[inline]
#[must_use]
pub const fn update(checksum: u16, old: Sum, new: Sum) -> u16 {
    !fold(!checksum as u64 + !old.value() as u64 + new.value() as u64)
}

/// Sum of the bytes as 16-bit words in the byte order of the machine. A zero byte follows the last
/// byte if their number is odd.
#[inline]
fn native_total(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut total = if blocks.is_empty() {
        0
    } else {
        native_blocks(blocks)
    };
    // Words of 32 bits: their halves are added when the total is folded.
    let (words, tail) = rest.as_chunks::<4>();
    for word in words {
        total += u64::from(u32::from_ne_bytes(*word));
    }
    let last = match *tail {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    total + u64::from(u32::from_ne_bytes(last))
}

/// As [`native_total`], for whole blocks. The compiler turns the lanes into vector registers.
fn native_blocks(blocks: &[[u8; 32]]) -> u64 {
    let mut lanes = [0_u64; 8];
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    lanes.iter().sum()
}

/// Adds the 16-bit words of `total` with end-around carry.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the last addition leaves at most 16 bits"
)]
const fn fold(total: u64) -> u16 {
    let total = (total & 0xffff_ffff) + (total >> 32);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    let total = (total & 0xffff) + (total >> 16);
    total as u16
}
