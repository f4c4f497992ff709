//! Charts of the load: over time, over the clients, by hop, and the distribution of its times.

use saiga_document::model::{
    Bar, BarGroup, BarLabels, BarPanel, Bars, Block, Curve, CurvePanel, CurvePoint, Curves, Line,
    LineAxis, LinePanel, Lines, Section, Visibility,
};
use saiga_document::number;

use super::section;
use crate::law::{tail, usl};
use crate::observation::load::{Hop, Level, Load, Rates, Window};
use crate::text::milliseconds;

/// Points of a drawn curve of the Universal Scalability Law.
const CURVE_POINTS: u32 = 60;
/// Resamples are drawn from this seed; the drawn curve does not depend on it.
const SEED: u64 = 1;
const OWN_LABELS: BarLabels = BarLabels {
    series: "load",
    value: "own time",
    dots: "windows",
};

/// All charts for which the load has numbers.
pub(super) fn charts(load: &Load) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Some(outer) = load.outer().filter(|hop| hop.windows.len() > 1) {
        blocks.push(Block::Curves(over_time(load, outer)));
        blocks.extend(over_clients(load).map(Block::Lines));
        blocks.extend(path(load).map(Block::Bars));
    }
    blocks.extend(distribution(load).map(Block::Lines));
    (!blocks.is_empty()).then(|| section("load", "Load", Visibility::Detail, blocks))
}

fn over_time(load: &Load, outer: &Hop) -> Curves {
    let begin_s = outer.windows.first().map_or(0.0, |window| window.time_s);
    let end_s = outer.windows.last().map_or(0.0, |window| window.time_s);
    let curve = |series: usize, points: Vec<(f64, f64)>| {
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len().max(1) as f64;
        let points = points.into_iter().map(|(at_s, value)| CurvePoint {
            at_s: at_s - begin_s,
            values: Some([value; 3]),
        });
        Curve {
            series,
            points: points.collect(),
            mean: number::value(mean),
        }
    };
    let of_windows = |value: fn(&Window) -> f64| {
        let points = |hop: &Hop| {
            let point = |window: &Window| (window.time_s, value(window));
            hop.windows.iter().map(point).collect()
        };
        let hops = load.hops.iter().enumerate();
        hops.map(|(series, hop)| curve(series, points(hop)))
            .collect()
    };
    let panel = |title: &str, curves| CurvePanel {
        title: title.to_owned(),
        curves,
    };
    let mut panels = vec![
        panel(
            "throughput in requests/s",
            of_windows(|window| window.throughput),
        ),
        panel(
            "response time in ms",
            of_windows(|window| window.response_ms),
        ),
        panel("clients", of_windows(|window| window.clients)),
    ];
    if load.hops.len() > 1 {
        let hops = 0..load.hops.len();
        let curves = hops.map(|hop| curve(hop, own_over_time(load, hop)));
        panels.push(panel(
            "own time in ms: without the hops below",
            curves.collect(),
        ));
    }
    Curves {
        caption: "load over time".to_owned(),
        series: load.hops.iter().map(|hop| hop.name.clone()).collect(),
        end_s: end_s - begin_s,
        panels,
        marks: vec![],
    }
}

/// Times in seconds, and the own time of a hop in milliseconds, where all hops below have numbers.
fn own_over_time(load: &Load, hop: usize) -> Vec<(f64, f64)> {
    let rates = |window: &Window| Rates {
        throughput: window.throughput,
        response_ms: window.response_ms,
    };
    let point = |row: Vec<Option<Window>>| {
        let rates: Vec<Option<Rates>> = row.iter().map(|one| one.as_ref().map(rates)).collect();
        Some((row[0]?.time_s, load.own_ms(&rates, hop)?))
    };
    load.aligned().into_iter().filter_map(point).collect()
}

fn over_clients(load: &Load) -> Option<Lines> {
    let levels = load.levels();
    let measured: Vec<[f64; 2]> = levels
        .iter()
        .filter_map(|level| Some([level.clients, level.hops[0]?.throughput]))
        .collect();
    let points: Vec<(f64, f64)> = measured.iter().map(|[n, x]| (*n, *x)).collect();
    let fit = usl::fit(&points, SEED)?;
    let [last, _] = measured.last()?;
    let end = fit
        .curve
        .peak_clients()
        .map_or(*last, |peak| (peak * 1.2).min(last * 2.0).max(*last));
    let fitted = (1..=CURVE_POINTS).map(|step| {
        let clients = end * f64::from(step) / f64::from(CURVE_POINTS);
        [clients, fit.curve.at(clients)]
    });
    let line = |series, points, text: String| Line {
        series,
        points,
        text,
    };
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| (part * end, number::value(part * end)));
    Some(Lines {
        caption: "throughput over the number of clients".to_owned(),
        series: vec![
            "measured".to_owned(),
            "Universal Scalability Law".to_owned(),
        ],
        axis: LineAxis {
            title: "clients".to_owned(),
            ends: [0.0, end],
            is_logarithmic: false,
            ticks: ticks.into(),
        },
        panels: vec![LinePanel {
            title: "throughput in requests/s".to_owned(),
            lines: vec![
                line(0, measured, number::counted(levels.len() as u64, "level")),
                line(
                    1,
                    fitted.collect(),
                    format!("relative error {}", number::percent(fit.error)),
                ),
            ],
        }],
    })
}

