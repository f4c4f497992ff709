//! The first screen: the verdict, the figures, where it did not help, the warnings.
//!
//! The sentences of the verdict are the experiment's own `headline`. What stands beside them is
//! a range over all workloads, so that no flattering cell can be picked. What was not better
//! is listed by itself.

use saiga_experiment::analysis::NO_RATIO;
use saiga_experiment::result::{Comparison, Verdict as Outcome};
use saiga_experiment::stats::Method;

use super::{SERVER_CPU, View, section, words};
use saiga_document::model::{Block, Figure, Notice, Pointer, Reach, Section, Tone, Verdict};
use saiga_document::number;

/// So many lines of what did not help go on the first screens; the tables have all.
const NO_HELP_LINES: usize = 8;

pub(super) fn verdict(view: &View) -> Verdict {
    let all = view.fairest(view.main_metric);
    let tone = headline_tone(view).unwrap_or_else(|| {
        tone(
            counted(&all, Outcome::Faster),
            counted(&all, Outcome::Slower),
        )
    });
    let cut_short = view.result.interrupted.iter();
    let cut_short = cut_short.map(|why| format!("Cut short before the plan was done: {why}."));
    if let [lead, more @ ..] = view.result.headline.as_slice() {
        let more = more.iter().cloned().chain(cut_short).collect();
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
                .chain(cut_short)
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
        "A verdict needs at least {needed} pairs of runs that count; the most that any cell has is {pairs}."
    );
    let lead = "No verdict: too little was measured to tell the arms apart.".to_owned();
    Verdict {
        tone: Tone::Neutral,
        lead,
        more: [more].into_iter().chain(cut_short).collect(),
    }
}

/// How to take the lead, where the result has it in numbers: they are one and the same comparison.
fn headline_tone(view: &View) -> Option<Tone> {
    let headline = view.result.headline_comparison.as_ref()?;
    let arm = |name: &str| view.result.arms.iter().find(|arm| arm.name == name);
    let (a, b) = (arm(&headline.a)?, arm(&headline.b)?);
    Some(match headline.verdict {
        Outcome::NoDifferenceShown => Tone::Neutral,
        // Between one arm and itself.
        Outcome::Faster | Outcome::Slower if b.repeats(a) => Tone::Caution,
        Outcome::Faster => Tone::Better,
        Outcome::Slower => Tone::Worse,
    })
}

/// How to take some comparisons that did better and some that did worse.
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
            .map(|(_, one)| words::gain(one))
            .filter(|gain| gain.is_finite())
    };
    let low = gains().min_by(f64::total_cmp)?;
    let high = gains().max_by(f64::total_cmp)?;
    let value = if number::ratio(low) == number::ratio(high) {
        format!("{}×", number::ratio(low))
    } else {
        format!("{}× to {}×", number::ratio(low), number::ratio(high))
    };
    let shown = |wanted| match one_cell(view, metric, all.len()) {
        Some(verdict) => usize::from(verdict == wanted),
        None => counted(&all, wanted),
    };
    let (faster, slower) = (shown(Outcome::Faster), shown(Outcome::Slower));
    let name = words::metric(metric);
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

/// With a single cell its main comparison is the one that the lead is about, fixed beforehand: it is
/// not corrected for the others here and uncorrected there.
fn one_cell(view: &View, metric: &str, cells: usize) -> Option<Outcome> {
    let headline = view.result.headline_comparison.as_ref()?;
    let is_it = cells == 1 && headline.workloads == 1 && headline.metric == metric;
    is_it.then_some(headline.verdict)
}

fn counted<C>(all: &[(C, &Comparison)], wanted: Outcome) -> usize {
    all.iter()
        .filter(|(_, one)| words::outcome(one) == wanted)
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
    let lines = not_better(view).len();
    if lines > 0 {
        let places = words::count(lines, "comparison", "comparisons");
        point(
            format!(
                "{} did not help, or not for sure, in {places}",
                view.subject
            ),
            "no-help",
        );
    }
    let warnings = view.result.warnings.len();
    if warnings > 0 {
        let things = words::count(warnings, "warning", "warnings");
        point(
            format!("{things} to read before you rely on this"),
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
        let runs = words::count(rejected, "run was rejected", "runs were rejected");
        point(format!("{runs} of {}", view.result.runs.len()), "rejected");
    }
    point("The command, and how to repeat it".to_owned(), "method");
    pointers
}

/// Lists what was not better, corrected for the number of comparisons: any verdict but "faster"
/// on the main metric, "slower" on others.
pub(super) fn no_help(view: &View) -> Section {
    let mut made = section(
        "no-help",
        "Where it did not help, or not for sure",
        Reach::Summary,
    );
    let compared = view.main(view.main_metric).len();
    if compared == 0 {
        return made;
    }
    let mut lines = not_better(view);
    if lines.is_empty() {
        made.blocks.push(Block::Text(format!(
            "Nowhere in this plan: {} did better in all {compared} comparisons of {}, and worse in \
             none of any other metric. What the plan does not contain was not tested.",
            view.subject,
            words::metric(view.main_metric).inside(),
        )));
        return made;
    }
    let hidden = lines.len().saturating_sub(NO_HELP_LINES);
    lines.truncate(NO_HELP_LINES);
    if hidden > 0 {
        lines.push(format!("and {hidden} more, in the charts below"));
    }
    made.blocks.push(Block::List(lines));
    made
}

fn not_better(view: &View) -> Vec<String> {
    let mut found = Vec::new();
    for metric in view.metrics() {
        for (cell, one) in view.main(metric) {
            let counts = match words::outcome(one) {
                Outcome::Faster => false,
                Outcome::Slower => true,
                Outcome::NoDifferenceShown => metric == view.main_metric,
            };
            if counts {
                found.push((metric != view.main_metric, words::gain(one), cell, one));
            }
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
    let line = |cell, one: &Comparison| {
        let (verdict, _) = words::verdict(one);
        let interval = one.ratio.ci95.map_or_else(String::new, |interval| {
            format!(", 95 % interval {}", number::interval(interval))
        });
        format!(
            "{}: {} {}× ({verdict}{interval})",
            view.workloads.full_label(cell),
            words::metric(&one.metric).inside(),
            number::ratio(one.ratio.median),
        )
    };
    found
        .into_iter()
        .map(|(_, _, cell, one)| line(cell, one))
        .collect()
}

pub(super) fn warnings(view: &View) -> Section {
    let mut made = section("warnings", "Before you rely on this", Reach::Summary);
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
        made.blocks.push(Block::Notices(notices));
    }
    made
}
