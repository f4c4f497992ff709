//! Charts of a single run: the charts of an experiment's report, with one run instead of one run
//! per arm.

use saiga_experiment::result::Detail;

use crate::experiment::detail::{distribution as response_times, time_series as charts};
use saiga_document::model::{Block, Section, Visibility};

/// The run over time: one panel per series. The section has no blocks when the run has no series.
/// `name` identifies the run in the legend.
#[must_use]
pub fn time_series(name: &str, detail: &Detail) -> Section {
    let caption = "Throughput, response times and the host".to_owned();
    let mut blocks = Vec::new();
    if let Some((curves, left_out)) = charts::curves(caption, &[(name, detail)]) {
        blocks.push(Block::Text(charts::HOW_TO_READ.to_owned()));
        blocks.push(Block::Curves(curves));
        blocks.extend(charts::left_out_note(left_out));
    }
    Section {
        id: "time-series",
        title: "The run over time".to_owned(),
        visibility: Visibility::Detail,
        blocks,
    }
}

/// The distribution of the run's response times. The section has no blocks when the run has no
/// histograms.
#[must_use]
pub fn distribution(name: &str, detail: &Detail) -> Section {
    let caption = "How many transactions took how long".to_owned();
    let chart = response_times::histogram(caption, &[(name, vec![detail])]);
    Section {
        id: "distribution",
        title: "Response times".to_owned(),
        visibility: Visibility::Detail,
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
        let section = time_series("this run", &detail);
        let [Block::Text(_), Block::Curves(curves)] = section.blocks.as_slice() else {
            panic!("{section:?}")
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
    fn the_shares_of_a_distribution_add_up_to_one() {
        let detail = Detail {
            histograms: vec![Histogram {
                name: "NEW_ORDER".to_owned(),
                bin_ms: 2.5,
                counts: vec![1; 40],
            }],
            ..Detail::default()
        };
        let section = distribution("this run", &detail);
        let [Block::Histogram(chart)] = section.blocks.as_slice() else {
            panic!("{section:?}")
        };
        assert_eq!(chart.panels[0].end, "100.0 ms");
        let sum: f64 = chart.panels[0].shares[0].iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn a_run_without_details_has_no_charts() {
        let empty = Detail::default();
        assert_eq!(time_series("this run", &empty).blocks, []);
        assert_eq!(distribution("this run", &empty).blocks, []);
    }
}
