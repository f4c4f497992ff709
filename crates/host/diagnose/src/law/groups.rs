//! Groups of similar values: sorted values are divided where the ratio of neighbours is large.

/// The smallest ratio of neighbours that divides two groups.
pub const DIVIDING_RATIO: f64 = 1.3;

/// A group of similar values.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Indices of the values, in ascending order.
    pub members: Vec<usize>,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

/// Divides positive `values` into groups, the group with the lowest values first. Values that are
/// not positive or not finite belong to no group.
#[must_use]
pub fn groups(values: &[f64]) -> Vec<Group> {
    let mut sorted: Vec<(f64, usize)> = values
        .iter()
        .enumerate()
        .filter(|(_, value)| value.is_finite() && **value > 0.0)
        .map(|(index, value)| (*value, index))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted
        .chunk_by(|low, high| high.0 / low.0 < DIVIDING_RATIO)
        .map(group)
        .collect()
}

fn group(values: &[(f64, usize)]) -> Group {
    let mut members: Vec<usize> = values.iter().map(|(_, index)| *index).collect();
    members.sort_unstable();
    let only = || values.iter().map(|(value, _)| *value);
    Group {
        members,
        mean: only().sum::<f64>() / values.len().max(1) as f64,
        min: only().fold(f64::INFINITY, f64::min),
        max: only().fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latency of memory of node 0 from every eighth core of a machine with 128 cores, in ns.
    const LATENCIES_NS: [f64; 16] = [
        149.976, 168.805, 191.415, 178.283, 170.814, 185.699, 212.281, 202.479, 426.176, 444.367,
        465.894, 452.245, 448.352, 460.603, 485.989, 490.402,
    ];

    #[test]
    fn latencies_show_two_sockets() {
        let found = groups(&LATENCIES_NS);
        let [near, far] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(near.members, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(far.members, [8, 9, 10, 11, 12, 13, 14, 15]);
        assert!((near.mean - 182.5).abs() < 0.1 && (far.mean - 459.3).abs() < 0.1);
        assert!((far.mean / near.mean - 2.52).abs() < 0.01);
        assert_eq!((near.min, near.max), (149.976, 212.281));
    }

    #[test]
    fn similar_values_are_one_group_and_bad_values_none() {
        assert_eq!(groups(&[100.0, 120.0, 110.0]).len(), 1);
        assert_eq!(groups(&[f64::NAN, 0.0, -1.0, f64::INFINITY]), []);
    }
}
