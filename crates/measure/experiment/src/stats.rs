//! Medians of paired ratios, their intervals, and tests over several of them.
//!
//! The unit of analysis is a pair: the ratio B/A of two runs that were adjacent in time. All
//! computations are on logarithms, so swapping A and B inverts every figure exactly.
//! [`Method::Fixed`] is for a number of pairs that was fixed beforehand, [`Method::Sequential`] for
//! a number that depends on the results. The sequential method is exact for every distribution, the
//! fixed method as accurate as its interpolation (`tests/coverage.rs`).
//!
//! Deliberately absent: means of ratios, and the removal of outliers.

mod fixed;
mod holm;
mod power;
mod sequence;
mod summary;
mod t_test;

pub use holm::holm;
pub use power::{MIN_SPREAD_PAIRS, pairs_for, resolution, spread};
pub use summary::{Method, RatioSummary};

/// Fewer pairs give no verdict, by the method for a fixed number of pairs.
pub const MIN_PAIRS: usize = 6;
/// Confidence level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// The median of `values`; `None` if `values` is empty.
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

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
