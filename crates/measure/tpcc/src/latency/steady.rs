//! Detects a steady state with MSER-5 (White, Cobb and Spratt, "A comparison of five steady-state
//! truncation heuristics for simulation", Winter Simulation Conference 2000).
//!
//! MSER-5 averages the observations in batches of five. It chooses the truncation point that
//! minimises the standard error of the mean of the remaining batches. If this point is in the
//! second half, the system has not settled, because too few observations remain.

/// Number of observations per batch.
const BATCH: usize = 5;
/// Minimum number of batches for a result.
const MIN_BATCHES: usize = 12;

/// The result of [`mser5`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steady {
    /// Steady from this observation on.
    From(usize),
    /// Not steady within the first half.
    NotYet,
    /// Fewer than 60 observations.
    TooShort,
}

/// Finds the observation from which on a series is steady. All observations are equally far apart
/// in time.
#[must_use]
pub fn mser5(series: &[f64]) -> Steady {
    let batches: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    if batches.len() < MIN_BATCHES {
        return Steady::TooShort;
    }
    // Goes backwards, so that one pass computes the sums of all tails.
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (at, value) in batches.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let left = (batches.len() - at) as f64;
        let statistic = ((squares - sum * sum / left) / (left * left)).max(0.0);
        // Fewer than five batches may be equal by chance, so they are ignored. Of equal statistics,
        // the earliest point wins.
        if left >= BATCH as f64 && statistic <= best.0 {
            best = (statistic, at);
        }
    }
    if best.1 <= batches.len() / 2 {
        Steady::From(best.1 * BATCH)
    } else {
        Steady::NotYet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around a level, with a small repeating disturbance.
    fn level(count: usize, level: f64) -> impl Iterator<Item = f64> {
        (0..count).map(move |n| level + [0.0, 3.0, -2.0, 1.0, -2.0, 2.0, -3.0][n % 7])
    }

    #[test]
    fn a_level_series_is_steady_from_its_start() {
        let series: Vec<f64> = level(300, 500.0).collect();
        assert_eq!(mser5(&series), Steady::From(0));
        assert_eq!(mser5(&[7.0; 60]), Steady::From(0));
    }

    #[test]
    fn a_warm_up_is_cut_off_where_it_ends() {
        let rise = (0..40).map(|n| 12.5 * f64::from(n));
        let series: Vec<f64> = rise.chain(level(260, 500.0)).collect();
        let Steady::From(from) = mser5(&series) else {
            panic!("{:?}", mser5(&series))
        };
        assert!((35..=45).contains(&from), "{from}");
    }

    #[test]
    fn a_system_that_still_rises_has_not_settled() {
        let series: Vec<f64> = (0..300).map(f64::from).collect();
        assert_eq!(mser5(&series), Steady::NotYet);
        let late: Vec<f64> = level(200, 100.0).chain(level(100, 500.0)).collect();
        assert_eq!(mser5(&late), Steady::NotYet);
    }

    #[test]
    fn less_than_a_minute_says_nothing() {
        assert_eq!(mser5(&[5.0; 59]), Steady::TooShort);
    }
}
