//! The paired t-test on log ratios. Its p-values can be far smaller than those of a sign test of
//! six pairs.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::count;

/// Two-sided p-value of the hypothesis that the mean of `values` is zero.
pub(super) fn p_value(values: &[f64]) -> f64 {
    let n = count(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if variance == 0.0 {
        return if mean == 0.0 { 1.0 } else { 0.0 };
    }
    let t = mean / (variance / n).sqrt();
    StudentsT::new(0.0, 1.0, n - 1.0).map_or(1.0, |student| 2.0 * student.sf(t.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t = 4.5826 with five degrees of freedom; p by Simpson's rule over the density.
    #[test]
    fn the_t_test_agrees_with_integration() {
        let p = p_value(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
        assert!((p - 0.005_933_544_518).abs() < 1e-9, "{p}");
    }
}
