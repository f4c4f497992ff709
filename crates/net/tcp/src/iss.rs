//! Initial sequence numbers and timestamp offsets.
//!
//! Spec: RFC 6528 §3, RFC 9293 §3.4.1: a clock of four microseconds plus a keyed hash of the
//! connection. A third party cannot guess the number, and a new connection between the same
//! addresses and ports begins above the last one. RFC 7323 §5.4: timestamps begin at a keyed hash,
//! too, so that they do not show how long the host has been up. The hash is SipHash-2-4.

use core::hash::Hasher as _;

use saiga_wire::SeqNum;
use siphasher::sip::SipHasher24;

use crate::time::Instant;

/// The generator of a worker, with its secret key.
#[derive(Clone, Copy)]
pub struct IssGenerator {
    key: [u64; 2],
}

impl core::fmt::Debug for IssGenerator {
    /// Does not show the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("IssGenerator")
    }
}

impl IssGenerator {
    /// Takes 128 random bits.
    #[must_use]
    pub const fn new(key: [u64; 2]) -> Self {
        Self { key }
    }

    /// The number for a new connection. `connection` holds both addresses and both ports.
    #[must_use]
    pub fn iss(&self, connection: &[u8], now: Instant) -> SeqNum {
        SeqNum(self.hash(connection, 0)) + low_half(now.0 / 4)
    }

    /// The timestamp of this connection at instant zero.
    #[must_use]
    pub fn timestamp_offset(&self, connection: &[u8]) -> u32 {
        self.hash(connection, 1)
    }

    fn hash(&self, connection: &[u8], purpose: u8) -> u32 {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        hasher.write(connection);
        hasher.write_u8(purpose);
        low_half(hasher.finish())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_connection_rise_by_one_in_four_microseconds() {
        let generator = IssGenerator::new([1, 2]);
        let first = generator.iss(b"10.0.0.1:5 10.0.0.2:80", Instant(1_000_000));
        let later = generator.iss(b"10.0.0.1:5 10.0.0.2:80", Instant(1_000_400));
        assert_eq!(later - first, 100);
    }

    #[test]
    fn other_connections_and_other_keys_have_unrelated_numbers() {
        let at = Instant(0);
        let generator = IssGenerator::new([1, 2]);
        let numbers = [
            generator.iss(b"a", at).0,
            generator.iss(b"b", at).0,
            IssGenerator::new([1, 3]).iss(b"a", at).0,
            generator.timestamp_offset(b"a"),
        ];
        for (index, one) in numbers.iter().enumerate() {
            for other in &numbers[index + 1..] {
                let bits = (one ^ other).count_ones();
                assert!((4..=28).contains(&bits), "{numbers:?}");
            }
        }
    }
}
