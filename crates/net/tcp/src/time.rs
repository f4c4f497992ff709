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

    /// Whole seconds, which wrap after 136 years.
    #[expect(clippy::cast_possible_truncation, reason = "the clock wraps")]
    pub(crate) const fn whole_seconds(self) -> u32 {
        (self.0 / 1_000_000) as u32
    }

    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

/// An instant that can be missing, in eight bytes: a connection has many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalInstant(u64);

impl OptionalInstant {
    pub(crate) const NONE: Self = Self(u64::MAX);

    pub(crate) const fn get(self) -> Option<Instant> {
        if self.0 == u64::MAX {
            None
        } else {
            Some(Instant(self.0))
        }
    }

    pub(crate) const fn is_some(self) -> bool {
        self.0 != u64::MAX
    }

    /// Whether the instant is there and not after `now`.
    pub(crate) const fn has_come(self, now: Instant) -> bool {
        self.is_some() && self.0 <= now.0
    }

    /// The earlier one of two instants, of which both can be missing.
    pub(crate) fn earlier_of(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Sets the instant if it is missing.
    pub(crate) fn set_first(&mut self, at: Instant) {
        if !self.is_some() {
            *self = Self::from(Some(at));
        }
    }
}

impl From<Option<Instant>> for OptionalInstant {
    fn from(at: Option<Instant>) -> Self {
        // An instant at the end of time is as good as none.
        Self(at.map_or(u64::MAX, |at| at.0))
    }
}

impl From<Instant> for OptionalInstant {
    fn from(at: Instant) -> Self {
        Self(at.0)
    }
}

impl Micros {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than every path and every connection.
    pub const MAX: Self = Self(u64::MAX);

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
