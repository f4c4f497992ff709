//! Which kinds should share a stream, by how long their pages live: k-means on one line.

use super::subjects::Subject;

/// Rounds, at most; it settles much earlier.
const ROUNDS: usize = 100;

/// At most `most` groups by lifetime; each subject's number.
pub(super) fn by_lifetime(subjects: &[Subject], most: usize) -> Vec<usize> {
    let points: Vec<(f64, f64)> = subjects
        .iter()
        .map(|subject| {
            (
                subject.log_lifetime(),
                subject.evidence.written_bytes as f64,
            )
        })
        .collect();
    k_means(&points, most)
}

/// The group of each point, which has a place and a weight; the first centres are spread over the weights.
fn k_means(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    let mut sorted: Vec<(f64, f64)> = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut distinct: Vec<f64> = sorted.iter().map(|(place, _)| *place).collect();
    distinct.dedup();
    let count = most.clamp(1, distinct.len().max(1));
    let mut centres: Vec<f64> = if count == distinct.len() {
        distinct
    } else {
        (0..count)
            .map(|at| quantile(&sorted, (at as f64 + 0.5) / count as f64))
            .collect()
    };
    let mut groups = vec![0; points.len()];
    for _ in 0..ROUNDS {
        let next: Vec<usize> = points
            .iter()
            .map(|(place, _)| nearest(&centres, *place))
            .collect();
        let is_settled = next == groups;
        groups = next;
        for (group, centre) in centres.iter_mut().enumerate() {
            let own = points.iter().zip(&groups).filter(|(_, own)| **own == group);
            let (sum, weight) = own.fold((0.0, 0.0), |(sum, all), ((place, weight), _)| {
                (sum + place * weight, all + weight)
            });
            if weight > 0.0 {
                *centre = sum / weight;
            }
        }
        if is_settled {
            break;
        }
    }
    groups
}

fn quantile(sorted: &[(f64, f64)], share: f64) -> f64 {
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let reached = sorted.iter().find(|(_, weight)| {
        sum += weight;
        sum >= share * all
    });
    reached.or(sorted.last()).map_or(0.0, |(place, _)| *place)
}

fn nearest(centres: &[f64], place: f64) -> usize {
    let distances = centres.iter().map(|centre| (centre - place).abs());
    let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map_or(0, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_is_together() {
        let points = [(1.0, 5.0), (9.0, 1.0), (1.2, 5.0), (9.5, 20.0), (20.0, 1.0)];
        let groups = k_means(&points, 2);
        assert!(
            groups[0] == groups[2] && groups[1] == groups[3] && groups[0] != groups[1],
            "{groups:?}"
        );
        let groups = k_means(&points, 5);
        assert_eq!(groups, [0, 2, 1, 3, 4]);
        assert_eq!(k_means(&points, 1), [0; 5]);
        assert_eq!(k_means(&[(3.0, 1.0), (3.0, 2.0)], 4), [0, 0]);
    }
}
