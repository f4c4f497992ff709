//! The first screen: the verdict, the key figures, comparisons without a gain, the warnings.
//!
//! The sentences of the verdict are the experiment's own `headline`. Each key figure is the range
//! over all workloads, so that the report cannot show its best cell only. Comparisons that show no
//! gain or a loss have a list of their own.

use saiga_experiment::analysis::NO_RATIO;
use saiga_experiment::result::{Comparison, Verdict as Outcome};
use saiga_experiment::stats::Method;

use super::{SERVER_CPU, View, format, new_section};
use saiga_document::model::{Block, Figure, Notice, Pointer, Section, Tone, Verdict, Visibility};
use saiga_document::number;

/// Maximum length of the list of comparisons without a gain; the charts show all comparisons.
const WITHOUT_GAIN_LINES: usize = 8;

pub(super) fn verdict(view: &View) -> Verdict {
    let all = view.fairest(view.main_metric);
    let tone = headline_tone(view).unwrap_or_else(|| {
        tone(
            count_of(&all, Outcome::Faster),
            count_of(&all, Outcome::Slower),
        )
    });
    let interrupted = view.result.interrupted.iter();
    let interrupted = interrupted
        .map(|reason| format!("The experiment ended before its plan was complete: {reason}."));
    if let [lead, more @ ..] = view.result.headline.as_slice() {
        let more = more.iter().cloned().chain(interrupted).collect();
        return Verdict {
            tone,
            lead: lead.clone(),
            more,
        };
    }
    let warnings = view.result.warnings.iter();
    if let Some(without) = warnings.into_iter().find(|one| one.text.contains(NO_RATIO)) {
        return Verdict {
            tone: Tone::Neutral,
            lead: "No verdict: no pair of runs has a ratio.".to_owned(),
            more: [without.text.clone()]
                .into_iter()
                .chain(interrupted)
                .collect(),
        };
    }
    let pairs = all
        .iter()
        .map(|(_, one)| one.ratio.n_pairs)
        .max()
        .unwrap_or(0);
    let needed = match view.method() {
        Method::Fixed => "six",
        Method::Sequential => "eight",
    };
    let more = format!(
        "A verdict needs at least {needed} pairs of accepted runs; no cell has more than {pairs}."
    );
    let lead = "No verdict: too little was measured to tell the arms apart.".to_owned();
    Verdict {
        tone: Tone::Neutral,
        lead,
        more: [more].into_iter().chain(interrupted).collect(),
    }
}

/// Tone of the lead sentence, from the comparison that the sentence reports; `None` for results
/// without `headline_comparison`.
fn headline_tone(view: &View) -> Option<Tone> {
    let headline = view.result.headline_comparison.as_ref()?;
    let arm = |name: &str| view.result.arms.iter().find(|arm| arm.name == name);
    let (a, b) = (arm(&headline.a)?, arm(&headline.b)?);
    Some(match headline.verdict {
        Outcome::NoDifferenceShown => Tone::Neutral,
        // An arm that is compared with itself should show no difference.
        Outcome::Faster | Outcome::Slower if b.repeats(a) => Tone::Caution,
        Outcome::Faster => Tone::Better,
        Outcome::Slower => Tone::Worse,
    })
}

/// Tone of a set of comparisons, some faster and some slower.
fn tone(faster: usize, slower: usize) -> Tone {
    match (faster, slower) {
        (0, 0) => Tone::Neutral,
        (_, 0) => Tone::Better,
        (0, _) => Tone::Worse,
        (_, _) => Tone::Caution,
    }
}

pub(super) fn figures(view: &View) -> Vec<Figure> {
    let metrics = [view.main_metric, SERVER_CPU, "latency_p99_us"];
    metrics
        .into_iter()
        .filter_map(|metric| figure(view, metric))
        .collect()
}

fn figure(view: &View, metric: &str) -> Option<Figure> {
    let all = view.fairest(metric);
    let gains = || {
        all.iter()
            .map(|(_, one)| format::gain(one))
            .filter(|gain| gain.is_finite())
    };
    let low = gains().min_by(f64::total_cmp)?;
    let high = gains().max_by(f64::total_cmp)?;
    let value = if number::ratio(low) == number::ratio(high) {
        format!("{}×", number::ratio(low))
    } else {
        format!("{}× to {}×", number::ratio(low), number::ratio(high))
    };
    let shown = |wanted| match single_cell_verdict(view, metric, all.len()) {
        Some(verdict) => usize::from(verdict == wanted),
        None => count_of(&all, wanted),
    };
    let (faster, slower) = (shown(Outcome::Faster), shown(Outcome::Slower));
    let name = format::metric(metric);
    let kind = if all.iter().any(|(_, one)| super::is_best(one)) {
        ", best against best"
    } else {
        ""
    };
    let unclear = all.len() - faster - slower;
    let mut detail = format!("{} in {faster} of {} cells{kind}", name.better, all.len());
    if slower > 0 {
        detail.push_str(&format!("; {} in {slower}", name.worse));
    }
    if unclear > 0 {
        detail.push_str(&format!("; no difference shown in {unclear}"));
    }
    Some(Figure {
        label: name.gain,
        value,
        detail,
        tone: tone(faster, slower),
    })
}

