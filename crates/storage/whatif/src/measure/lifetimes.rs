//! The distribution of lifetimes of pages: ended lives, and lives that had not ended at the end of
//! the trace.
//!
//! The distribution is the estimator of Kaplan and Meier, in which a life that has not ended counts
//! as at risk for the observed time; otherwise such lives would look short. Quantiles beyond the
//! longest observation are unknown.

use std::collections::BTreeMap;

/// Bins for each factor of two.
const STEPS: u64 = 4;

/// A histogram of lifetimes with logarithmic bins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lifetimes {
    bins: BTreeMap<u64, Bin>,
    /// The longest observed life, ended or not.
    longest_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bin {
    ended: u64,
    censored: u64,
}

/// An age, known or with a lower bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Age {
    /// Seconds.
    Known(f64),
    /// More than this number of seconds, the longest observation.
    MoreThan(f64),
}

impl Age {
    /// Returns the seconds of either variant.
    #[must_use]
    pub fn seconds(self) -> f64 {
        match self {
            Self::Known(seconds) | Self::MoreThan(seconds) => seconds,
        }
    }
}

impl Lifetimes {
    pub(super) fn add_ended(&mut self, ns: u64, count: u64) {
        self.bin(ns).ended += count;
    }

    pub(super) fn add_censored(&mut self, ns: u64, count: u64) {
        self.bin(ns).censored += count;
    }

    fn bin(&mut self, ns: u64) -> &mut Bin {
        self.longest_ns = self.longest_ns.max(ns);
        self.bins.entry(bin(ns)).or_default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (number, bin) in &other.bins {
            let sum = self.bins.entry(*number).or_default();
            sum.ended += bin.ended;
            sum.censored += bin.censored;
        }
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// Returns the number of observed page writes.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.values().map(|bin| bin.ended + bin.censored).sum()
    }

    /// Returns the number of ended lives.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.bins.values().map(|bin| bin.ended).sum()
    }

    /// Returns the longest observed life in seconds. The last bin extends beyond it.
    fn longest_s(&self) -> f64 {
        self.longest_ns as f64 / 1e9
    }

    /// Returns points of age in seconds and share of dead pages, at each age at which pages died.
    #[must_use]
    pub fn distribution(&self) -> Vec<[f64; 2]> {
        let mut at_risk = self.count();
        let mut alive = 1.0;
        let mut points = Vec::new();
        for (number, bin) in &self.bins {
            if bin.ended > 0 {
                alive *= 1.0 - bin.ended as f64 / at_risk as f64;
                let age_s = middle_s(*number).min(self.longest_s());
                points.push([age_s, 1.0 - alive]);
            }
            at_risk -= bin.ended + bin.censored;
        }
        points
    }

    /// Returns the age at which a share of the pages was dead; `None` without observations.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Age> {
        if self.bins.is_empty() {
            return None;
        }
        let points = self.distribution();
        let known = points.iter().find(|[_, dead]| *dead >= share - 1e-9);
        Some(match known {
            Some([age, _]) => Age::Known(*age),
            None => Age::MoreThan(self.longest_s()),
        })
    }
}

fn bin(ns: u64) -> u64 {
    let ns = ns.max(1024);
    let octave = u64::from(ns.ilog2());
    octave * STEPS + (ns >> (octave - 2)) % STEPS
}

/// Returns the middle of a bin in seconds.
fn middle_s(bin: u64) -> f64 {
    let (octave, step) = (bin / STEPS, bin % STEPS);
    let octave = i32::try_from(octave).unwrap_or(64);
    2_f64.powi(octave) * (1.0 + (step as f64 + 0.5) / STEPS as f64) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn is_near(age: Option<Age>, expected: f64) -> bool {
        matches!(age, Some(Age::Known(age)) if (age / expected - 1.0).abs() < 0.13)
    }

    #[test]
    fn bins_are_within_an_eighth() {
        for ns in [1024, 1500, 1 << 20, S, 3600 * S, 86_400 * 365 * S] {
            let middle = middle_s(bin(ns)) * 1e9;
            assert!((middle / ns as f64 - 1.0).abs() < 0.13, "{ns} {middle}");
        }
        assert_eq!(bin(0), bin(1024));
    }

    #[test]
    fn quantiles_are_those_of_what_ended() {
        let mut lives = Lifetimes::default();
        lives.add_ended(S, 60);
        lives.add_ended(100 * S, 40);
        assert!(is_near(lives.quantile(0.5), 1.0));
        assert!(is_near(lives.quantile(0.9), 100.0));
        assert_eq!(Lifetimes::default().quantile(0.5), None);
    }

    /// Four pages: one dies at 1 s, one is observed for 2 s, one dies at 4 s, one is observed for 8
    /// s. By Kaplan and Meier, 1/4 and then 1 - 3/4 * 1/2 = 5/8 are dead.
    #[test]
    fn censored_lives_do_not_count_as_short() {
        let mut lives = Lifetimes::default();
        lives.add_ended(S, 1);
        lives.add_censored(2 * S, 1);
        lives.add_ended(4 * S, 1);
        lives.add_censored(8 * S, 1);
        let dead: Vec<f64> = lives.distribution().iter().map(|[_, dead]| *dead).collect();
        assert_eq!(dead, [0.25, 0.625]);
        assert!(is_near(lives.quantile(0.6), 4.0));
        assert_eq!(lives.quantile(0.7), Some(Age::MoreThan(8.0)));
        assert_eq!((lives.count(), lives.ended()), (4, 2));
    }

    /// The bin of 600 s extends to 687 s; its middle, 618 s, was not observed.
    #[test]
    fn no_age_exceeds_the_longest_observation() {
        let mut short = Lifetimes::default();
        short.add_censored(S, 1);
        let mut lives = Lifetimes::default();
        lives.add_censored(600 * S, 1);
        assert_eq!(lives.quantile(0.5), Some(Age::MoreThan(600.0)));
        short.add(&lives);
        assert_eq!(short.quantile(0.5), Some(Age::MoreThan(600.0)));
        lives.add_ended(600 * S, 9);
        assert_eq!(lives.quantile(0.5), Some(Age::Known(600.0)));
    }
}
