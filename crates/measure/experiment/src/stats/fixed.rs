//! Confidence interval of a median for a number of pairs that was fixed before the first run.
//!
//! Source: Hettmansperger and Sheather (1986). Each end is interpolated between two order
//! statistics so that the confidence is 95 %. In simulations the coverage is 93 to 97.5 % for
//! smooth, skewed, disturbed and bimodal ratios. If the median lies in a gap between two modes, the
//! coverage can fall to that of the inner interval. Stopping as soon as the interval looks good
//! invalidates it: see `sequence`.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::{CONFIDENCE, MIN_PAIRS, count};

/// The position of the ends of an interval among the sorted values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends {
    /// Rank of the outer order statistic, counted from either end of the sorted values, from 1.
    pub(super) depth: usize,
    /// Position of the end between this order statistic (0) and the next inner one (1).
    pub(super) share: f64,
}

/// The ends for `n` values; `None` below [`MIN_PAIRS`].
pub(super) fn ends(n: usize) -> Option<Ends> {
    if n < MIN_PAIRS {
        return None;
    }
    // The innermost order statistic whose interval still has a confidence of 95 %.
    let mut depth = 1;
    while depth < n / 2 && confidence(n, depth + 1) >= CONFIDENCE {
        depth += 1;
    }
    let outer = confidence(n, depth);
    let inner = confidence(n, depth + 1);
    let part = (outer - CONFIDENCE) / (outer - inner);
    let (n, k) = (count(n), count(depth));
    Some(Ends {
        depth,
        share: (n - k) * part / (k + (n - 2.0 * k) * part),
    })
}

/// The interval for the median of sorted values; `None` below [`MIN_PAIRS`].
pub(super) fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let n = sorted.len();
    let Ends { depth, share } = ends(n)?;
    let between = |outer: f64, inner: f64| outer + share * (inner - outer);
    Some([
        between(sorted[depth - 1], sorted[depth]),
        between(sorted[n - depth], sorted[n - depth - 1]),
    ])
}

/// Probability that the `depth`-th values from both ends enclose the median.
fn confidence(n: usize, depth: usize) -> f64 {
    let tosses = u64::try_from(n).unwrap_or(u64::MAX);
    let below = u64::try_from(depth).unwrap_or(u64::MAX) - 1;
    Binomial::new(0.5, tosses).map_or(0.0, |coin| 1.0 - 2.0 * coin.cdf(below))
}