/// Where the time of a request goes: the own time of each hop from the outermost to the innermost,
/// under the fewest and the most clients.
fn path(load: &Load) -> Option<Bars> {
    if load.hops.len() < 2 {
        return None;
    }
    let mut levels = load.levels();
    levels.retain(|level| level.hops.iter().all(Option::is_some));
    let high = levels.last()?;
    let low = levels.first().filter(|_| levels.len() > 1);
    let shown: Vec<&Level> = low.into_iter().chain([high]).collect();
    let bar = |hop: usize, (series, level): (usize, &&Level)| {
        let own_ms = load.own_ms(&level.hops, hop)?;
        Some(Bar {
            series,
            value: own_ms.max(0.0),
            text: number::value(own_ms),
            dots: vec![],
        })
    };
    let group = |hop: usize| BarGroup {
        label: load.place(hop),
        bars: shown
            .iter()
            .enumerate()
            .filter_map(|level| bar(hop, level))
            .collect(),
    };
    let series = |level: &&Level| format!("{} clients", number::value(level.clients));
    Some(Bars {
        caption: "where the time of a request goes".to_owned(),
        unit: "ms".to_owned(),
        labels: OWN_LABELS,
        series: shown.iter().map(series).collect(),
        panels: vec![BarPanel {
            title: "own time of each hop".to_owned(),
            groups: (0..load.hops.len()).map(group).collect(),
        }],
    })
}

/// The distribution of the response times of the hops that have single requests.
fn distribution(load: &Load) -> Option<Lines> {
    let hops = load.hops.iter().enumerate();
    let classes: Vec<(usize, Vec<(f64, f64)>)> = hops
        .filter_map(|(series, hop)| Some((series, tail::shares(hop.times_us.as_ref()?))))
        .filter(|(_, classes)| !classes.is_empty())
        .collect();
    let bounds = || classes.iter().flat_map(|(_, classes)| classes);
    let low = bounds()
        .map(|(from_ms, _)| *from_ms)
        .min_by(f64::total_cmp)?;
    let high = bounds()
        .map(|(from_ms, _)| from_ms * tail::CLASS_RATIO)
        .max_by(f64::total_cmp)?;
    let line = |(series, classes): &(usize, Vec<(f64, f64)>)| {
        let steps = classes.iter().flat_map(|(from_ms, share)| {
            [*from_ms, from_ms * tail::CLASS_RATIO].map(|at| [at, share * 100.0])
        });
        let most = classes.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        Line {
            series: *series,
            points: steps.collect(),
            text: most.map_or(String::new(), |(from_ms, _)| {
                format!("most from {}", milliseconds(*from_ms))
            }),
        }
    };
    Some(Lines {
        caption: "distribution of response times".to_owned(),
        series: load.hops.iter().map(|hop| hop.name.clone()).collect(),
        axis: LineAxis {
            title: "response time, logarithmic".to_owned(),
            ends: [low, high],
            is_logarithmic: true,
            ticks: decades(low, high),
        },
        panels: vec![LinePanel {
            title: "share of the requests in %".to_owned(),
            lines: classes.iter().map(line).collect(),
        }],
    })
}

/// The powers of ten between two times in milliseconds.
fn decades(low_ms: f64, high_ms: f64) -> Vec<(f64, String)> {
    // From a microsecond to a day.
    (-3..=8)
        .map(|power| 10f64.powi(power))
        .filter(|at_ms| (low_ms * 0.999..=high_ms * 1.001).contains(at_ms))
        .map(|at_ms| (at_ms, milliseconds(at_ms)))
        .collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::rules::testing::hops;

    #[test]
    fn the_path_shows_the_own_time_of_each_hop_under_both_loads() {
        let observation = hops(
            &["PTS", "ingress", "MHPT"],
            &[
                (3000.0, 10_000.0, &[290.0, 257.5, 225.0]),
                (5000.0, 9856.0, &[499.0, 381.0, 195.0]),
            ],
        );
        let bars = path(&observation.load).unwrap();
        assert_eq!(bars.series, ["3,000 clients", "5,000 clients"]);
        let shown: Vec<(&str, Vec<&str>)> = bars.panels[0]
            .groups
            .iter()
            .map(|group| {
                let texts = group.bars.iter().map(|bar| bar.text.as_str());
                (group.label.as_str(), texts.collect())
            })
            .collect();
        let expected = [
            ("PTS up to ingress", vec!["32.50", "118.0"]),
            ("ingress up to MHPT", vec!["32.50", "186.0"]),
            ("MHPT", vec!["225.0", "195.0"]),
        ];
        assert_eq!(shown, expected);
        let gap = own_over_time(&observation.load, 0);
        assert!(gap.iter().any(|(_, ms)| (ms - 118.0).abs() < 1e-9));
    }

    #[test]
    fn a_distribution_has_a_step_for_each_class_on_a_logarithmic_axis() {
        let mut times = Histogram::new(3).unwrap();
        times.record_n(200, 90).unwrap();
        times.record_n(200_000, 10).unwrap();
        let mut hop = Hop::new("database", vec![]);
        hop.times_us = Some(times);
        let lines = distribution(&Load { hops: vec![hop] }).unwrap();
        let points = &lines.panels[0].lines[0].points;
        assert!((points[0][1] - 90.0).abs() < 1e-9, "{points:?}");
        assert!((points[points.len() - 1][1] - 10.0).abs() < 1e-9);
        assert!(lines.axis.ends[0] <= 0.2 && lines.axis.ends[1] >= 200.0);
        let ticks: Vec<&str> = lines
            .axis
            .ticks
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(ticks, ["1.0 ms", "10 ms", "100 ms"]);
    }
}
