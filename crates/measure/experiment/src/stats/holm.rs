//! Correction of p-values for their number.

/// Holm's step-down correction: p-values adjusted for their number, in the given order.
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
