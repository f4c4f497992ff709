//! The report: the gain of each rule set, moved pages by cause, lifetimes of pages, and the
//! assumptions of the simulation.

mod assumptions;
mod comparison;
mod instances;
mod lifetimes;
mod rules;
mod victims;
mod warm_up;

use saiga_document::Document;
use saiga_document::model::{
    Align, Block, Column, Figure, Notice, Section, Table, Tone, Verdict, Visibility,
};
use saiga_document::number;
use saiga_ftl::Policy;
use saiga_ftl::replay::{Options, Placement};

use crate::compare::{Condition, Run, placement_name, ratio};
use crate::directories::Directories;
use crate::format;
use crate::sets::Joined;
use crate::suggest::{Class, Suggestion};
use crate::without::LeftOut;

/// A smaller change does not count: it may be an effect of the unit size (docs/ftl.md).
const NO_CHANGE: f64 = 0.02;

/// The content of a report.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// The name of the trace.
    pub name: &'a str,
    /// A summary of the trace: time, bytes, files.
    pub trace: &'a str,
    /// Properties of trace and device, with their values.
    pub facts: &'a [(String, String)],
    /// Remarks on the trace.
    pub notes: &'a [String],
    /// All runs, beginning with one stream.
    pub runs: &'a [Run],
    /// The compared sets.
    pub sets: &'a [Joined],
    /// The classes of files in the trace.
    pub classes: &'a [Class],
    /// The length of the trace in seconds.
    pub seen_s: f64,
    /// The suggested rules, if there are any.
    pub suggestion: Option<&'a Suggestion>,
    /// The directories of the trace, if it has several.
    pub directories: Option<&'a Directories>,
    /// The files without which the trace was also simulated.
    pub left_out: Option<&'a LeftOut>,
    /// The simulated device.
    pub device: &'a Options,
}

/// Creates the document.
#[must_use]
pub fn document(content: &Content<'_>) -> Document {
    let sections = [
        comparison::section(content),
        victims::section(content),
        instances::section(content),
        lifetimes::section(content),
        warm_up::section(content),
        rules::section(content),
        assumptions::section(content),
    ];
    Document {
        title: format!("What would streams gain? {}", content.name),
        subtitle: content.trace.to_owned(),
        verdict: verdict(content),
        figures: figures(content),
        pointers: Vec::new(),
        sections: sections.into_iter().flatten().collect(),
        origin: "Made by saiga streams simulate: a simulation, not a measurement of a drive; \
                 docs/ftl.md describes how it was validated."
            .to_owned(),
    }
}

/// Returns the run of a rule set with the least write amplification under the first condition.
fn best<'a>(content: &Content<'a>) -> Option<&'a Run> {
    let condition = content.runs.first()?.condition;
    let runs = content
        .runs
        .iter()
        .filter(|run| run.condition == condition && run.is_of_rules() && run.without.is_none());
    runs.min_by(|a, b| a.case.outcome.waf().total_cmp(&b.case.outcome.waf()))
}

fn verdict(content: &Content<'_>) -> Verdict {
    let (Some(first), best) = (content.runs.first(), best(content)) else {
        return Verdict {
            tone: Tone::Neutral,
            lead: "Nothing was simulated.".to_owned(),
            more: Vec::new(),
        };
    };
    let alone = first.case.outcome.waf();
    let at = condition_words(first.condition);
    let Some((best, ratio)) = best.and_then(|best| Some((best, ratio(content.runs, best)?))) else {
        return Verdict {
            tone: Tone::Neutral,
            lead: format!("With one stream, write amplification is {alone:.3} ({at})."),
            more: Vec::new(),
        };
    };
    let (tone, lead) = if (ratio - 1.0).abs() < NO_CHANGE {
        let lead = format!(
            "No rule set lowers write amplification by 2 % or more: it is {alone:.3} with one stream ({at})."
        );
        (Tone::Neutral, lead)
    } else {
        let tone = if ratio < 1.0 {
            Tone::Better
        } else {
            Tone::Worse
        };
        let lead = format!(
            "The rules `{}` change write amplification from {alone:.3} to {:.3}, {} of the writes to \
             flash ({at}, {}); no placement can save more than {}.",
            best.label(),
            best.case.outcome.waf(),
            format::change(ratio),
            placement_name(best.placement),
            number::percent(1.0 - 1.0 / alone)
        );
        (tone, lead.replace('`', "\""))
    };
    let caveat = "This is a simulation that omits many properties of a drive. The omissions affect \
                  all rule sets alike, so the ratio of two figures is more reliable than either.";
    let without = without(content);
    Verdict {
        tone,
        lead,
        more: without.into_iter().chain([caveat.to_owned()]).collect(),
    }
}

