//! Groups subjects by the lifetimes of their pages (one-dimensional k-means), and gives hints to
//! groups by rank.

use saiga_streams::Hint;

use super::subjects::Subject;

/// Number of hints for groups.
pub(super) const HINTS: usize = 4;

/// Most rounds of k-means, which settles much earlier.
const ROUNDS: usize = 100;

/// Returns the group of each subject, of at most `most` groups by lifetime.
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

/// Joins groups with the closest lifetimes until there are at most `most` groups.
pub(super) fn folded(subjects: &[Subject], groups: &[usize], most: usize) -> Vec<usize> {
    let mut groups = groups.to_vec();
    loop {
        let order = by_rank(subjects, &groups);
        if order.len() <= most.max(1) {
            return groups;
        }
        let distance = |pair: &[(usize, f64)]| pair[1].1 - pair[0].1;
        let nearest = order
            .windows(2)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some([(into, _), (from, _)]) = nearest else {
            return groups;
        };
        for group in groups.iter_mut().filter(|group| *group == from) {
            *group = *into;
        }
    }
}

/// Returns the hint of each subject, by the rank of its group by lifetime, the shortest first.
///
/// With fewer than four groups, hints that zoned XFS or F2FS treat like others are not used.
pub(super) fn hints(subjects: &[Subject], groups: &[usize]) -> Vec<Hint> {
    let groups = folded(subjects, groups, HINTS);
    let order = by_rank(subjects, &groups);
    let ranks: &[Hint] = match order.len() {
        0 | 1 => &[Hint::Short],
        2 => &[Hint::Short, Hint::Extreme],
        3 => &[Hint::Short, Hint::Medium, Hint::Extreme],
        _ => &[Hint::Short, Hint::Medium, Hint::Long, Hint::Extreme],
    };
    let rank = |group: &usize| order.iter().position(|(one, _)| one == group);
    groups
        .iter()
        .map(|group| rank(group).map_or(Hint::Short, |rank| ranks[rank]))
        .collect()
}

/// Returns the groups with their mean logarithmic lifetime, weighted by bytes, the shortest first.
fn by_rank(subjects: &[Subject], groups: &[usize]) -> Vec<(usize, f64)> {
    let mut distinct = groups.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mean = |group: usize| {
        let own = subjects
            .iter()
            .zip(groups)
            .filter(|(_, own)| **own == group);
        let (sum, weight) = own.fold((0.0, 0.0), |(sum, all), (subject, _)| {
            let weight = subject.evidence.written_bytes.max(1) as f64;
            (sum + subject.log_lifetime() * weight, all + weight)
        });
        (group, sum / weight)
    };
    let mut order: Vec<(usize, f64)> = distinct.into_iter().map(mean).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    order
}

/// Returns the group of each point, given by position and weight. Initial centres are quantiles by
/// weight.
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
    fn close_points_are_in_one_group() {
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
