//! A verdict as a document: three sentences first, then the evidence.

mod charts;

use std::collections::BTreeMap;

use saiga_document::model::{
    Align, Block, Cell, Column, Document, Notice, Row, Section, Table, Tone, Verdict as Answer,
    Visibility,
};
use saiga_document::number;
use saiga_topology::page::latency_table;

use crate::observation::Observation;
use crate::rule::{Kind, Step};
use crate::verdict::{Found, Said, Verdict};

/// Builds the document. `title` names what was observed, `origin` the command that made it.
#[must_use]
pub fn page(observation: &Observation, verdict: &Verdict, title: &str, origin: &str) -> Document {
    let mut sections = Vec::new();
    if let Some(found) = verdict.findings.first() {
        sections.push(evidence(found));
        sections.push(next(found));
    }
    sections.extend(others(verdict));
    sections.extend(charts::charts(&observation.load));
    sections.extend(observation.latency.as_ref().map(|latency| {
        let table = Block::Table(latency_table(latency));
        section("latency", "Memory latency", Visibility::Detail, vec![table])
    }));
    sections.extend(looked_at(&verdict.clear));
    sections.extend(not_judged(&verdict.unknown));
    sections.extend(gaps(verdict));
    Document {
        title: title.to_owned(),
        subtitle: String::new(),
        verdict: answer(verdict),
        figures: vec![],
        pointers: vec![],
        sections,
        origin: origin.to_owned(),
    }
}

/// The verdict in three sentences.
fn answer(verdict: &Verdict) -> Answer {
    let Some(found) = verdict.findings.first() else {
        return Answer {
            tone: Tone::Neutral,
            lead: "No bottleneck was found.".to_owned(),
            more: vec![format!(
                "{} judged, {} not judged for lack of a source.",
                number::counted(verdict.clear.len() as u64, "resource"),
                verdict.unknown.len()
            )],
        };
    };
    let [limit, shown, advice] = found.finding.summary.clone();
    let tone = match found.finding.kind {
        Kind::Cause | Kind::Error => Tone::Worse,
        Kind::Sign => Tone::Caution,
    };
    Answer {
        tone,
        lead: limit,
        more: vec![shown, advice],
    }
}

fn section(
    id: &'static str,
    title: impl Into<String>,
    visibility: Visibility,
    blocks: Vec<Block>,
) -> Section {
    Section {
        id,
        title: title.into(),
        visibility,
        blocks,
    }
}

fn evidence(found: &Found) -> Section {
    let column = |title: &str| Column {
        title: title.to_owned(),
        align: Align::Left,
    };
    let rows = found.finding.evidence.iter().map(|one| {
        let cells = [&one.quantity, &one.value, &one.threshold, &one.source];
        Row::Cells(cells.map(|text| Cell::new(text.as_str())).into())
    });
    let table = Table {
        caption: format!("evidence for {}", found.finding.bottleneck),
        columns: ["quantity", "measured", "expected or limit", "source"]
            .map(column)
            .into(),
        rows: rows.collect(),
    };
    section(
        "evidence",
        format!("Evidence: {}", found.finding.bottleneck),
        Visibility::Summary,
        vec![Block::Table(table)],
    )
}

fn next(found: &Found) -> Section {
    let mut steps: Vec<String> = found
        .finding
        .next
        .iter()
        .map(|step| match step {
            Step::Knob(knob) => format!("setting {} (saiga tune plan)", knob.id()),
            Step::Command(text) => format!("run: {text}"),
            Step::Advice(text) => text.clone(),
        })
        .collect();
    steps.push(format!(
        "The finding is wrong if {}.",
        found.finding.refuted_by
    ));
    section(
        "next",
        "What to do next",
        Visibility::Summary,
        vec![Block::List(steps)],
    )
}

/// Findings behind the first.
fn others(verdict: &Verdict) -> Option<Section> {
    let rest = verdict.findings.get(1..).filter(|rest| !rest.is_empty())?;
    let items = rest.iter().map(|found| {
        let [limit, shown, _] = &found.finding.summary;
        format!("{limit} {shown}")
    });
    let blocks = vec![
        Block::Text(
            "One bottleneck hides the others: diagnose again after each change.".to_owned(),
        ),
        Block::List(items.collect()),
    ];
    Some(section(
        "others",
        "Found as well",
        Visibility::Summary,
        blocks,
    ))
}

fn looked_at(clear: &[Said]) -> Option<Section> {
    let items = clear
        .iter()
        .map(|one| format!("{}: {}", one.subject, one.text));
    list("looked-at", "Looked at, without a finding", items.collect())
}

/// The missing sources, each with what could be judged with it.
fn not_judged(unknown: &[Said]) -> Option<Section> {
    let mut subjects: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in unknown {
        subjects.entry(&one.text).or_default().push(one.subject);
    }
    let items = subjects
        .iter()
        .map(|(source, subjects)| format!("needs {source}: {}", subjects.join("; ")));
    list(
        "not-judged",
        "Not judged: a source is missing",
        items.collect(),
    )
}

fn list(id: &'static str, title: &str, items: Vec<String>) -> Option<Section> {
    let is_empty = items.is_empty();
    (!is_empty).then(|| section(id, title, Visibility::Summary, vec![Block::List(items)]))
}

fn gaps(verdict: &Verdict) -> Option<Section> {
    if verdict.gaps.is_empty() {
        return None;
    }
    let notices = verdict.gaps.iter().map(|gap| Notice {
        text: format!("{}: {}", gap.source, gap.reason),
        cause: None,
        action: None,
        about: vec![],
    });
    Some(section(
        "gaps",
        "Sources that could not be read whole",
        Visibility::Summary,
        vec![Block::Notices(notices.collect())],
    ))
}

#[cfg(test)]
mod tests {
    use saiga_document::{html, text};

    use super::*;
    use crate::rules::testing::steps;
    use crate::verdict::judge;

    fn rendered(observation: &Observation) -> (String, String) {
        let verdict = judge(observation);
        let page = page(observation, &verdict, "load.csv", "saiga diagnose load.csv");
        (
            text::render(&page, text::Style::plain()),
            html::render(&page),
        )
    }

    #[test]
    fn the_text_begins_with_three_sentences() {
        let observation = steps(&[(3000.0, 10_000.0, 290.0), (5000.0, 9856.0, 499.0)]);
        let (text, html) = rendered(&observation);
        let sentences = [
            "The system is saturated at 9,856/s.",
            "From 3,000 to 5,000 clients, throughput changes by -1.4 % and response time by 72.1 %.",
            "More clients only wait longer",
        ];
        let places: Vec<usize> = sentences
            .iter()
            .map(|sentence| {
                text.find(sentence)
                    .unwrap_or_else(|| panic!("{sentence}\n{text}"))
            })
            .collect();
        assert!(places.is_sorted(), "{text}");
        assert!(
            text.contains("needs the load at several hops (--hop): own time of each hop"),
            "{text}"
        );
        assert!(html.contains("The system is saturated"));
    }

    #[test]
    fn nothing_found_says_what_was_looked_at() {
        let mut observation = Observation::default();
        observation.metrics.add("steal_percent", 1.0, 0.1);
        let (text, _) = rendered(&observation);
        assert!(text.contains("No bottleneck was found."), "{text}");
        assert!(text.contains("1 resource judged"), "{text}");
        assert!(
            text.contains("gives to other guests: 0.1 % (limit: 10.0 %)"),
            "{text}"
        );
    }
}
