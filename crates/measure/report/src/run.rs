//! The charts of a single run: those of the report of an experiment, with one series.

use saiga_experiment::result::Detail;

use crate::experiment::detail as charts;
use saiga_document::model::{Block, Reach, Section};

/// How it went, second by second; without blocks when it tells nothing of that. `name` is what the
/// run is called in the chart.
#[must_use]
pub fn course(name: &str, detail: &Detail) -> Section {
    let caption = "Throughput, response times and the host".to_owned();
    let mut blocks = Vec::new();
    if let Some((curves, left_out)) = charts::course::drawn(caption, &[(name, detail)]) {
        let text = "A line goes through means; the shade around it reaches from the lowest to the \
                    highest value. All panels share the time axis and begin at zero.";
        blocks.push(Block::Text(text.to_owned()));
        blocks.push(Block::Curves(curves));
        blocks.extend(charts::course::told(left_out));
    }
    Section {
        id: "course",
        title: "The course of the run".to_owned(),
        reach: Reach::Detail,
        blocks,
    }
}

/// How its response times are distributed; without blocks when it tells nothing of that.
#[must_use]
pub fn distribution(name: &str, detail: &Detail) -> Section {
    let caption = "How many transactions took how long".to_owned();
    let chart = charts::distribution::drawn(caption, &[(name, vec![detail])]);
    Section {
        id: "distribution",
        title: "Response times".to_owned(),
        reach: Reach::Detail,
        blocks: chart.map(Block::Histogram).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use saiga_experiment::result::detail::{Histogram, Series};

    use super::*;

    #[test]
    fn a_run_has_one_curve_for_each_of_its_series() {
        let series = |name: &str| Series {
            name: name.to_owned(),
            at_s: vec![0.5, 1.5],
            mean: vec![Some(10.0), Some(30.0)],
            low: Vec::new(),
            high: Vec::new(),
        };
        let detail = Detail {
            series: vec![series("cpu_user_percent"), series("throughput_ops_s")],
            ..Detail::default()
        };
        let course = course("this run", &detail);
        let [Block::Text(_), Block::Curves(curves)] = course.blocks.as_slice() else {
            panic!("{course:?}")
        };
        let titles: Vec<&str> = curves.panels.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(
            titles,
            ["throughput, per second", "CPU user, % of all cores"]
        );
        assert_eq!(curves.panels[0].curves[0].mean, "20.00");
        assert_eq!(curves.series, ["this run"]);
    }

    #[test]
    fn a_distribution_adds_up_to_all_that_was_done() {
        let detail = Detail {
            histograms: vec![Histogram {
                name: "NEW_ORDER".to_owned(),
                bin_ms: 2.5,
                counts: vec![1; 40],
            }],
            ..Detail::default()
        };
        let made = distribution("this run", &detail);
        let [Block::Histogram(chart)] = made.blocks.as_slice() else {
            panic!("{made:?}")
        };
        assert_eq!(chart.panels[0].end, "100.0 ms");
        let sum: f64 = chart.panels[0].shares[0].iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn a_run_that_tells_nothing_has_no_charts() {
        let nothing = Detail::default();
        assert_eq!(course("this run", &nothing).blocks, []);
        assert_eq!(distribution("this run", &nothing).blocks, []);
    }
}