/// The headline's verdict, if the experiment has a single cell. The lead sentence and the figure
/// are then about the same comparison. That comparison was fixed beforehand and needs no
/// correction, so a corrected verdict in the figure could contradict the sentence.
fn single_cell_verdict(view: &View, metric: &str, cells: usize) -> Option<Outcome> {
    let headline = view.result.headline_comparison.as_ref()?;
    let is_same = cells == 1 && headline.workloads == 1 && headline.metric == metric;
    is_same.then_some(headline.verdict)
}

fn count_of<C>(all: &[(C, &Comparison)], wanted: Outcome) -> usize {
    all.iter()
        .filter(|(_, one)| format::corrected_verdict(one) == wanted)
        .count()
}

pub(super) fn pointers(view: &View) -> Vec<Pointer> {
    let mut pointers = Vec::new();
    let mut point = |text: String, section: &str| {
        pointers.push(Pointer {
            text,
            section: section.to_owned(),
        });
    };
    let lines = without_gain(view).len();
    if lines > 0 {
        let comparisons = format::count(lines, "comparison shows", "comparisons show");
        point(format!("{comparisons} no gain or a loss"), "no-help");
    }
    let warnings = view.result.warnings.len();
    if warnings > 0 {
        let warnings = format::count(warnings, "warning", "warnings");
        point(
            format!("{warnings} to read before you rely on this report"),
            "warnings",
        );
    }
    let rejected = view
        .result
        .runs
        .iter()
        .filter(|run| run.rejected.is_some())
        .count();
    if rejected > 0 {
        let runs = format::count(view.result.runs.len(), "run was", "runs were");
        point(format!("{rejected} of {runs} rejected"), "rejected");
    }
    point("How to repeat this experiment".to_owned(), "method");
    pointers
}

/// Lists the comparisons without a gain, corrected for the number of comparisons: any verdict but
/// "faster" on the main metric, and "slower" on the other metrics.
pub(super) fn no_help(view: &View) -> Section {
    let title = "Comparisons that show no gain or a loss";
    let mut section = new_section("no-help", title, Visibility::Summary);
    let compared = view.main(view.main_metric).len();
    if compared == 0 {
        return section;
    }
    let mut lines = without_gain(view);
    if lines.is_empty() {
        section.blocks.push(Block::Text(format!(
            "None: {} did better in all {compared} comparisons of {}, and worse in no comparison \
             of another metric. Workloads outside the plan of this experiment were not tested.",
            view.subject,
            format::metric(view.main_metric).in_sentence(),
        )));
        return section;
    }
    let hidden = lines.len().saturating_sub(WITHOUT_GAIN_LINES);
    lines.truncate(WITHOUT_GAIN_LINES);
    if hidden > 0 {
        lines.push(format!("and {hidden} more, in the charts below"));
    }
    section.blocks.push(Block::List(lines));
    section
}

/// One line per comparison without a gain, the main metric first and the greatest loss first.
fn without_gain(view: &View) -> Vec<String> {
    let mut found = Vec::new();
    for metric in view.metrics() {
        for (cell, one) in view.main(metric) {
            let belongs = match format::corrected_verdict(one) {
                Outcome::Faster => false,
                Outcome::Slower => true,
                Outcome::NoDifferenceShown => metric == view.main_metric,
            };
            if belongs {
                found.push((metric != view.main_metric, format::gain(one), cell, one));
            }
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
    let line = |cell, one: &Comparison| {
        let (verdict, _) = format::verdict(one);
        let interval = one.ratio.ci95.map_or_else(String::new, |interval| {
            format!(", 95 % interval {}", number::interval(interval))
        });
        format!(
            "{}: {} {}× ({verdict}{interval})",
            view.workloads.full_label(cell),
            format::metric(&one.metric).in_sentence(),
            number::ratio(one.ratio.median),
        )
    };
    found
        .into_iter()
        .map(|(_, _, cell, one)| line(cell, one))
        .collect()
}

pub(super) fn warnings(view: &View) -> Section {
    let mut section = new_section("warnings", "Warnings", Visibility::Summary);
    let notices = view.result.warnings.iter().map(|warning| Notice {
        text: warning.text.clone(),
        cause: warning.cause.clone(),
        action: warning.action.clone(),
        about: warning
            .cells
            .iter()
            .filter_map(|id| view.result.cell(id))
            .map(|cell| view.workloads.full_label(cell))
            .collect(),
    });
    let notices: Vec<_> = notices.collect();
    if !notices.is_empty() {
        section.blocks.push(Block::Notices(notices));
    }
    section
}
