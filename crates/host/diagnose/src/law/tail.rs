//! The shape of a distribution of response times.
//!
//! Response times are never normally distributed, so no rule uses a standard deviation. A second
//! mode, apart from the first by an empty band, is the mark of a timeout, a retransmission or a
//! queue.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Classes of the histogram per decade.
const CLASSES_PER_DECADE: f64 = 5.0;
/// Upper bound of a class divided by its lower bound: the fifth root of ten.
pub const CLASS_RATIO: f64 = 1.584_893_192_461_113_5;
/// Classes are empty below this share of the requests.
const EMPTY_SHARE: f64 = 0.001;
/// Empty classes in a row that divide two modes: a factor of 1.6 and more.
const DIVIDING_CLASSES: usize = 1;

/// A group of response times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mode {
    /// Smallest and largest response time, in milliseconds, to the width of a class.
    pub from_ms: f64,
    /// See `from_ms`.
    pub to_ms: f64,
    /// Mean response time in milliseconds.
    pub mean_ms: f64,
    /// Share of the requests.
    pub share: f64,
}

/// The modes of response times in microseconds, the fastest first. Empty without requests.
#[must_use]
pub fn modes(times_us: &Histogram<u64>) -> Vec<Mode> {
    let classes = classes(times_us);
    let total = times_us.len() as f64;
    let mut modes: Vec<Mode> = Vec::new();
    let mut empty = DIVIDING_CLASSES;
    for (class, count, sum_us) in classes {
        if count as f64 / total < EMPTY_SHARE {
            empty += 1;
            continue;
        }
        let (from_ms, to_ms) = (bound_ms(class), bound_ms(class + 1));
        let share = count as f64 / total;
        let mean_ms = sum_us / count as f64 / 1000.0;
        match modes.last_mut().filter(|_| empty < DIVIDING_CLASSES) {
            Some(last) => {
                let both = last.share + share;
                last.mean_ms = (last.mean_ms * last.share + mean_ms * share) / both;
                last.share = both;
                last.to_ms = to_ms;
            }
            None => modes.push(Mode {
                from_ms,
                to_ms,
                mean_ms,
                share,
            }),
        }
        empty = 0;
    }
    modes
}

/// Lower bound in milliseconds and share of the requests of each class, from the first to the last
/// one that is not empty.
#[must_use]
pub fn shares(times_us: &Histogram<u64>) -> Vec<(f64, f64)> {
    let total = times_us.len() as f64;
    classes(times_us)
        .into_iter()
        .skip_while(|(_, count, _)| *count == 0)
        .map(|(class, count, _)| (bound_ms(class), count as f64 / total))
        .collect()
}

/// Lower bound of a class in milliseconds; class 0 begins at a microsecond.
fn bound_ms(class: usize) -> f64 {
    10f64.powf(class as f64 / CLASSES_PER_DECADE) / 1000.0
}

/// Class, number of requests and sum of their times in microseconds, without gaps.
fn classes(times_us: &Histogram<u64>) -> Vec<(usize, u64, f64)> {
    let mut classes: Vec<(usize, u64, f64)> = Vec::new();
    for value in times_us.iter_recorded() {
        let time_us = value.value_iterated_to().max(1) as f64;
        // The logarithm of a number of at least one is not negative.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the class of a 64-bit number is between 0 and 97"
        )]
        let class = (time_us.log10() * CLASSES_PER_DECADE) as usize;
        while classes.len() <= class {
            classes.push((classes.len(), 0, 0.0));
        }
        if let Some((_, count, sum_us)) = classes.last_mut() {
            *count += value.count_at_value();
            *sum_us += value.count_at_value() as f64 * time_us;
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        for (value_us, count) in values {
            histogram.record_n(*value_us, *count).unwrap();
        }
        histogram
    }

    #[test]
    fn a_tenth_of_slow_responses_is_a_second_mode() {
        let times = histogram(&[
            (180_000, 500),
            (220_000, 400),
            (5_500_000, 40),
            (9_000_000, 60),
        ]);
        let found = modes(&times);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].share - 0.9).abs() < 1e-9 && (found[1].share - 0.1).abs() < 1e-9);
        assert!(
            found[1].from_ms < 5500.0 && found[1].to_ms >= 9000.0,
            "{found:?}"
        );
        assert!((found[1].mean_ms - 7600.0).abs() < 10.0, "{found:?}");
    }

    #[test]
    fn a_long_tail_without_a_gap_is_one_mode() {
        let steps: Vec<(u64, u64)> = (0..40)
            .map(|step: i32| (1000 * 2u64.pow(u32::try_from(step / 4).unwrap()), 100))
            .collect();
        let filled: Vec<(u64, u64)> = steps
            .iter()
            .flat_map(|(value, count)| [(*value, *count), (value * 3 / 2, *count)])
            .collect();
        assert_eq!(modes(&histogram(&filled)).len(), 1);
    }

    #[test]
    fn no_requests_have_no_mode() {
        assert_eq!(modes(&histogram(&[])), []);
    }
}
