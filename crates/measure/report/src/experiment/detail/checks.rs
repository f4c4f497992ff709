//! Validity and consistency checks of the runs, and their violations.

use saiga_experiment::result::detail::{Check, CheckVerdict};

use super::super::{View, first_seen, format, new_section, tables};
use super::{accepted_runs, cells_with_details};
use saiga_document::model::{Align, Block, Cell, Notice, Row, Section, Table, Visibility};

/// A check of one run.
struct Checked<'a> {
    /// Cell and arm: `set, 1 client · one core: kernel`.
    arm: String,
    pair: u32,
    check: &'a Check,
}

/// A sentence with the counts, and a warning for each rule that a run violates.
pub(in super::super) fn violations(view: &View) -> Section {
    let mut section = new_section("checks", "Validity and consistency", Visibility::Answer);
    let all = all(view);
    if all.is_empty() {
        return section;
    }
    let with = |verdict: CheckVerdict| all.iter().filter(move |one| one.check.verdict == verdict);
    let violations: Vec<&Checked> = with(CheckVerdict::Violated).collect();
    let undecided = with(CheckVerdict::NotShown).count();
    let checks = format::count(all.len(), "check", "checks");
    let sentence = match (violations.len(), undecided) {
        (0, 0) => format!("{checks} found no violation."),
        (0, undecided) => format!(
            "{checks} found no violation; {undecided} of them had too little data to decide."
        ),
        (violations, _) => format!("{violations} of {checks} found a violation."),
    };
    section.blocks.push(Block::Text(sentence));
    let rules = first_seen(violations.iter().map(|one| one.check.what.as_str()));
    let notices: Vec<Notice> = rules
        .into_iter()
        .map(|rule| notice(rule, &violations))
        .collect();
    if !notices.is_empty() {
        section.blocks.push(Block::Notices(notices));
    }
    section
}

/// A table of all checks of all runs.
pub(in super::super) fn all_checks(view: &View) -> Section {
    let mut section = new_section(
        "all-checks",
        "Every check of every run",
        Visibility::Evidence,
    );
    let mut rows = Vec::new();
    for Checked { arm, pair, check } in all(view) {
        let heading = Row::Group(format!("{arm}, pair {}", pair + 1));
        if !rows.contains(&heading) {
            rows.push(heading);
        }
        let verdict = match check.verdict {
            CheckVerdict::Holds => "holds",
            CheckVerdict::Violated => "VIOLATED",
            CheckVerdict::NotShown => "not shown",
        };
        let texts = [
            &*check.clause,
            &check.what,
            &check.found,
            &check.bounds,
            verdict,
        ];
        rows.push(Row::Cells(texts.map(Cell::new).into()));
    }
    if !rows.is_empty() {
        let titles = ["Clause", "Rule", "Found", "Required", "Verdict"];
        section.blocks.push(Block::Table(Table {
            caption: "Checks by run".to_owned(),
            columns: titles
                .map(|title| tables::column(title, Align::Left))
                .into(),
            rows,
        }));
    }
    section
}

fn all<'a>(view: &View<'a>) -> Vec<Checked<'a>> {
    let mut all = Vec::new();
    for cell in cells_with_details(view) {
        for arm in &view.result.arms {
            for (run, detail) in accepted_runs(view, cell, &arm.name) {
                let arm = format!("{}: {}", view.workloads.full_label(cell), arm.name);
                all.extend(detail.checks.iter().map(|check| Checked {
                    arm: arm.clone(),
                    pair: run.pair,
                    check,
                }));
            }
        }
    }
    all
}

/// The warning about one rule: the values found, and the arms that violate it.
fn notice(rule: &str, violations: &[&Checked]) -> Notice {
    let own: Vec<&Checked> = violations
        .iter()
        .copied()
        .filter(|one| one.check.what == rule)
        .collect();
    let found = first_seen(own.iter().map(|one| one.check.found.as_str()));
    let first = own.first().map(|one| one.check);
    let text_of = |of: fn(&Check) -> &str| first.map_or("", of);
    Notice {
        text: format!(
            "{rule}: {} (required: {})",
            found.join("; "),
            text_of(|check| &check.bounds)
        ),
        cause: None,
        action: Some(format!(
            "This is a rule of {}. Find the cause before you rely on these runs.",
            text_of(|check| &check.clause)
        )),
        about: affected_arms(&own),
    }
}

/// The arms with violations, each with the number of its runs that have one.
fn affected_arms(violations: &[&Checked]) -> Vec<String> {
    let arms = first_seen(violations.iter().map(|one| one.arm.as_str()));
    let with_count = |arm: &str| {
        let runs = violations.iter().filter(|one| one.arm == arm).count();
        format!("{arm}, {}", format::count(runs, "run", "runs"))
    };
    arms.into_iter().map(with_count).collect()
}
