//! A probability in parts of a million, so that models compare and print exactly.

/// How often something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chance(u32);

impl Chance {
    /// Nothing happens.
    pub const NEVER: Self = Self(0);

    /// So many times in a million; more than a million is always.
    #[must_use]
    pub const fn per_million(count: u32) -> Self {
        Self(count)
    }

    /// So many times in a thousand.
    #[must_use]
    pub const fn per_mille(count: u32) -> Self {
        Self(count.saturating_mul(1000))
    }

    /// The probability, at most 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0.min(1_000_000)) / 1e6
    }

    /// Whether it happens this time. Draws no number if it never does.
    pub fn happens(self, random: &mut fastrand::Rng) -> bool {
        self.0 > 0 && random.u32(0..1_000_000) < self.0
    }
}
