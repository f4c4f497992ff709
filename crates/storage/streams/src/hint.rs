//! Write-lifetime hints: the expected time until a byte of a file is overwritten or deleted.
//!
//! Values: `RWH_WRITE_LIFE_*` of fcntl(2), passed as a `u64`. astream's stream numbers are the
//! same.

use std::fmt;
use std::str::FromStr;

/// A write-lifetime hint; the comments give the kernel's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// 0: no program has set a hint.
    NotSet,
    /// 1: a program has set the lifetime to unknown.
    None,
    /// 2: the shortest lifetime.
    Short,
    /// 3: a longer lifetime than `Short`.
    Medium,
    /// 4: a longer lifetime than `Medium`.
    Long,
    /// 5: the longest lifetime. Zoned XFS treats it like `Long`.
    Extreme,
}

/// A word that is not the name of a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hint; use short, medium, long, extreme or none")]
pub struct UnknownHint(pub String);

impl Hint {
    /// All hints, in the order of their values.
    pub const ALL: [Self; 6] = [
        Self::NotSet,
        Self::None,
        Self::Short,
        Self::Medium,
        Self::Long,
        Self::Extreme,
    ];

    /// Returns the value for `F_SET_RW_HINT`.
    #[must_use]
    pub const fn raw(self) -> u64 {
        match self {
            Self::NotSet => 0,
            Self::None => 1,
            Self::Short => 2,
            Self::Medium => 3,
            Self::Long => 4,
            Self::Extreme => 5,
        }
    }

    /// Returns the hint with a value, if there is one.
    #[must_use]
    pub fn from_raw(raw: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.raw() == raw)
    }

    /// Returns its name in rules and tables; a dash for `NotSet`, which rules cannot use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSet => "-",
            Self::None => "none",
            Self::Short => "short",
            Self::Medium => "medium",
            Self::Long => "long",
            Self::Extreme => "extreme",
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hint {
    type Err = UnknownHint;

    fn from_str(word: &str) -> Result<Self, UnknownHint> {
        Self::ALL
            .into_iter()
            .find(|hint| *hint != Self::NotSet && hint.name() == word)
            .ok_or_else(|| UnknownHint(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_kernel() {
        for (hint, raw) in [
            (Hint::NotSet, 0),
            (Hint::None, 1),
            (Hint::Short, 2),
            (Hint::Medium, 3),
            (Hint::Long, 4),
            (Hint::Extreme, 5),
        ] {
            assert_eq!(hint.raw(), raw);
            assert_eq!(Hint::from_raw(raw), Some(hint));
        }
        assert_eq!(Hint::from_raw(6), None);
        assert_eq!(Hint::from_raw((1 << 32) + 2), None);
    }

    #[test]
    fn a_dash_is_not_a_hint_for_rules() {
        assert_eq!("long".parse(), Ok(Hint::Long));
        assert!("-".parse::<Hint>().is_err());
        assert!("Long".parse::<Hint>().is_err());
    }
}
