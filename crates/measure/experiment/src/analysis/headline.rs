//! The sentences of the headline, and the comparison of the first sentence.
//!
//! The main sentence is about a single comparison, so it needs no correction: in each pair the
//! geometric mean, over all workloads without hogs, of subject over reference, each in its best
//! placement; then the median over pairs. The sentence about CPU time is about a second comparison
//! and claims a difference only if it holds by Holm's procedure over both. The summary of single
//! workloads uses the verdicts corrected over all comparisons.

use std::collections::BTreeMap;

use crate::result::{Arm, Better, Comparison, ComparisonKind, HeadlineComparison, Verdict};
use crate::stats::{Method, RatioSummary, holm, median};

use super::compare::{FAMILY_ERROR, best, verdict};
use super::{
    AcceptedRuns, Group, Measure, SERVER_CPU, Side, THROUGHPUT, judged, left_out, ratio_of,
};

/// The sentences, and the comparison of the first sentence.
pub(super) fn write(
    arms: &[Arm],
    groups: &[Group<'_>],
    comparisons: &[Comparison],
    accepted: &AcceptedRuns<'_>,
) -> (Vec<String>, Option<HeadlineComparison>) {
    let nothing = (Vec::new(), None);
    let Some((reference, subject)) = judged(arms) else {
        return nothing;
    };
    let groups = headline_groups(groups);
    let measure = accepted.ranked();
    let (a, b) = (&reference.name, &subject.name);
    let sides = groups
        .iter()
        .map(|group| (best(group, a, accepted), best(group, b, accepted)));
    let sides: Vec<_> = sides.filter_map(|(a, b)| a.zip(b)).collect();
    let throughput: Vec<_> = sides
        .iter()
        .map(|&(a, b)| log_ratios(a, b, measure.0, accepted))
        .filter(|s| !s.is_empty())
        .collect();
    let Some(summary) = accepted.summary(&combined(&throughput)) else {
        return nothing;
    };
    let with_zeros = Zeros::of(&sides, measure, accepted);
    let summary = match with_zeros {
        Some(_) => summary.of_selection(),
        None => summary,
    };
    let verdict = verdict(&summary, measure.2);
    let workloads = throughput.len();
    let main = match with_zeros {
        Some(zeros) => zeros.sentence(measure, reference, subject),
        None => main_sentence(measure, &summary, verdict, reference, subject, workloads),
    };
    let mut sentences = vec![main];
    let cpu = CpuTime::of(&groups, reference, subject, accepted);
    sentences.extend(cpu.map(|cpu| cpu.sentence(summary.p_value)));
    let ids: Vec<&str> = groups.iter().map(|group| headline_id(group)).collect();
    sentences.extend(workload_summary(
        measure.0,
        &ids,
        comparisons,
        reference,
        subject,
    ));
    let (metric, unit, better) = measure;
    let comparison = HeadlineComparison {
        a: reference.name.clone(),
        b: subject.name.clone(),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        better,
        workloads: u32::try_from(workloads).unwrap_or(u32::MAX),
        ratio: ratio_of(&summary),
        verdict,
    };
    (sentences, Some(comparison))
}

/// The groups without hogs; all groups if every group has a hog.
fn headline_groups<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<&'g Group<'a>> {
    let undisturbed: Vec<_> = groups.iter().filter(|group| group.undisturbed).collect();
    if undisturbed.is_empty() {
        groups.iter().collect()
    } else {
        undisturbed
    }
}

/// The cell whose comparison represents the group in the summary of workloads.
fn headline_id<'g>(group: &'g Group<'_>) -> &'g str {
    if group.cells.len() > 1 {
        &group.best_id
    } else {
        &group.cells[0].id
    }
}

fn log_ratios(
    a: Side<'_>,
    b: Side<'_>,
    metric: &str,
    accepted: &AcceptedRuns<'_>,
) -> BTreeMap<u32, f64> {
    let pairs = accepted.pairs(a, b, metric).into_iter();
    pairs.map(|(pair, (a, b))| (pair, (b / a).ln())).collect()
}

/// Geometric mean over the series, for each pair that at least half of the series have. A missing
/// value is replaced by the median of its series, so that it does not move the mean.
fn combined(series: &[BTreeMap<u32, f64>]) -> Vec<f64> {
    let middle = |one: &BTreeMap<u32, f64>| median(&one.values().copied().collect::<Vec<_>>());
    let with_middle: Vec<_> = series
        .iter()
        .filter_map(|one| Some((one, middle(one)?)))
        .collect();
    let last = series.iter().filter_map(|one| one.keys().last()).max();
    let Some(&last) = last else { return Vec::new() };
    let at = |pair: u32| {
        let present = with_middle
            .iter()
            .filter(|(one, _)| one.contains_key(&pair))
            .count();
        let sum: f64 = with_middle
            .iter()
            .map(|(one, m)| one.get(&pair).unwrap_or(m))
            .sum();
        let enough = present > 0 && present * 2 >= with_middle.len();
        enough.then(|| (sum / u32::try_from(with_middle.len()).map_or(f64::MAX, f64::from)).exp())
    };
    (0..=last).filter_map(at).collect()
}

fn main_sentence(
    measure: Measure<'_>,
    summary: &RatioSummary,
    verdict: Verdict,
    reference: &Arm,
    subject: &Arm,
    workloads: usize,
) -> String {
    let how = match workloads {
        1 => "one workload".to_owned(),
        n => format!("geometric mean of {n} workloads"),
    };
    let spread = format!(
        "{how}, each arm in its best placement; {}",
        interval(summary)
    );
    if subject.repeats(reference) {
        return same_arm_sentence(measure, summary, verdict, reference, subject, &spread);
    }
    if measure.0 != THROUGHPUT {
        let what = named(measure);
        return sentence_of_own_metric(&what, summary, verdict, reference, subject, &spread);
    }
    let times = times(summary.median);
    let (name, reference) = (capital(&subject.name), &reference.name);
    match verdict {
        Verdict::Faster => format!(
            "{name} served {times} times as many operations per second as the {reference} arm ({spread})."
        ),
        Verdict::Slower => format!(
            "{name} was slower: it served {times} times the operations per second of the {reference} \
             arm ({spread})."
        ),
        Verdict::NoDifferenceShown => format!(
            "No difference shown: {} served {times} times the operations per second of the \
             {reference} arm ({spread}).",
            subject.name
        ),
    }
}

/// Workloads with pairs without a ratio, because a figure is 0.
struct Zeros {
    /// Number of workloads with zeros, and of all workloads.
    workloads: [usize; 2],
    /// The figures of both sides in all pairs of the first workload with zeros.
    figures: Vec<(f64, f64)>,
}

impl Zeros {
    /// `None` if all pairs of all workloads have a ratio.
    fn of(
        sides: &[(Side<'_>, Side<'_>)],
        measure: Measure<'_>,
        accepted: &AcceptedRuns<'_>,
    ) -> Option<Self> {
        let has_zeros = |(a, b): &&(Side<'_>, Side<'_>)| accepted.has_zeros(*a, *b, measure.0);
        let found: Vec<_> = sides.iter().filter(has_zeros).collect();
        let (a, b) = found.first()?;
        Some(Self {
            workloads: [found.len(), sides.len()],
            figures: accepted.figures(*a, *b, measure.0),
        })
    }

    fn sentence(&self, measure: Measure<'_>, reference: &Arm, subject: &Arm) -> String {
        let what = named(measure);
        let [found, all] = self.workloads;
        if all > 1 {
            return format!(
                "No difference shown: {what} is 0 in runs of {found} of {all} workloads, whose pairs \
                 have no ratio."
            );
        }
        let middle = |side: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = self.figures.iter().map(side).collect();
            median(&values).map_or_else(String::new, left_out::shown)
        };
        let ratios = self.figures.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
        format!(
            "No difference shown: the median {what} is {} in the {} arm and {} in the {} arm ({} \
             pairs, of which {} have a ratio).",
            middle(|pair| pair.0),
            reference.name,
            middle(|pair| pair.1),
            subject.name,
            self.figures.len(),
            ratios.count()
        )
    }
}

