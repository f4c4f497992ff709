//! Control bits.

use core::fmt;
use core::ops::BitOr;

pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

/// A set of control bits. ACK and URG are not among them: [`super::Header`] has their fields as
/// options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// No control bit.
    pub const NONE: Self = Self(0);
    /// The sender sends no further data.
    pub const FIN: Self = Self(0x01);
    /// Synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection.
    pub const RST: Self = Self(0x04);
    /// The receiver should deliver the data without delay.
    pub const PSH: Self = Self(0x08);
    /// ECN echo: the receiver got a packet that was marked as congested.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    const NAMES: [(Self, &str); 6] = [
        (Self::FIN, "FIN"),
        (Self::SYN, "SYN"),
        (Self::RST, "RST"),
        (Self::PSH, "PSH"),
        (Self::ECE, "ECE"),
        (Self::CWR, "CWR"),
    ];

    #[inline]
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits & !(ACK | URG))
    }

    #[inline]
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits of both sets.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are not in `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// The names of the bits with `|` between them; `NONE` for the empty set.
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("NONE");
        }
        let mut separator = "";
        for (flag, name) in Self::NAMES {
            if self.contains(flag) {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn sets_of_bits() {
        let both = Flags::SYN | Flags::ECE;
        assert!(both.contains(Flags::SYN) && both.contains(both));
        assert!(!both.contains(Flags::SYN | Flags::CWR));
        assert!(both.intersects(Flags::SYN | Flags::CWR));
        assert!(!both.intersects(Flags::FIN) && !both.intersects(Flags::NONE));
        assert_eq!(both.without(Flags::ECE | Flags::FIN), Flags::SYN);
        assert_eq!(Flags::from_bits(0xff).bits(), 0xcf);
        assert_eq!(Flags::default(), Flags::NONE);
    }

    #[test]
    fn bits_have_names() {
        assert_eq!(format!("{:?}", Flags::NONE), "NONE");
        assert_eq!(format!("{:?}", Flags::RST), "RST");
        let all = format!("{:?}", Flags::from_bits(0xff));
        assert_eq!(all, "FIN|SYN|RST|PSH|ECE|CWR");
    }
}
