//! Lines over an axis other than time. They are drawn as `curves` are, and the ticks of the
//! horizontal axis come from the document.

use super::axis::{ZeroAxis, percent};
use super::bars::SERIES_COLOURS;
use super::curves::legend;
use super::markup::Markup;
use crate::model::{Line, LineAxis, LinePanel, Lines};
use crate::number;

/// Size of the SVG view box; the browser stretches it to the available space.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Writes all panels, then the horizontal axis.
pub(super) fn render(page: &mut Markup, lines: &Lines) {
    page.element("figure", &[("class", "curves lines")], |page| {
        page.leaf("figcaption", &[], &lines.caption);
        legend(page, &lines.series);
        for panel in &lines.panels {
            render_panel(page, panel, &lines.axis);
        }
        ticks(page, &lines.axis);
        page.element("p", &[("class", "curve-title")], |page| {
            page.leaf("span", &[("class", "unit")], &lines.axis.title);
        });
    });
}

fn render_panel(page: &mut Markup, panel: &LinePanel, across: &LineAxis) {
    let all = panel.lines.iter().flat_map(|line| &line.points);
    let up = ZeroAxis::up_to(all.map(|[_, value]| *value));
    page.element("div", &[("class", "curve-panel")], |page| {
        page.leaf("p", &[("class", "curve-title")], &panel.title);
        page.element("div", &[("class", "drawing")], |page| {
            page.leaf(
                "span",
                &[("class", "top"), ("aria-hidden", "true")],
                &number::value(up.high()),
            );
            let frame = [
                ("role", "img"),
                ("aria-label", panel.title.as_str()),
                ("viewBox", "0 0 1000 100"),
                ("preserveAspectRatio", "none"),
            ];
            page.element("svg", &frame, |page| {
                page.leaf("title", &[], &panel.title);
                for line in &panel.lines {
                    draw(page, line, across, &up);
                }
            });
        });
    });
}

fn draw(page: &mut Markup, line: &Line, across: &LineAxis, up: &ZeroAxis) {
    let colour = format!("curve stroke-series-{}", line.series % SERIES_COLOURS);
    let place = |[x, y]: &[f64; 2]| {
        let y = HEIGHT - up.place(*y) / 100.0 * HEIGHT;
        format!("{:.1},{y:.2}", share(across, *x) * WIDTH)
    };
    let points: Vec<String> = line.points.iter().map(place).collect();
    if !points.is_empty() {
        let points = points.join(" ");
        page.leaf("polyline", &[("class", &colour), ("points", &points)], "");
    }
}

/// Position of a value on the axis, from 0 to 1.
fn share(axis: &LineAxis, value: f64) -> f64 {
    let [low, high] = axis.ends;
    let share = if axis.is_logarithmic {
        (value / low).ln() / (high / low).ln()
    } else {
        (value - low) / (high - low)
    };
    if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn ticks(page: &mut Markup, axis: &LineAxis) {
    page.element(
        "svg",
        &[("class", "time"), ("aria-hidden", "true")],
        |page| {
            for (value, text) in &axis.ticks {
                let at = share(axis, *value);
                let anchor = match at {
                    at if at < 0.06 => "start",
                    at if at > 0.94 => "end",
                    _ => "middle",
                };
                let x = percent(100.0 * at);
                let place = [("x", x.as_str()), ("y", "12"), ("text-anchor", anchor)];
                page.leaf("text", &place, text);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(ends: [f64; 2], is_logarithmic: bool) -> LineAxis {
        LineAxis {
            title: String::new(),
            ends,
            is_logarithmic,
            ticks: Vec::new(),
        }
    }

    #[test]
    fn positions_follow_ratios_or_differences() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(share(&axis([0.01, 100.0], true), 1.0), 0.5);
        near(share(&axis([0.0, 8.0], false), 2.0), 0.25);
        near(share(&axis([0.01, 100.0], true), 0.0), 0.0);
        near(share(&axis([1.0, 1.0], true), 1.0), 0.0);
        near(share(&axis([0.0, 8.0], false), 9.0), 1.0);
    }
}
