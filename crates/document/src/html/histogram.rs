//! Histograms as outlines, all series in the same panel.

use super::axis::ZeroAxis;
use super::bars::SERIES_COLOURS;
use super::curves::legend;
use super::markup::Markup;
use crate::model::{Histogram, HistogramPanel};

/// Writes panels side by side, each with its own scales.
pub(super) fn render(page: &mut Markup, histogram: &Histogram) {
    page.element("figure", &[("class", "histogram")], |page| {
        page.leaf("figcaption", &[], &histogram.caption);
        legend(page, &histogram.series);
        page.element("div", &[("class", "panels")], |page| {
            for panel in &histogram.panels {
                render_panel(page, panel);
            }
        });
    });
}

fn render_panel(page: &mut Markup, panel: &HistogramPanel) {
    let axis = ZeroAxis::up_to(panel.shares.iter().flatten().copied());
    page.element("div", &[("class", "panel")], |page| {
        page.leaf("p", &[("class", "curve-title")], &panel.title);
        let frame = [
            ("role", "img"),
            ("aria-label", panel.title.as_str()),
            ("viewBox", "0 0 1000 100"),
            ("preserveAspectRatio", "none"),
        ];
        page.element("svg", &frame, |page| {
            for (series, shares) in panel.shares.iter().enumerate() {
                let class = format!("curve stroke-series-{}", series % SERIES_COLOURS);
                page.leaf(
                    "polyline",
                    &[("class", &class), ("points", &steps(shares, &axis))],
                    "",
                );
            }
        });
        page.element("p", &[("class", "ends")], |page| {
            page.leaf("span", &[], "0");
            page.leaf("span", &[], &format!("{} and more", panel.end));
        });
    });
}

/// The points of the outline of the bins.
fn steps(shares: &[f64], axis: &ZeroAxis) -> String {
    let mut at = 0.0;
    let width = 1000.0 / f64::from(u32::try_from(shares.len().max(1)).unwrap_or(u32::MAX));
    let mut points = vec!["0.0,100.00".to_owned()];
    for share in shares {
        let y = 100.0 - axis.place(*share);
        points.push(format!("{at:.1},{y:.2}"));
        at += width;
        points.push(format!("{at:.1},{y:.2}"));
    }
    points.push("1000.0,100.00".to_owned());
    points.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_steps_of_equal_width() {
        let axis = ZeroAxis::up_to([0.75].into_iter());
        let drawn = "0.0,100.00 0.0,2.00 500.0,2.00 500.0,67.33 1000.0,67.33 1000.0,100.00";
        assert_eq!(steps(&[0.75, 0.25], &axis), drawn);
    }
}
