//! A series in few points, with every peak still there.

use std::num::NonZeroUsize;

use super::Series;

/// Several rows of one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The least value.
    pub min: f64,
    /// The mean of the values that are known.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
}

/// A series in buckets of equal time.
#[derive(Debug, Clone, PartialEq)]
pub struct Downsampled {
    /// Names of the columns.
    pub names: Vec<String>,
    /// The time of the last row in each bucket, or the end of a bucket without rows.
    pub times_s: Vec<f64>,
    /// By column, then by bucket; `None` where nothing is known.
    pub columns: Vec<Vec<Option<Bucket>>>,
}

impl Series {
    /// At most `points` buckets of equal time; with fewer rows than that, each row is one.
    #[must_use]
    pub fn downsample(&self, points: NonZeroUsize) -> Downsampled {
        let places = self.places(points.get());
        let count = places.iter().max().map_or(0, |last| last + 1);
        let (first, last) = self.span();
        let width = (last - first) / count.max(1) as f64;
        let mut times_s: Vec<f64> = (1..=count).map(|end| first + end as f64 * width).collect();
        for (place, time_s) in places.iter().zip(&self.times_s) {
            times_s[*place] = *time_s;
        }
        let column = |values: &Vec<f64>| bucket(values, &places, count);
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

    /// The bucket of each row.
    fn places(&self, points: usize) -> Vec<usize> {
        let (first, last) = self.span();
        let rows = self.times_s.len();
        if rows <= points || last <= first {
            return (0..rows.min(points))
                .chain(std::iter::repeat(points - 1))
                .take(rows)
                .collect();
        }
        let place = |time_s: &f64| {
            let share = (time_s - first) / (last - first);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the number of points"
            )]
            let place = (share * points as f64).clamp(0.0, (points - 1) as f64) as usize;
            place
        };
        self.times_s.iter().map(place).collect()
    }
}

fn bucket(values: &[f64], places: &[usize], count: usize) -> Vec<Option<Bucket>> {
    let mut sums: Vec<Option<(Bucket, f64)>> = vec![None; count];
    let known = values
        .iter()
        .zip(places)
        .filter(|(value, _)| !value.is_nan());
    for (&value, &place) in known {
        let start = Bucket {
            min: value,
            mean: 0.0,
            max: value,
        };
        let (bucket, rows) = sums[place].get_or_insert((start, 0.0));
        *rows += 1.0;
        bucket.min = bucket.min.min(value);
        bucket.max = bucket.max.max(value);
        bucket.mean += (value - bucket.mean) / *rows;
    }
    let buckets = sums.into_iter();
    buckets.map(|sum| sum.map(|(bucket, _)| bucket)).collect()
}
