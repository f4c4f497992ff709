//! Types of single values, with their text form, range and default.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How much CPU time a wait may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Profile {
    /// Spins longer before it sleeps: the lowest latency, for a machine with idle cores.
    Latency,
    /// Spins for about the cost of one wake-up.
    #[default]
    Default,
    /// Never spins; for a machine whose cores are all busy.
    Gentle,
}

impl Profile {
    /// The name in files, variables and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Default => "default",
            Self::Gentle => "gentle",
        }
    }

    /// The value of `spin` that follows from this profile.
    #[must_use]
    pub const fn spin(self) -> Spin {
        Spin(match self {
            Self::Latency => Duration::from_micros(200),
            Self::Default => Duration::from_micros(50),
            Self::Gentle => Duration::ZERO,
        })
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Latency, Self::Default, Self::Gentle]
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| format!("{text:?} is not a profile; use latency, default or gentle"))
    }
}

/// The maximum size of each of a channel's two rings: a power of two from 4 KiB to 4 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct RingBytes(u32);

impl RingBytes {
    const MIN: u64 = 4 << 10;
    const MAX: u64 = 4 << 20;

    /// Returns the size in bytes.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for RingBytes {
    fn default() -> Self {
        Self(4 << 20)
    }
}

impl FromStr for RingBytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("B", 1)];
        let bytes = with_unit(text, &units, "a size with its unit, such as \"256KiB\"")?;
        if !(Self::MIN..=Self::MAX).contains(&bytes) || !bytes.is_power_of_two() {
            return Err(format!(
                "{text:?} is not a power of two from \"4KiB\" to \"4MiB\""
            ));
        }
        u32::try_from(bytes)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for RingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}KiB", self.0 >> 10)
    }
}

/// The time that a wait spins before it sleeps: at most 10 ms; 0 never spins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Spin(Duration);

impl Spin {
    const MAX_NS: u64 = 10_000_000;

    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Spin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000)];
        let ns = with_unit(text, &units, "a time with its unit, such as \"50us\"")?;
        if ns > Self::MAX_NS {
            return Err(format!("{text:?} is longer than \"10ms\""));
        }
        Ok(Self(Duration::from_nanos(ns)))
    }
}

impl fmt::Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        match (ns % 1_000_000, ns % 1_000) {
            (0, _) if ns > 0 => write!(f, "{}ms", ns / 1_000_000),
            (_, 0) => write!(f, "{}us", ns / 1_000),
            (_, _) => write!(f, "{ns}ns"),
        }
    }
}

/// Implements the conversion by which serde reads a type that files write as a string.
macro_rules! from_string {
    ($($kind:ty),*) => {
        $(impl TryFrom<String> for $kind {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        })*
    };
}

from_string!(Profile, RingBytes, Spin);

/// Parses a whole number and one of `units`, with at most one space between them.
fn with_unit(text: &str, units: &[(&str, u64)], example: &str) -> Result<u64, String> {
    let problem = || format!("{text:?} is not {example}");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(problem)?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let (_, factor) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(problem)?;
    let number: u64 = number.parse().map_err(|_| problem())?;
    number.checked_mul(*factor).ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4KiB", Some(4096)),
            ("256 KiB", Some(262_144)),
            ("1MiB", Some(1_048_576)),
            ("8192B", Some(8192)),
            ("2KiB", None),
            ("4MiB", Some(4_194_304)),
            ("8MiB", None),
            ("96KiB", None),
            ("262144", None),
            ("KiB", None),
            ("", None),
            ("64kb", None),
            ("-4KiB", None),
            ("18446744073709551615MiB", None),
        ] {
            let parsed = text.parse::<RingBytes>();
            assert_eq!(parsed.clone().ok().map(RingBytes::get), expected, "{text}");
            if let Err(problem) = parsed {
                assert!(problem.contains(&format!("{text:?}")), "{problem}");
            }
        }
    }

    #[test]
    fn times() {
        for (text, expected_ns, shown) in [
            ("0us", Some(0), "0us"),
            ("50us", Some(50_000), "50us"),
            ("1500 ns", Some(1_500), "1500ns"),
            ("10ms", Some(10_000_000), "10ms"),
            ("11ms", None, ""),
            ("50", None, ""),
            ("1s", None, ""),
        ] {
            let parsed = text.parse::<Spin>().ok();
            assert_eq!(
                parsed.map(|spin| spin.get().as_nanos()),
                expected_ns,
                "{text}"
            );
            if let Some(spin) = parsed {
                assert_eq!(spin.to_string(), shown);
            }
        }
    }
}
