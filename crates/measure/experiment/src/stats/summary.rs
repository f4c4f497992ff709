//! [`RatioSummary`]: the median ratio of pairs, its confidence interval and its p-value.

use serde::{Deserialize, Serialize};

use super::{MIN_PAIRS, fixed, median, sequence, sorted, t_test};

/// Choice of the number of pairs, which determines the valid kind of interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The plan fixed the number; the interval is valid once, at the end.
    #[default]
    Fixed,
    /// The results decided when to stop; the interval is valid after every pair, and wider.
    Sequential,
}

impl Method {
    /// The smallest number of pairs that gives a verdict.
    #[must_use]
    pub fn min_pairs(self) -> usize {
        match self {
            Self::Fixed => MIN_PAIRS,
            Self::Sequential => sequence::MIN_PAIRS,
        }
    }

    /// The interval of sorted values; `None` for too few values.
    #[must_use]
    pub fn interval(self, sorted: &[f64]) -> Option<[f64; 2]> {
        match self {
            Self::Fixed => fixed::interval(sorted),
            Self::Sequential => sequence::interval(sorted),
        }
    }
}

/// The median of B/A over pairs with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioSummary {
    /// Median over pairs; for an even number of pairs the geometric mean of the middle two.
    pub median: f64,
    /// Lower and upper end; `None` below [`Method::min_pairs`], and if the pairs are a selection.
    pub ci95: Option<[f64; 2]>,
    pub n_pairs: usize,
    /// Two-sided p-value of the hypothesis that the median ratio is 1: by the paired t-test on log
    /// ratios ([`Method::Fixed`]), or by a sign test that is valid after every pair. It is 1 below
    /// [`Method::min_pairs`].
    pub p_value: f64,
    pub method: Method,
}

impl RatioSummary {
    /// Summarises the ratios of a fixed number of pairs; `None` if there are none, or if a ratio is
    /// not positive and finite.
    #[must_use]
    pub fn of(ratios: &[f64]) -> Option<Self> {
        Self::by(Method::Fixed, ratios)
    }

    /// [`of`](Self::of) by a given method.
    #[must_use]
    pub fn by(method: Method, ratios: &[f64]) -> Option<Self> {
        if ratios.iter().any(|r| !(r.is_finite() && *r > 0.0)) {
            return None;
        }
        let logs: Vec<f64> = sorted(&ratios.iter().map(|r| r.ln()).collect::<Vec<_>>());
        let interval = method.interval(&logs);
        let p_value = match (interval, method) {
            (None, _) => 1.0,
            (Some(_), Method::Fixed) => t_test::p_value(&logs),
            (Some(_), Method::Sequential) => sequence::p_value(&logs),
        };
        Some(Self {
            median: median(&logs)?.exp(),
            ci95: interval.map(|ends| ends.map(f64::exp)),
            n_pairs: logs.len(),
            p_value,
            method,
        })
    }

    /// Removes interval and p-value, for pairs that are a selection (some pairs have no ratio) and
    /// so allow no conclusion about all pairs.
    #[must_use]
    pub fn of_selection(self) -> Self {
        Self {
            ci95: None,
            p_value: 1.0,
            ..self
        }
    }

    /// +1 if the interval lies above 1, -1 if it lies below 1, and 0 if it contains 1 or there are
    /// too few pairs for a verdict.
    #[must_use]
    pub fn direction(&self) -> i8 {
        match self.ci95 {
            Some([lo, _]) if lo > 1.0 => 1,
            Some([_, hi]) if hi < 1.0 => -1,
            Some(_) | None => 0,
        }
    }

    /// Half the width of the interval as a fraction (0.02 is 2 %); equal for A/B and B/A.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[lo, hi]| (hi / lo).sqrt() - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    /// Powers of two have equally spaced logarithms. By hand for n = 6: the outer interval has a
    /// confidence of 31/32, the next 25/32; share 0.1, lambda 0.5/1.4.
    #[test]
    fn six_pairs_interpolate_between_the_two_outermost_ratios() {
        let summary = RatioSummary::of(&[2.0, 4.0, 8.0, 16.0, 32.0, 64.0]).unwrap();
        let [lo, hi] = summary.ci95.unwrap();
        assert!(close(lo, 2.0 * 2f64.powf(0.5 / 1.4)), "{summary:?}");
        assert!(close(hi, 64.0 / 2f64.powf(0.5 / 1.4)), "{summary:?}");
        assert!(close(summary.median, 128f64.sqrt()), "{summary:?}");
        assert_eq!((summary.n_pairs, summary.direction()), (6, 1));
    }

    #[test]
    fn swapping_the_arms_inverts_every_figure() {
        let ratios = [1.1, 0.7, 1.9, 1.3, 0.95, 1.02, 1.4];
        let forth = RatioSummary::of(&ratios).unwrap();
        let back = RatioSummary::of(&ratios.map(|r| 1.0 / r)).unwrap();
        assert!(close(forth.median * back.median, 1.0));
        assert!(close(forth.ci95.unwrap()[0] * back.ci95.unwrap()[1], 1.0));
        assert!(close(forth.p_value, back.p_value));
        assert_eq!(forth.direction(), -back.direction());
    }

    #[test]
    fn five_pairs_give_no_direction_however_clear() {
        let summary = RatioSummary::of(&[7.0; 5]).unwrap();
        assert_eq!((summary.direction(), summary.p_value), (0, 1.0));
        assert_eq!(RatioSummary::of(&[7.0; 6]).unwrap().direction(), 1);
    }

    #[test]
    fn impossible_ratios_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(RatioSummary::of(&[1.0, bad]), None, "{bad}");
        }
        assert_eq!(RatioSummary::of(&[]), None);
    }

    #[test]
    fn the_sequential_interval_ends_at_values_and_needs_eight_pairs() {
        let ratios = [1.3, 1.1, 1.2, 1.4, 1.5, 1.6, 1.7, 1.8];
        let seven = RatioSummary::by(Method::Sequential, &ratios[..7]).unwrap();
        assert_eq!(
            (seven.ci95, seven.direction(), seven.p_value),
            (None, 0, 1.0)
        );
        let eight = RatioSummary::by(Method::Sequential, &ratios).unwrap();
        let [lo, hi] = eight.ci95.unwrap();
        assert!(close(lo, 1.1) && close(hi, 1.8), "{eight:?}");
        assert_eq!(eight.direction(), 1);
        assert!(eight.p_value < 0.05, "{eight:?}");
    }

    #[test]
    fn half_a_width_is_relative_and_the_same_for_both_directions() {
        let within = |lo, hi| RatioSummary {
            median: 1.0,
            ci95: Some([lo, hi]),
            n_pairs: 6,
            p_value: 1.0,
            method: Method::Fixed,
        };
        assert!(close(
            within(2.0 / 1.02, 2.0 * 1.02).half_width().unwrap(),
            0.02
        ));
        assert!(close(
            within(0.5 / 1.02, 0.5 * 1.02).half_width().unwrap(),
            0.02
        ));
    }
}