/// The name of a metric in sentences.
fn named((metric, unit, _): Measure<'_>) -> String {
    format!("{} ({unit})", metric.replace('_', " "))
}

/// The main sentence about a metric specific to the experiment.
fn sentence_of_own_metric(
    what: &str,
    summary: &RatioSummary,
    verdict: Verdict,
    reference: &Arm,
    subject: &Arm,
    spread: &str,
) -> String {
    let (times, name, reference) = (times(summary.median), &subject.name, &reference.name);
    let had = format!("{times} times the {what} of the {reference} arm ({spread})");
    match verdict {
        Verdict::Faster => format!("{} did better: it had {had}.", capital(name)),
        Verdict::Slower => format!("{} did worse: it had {had}.", capital(name)),
        Verdict::NoDifferenceShown => format!("No difference shown: {name} had {had}."),
    }
}

/// The main sentence if an arm is compared with itself; a difference is then due to the machine or
/// to chance.
fn same_arm_sentence(
    (metric, ..): Measure<'_>,
    summary: &RatioSummary,
    verdict: Verdict,
    reference: &Arm,
    subject: &Arm,
    spread: &str,
) -> String {
    let what = if metric == THROUGHPUT {
        "served"
    } else {
        "had"
    };
    let of = if metric == THROUGHPUT {
        "operations per second".to_owned()
    } else {
        metric.replace('_', " ")
    };
    let served = format!(
        "{} {what} {} times the {of} of the {} arm ({spread})",
        subject.name,
        times(summary.median),
        reference.name
    );
    match verdict {
        Verdict::NoDifferenceShown => {
            format!(
                "No difference shown between the arm and its repetition, as expected: {served}."
            )
        }
        Verdict::Faster | Verdict::Slower => format!(
            "A difference is shown between the arm and its repetition: {served}. Only the times of \
             the runs differ. One such experiment in twenty shows a difference by chance; if more \
             do, the speed of this machine varies too much."
        ),
    }
}

