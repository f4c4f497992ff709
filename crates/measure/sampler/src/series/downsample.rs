//! Reduces a series to few points and keeps all peaks.

use std::num::NonZeroUsize;

use super::Series;

/// Minimum, mean and maximum of the known values of one column over several rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

/// A series in buckets of equal time.
#[derive(Debug, Clone, PartialEq)]
pub struct Downsampled {
    pub names: Vec<String>,
    /// Time of the last row in each bucket, or the end of a bucket without rows.
    pub times_s: Vec<f64>,
    /// By column, then by bucket; `None` for a bucket without known values.
    pub columns: Vec<Vec<Option<Bucket>>>,
}

impl Series {
    /// At most `points` buckets of equal time. With at most `points` rows, each row is a bucket.
    #[must_use]
    pub fn downsample(&self, points: NonZeroUsize) -> Downsampled {
        let indices = self.bucket_indices(points.get());
        let count = indices.iter().max().map_or(0, |last| last + 1);
        let (first, last) = self.span();
        let width = (last - first) / count.max(1) as f64;
        let mut times_s: Vec<f64> = (1..=count).map(|end| first + end as f64 * width).collect();
        for (index, time_s) in indices.iter().zip(&self.times_s) {
            times_s[*index] = *time_s;
        }
        let column = |values: &Vec<f64>| buckets(values, &indices, count);
        Downsampled {
            names: self.names.clone(),
            times_s,
            columns: self.columns.iter().map(column).collect(),
        }
    }

    fn span(&self) -> (f64, f64) {
        let first = self.times_s.first().copied().unwrap_or(0.0);
        let last = self.times_s.last().copied().unwrap_or(first);
        (first, last)
    }

    /// For each row, the index of its bucket.
    fn bucket_indices(&self, points: usize) -> Vec<usize> {
        let (first, last) = self.span();
        let rows = self.times_s.len();
        if rows <= points || last <= first {
            return (0..rows.min(points))
                .chain(std::iter::repeat(points - 1))
                .take(rows)
                .collect();
        }
        let index = |time_s: &f64| {
            let share = (time_s - first) / (last - first);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the number of points"
            )]
            let index = (share * points as f64).clamp(0.0, (points - 1) as f64) as usize;
            index
        };
        self.times_s.iter().map(index).collect()
    }
}

fn buckets(values: &[f64], indices: &[usize], count: usize) -> Vec<Option<Bucket>> {
    let mut sums: Vec<Option<(Bucket, f64)>> = vec![None; count];
    let known = values
        .iter()
        .zip(indices)
        .filter(|(value, _)| !value.is_nan());
    for (&value, &index) in known {
        let start = Bucket {
            min: value,
            mean: 0.0,
            max: value,
        };
        let (bucket, rows) = sums[index].get_or_insert((start, 0.0));
        *rows += 1.0;
        bucket.min = bucket.min.min(value);
        bucket.max = bucket.max.max(value);
        bucket.mean += (value - bucket.mean) / *rows;
    }
    let buckets = sums.into_iter();
    buckets.map(|sum| sum.map(|(bucket, _)| bucket)).collect()
}
