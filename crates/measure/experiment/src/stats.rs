//! Medians of paired ratios, their intervals, and tests over several of them.
//!
//! The unit is one pair: the ratio B/A of two runs that were adjacent in time. All
//! work is on logarithms, so that swapping A and B inverts every figure exactly.
//! The interval is Hettmansperger and Sheather's (1986): order statistics of the
//! ratios, interpolated to 95 %; it assumes no distribution. The p-value is that of
//! the paired t-test on log ratios, because the exact sign test cannot go below
//! 1/32 with six pairs and so could never survive a correction for ten cells.
//!
//! Deliberately absent: means of ratios, and the removal of outliers.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Fewer pairs than this give no verdict.
pub const MIN_PAIRS: usize = 6;
/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// The middle of `values`; `None` when there is none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The median of B/A over pairs with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioSummary {
    /// Median over pairs (the geometric middle of two when their number is even).
    pub median: f64,
    /// Lower and upper end; `None` below [`MIN_PAIRS`].
    pub ci95: Option<[f64; 2]>,
    /// Number of pairs.
    pub n_pairs: usize,
    /// Two-sided p-value of the paired t-test on log ratios; 1 below [`MIN_PAIRS`].
    pub p_value: f64,
}

impl RatioSummary {
    /// Summarises ratios; `None` when there is none or one is not positive and finite.
    #[must_use]
    pub fn of(ratios: &[f64]) -> Option<Self> {
        if ratios.iter().any(|r| !(r.is_finite() && *r > 0.0)) {
            return None;
        }
        let logs: Vec<f64> = sorted(&ratios.iter().map(|r| r.ln()).collect::<Vec<_>>());
        let median = median(&logs)?;
        let enough = logs.len() >= MIN_PAIRS;
        Some(Self {
            median: median.exp(),
            ci95: enough.then(|| median_interval(&logs).map(f64::exp)),
            n_pairs: logs.len(),
            p_value: if enough { t_test(&logs) } else { 1.0 },
        })
    }

    /// Whether the interval lies wholly above (+1) or below (-1) one; 0 when it
    /// holds one or there are too few pairs for a verdict.
    #[must_use]
    pub fn direction(&self) -> i8 {
        match self.ci95 {
            Some([lo, _]) if lo > 1.0 => 1,
            Some([_, hi]) if hi < 1.0 => -1,
            Some(_) | None => 0,
        }
    }
}

/// Holm's step-down correction: p-values adjusted for their number, in the given order.
///
/// Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor: f64 = 0.0;
    let mut weight = count(p_values.len());
    for index in order {
        floor = floor.max((p_values[index] * weight).min(1.0));
        adjusted[index] = floor;
        weight -= 1.0;
    }
    adjusted
}

/// Interval for the median of at least [`MIN_PAIRS`] sorted values.
fn median_interval(sorted: &[f64]) -> [f64; 2] {
    let n = sorted.len();
    // The deepest order statistic whose interval still holds 95 %.
    let mut depth = 1;
    while depth < n / 2 && order_statistic_confidence(n, depth + 1) >= CONFIDENCE {
        depth += 1;
    }
    let outer = order_statistic_confidence(n, depth);
    let inner = order_statistic_confidence(n, depth + 1);
    let share = (outer - CONFIDENCE) / (outer - inner);
    let (n_f, k) = (count(n), count(depth));
    let lambda = (n_f - k) * share / (k + (n_f - 2.0 * k) * share);
    let between = |outer: f64, inner: f64| outer + lambda * (inner - outer);
    [
        between(sorted[depth - 1], sorted[depth]),
        between(sorted[n - depth], sorted[n - depth - 1]),
    ]
}

/// Confidence with which the `depth`-th values from both ends enclose the median.
fn order_statistic_confidence(n: usize, depth: usize) -> f64 {
    let tosses = u64::try_from(n).unwrap_or(u64::MAX);
    let below = u64::try_from(depth).unwrap_or(u64::MAX) - 1;
    Binomial::new(0.5, tosses).map_or(0.0, |coin| 1.0 - 2.0 * coin.cdf(below))
}

/// Two-sided p-value of the hypothesis that the mean of `values` is zero.
fn t_test(values: &[f64]) -> f64 {
    let n = count(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if variance == 0.0 {
        return if mean == 0.0 { 1.0 } else { 0.0 };
    }
    let t = mean / (variance / n).sqrt();
    StudentsT::new(0.0, 1.0, n - 1.0).map_or(1.0, |student| 2.0 * student.sf(t.abs()))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A small count as a float.
fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// Powers of two, so that logarithms are equally spaced. For n = 6, by hand: the
    /// outer interval holds 31/32, the next 25/32; share 0.1, lambda 0.5/1.4.
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

    /// t = 4.5826 with five degrees of freedom; p by Simpson's rule over the density.
    #[test]
    fn the_t_test_agrees_with_integration() {
        let p = t_test(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
        assert!((p - 0.005_933_544_518).abs() < 1e-9, "{p}");
    }

    /// The worked example of Holm's procedure: 0.01 x4, 0.02 x3, 0.04 x2 raised by none, 0.03.
    #[test]
    fn holm_multiplies_steps_down_and_never_decreases() {
        let adjusted = holm(&[0.02, 0.5, 0.01, 0.04]);
        for (got, wanted) in adjusted.iter().zip([0.06, 0.5, 0.04, 0.08]) {
            assert!(close(*got, wanted), "{adjusted:?}");
        }
        assert_eq!(holm(&[0.4, 0.6]), [0.8, 0.8]);
    }
}