/// The comparison of the servers' CPU time, in the same placement on both sides.
struct CpuTime {
    summary: RatioSummary,
    cells: usize,
}

impl CpuTime {
    fn of(
        groups: &[&Group<'_>],
        reference: &Arm,
        subject: &Arm,
        accepted: &AcceptedRuns<'_>,
    ) -> Option<Self> {
        let cells = groups.iter().flat_map(|group| group.cells.iter());
        let sides = cells.map(|cell| {
            let side = |arm| Side {
                cell: &cell.id,
                arm,
            };
            (side(&reference.name), side(&subject.name))
        });
        let sides: Vec<_> = sides.collect();
        let series = sides
            .iter()
            .map(|&(a, b)| log_ratios(a, b, SERVER_CPU, accepted));
        let series: Vec<_> = series.filter(|one| !one.is_empty()).collect();
        let summary = accepted.summary(&combined(&series))?;
        let has_zeros = sides
            .iter()
            .any(|&(a, b)| accepted.has_zeros(a, b, SERVER_CPU));
        Some(Self {
            summary: if has_zeros {
                summary.of_selection()
            } else {
                summary
            },
            cells: series.len(),
        })
    }

    /// The verdict, corrected for the main comparison with the given p-value.
    fn verdict(&self, main_p_value: f64) -> Verdict {
        let [_, corrected] = holm(&[main_p_value, self.summary.p_value])[..] else {
            unreachable!("two p-values remain two")
        };
        if corrected < FAMILY_ERROR {
            verdict(&self.summary, Better::Lower)
        } else {
            Verdict::NoDifferenceShown
        }
    }

    fn sentence(&self, main_p_value: f64) -> String {
        let Self { summary, cells } = self;
        let (text, spread) = match self.verdict(main_p_value) {
            Verdict::Faster => {
                let inverse = inverse(summary);
                (
                    format!("{} times less CPU", times(inverse.median)),
                    interval(&inverse),
                )
            }
            Verdict::Slower => (
                format!("{} times the CPU", times(summary.median)),
                interval(summary),
            ),
            Verdict::NoDifferenceShown => (
                format!(
                    "{} times the CPU (no difference shown)",
                    times(summary.median)
                ),
                interval(summary),
            ),
        };
        let uncorrected = verdict(summary, Better::Lower);
        let note = match self.verdict(main_p_value) == uncorrected {
            true => "",
            false => {
                "; the interval alone shows a difference, but not corrected for the first sentence"
            }
        };
        format!(
            "Its server used {text} per operation (geometric mean of {cells} cells, same placement on \
             both sides; {spread}{note})."
        )
    }
}

/// The summary of single workloads, corrected for the number of comparisons.
fn workload_summary(
    metric: &str,
    ids: &[&str],
    comparisons: &[Comparison],
    reference: &Arm,
    subject: &Arm,
) -> Option<String> {
    let wanted =
        |c: &&Comparison| c.metric == metric && c.a == reference.name && c.b == subject.name;
    let of = |id: &&str| comparisons.iter().filter(wanted).find(|c| c.cell == *id);
    let found: Vec<&Comparison> = ids.iter().filter_map(of).collect();
    if found.len() < 2 {
        return None;
    }
    let names = |verdict: Verdict| -> Vec<&str> {
        let held = |c: &&&Comparison| {
            let corrected = if c.holds_corrected == Some(true) {
                c.verdict
            } else {
                Verdict::NoDifferenceShown
            };
            corrected == verdict
        };
        found
            .iter()
            .filter(held)
            .map(|c| c.cell.trim_end_matches("-best"))
            .collect()
    };
    let list = |what: &str, names: Vec<&str>| match names.as_slice() {
        [] => String::new(),
        names => format!("; {what} in {} ({})", names.len(), names.join(", ")),
    };
    let best = if found
        .iter()
        .any(|c| c.kind == ComparisonKind::BestAgainstBest)
    {
        "best against best, "
    } else {
        ""
    };
    Some(format!(
        "Workload by workload ({best}corrected for {} comparisons by Holm's method) it was faster in {} \
         of {}{}{}.",
        comparisons.len(),
        names(Verdict::Faster).len(),
        found.len(),
        list("slower", names(Verdict::Slower)),
        list("no difference shown", names(Verdict::NoDifferenceShown)),
    ))
}

fn inverse(summary: &RatioSummary) -> RatioSummary {
    let ci95 = summary.ci95.map(|[lo, hi]| [1.0 / hi, 1.0 / lo]);
    RatioSummary {
        median: 1.0 / summary.median,
        ci95,
        ..*summary
    }
}

fn interval(summary: &RatioSummary) -> String {
    let pairs = summary.n_pairs;
    match summary.ci95 {
        Some([lo, hi]) => format!(
            "95 % interval{} {} to {}, {pairs} pairs",
            match summary.method {
                Method::Fixed => "",
                Method::Sequential => ", valid after every pair:",
            },
            times(lo),
            times(hi)
        ),
        None if pairs < summary.method.min_pairs() => {
            format!("{pairs} pairs, too few for an interval")
        }
        None => "no interval: the figure is 0 in some runs".to_owned(),
    }
}

/// A factor with two decimals, with one decimal above ten.
fn times(factor: f64) -> String {
    if factor >= 9.95 {
        format!("{factor:.1}")
    } else {
        format!("{factor:.2}")
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval excludes 1 and all p-values are less than 5 %.
    #[test]
    fn cpu_time_is_corrected_for_the_main_sentence() {
        let summary = |p_value| RatioSummary {
            median: 0.8,
            ci95: Some([0.7, 0.9]),
            n_pairs: 8,
            p_value,
            method: Method::Fixed,
        };
        let result = |main_p_value, p_value| {
            let cpu = CpuTime {
                summary: summary(p_value),
                cells: 3,
            };
            (cpu.verdict(main_p_value), cpu.sentence(main_p_value))
        };
        for (main_p_value, p_value, shown) in [
            (0.5, 0.02, true),
            (0.001, 0.04, true),
            (0.5, 0.04, false),
            (0.03, 0.04, false),
        ] {
            let (verdict, sentence) = result(main_p_value, p_value);
            assert_eq!(
                verdict == Verdict::Faster,
                shown,
                "{main_p_value} {p_value}"
            );
            assert_eq!(
                sentence.contains("1.25 times less CPU"),
                shown,
                "{sentence}"
            );
            assert_eq!(
                sentence.contains("no difference shown"),
                !shown,
                "{sentence}"
            );
            let has_note = sentence.contains("but not corrected for the first sentence");
            assert_eq!(has_note, !shown, "{sentence}");
        }
    }

    #[test]
    fn a_missing_pair_does_not_move_the_mean() {
        let two = |pairs: &[u32]| {
            pairs
                .iter()
                .map(|p| (*p, 2f64.ln()))
                .collect::<BTreeMap<_, _>>()
        };
        let eight = |pairs: &[u32]| {
            pairs
                .iter()
                .map(|p| (*p, 8f64.ln()))
                .collect::<BTreeMap<_, _>>()
        };
        let ratios = combined(&[two(&[0, 1, 2]), eight(&[0, 2])]);
        assert_eq!(ratios.len(), 3);
        assert!(
            ratios.iter().all(|ratio| (ratio - 4.0).abs() < 1e-9),
            "{ratios:?}"
        );
        let few = combined(&[two(&[0, 1]), eight(&[0]), eight(&[0])]);
        assert_eq!(few.len(), 1, "pair 1 is in one of three only");
    }
}
