//! The interval that holds at every look: a confidence sequence for a median.
//!
//! If the median is m, a new value lies below m with a chance of at most 1/2, whatever came
//! before. Then for each p >= 1/2 the product over values of 2p (below) or 2(1 - p) (not below)
//! is a nonnegative supermartingale from 1, and so is its mean over p uniform on [1/2, 1]. By
//! Ville's inequality it ever reaches 40 with a chance of at most 1/40. The candidates m at which
//! it did not, from below and from above, are the interval: P(it misses m at any look) <= 5 %.
//!
//! Sources: Robbins, Ann. Math. Statist. 41 (1970); Howard and Ramdas, Bernoulli 28 (2022),
//! "Sequential estimation of quantiles", the one-sided beta-binomial mixture with a = b = 1.

use std::sync::LazyLock;

use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::function::factorial::ln_binomial;

use super::{CONFIDENCE, count};

/// Fewer pairs can show nothing: eight on one side are the first whose evidence is 40.
pub(super) const MIN_PAIRS: usize = 8;

/// The depths of so many pairs are computed once.
const TABLED: usize = 1000;

static DEPTHS: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let mut depths: Vec<Option<usize>> = Vec::with_capacity(TABLED);
    for n in 0..TABLED {
        // One more value moves the end inwards by one at most.
        let last = depths.last().copied().flatten();
        depths.push(deepest(n, last));
    }
    depths
});

/// The interval for the median of sorted values; `None` below [`MIN_PAIRS`].
///
/// Its ends are values themselves: between two of them the guarantee would not hold.
pub(super) fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let depth = depth(sorted.len())?;
    Some([sorted[depth - 1], sorted[sorted.len() - depth]])
}

/// Which value, counted from the outside from 1, ends the interval of `n` values.
pub(super) fn depth(n: usize) -> Option<usize> {
    match DEPTHS.get(n) {
        Some(depth) => *depth,
        None => deepest(n, DEPTHS.last().copied().flatten()),
    }
}

/// A p-value, valid at every look, of the hypothesis that the median is zero.
///
/// The mean of both sides' evidence is a supermartingale as well, so its inverse is one (Ville).
pub(super) fn p_value(values: &[f64]) -> f64 {
    let n = values.len();
    let below = values.iter().filter(|value| **value < 0.0).count();
    let above = values.iter().filter(|value| **value > 0.0).count();
    let evidence = f64::midpoint(evidence(n, below), evidence(n, above));
    evidence.recip().min(1.0)
}

/// The deepest end that still leaves enough evidence outside, searched from `from` on.
fn deepest(n: usize, from: Option<usize>) -> Option<usize> {
    // With depth d, every candidate beyond the end has n + 1 - d values on its near side.
    let enough = |depth: &usize| evidence(n, n + 1 - depth) >= 2.0 / (1.0 - CONFIDENCE);
    let from = from.unwrap_or(1);
    let depths = from..=n.div_ceil(2).max(from);
    depths.take_while(enough).last()
}

/// The mixture after `n` values of which `below` lie below the candidate.
///
/// The integral in closed form: 2^(n+1) / ((n+1) C(n, below)) P(Binomial(n+1, 1/2) <= below).
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
    fn eight_on_one_side_are_the_first_that_show_something() {
        assert!((evidence(8, 8) - 511.0 / 9.0).abs() < 1e-9);
        assert!((evidence(7, 7) - 255.0 / 8.0).abs() < 1e-9);
        assert!((evidence(0, 0) - 1.0).abs() < 1e-9);
        assert_eq!((depth(7), depth(8)), (None, Some(1)));
        assert_eq!(interval(&[1.0; 7]), None);
    }

    /// From exact fractions, computed by another program.
    #[test]
    fn ends_move_inwards_as_exact_arithmetic_says() {
        let exact = [10, 12, 14, 16, 20, 30, 60, 100, 200].map(|n| depth(n).unwrap());
        assert_eq!(exact, [1, 2, 2, 3, 4, 7, 19, 35, 77]);
    }

    #[test]
    fn beyond_the_table_the_same_rule_holds() {
        let last = depth(TABLED - 1).unwrap();
        let next = depth(TABLED).unwrap();
        assert!(next == last || next == last + 1, "{last} {next}");
        assert_eq!(depth(TABLED + 500), deepest(TABLED + 500, None));
    }

    /// The step that Ville's inequality needs: the mean over both outcomes of a fair coin is
    /// what was there before, or less.
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
    fn a_p_value_below_five_per_cent_goes_with_an_interval_that_excludes_zero() {
        let one_side: Vec<f64> = (1..=8).map(f64::from).collect();
        assert!((p_value(&one_side) - 1.0 / (511.0 / 18.0 + evidence(8, 0) / 2.0)).abs() < 1e-9);
        assert!(
            (p_value(&[0.0; 30]) - 1.0).abs() < 1e-12,
            "equal runs show nothing"
        );
    }
}
