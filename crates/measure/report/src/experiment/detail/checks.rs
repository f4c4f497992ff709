//! What must hold for runs to be believed, and where it does not.

use saiga_experiment::result::detail::{Check, CheckVerdict};

use super::super::{View, first_seen, section, tables, words};
use super::{cells, runs_of};
use saiga_document::model::{Align, Block, Cell, Notice, Reach, Row, Section, Table};

/// A check of a run of an arm in a cell.
struct Checked<'a> {
    /// `set, 1 client: kernel`.
    place: String,
    pair: u32,
    check: &'a Check,
}

/// A sentence, and a warning for each rule that some run breaks.
pub(in super::super) fn violations(view: &View) -> Section {
    let mut made = section("checks", "Validity and consistency", Reach::Summary);
    let all = all(view);
    if all.is_empty() {
        return made;
    }
    let with = |verdict: CheckVerdict| all.iter().filter(move |one| one.check.verdict == verdict);
    let broken: Vec<&Checked> = with(CheckVerdict::Violated).collect();
    let open = with(CheckVerdict::NotShown).count();
    let checks = words::count(all.len(), "check", "checks");
    let sentence = match (broken.len(), open) {
        (0, 0) => format!("Nothing is violated in {checks}."),
        (0, open) => format!("Nothing is violated in {checks}; {open} saw too little to tell."),
        (broken, _) => format!("{broken} of {checks} are violated."),
    };
    made.blocks.push(Block::Text(sentence));
    let rules = first_seen(broken.iter().map(|one| one.check.what.as_str()));
    let notices: Vec<Notice> = rules
        .into_iter()
        .map(|rule| notice(rule, &broken))
        .collect();
    if !notices.is_empty() {
        made.blocks.push(Block::Notices(notices));
    }
    made
}

/// Every check of every run.
pub(in super::super) fn all_checks(view: &View) -> Section {
    let mut made = section("all-checks", "Every check of every run", Reach::Evidence);
    let mut rows = Vec::new();
    for Checked { place, pair, check } in all(view) {
        let heading = Row::Group(format!("{place}, pair {}", pair + 1));
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
        let titles = ["Clause", "What must hold", "Found", "Bounds", "Verdict"];
        made.blocks.push(Block::Table(Table {
            caption: "Checks by run".to_owned(),
            columns: titles
                .map(|title| tables::column(title, Align::Left))
                .into(),
            rows,
        }));
    }
    made
}

fn all<'a>(view: &View<'a>) -> Vec<Checked<'a>> {
    let mut all = Vec::new();
    for cell in cells(view) {
        for arm in &view.result.arms {
            for (run, detail) in runs_of(view, cell, &arm.name) {
                let place = format!("{}: {}", view.workloads.full_label(cell), arm.name);
                all.extend(detail.checks.iter().map(|check| Checked {
                    place: place.clone(),
                    pair: run.pair,
                    check,
                }));
            }
        }
    }
    all
}

/// One rule, with all that break it.
fn notice(rule: &str, broken: &[&Checked]) -> Notice {
    let own: Vec<&Checked> = broken
        .iter()
        .copied()
        .filter(|one| one.check.what == rule)
        .collect();
    let found = first_seen(own.iter().map(|one| one.check.found.as_str()));
    let first = own.first().map(|one| one.check);
    let text_of = |of: fn(&Check) -> &str| first.map_or("", of);
    Notice {
        text: format!(
            "{rule}: {}, not {}",
            found.join("; "),
            text_of(|check| &check.bounds)
        ),
        cause: None,
        action: Some(format!(
            "{} demands it: find out why before you believe these runs.",
            text_of(|check| &check.clause)
        )),
        about: where_found(&own),
    }
}

/// Arms, each with the number of its runs.
fn where_found(own: &[&Checked]) -> Vec<String> {
    let places = first_seen(own.iter().map(|one| one.place.as_str()));
    let counted = |place: &str| {
        let runs = own.iter().filter(|one| one.place == place).count();
        format!("{place}, {}", words::count(runs, "run", "runs"))
    };
    places.into_iter().map(counted).collect()
}
