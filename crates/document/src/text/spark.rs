//! Sparklines: time series and distributions as one line of block characters.

use crate::model::{Curve, CurvePanel};

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum length of a sparkline in characters.
const LENGTH: usize = 48;

/// The means of a curve on the scale of its panel; a gap becomes a space.
pub(super) fn line(panel: &CurvePanel, curve: &Curve) -> String {
    let means = |curve: &Curve| -> Vec<Option<f64>> {
        let values = curve.points.iter().map(|point| point.values);
        values.map(|known| known.map(|[mean, _, _]| mean)).collect()
    };
    let most = panel
        .curves
        .iter()
        .flat_map(means)
        .flatten()
        .fold(0.0, f64::max);
    means_of(&means(curve))
        .map(|value| block(value, most))
        .collect()
}

/// The shares of bins, scaled so that the largest share is a full block.
pub(super) fn bins(shares: &[f64]) -> String {
    let most = shares.iter().copied().fold(0.0, f64::max);
    let known: Vec<Option<f64>> = shares.iter().copied().map(Some).collect();
    means_of(&known).map(|value| block(value, most)).collect()
}

/// Reduces the values to at most [`LENGTH`]; each result is the mean of equally many known values.
fn means_of(values: &[Option<f64>]) -> impl Iterator<Item = Option<f64>> + '_ {
    let each = values.len().div_ceil(LENGTH).max(1);
    values.chunks(each).map(|some| {
        let known: Vec<f64> = some.iter().flatten().copied().collect();
        let count = u32::try_from(known.len()).ok().filter(|count| *count > 0)?;
        Some(known.iter().sum::<f64>() / f64::from(count))
    })
}

fn block(value: Option<f64>, most: f64) -> char {
    let Some(value) = value else { return ' ' };
    let share = if most > 0.0 {
        (value / most).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let step = BLOCKS
        .iter()
        .zip(1_u32..)
        .find(|(_, top)| share <= f64::from(*top) / 8.0);
    step.map_or('█', |(block, _)| *block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CurvePoint;

    #[test]
    fn a_curve_is_drawn_on_the_scale_of_its_panel() {
        let curve = |values: &[Option<f64>]| Curve {
            series: 0,
            points: values
                .iter()
                .map(|v| CurvePoint {
                    at_s: 0.0,
                    values: v.map(|v| [v; 3]),
                })
                .collect(),
            mean: String::new(),
        };
        let (low, high) = (curve(&[Some(0.0), None, Some(5.0)]), curve(&[Some(10.0)]));
        let panel = CurvePanel {
            title: String::new(),
            curves: vec![low.clone(), high.clone()],
        };
        assert_eq!(
            (line(&panel, &low), line(&panel, &high)),
            ("▁ ▄".to_owned(), "█".to_owned())
        );
    }

    #[test]
    fn long_series_fit_a_line() {
        assert_eq!(bins(&vec![1.0; 1000]).chars().count(), 48);
        assert_eq!(bins(&[0.5, 0.25, 0.0]), "█▄▁");
        assert_eq!(bins(&[]), "");
    }
}
