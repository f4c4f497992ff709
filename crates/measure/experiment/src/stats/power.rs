//! Expected resolution of a number of pairs, computed before they are run.
//!
//! In: the spread, that is the standard deviation of log ratios over pairs. Out: the expected half
//! width of the interval, assuming a normal distribution. An end of the interval is an order
//! statistic; its expectation is approximated by Blom (1958) as Phi^-1((k - 3/8) / (n + 1/4))
//! standard deviations from the median. Simulations agree with this to 5 % (`tests/power.rs`).

use statrs::distribution::{ContinuousCDF, Normal};

use super::fixed::Ends;
use super::{Method, count, fixed, sequence};

/// Fewer pairs give no estimate of the spread.
pub const MIN_SPREAD_PAIRS: usize = 3;

/// The standard deviation of the logarithms of `ratios`; `None` below [`MIN_SPREAD_PAIRS`].
#[must_use]
pub fn spread(ratios: &[f64]) -> Option<f64> {
    if ratios.len() < MIN_SPREAD_PAIRS {
        return None;
    }
    let n = count(ratios.len());
    let logs = || ratios.iter().map(|ratio| ratio.ln());
    let mean = logs().sum::<f64>() / n;
    let variance = logs().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    variance.is_finite().then(|| variance.sqrt())
}

/// Expected half width of the interval of `pairs` pairs, as a fraction (0.02 is 2 %); `None` if
/// they are too few for an interval.
#[must_use]
pub fn resolution(method: Method, pairs: usize, spread: f64) -> Option<f64> {
    let ends = match method {
        Method::Fixed => fixed::ends(pairs)?,
        Method::Sequential => Ends {
            depth: sequence::depth(pairs)?,
            share: 0.0,
        },
    };
    let outer = deviations(pairs, ends.depth);
    let inner = deviations(pairs, ends.depth + 1);
    Some(((outer + ends.share * (inner - outer)) * spread).exp_m1())
}

/// The smallest number of pairs with an expected half width of at most `wanted`; `None` if `most`
/// pairs are not enough.
#[must_use]
pub fn pairs_for(method: Method, wanted: f64, spread: f64, most: usize) -> Option<usize> {
    let resolves = |pairs: &usize| resolution(method, *pairs, spread).is_some_and(|r| r <= wanted);
    (method.min_pairs()..=most).find(resolves)
}

/// Expected distance of the `depth`-th outermost of `n` normal values from the median, in standard
/// deviations.
fn deviations(n: usize, depth: usize) -> f64 {
    let share = (count(n + 1 - depth) - 0.375) / (count(n) + 0.25);
    Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| normal.inverse_cdf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phi^-1(5.625 / 6.25) = 1.2816, Phi^-1(4.625 / 6.25) = 0.6433; a share of 0.5/1.4 between.
    #[test]
    fn six_pairs_at_one_per_cent_resolve_one_per_cent() {
        let resolved = resolution(Method::Fixed, 6, 0.01).unwrap();
        assert!((resolved - 0.010_589).abs() < 1e-5, "{resolved}");
        assert_eq!(resolution(Method::Fixed, 5, 0.01), None);
        assert_eq!(resolution(Method::Sequential, 7, 0.01), None);
    }

    #[test]
    fn the_fewest_pairs_are_found_or_none() {
        assert_eq!(pairs_for(Method::Fixed, 0.02, 0.01, 100), Some(6));
        let many = pairs_for(Method::Sequential, 0.01, 0.02, 200).unwrap();
        assert!(resolution(Method::Sequential, many, 0.02).unwrap() <= 0.01);
        assert!(resolution(Method::Sequential, many - 1, 0.02).unwrap() > 0.01);
        assert_eq!(pairs_for(Method::Fixed, 0.001, 0.05, 100), None);
    }

    #[test]
    fn spread_is_that_of_logarithms_and_needs_three_pairs() {
        let e = std::f64::consts::E;
        assert!((spread(&[1.0, e, e * e]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(spread(&[1.0, 2.0]), None);
        assert_eq!(spread(&[1.0, 2.0, 0.0]), None);
    }
}
