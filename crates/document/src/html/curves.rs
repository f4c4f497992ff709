//! Values over time: panels one below the other, on one time axis.
//!
//! The SVG drawing stretches to the available space and its lines keep their width, so that it
//! needs no script and no fixed size; texts are outside of the drawing. Each point is drawn from
//! its lowest to its highest value, with a line through the means, so that peaks remain visible in
//! runs of any length.

use super::axis::{ZeroAxis, percent};
use super::bars::SERIES_COLOURS;
use super::markup::Markup;
use super::tone_class;
use crate::model::{Curve, CurveMark, CurvePanel, CurvePoint, Curves, Tone};
use crate::number;

/// Size of the SVG view box; the browser stretches it to the available space.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Writes all panels, then the time axis and the list of marks.
pub(super) fn render(page: &mut Markup, curves: &Curves) {
    page.element("figure", &[("class", "curves")], |page| {
        page.leaf("figcaption", &[], &curves.caption);
        legend(page, &curves.series);
        for panel in &curves.panels {
            render_panel(page, panel, curves);
        }
        time_axis(page, curves.end_s);
        if !curves.marks.is_empty() {
            page.element("ul", &[("class", "marks")], |page| {
                for mark in &curves.marks {
                    page.leaf("li", &[("class", tone_class(mark.tone))], &mark_text(mark));
                }
            });
        }
    });
}

/// Writes the names of the series, each with a swatch of its colour.
pub(super) fn legend(page: &mut Markup, series: &[String]) {
    keys(page, series.iter().map(String::as_str).enumerate());
}

/// Writes the names of some series, each with its colour. The number is the index of the series.
pub(super) fn keys<'a>(page: &mut Markup, series: impl Iterator<Item = (usize, &'a str)>) {
    page.element("p", &[("class", "legend")], |page| {
        for (index, name) in series {
            let class = format!("key series-{}", index % SERIES_COLOURS);
            page.element("span", &[], |page| {
                page.element(
                    "svg",
                    &[("class", "swatch"), ("aria-hidden", "true")],
                    |page| {
                        page.leaf(
                            "rect",
                            &[("class", &class), ("width", "100%"), ("height", "100%")],
                            "",
                        );
                    },
                );
                page.text(name);
            });
        }
    });
}

fn render_panel(page: &mut Markup, panel: &CurvePanel, curves: &Curves) {
    let all = panel.curves.iter().flat_map(|curve| &curve.points);
    let axis = ZeroAxis::up_to(all.filter_map(|point| point.values.map(|[_, _, high]| high)));
    page.element("div", &[("class", "curve-panel")], |page| {
        page.element("p", &[("class", "curve-title")], |page| {
            page.text(&panel.title);
            let means = panel.curves.iter().map(|curve| {
                let name = curves.series.get(curve.series).map_or("", String::as_str);
                format!("{name} {}", curve.mean)
            });
            let means = means.collect::<Vec<_>>().join(", ");
            page.leaf("span", &[("class", "unit")], &format!(" mean: {means}"));
        });
        page.element("div", &[("class", "drawing")], |page| {
            page.leaf(
                "span",
                &[("class", "top"), ("aria-hidden", "true")],
                &number::value(axis.high()),
            );
            let frame = [
                ("role", "img"),
                ("aria-label", panel.title.as_str()),
                ("viewBox", "0 0 1000 100"),
                ("preserveAspectRatio", "none"),
            ];
            page.element("svg", &frame, |page| {
                // Neutral marks, such as the measured interval, are only listed below.
                let troubles = curves
                    .marks
                    .iter()
                    .filter(|mark| mark.tone != Tone::Neutral);
                troubles.for_each(|mark| span(page, mark, curves.end_s));
                for curve in &panel.curves {
                    draw(page, curve, curves.end_s, &axis);
                }
            });
        });
    });
}

/// Draws a mark as a strip behind the curves.
fn span(page: &mut Markup, mark: &CurveMark, end_s: f64) {
    let [from, to] = [mark.from_s, mark.to_s].map(|at| across(at, end_s));
    let class = format!("span {}", tone_class(mark.tone));
    let (x, width) = (format!("{from:.1}"), format!("{:.1}", (to - from).max(1.5)));
    let place = [
        ("x", x.as_str()),
        ("y", "0"),
        ("width", &width),
        ("height", "100"),
    ];
    page.element(
        "rect",
        &[[("class", class.as_str())].as_slice(), &place].concat(),
        |page| {
            page.leaf("title", &[], &mark_text(mark));
        },
    );
}

