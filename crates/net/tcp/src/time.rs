//! Time as an argument: instants and spans in microseconds.
//!
//! The engine reads no clock. Its caller passes the present instant to every call and asks for the
//! next time-out.

use core::ops::{Add, Sub};

/// A point in time: microseconds since an instant that the caller chooses once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub u64);

impl Instant {
    /// Later than every instant of a connection.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

impl Micros {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// The span times a number.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The span divided by a number that is not 0.
    #[must_use]
    pub const fn divided_by(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }

    /// The span doubled `exponent` times.
    #[must_use]
    pub const fn doubled(self, exponent: u32) -> Self {
        let exponent = if exponent > 63 { 63 } else { exponent };
        self.times(1 << exponent)
    }
}

impl Add<Micros> for Instant {
    type Output = Self;

    fn add(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Micros {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Micros {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
