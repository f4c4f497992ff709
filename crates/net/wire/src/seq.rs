//! Sequence numbers: arithmetic and order modulo 2^32.
//!
//! Spec: RFC 9293 §3.4, RFC 1982 with SERIAL_BITS = 32.

use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number.
///
/// There is no `Ord`: the order is not transitive. RFC 1982 defines no order at a distance of 2^31;
/// here, as in Linux, each of two such numbers is before and after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Whether `self` is less than `other`.
    #[inline]
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Whether `self` is greater than `other`.
    #[inline]
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether `self` is less than or equal to `other`.
    #[inline]
    #[must_use]
    pub const fn at_or_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() <= 0
    }

    /// Whether `self` is greater than or equal to `other`.
    #[inline]
    #[must_use]
    pub const fn at_or_after(self, other: Self) -> bool {
        other.at_or_before(self)
    }

    /// Whether `self` is one of the `length` numbers that begin with `start`.
    #[inline]
    #[must_use]
    pub const fn in_window(self, start: Self, length: u32) -> bool {
        self.0.wrapping_sub(start.0) < length
    }

    /// The greater of two numbers.
    #[inline]
    #[must_use]
    pub const fn later_of(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The lesser of two numbers.
    #[inline]
    #[must_use]
    pub const fn earlier_of(self, other: Self) -> Self {
        if other.before(self) { other } else { self }
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;

    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNum {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;

    #[inline]
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

/// The distance from `other` to `self`, modulo 2^32.
impl Sub for SeqNum {
    type Output = u32;

    #[inline]
    fn sub(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SeqNum;

    const MAX: u32 = u32::MAX;

    #[test]
    fn the_order_wraps() {
        for (name, a, b, before, after) in [
            ("equal", 7, 7, false, false),
            ("next", 7, 8, true, false),
            ("across zero", MAX, 0, true, false),
            ("far across zero", MAX - 9, 0x7fff_fff5, true, false),
            ("just below half", 0, 0x7fff_ffff, true, false),
            ("just above half", 0, 0x8000_0001, false, true),
            ("half: undefined in RFC 1982", 0, 0x8000_0000, true, true),
        ] {
            let (a, b) = (SeqNum(a), SeqNum(b));
            assert_eq!(a.before(b), before, "{name}");
            assert_eq!(a.after(b), after, "{name}");
            assert_eq!(a.at_or_before(b), before || a == b, "{name}");
            assert_eq!(a.at_or_after(b), after || a == b, "{name}");
        }
    }

    #[test]
    fn arithmetic_wraps() {
        let mut seq = SeqNum(MAX) + 1;
        assert_eq!(seq, SeqNum(0));
        seq += 5;
        assert_eq!(seq, SeqNum(5));
        assert_eq!(seq - 6, SeqNum(MAX));
        assert_eq!(seq - SeqNum(MAX), 6);
        assert_eq!(SeqNum(MAX) - seq, MAX - 5);
    }

    #[test]
    fn the_extremes_of_two() {
        let (low, high) = (SeqNum(MAX - 1), SeqNum(3));
        assert_eq!(low.later_of(high), high);
        assert_eq!(high.later_of(low), high);
        assert_eq!(low.earlier_of(high), low);
        assert_eq!(high.earlier_of(low), low);
    }

    #[test]
    fn windows_are_half_open() {
        for (seq, start, length, inside) in [
            (10, 10, 0, false),
            (10, 10, 1, true),
            (11, 10, 1, false),
            (9, 10, 1, false),
            (2, MAX, 4, true),
            (3, MAX, 4, false),
            (9, 10, MAX, false),
            (8, 10, MAX, true),
        ] {
            let found = SeqNum(seq).in_window(SeqNum(start), length);
            assert_eq!(found, inside, "{seq} in {start}+{length}");
        }
    }
}
