//! Correction of p-values for multiple comparisons.

/// Adjusts p-values by Holm's step-down procedure; the result has the order of the input.
///
/// Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor: f64 = 0.0;
    let mut weight = super::count(p_values.len());
    for index in order {
        floor = floor.max((p_values[index] * weight).min(1.0));
        adjusted[index] = floor;
        weight -= 1.0;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    /// By hand: 0.01 x 4, 0.02 x 3, 0.04 x 2, 0.5 x 1; no value is raised to its predecessor.
    #[test]
    fn holm_multiplies_steps_down_and_never_decreases() {
        let adjusted = holm(&[0.02, 0.5, 0.01, 0.04]);
        for (got, wanted) in adjusted.iter().zip([0.06, 0.5, 0.04, 0.08]) {
            assert!(close(*got, wanted), "{adjusted:?}");
        }
        assert_eq!(holm(&[0.4, 0.6]), [0.8, 0.8]);
    }
}
