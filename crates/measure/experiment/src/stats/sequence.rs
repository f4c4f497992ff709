//! Confidence sequence for a median: an interval that is valid after every pair.
//!
//! If the median is m, each new value lies below m with a probability of at most 1/2, whatever the
//! earlier values are. For each p >= 1/2, the product over the values of 2p (value below m) or
//! 2(1-p) (value not below m) is therefore a nonnegative supermartingale that starts at 1, and so
//! is its mean over p uniform on [1/2, 1]. By Ville's inequality this mean ever reaches 40 with a
//! probability of at most 1/40. The interval consists of the candidates m at which the mean,
//! computed from below and from above, stayed under 40, so it ever misses m with a probability of
//! at most 5 %.
//!
//! Sources: Robbins, Ann. Math. Statist. 41 (1970); Howard and Ramdas, Bernoulli 28 (2022),
//! "Sequential estimation of quantiles", the one-sided beta-binomial mixture with a = b = 1.

use std::sync::LazyLock;

use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::factorial::ln_binomial;

use super::{CONFIDENCE, count};

/// Fewer pairs cannot exclude 1: eight values on one side are the first with evidence of 40 or
/// more.
pub(super) const MIN_PAIRS: usize = 8;

/// Number of precomputed depths.
const TABLED: usize = 1000;

static DEPTHS: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let mut depths: Vec<Option<usize>> = Vec::with_capacity(TABLED);
    for n in 0..TABLED {
        // An additional value moves the end inwards by at most one rank.
        let last = depths.last().copied().flatten();
        depths.push(deepest(n, last));
    }
    depths
});

/// The interval for the median of sorted values; `None` below [`MIN_PAIRS`].
///
/// The ends are values of the sample, because the guarantee does not hold between two values.
pub(super) fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let depth = depth(sorted.len())?;
    Some([sorted[depth - 1], sorted[sorted.len() - depth]])
}

/// Rank of the value that ends the interval of `n` values, counted from either end, from 1.
pub(super) fn depth(n: usize) -> Option<usize> {
    match DEPTHS.get(n) {
        Some(depth) => *depth,
        None => deepest(n, DEPTHS.last().copied().flatten()),
    }
}

/// A p-value of the hypothesis that the median is zero, valid after every pair.
///
/// The mean of both sides' evidence is a supermartingale as well, so its reciprocal is a p-value by
/// Ville's inequality.
pub(super) fn p_value(values: &[f64]) -> f64 {
    let n = values.len();
    let below = values.iter().filter(|value| **value < 0.0).count();
    let above = values.iter().filter(|value| **value > 0.0).count();
    let evidence = f64::midpoint(evidence(n, below), evidence(n, above));
    evidence.recip().min(1.0)
}

/// The innermost end that leaves enough evidence outside, searched from `from` on.
fn deepest(n: usize, from: Option<usize>) -> Option<usize> {
    // With depth d, n + 1 - d values lie on the near side of every candidate beyond the end.
    let enough = |depth: &usize| evidence(n, n + 1 - depth) >= 2.0 / (1.0 - CONFIDENCE);
    let from = from.unwrap_or(1);
    let depths = from..=n.div_ceil(2).max(from);
    depths.take_while(enough).last()
}

/// The mixture after `n` values of which `below` are below the candidate.
///
/// Closed form of the integral: 2^(n+1) / ((n+1) C(n, below)) P(Binomial(n+1, 1/2) <= below).
fn evidence(n: usize, below: usize) -> f64 {
    let tosses = u64::try_from(n).unwrap_or(u64::MAX - 1);
    let below = u64::try_from(below).unwrap_or(u64::MAX);
    let tail = Binomial::new(0.5, tosses + 1).map_or(0.0, |coin| coin.cdf(below));
    let scale = (count(n) + 1.0) * std::f64::consts::LN_2 - (count(n) + 1.0).ln();
    (scale - ln_binomial(tosses, below) + tail.ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2^9/9 (1 - 2^-9) = 511/9, and 2^8/8 (1 - 2^-8) = 255/8, which is below 40.
    #[test]
    fn eight_values_on_one_side_are_the_first_to_exclude_zero() {
        assert!((evidence(8, 8) - 511.0 / 9.0).abs() < 1e-9);
        assert!((evidence(7, 7) - 255.0 / 8.0).abs() < 1e-9);
        assert!((evidence(0, 0) - 1.0).abs() < 1e-9);
        assert_eq!((depth(7), depth(8)), (None, Some(1)));
        assert_eq!(interval(&[1.0; 7]), None);
    }

    /// Expected values: computed with exact fractions by another program.
    #[test]
    fn depths_agree_with_exact_arithmetic() {
        let exact = [10, 12, 14, 16, 20, 30, 60, 100, 200].map(|n| depth(n).unwrap());
        assert_eq!(exact, [1, 2, 2, 3, 4, 7, 19, 35, 77]);
    }

    #[test]
    fn depths_beyond_the_table_follow_the_same_rule() {
        let last = depth(TABLED - 1).unwrap();
        let next = depth(TABLED).unwrap();
        assert!(next == last || next == last + 1, "{last} {next}");
        assert_eq!(depth(TABLED + 500), deepest(TABLED + 500, None));
    }

    /// The condition of Ville's inequality: the mean of the evidence over both outcomes of a fair
    /// coin is at most the evidence before the toss.
    #[test]
    fn evidence_against_a_fair_coin_does_not_grow_on_average() {
        for n in 0..200 {
            for below in 0..=n {
                let mean = f64::midpoint(evidence(n + 1, below), evidence(n + 1, below + 1));
                assert!(mean <= evidence(n, below) * (1.0 + 1e-9), "{n} {below}");
            }
        }
    }

    #[test]
    fn p_values_of_one_sided_and_of_equal_values() {
        let one_side: Vec<f64> = (1..=8).map(f64::from).collect();
        assert!((p_value(&one_side) - 1.0 / (511.0 / 18.0 + evidence(8, 0) / 2.0)).abs() < 1e-9);
        assert!(
            (p_value(&[0.0; 30]) - 1.0).abs() < 1e-12,
            "equal runs show nothing"
        );
    }
}