/// Describes the writes to flash of one stream without the left-out files.
fn without(content: &Content<'_>) -> Option<String> {
    let left_out = content.left_out?;
    let mut runs = content.runs.iter();
    let run = runs.find(|run| run.without.is_some() && run.placement == Placement::OneStream)?;
    Some(format!(
        "Without {} ({} less from the host), one stream writes {} to flash ({}).",
        left_out.name,
        number::bytes(left_out.written_bytes),
        format::change(ratio(content.runs, run)?),
        condition_words(run.condition)
    ))
}

fn figures(content: &Content<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for run in content
        .runs
        .iter()
        .filter(|run| run.placement == Placement::OneStream)
    {
        let label = match &run.without {
            Some(without) => format!("WAF of one stream, without {without}"),
            None => "WAF of one stream".to_owned(),
        };
        figures.push(figure(label, run, Tone::Neutral));
        let same = content.runs.iter().filter(|one| {
            let is_same = (one.condition, &one.without) == (run.condition, &run.without);
            is_same && one.is_of_rules()
        });
        let best = same.min_by(|a, b| a.case.outcome.waf().total_cmp(&b.case.outcome.waf()));
        if let Some(best) = best {
            let tone = match ratio(content.runs, best) {
                Some(ratio) if ratio < 1.0 - NO_CHANGE => Tone::Better,
                Some(_) | None => Tone::Neutral,
            };
            let label = format!(
                "WAF of {}, {}",
                best.label(),
                placement_name(best.placement)
            );
            figures.push(figure(label, best, tone));
        }
    }
    figures.truncate(8);
    figures
}

fn figure(label: String, run: &Run, tone: Tone) -> Figure {
    Figure {
        label,
        value: format!("{:.3}", run.case.outcome.waf()),
        detail: match run.half_range() {
            Some(half) => format!("± {half:.3}; {}", condition_words(run.condition)),
            None => condition_words(run.condition),
        },
        tone,
    }
}

/// Formats a condition: `90 % live, 7 % spare, greedy`, or
/// `90 % live, 7 % spare, greedy, no discards, units of 512 pages`.
#[must_use]
pub fn condition_words(condition: Condition) -> String {
    let Condition {
        utilisation,
        over_provisioning,
        policy,
        trim,
        unit_pages,
    } = condition;
    let [used, spare] = [utilisation, over_provisioning].map(format::round_percent);
    let mut text = format!("{used} live, {spare} spare, {}", policy_name(policy));
    if !trim {
        text.push_str(", no discards");
    }
    if let Some(pages) = unit_pages {
        text.push_str(&format!(", units of {pages} pages"));
    }
    text
}

/// Returns the name of a policy: `greedy`, `choice:10`.
#[must_use]
pub fn policy_name(policy: Policy) -> String {
    match policy {
        Policy::Greedy => "greedy".to_owned(),
        Policy::Fifo => "fifo".to_owned(),
        Policy::CostBenefit => "cost-benefit".to_owned(),
        Policy::Choice(samples) => format!("choice:{samples}"),
    }
}

fn columns(titles: &[(&str, Align)]) -> Vec<Column> {
    let column = |(title, align): &(&str, Align)| Column {
        title: (*title).to_owned(),
        align: *align,
    };
    titles.iter().map(column).collect()
}
