//! Distributions of response times, all arms in the same panels (TPC-C §5.6.1).

use saiga_experiment::result::detail::Histogram as Counts;
use saiga_experiment::result::{Cell, Detail};

use super::super::{View, first_seen, new_section};
use super::{accepted_runs, cells_with_details};
use saiga_document::model::{Block, Histogram, HistogramPanel, Section, Visibility};
use saiga_document::number;

/// Bins of a panel; TPC-C §5.6.1 requires at least twenty.
const BINS: u32 = 40;

/// One chart for each cell, one panel for each type of transaction.
pub(in super::super) fn distribution(view: &View) -> Section {
    let mut section = new_section("distribution", "Response times", Visibility::Detail);
    section.blocks.extend(
        cells_with_details(view)
            .into_iter()
            .filter_map(|cell| chart(view, cell))
            .map(Block::Histogram),
    );
    section
}

fn chart(view: &View, cell: &Cell) -> Option<Histogram> {
    let arms: Vec<(&str, Vec<&Detail>)> = view
        .result
        .arms
        .iter()
        .map(|arm| {
            let runs = accepted_runs(view, cell, &arm.name);
            (
                arm.name.as_str(),
                runs.into_iter().map(|(_, detail)| detail).collect(),
            )
        })
        .filter(|(_, details): &(_, Vec<&Detail>)| {
            details.iter().any(|one| !one.histograms.is_empty())
        })
        .collect();
    let caption = format!("Response times: {}", view.workloads.full_label(cell));
    histogram(caption, &arms)
}

/// A chart of several arms: each arm's name, and the details of its runs, which are pooled.
pub(crate) fn histogram(caption: String, arms: &[(&str, Vec<&Detail>)]) -> Option<Histogram> {
    let all = arms
        .iter()
        .flat_map(|(_, details)| details)
        .flat_map(|one| &one.histograms);
    let names = first_seen(all.map(|one| one.name.as_str()));
    let panels: Vec<HistogramPanel> = names.into_iter().map(|name| panel(name, arms)).collect();
    (!panels.is_empty()).then(|| Histogram {
        caption,
        series: arms.iter().map(|(arm, _)| (*arm).to_owned()).collect(),
        panels,
    })
}

fn panel(name: &str, arms: &[(&str, Vec<&Detail>)]) -> HistogramPanel {
    let of_arm = |details: &[&Detail]| -> Vec<Counts> {
        let all = details.iter().flat_map(|one| &one.histograms);
        all.filter(|one| one.name == name).cloned().collect()
    };
    let by_arm: Vec<Vec<Counts>> = arms.iter().map(|(_, details)| of_arm(details)).collect();
    // The axis is as long as the longest histogram.
    let end_ms = by_arm
        .iter()
        .flatten()
        .map(|one| one.bin_ms * one.counts.len() as f64)
        .fold(0.0, f64::max);
    HistogramPanel {
        title: name.to_owned(),
        end: format!("{} ms", number::value(end_ms)),
        shares: by_arm.iter().map(|runs| shares(runs, end_ms)).collect(),
    }
}

/// Share of each bin of the panel, over all runs of an arm.
fn shares(runs: &[Counts], end_ms: f64) -> Vec<f64> {
    let mut bins = vec![0_u64; BINS as usize];
    let width_ms = end_ms / f64::from(BINS);
    for run in runs {
        for (at, count) in (0_u32..).zip(&run.counts) {
            let middle_ms = (f64::from(at) + 0.5) * run.bin_ms;
            let bin = (0..BINS)
                .rev()
                .find(|bin| middle_ms >= f64::from(*bin) * width_ms);
            bins[bin.unwrap_or(0) as usize] += count;
        }
    }
    let all: u64 = bins.iter().sum();
    bins.iter()
        .map(|count| {
            if all == 0 {
                0.0
            } else {
                *count as f64 / all as f64
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_different_bins_are_pooled() {
        let counts = |bin_ms, counts: &[u64]| Counts {
            name: String::new(),
            bin_ms,
            counts: counts.to_vec(),
        };
        let pooled = shares(&[counts(1.0, &[3; 40]), counts(20.0, &[80, 40])], 40.0);
        assert_eq!(pooled.len(), 40);
        assert!((pooled.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // 240 counts: 3 + 80 in the bin of 10 ms, 3 + 40 in that of 30 ms, 3 in each other bin.
        assert_eq!(
            (pooled[10], pooled[30], pooled[39]),
            (83.0 / 240.0, 43.0 / 240.0, 3.0 / 240.0)
        );
    }
}
