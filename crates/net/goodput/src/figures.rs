//! Statistics of the tables.

/// The median of samples; the mean of the middle two if their number is even. NaN of none.
#[must_use]
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.as_slice() {
        [] => f64::NAN,
        sorted if sorted.len() % 2 == 1 => sorted[middle],
        sorted => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// `0.95 to 1.10`: the least and the largest sample.
#[must_use]
pub fn span(samples: &[f64]) -> String {
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.2} to {most:.2}")
}

/// Jain's index: 1 if all flows get the same, 1/n if one of n flows gets everything. NaN of none.
///
/// Source: R. Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984.
#[must_use]
pub fn jain(flows: &[f64]) -> f64 {
    let sum: f64 = flows.iter().sum();
    let squares: f64 = flows.iter().map(|flow| flow * flow).sum();
    sum * sum / (flows.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_span_is_the_least_and_the_largest() {
        assert_eq!(span(&[1.0, 0.951, 1.104]), "0.95 to 1.10");
    }

    #[test]
    fn jain_is_one_for_equal_flows_and_the_reciprocal_for_one() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[3.0, 1.0]), 0.8);
    }
}