fn draw(page: &mut Markup, curve: &Curve, end_s: f64, axis: &ZeroAxis) {
    let colour = format!("series-{}", curve.series % SERIES_COLOURS);
    for stretch in curve.points.split(|point| point.values.is_none()) {
        let known: Vec<(f64, [f64; 3])> = stretch
            .iter()
            .filter_map(|point| placed(point, end_s, axis))
            .collect();
        let Some((first, _)) = known.first() else {
            continue;
        };
        let has_extremes = known
            .iter()
            .any(|(_, [_, low, high])| (low - high).abs() > 0.05);
        if has_extremes {
            let above = known.iter().map(|(x, [_, _, high])| (*x, *high));
            let below = known.iter().rev().map(|(x, [_, low, _])| (*x, *low));
            let points = points(above.chain(below));
            page.leaf(
                "polygon",
                &[
                    ("class", &format!("extremes {colour}")),
                    ("points", &points),
                ],
                "",
            );
        }
        // The last mean is repeated one unit further, so that a single point is visible.
        let last = known.iter().map(|(x, [mean, _, _])| (*x, *mean));
        let tail = known
            .last()
            .map(|(x, [mean, _, _])| (x.max(first + 1.0), *mean));
        let points = points(last.chain(tail));
        page.leaf(
            "polyline",
            &[
                ("class", &format!("curve stroke-{colour}")),
                ("points", &points),
            ],
            "",
        );
    }
}

/// Coordinates of a point: x, and y of its three values, counted from the top.
fn placed(point: &CurvePoint, end_s: f64, axis: &ZeroAxis) -> Option<(f64, [f64; 3])> {
    let values = point.values?;
    Some((
        across(point.at_s, end_s),
        values.map(|value| HEIGHT - axis.place(value) / 100.0 * HEIGHT),
    ))
}

fn across(at_s: f64, end_s: f64) -> f64 {
    if end_s > 0.0 {
        (at_s / end_s).clamp(0.0, 1.0) * WIDTH
    } else {
        0.0
    }
}

fn points(all: impl Iterator<Item = (f64, f64)>) -> String {
    all.map(|(x, y)| format!("{x:.1},{y:.2}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn time_axis(page: &mut Markup, end_s: f64) {
    page.element(
        "svg",
        &[("class", "time"), ("aria-hidden", "true")],
        |page| {
            for at in time_ticks(end_s) {
                let x = percent(100.0 * at / end_s.max(1e-9));
                let anchor = if at == 0.0 {
                    "start"
                } else if at > 0.94 * end_s {
                    "end"
                } else {
                    "middle"
                };
                let place = [("x", x.as_str()), ("y", "12"), ("text-anchor", anchor)];
                page.leaf("text", &place, &clock(at));
            }
        },
    );
}

/// Round times from zero, about seven of them.
fn time_ticks(end_s: f64) -> Vec<f64> {
    const STEPS_S: [f64; 17] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
        7200.0, 14_400.0, 43_200.0,
    ];
    let step = STEPS_S
        .into_iter()
        .find(|step| end_s / step <= 6.0)
        .unwrap_or(86_400.0 * (end_s / 518_400.0).ceil());
    let mut ticks = vec![0.0];
    while let Some(next) = ticks.last().map(|at| at + step).filter(|at| *at <= end_s) {
        ticks.push(next);
    }
    ticks
}

/// A time on the axis: `0.5 s`, `90 s`, `12 min`, `3 h`.
fn clock(at_s: f64) -> String {
    match at_s {
        at if at >= 7200.0 => format!("{} h", short(at / 3600.0)),
        at if at >= 180.0 => format!("{} min", short(at / 60.0)),
        at => format!("{} s", short(at)),
    }
}

fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn mark_text(mark: &CurveMark) -> String {
    let CurveMark {
        from_s,
        to_s,
        label,
        tone: _,
    } = mark;
    if to_s > from_s {
        format!("{label}: {} to {}", clock(*from_s), clock(*to_s))
    } else {
        format!("{label}: at {}", clock(*from_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_axis_has_few_and_round_times() {
        assert_eq!(time_ticks(60.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(time_ticks(43_200.0).last(), Some(&43_200.0));
        assert!(time_ticks(43_200.0).len() <= 7);
        assert!(time_ticks(3_000_000.0).len() <= 8);
        assert_eq!(time_ticks(0.0), [0.0]);
        assert_eq!(
            [0.5, 90.0, 300.0, 5400.0, 43_200.0].map(clock),
            ["0.5 s", "90 s", "5 min", "90 min", "12 h"]
        );
    }

    #[test]
    fn a_gap_splits_a_line_and_a_single_point_is_visible() {
        let point = |at_s, value: Option<f64>| CurvePoint {
            at_s,
            values: value.map(|v| [v; 3]),
        };
        let points = vec![
            point(0.0, Some(5.0)),
            point(1.0, None),
            point(2.0, Some(10.0)),
            point(3.0, Some(0.0)),
        ];
        let curve = Curve {
            series: 0,
            points,
            mean: String::new(),
        };
        let mut page = Markup::default();
        draw(&mut page, &curve, 4.0, &ZeroAxis::up_to([10.0].into_iter()));
        let drawn = page.finish();
        assert_eq!(drawn.matches("<polyline").count(), 2, "{drawn}");
        assert!(drawn.contains("0.0,51.00 1.0,51.00"), "{drawn}");
        assert!(drawn.contains("500.0,2.00 750.0,100.00"), "{drawn}");
        assert!(!drawn.contains("polygon"), "{drawn}");
    }
}
