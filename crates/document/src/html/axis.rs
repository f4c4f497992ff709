//! Positions of numbers on an axis, as percentages of its length.
//!
//! With percentages a chart fills the available width without a script and without scaling its
//! text. Tick marks are round numbers; an axis over a small range has finer ones.

/// Free space at both ends of a logarithmic axis, in percent of its length.
const MARGIN: f64 = 3.0;
const MOST_TICKS: usize = 7;
/// Candidates for the tick marks of one decade, from fine to coarse.
const STEPS: [&[f64]; 5] = [
    &[
        1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
    ],
    &[1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 3.0],
    &[1.0],
];

/// A logarithmic axis that includes 1.
pub(super) struct LogAxis {
    low: f64,
    high: f64,
}

impl LogAxis {
    /// An axis that includes `numbers` and 1. Numbers without a logarithm are ignored.
    pub(super) fn around(numbers: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (1.0_f64, 1.0_f64);
        for number in numbers.filter(|number| drawable(*number)) {
            low = low.min(number);
            high = high.max(number);
        }
        // The axis extends to both sides of 1, so that both labels at its ends fit.
        Self {
            low: low.min(0.8),
            high: high.max(1.25),
        }
    }

    /// Position of a number in percent; `None` if the number has no logarithm.
    pub(super) fn place(&self, number: f64) -> Option<f64> {
        let share = || (number / self.low).ln() / (self.high / self.low).ln();
        drawable(number).then(|| MARGIN + share() * (100.0 - 2.0 * MARGIN))
    }

    /// The tick marks: round numbers, at most [`MOST_TICKS`], always including 1.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let mut steps = STEPS.iter().map(|steps| self.round_numbers(steps));
        if let Some(ticks) = steps.find(|ticks| ticks.len() <= MOST_TICKS) {
            return ticks;
        }
        let decades = self.round_numbers(&[1.0]);
        let every = decades.len().div_ceil(MOST_TICKS);
        let one = decades.iter().position(|tick| *tick == 1.0).unwrap_or(0);
        decades
            .into_iter()
            .skip(one % every)
            .step_by(every)
            .collect()
    }

    fn round_numbers(&self, steps: &[f64]) -> Vec<f64> {
        let decades = (-12..=12).map(|power| 10.0_f64.powi(power));
        decades
            .flat_map(|decade| steps.iter().map(move |step| step * decade))
            .map(|tick| (tick * 1e12).round() / 1e12) // 1.1 times 0.1 must print as 0.11.
            .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
            .collect()
    }
}

/// Formats a position for an SVG attribute.
pub(super) fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

fn drawable(number: f64) -> bool {
    number.is_finite() && number > 1e-12 && number < 1e12
}

/// A linear axis from zero.
pub(super) struct ZeroAxis {
    high: f64,
}

impl ZeroAxis {
    /// An axis from 0 to the largest of `numbers`.
    pub(super) fn up_to(numbers: impl Iterator<Item = f64>) -> Self {
        let high = numbers
            .filter(|number| number.is_finite())
            .fold(0.0, f64::max);
        Self {
            high: if high > 0.0 { high } else { 1.0 },
        }
    }

    /// The number at the upper end of the axis.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// Position of a number in percent, from 0 to 98; negative numbers are placed at zero.
    pub(super) fn place(&self, number: f64) -> f64 {
        (number / self.high).clamp(0.0, 1.0) * 98.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_includes_its_numbers_and_one() {
        let axis = LogAxis::around([2.0, 40.0, f64::NAN, 0.0, -3.0].into_iter());
        assert_eq!(axis.place(40.0), Some(97.0));
        assert!(
            axis.place(1.0)
                .is_some_and(|place| place > 3.0 && place < 15.0)
        );
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn a_short_axis_has_finer_ticks() {
        let axis = LogAxis::around([0.88, 1.09, 1.14].into_iter());
        assert_eq!(axis.ticks(), [0.8, 0.9, 1.0, 1.1, 1.2]);
        let axis = LogAxis::around([0.6, 1.0].into_iter());
        assert_eq!(axis.ticks(), [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]);
    }

    #[test]
    fn a_long_axis_has_few_ticks_and_keeps_one() {
        let axis = LogAxis::around([1e-9, 1e9].into_iter());
        let ticks = axis.ticks();
        assert!(ticks.len() <= 7, "{ticks:?}");
        assert!(ticks.contains(&1.0), "{ticks:?}");
    }

    #[test]
    fn bars_start_at_zero() {
        let axis = ZeroAxis::up_to([50.0, 200.0].into_iter());
        assert_eq!(axis.place(0.0), 0.0);
        assert_eq!(axis.place(50.0), 24.5);
        assert_eq!(axis.place(-1.0), 0.0);
    }
}
