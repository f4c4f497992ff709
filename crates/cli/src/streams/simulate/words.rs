//! What traces came to, for people.

use std::fmt::Write as _;
use std::time::Duration;

use saiga_ftl::Device;
use saiga_ftl::replay::{self, Placement};
use saiga_whatif::compare::{ORACLE, ceiling, placement_name, ratio, spared};
use saiga_whatif::document::{policy_name, unit_words};
use saiga_whatif::{By, Condition, Joined, Run};

use super::super::suggested;
use super::trace::Found;
use super::{outcome, percent};
use crate::table::Table;
use saiga_document::number;

/// Lines of who was whose victim, for each case.
const CHARGES: usize = 6;

/// The whole answer.
pub(super) fn text(found: &Found<'_>) -> anyhow::Result<String> {
    let mut text = head(found);
    let mut named: Vec<&str> = Vec::new();
    for set in found.sets {
        if !named.contains(&set.name.as_str()) {
            text.push_str(&matched(set));
            named.push(&set.name);
        }
    }
    for condition in found.conditions {
        let runs = found.runs.iter().filter(|run| run.condition == *condition);
        let runs: Vec<&Run> = runs.collect();
        let config = replay::device(found.footprint, &condition.device(found.device))?;
        let device = Device::new(config.clone())?;
        if found.conditions.len() > 1 {
            let used = percent(condition.utilisation);
            let _ = writeln!(
                text,
                "\n{used} live, {}{} victims{}",
                unit_words(condition.unit_pages),
                policy_name(condition.policy),
                discards(*condition)
            );
        }
        text.push_str(&outcome::device_lines(&config, &device));
        text.push_str(&steadiness(found, *condition, &runs));
        text.push_str(&comparison(found, &runs));
        text.push_str(&most(found, &runs));
    }
    let first = found.conditions.first();
    let by = found.sets.first().map(|set| set.by);
    let is_shown = |run: &&Run| {
        let is_first = run.placement == Placement::OneStream || Some(run.by) == by;
        Some(&run.condition) == first && is_first && !run.is_oracle
    };
    for run in found.runs.iter().filter(is_shown) {
        text.push_str(&victims(run));
    }
    for note in notes(found) {
        let _ = writeln!(text, "\nnote: {note}");
    }
    Ok(text)
}

/// The trace in one line.
pub(super) fn trace(found: &Found<'_>) -> String {
    let totals = found.footprint.totals();
    format!(
        "trace: {}, {} in {} files",
        found.path.display(),
        number::time(Duration::from_nanos(totals.duration_ns)),
        found.trace.files.len(),
    )
}

/// What the trace consists of.
pub(super) fn head(found: &Found<'_>) -> String {
    let totals = found.footprint.totals();
    let mut text = format!(
        "{}\n{} writes of {}, {} discards of {}\n",
        trace(found),
        totals.writes,
        number::bytes(totals.written_bytes),
        totals.discards,
        number::bytes(totals.discarded_bytes),
    );
    let _ = writeln!(
        text,
        "{} distinct pages of {}, {} of which held data before; {} written by one repetition",
        found.footprint.pages(),
        number::bytes(found.page_bytes),
        totals.present_pages,
        totals.written_pages,
    );
    if totals.partial_writes > 0 {
        let share = totals.partial_writes as f64 / totals.writes as f64;
        let _ = writeln!(
            text,
            "{} of the writes begin or end within a page, which was then written whole",
            outcome::percent_rounded(share)
        );
    }
    text
}

fn matched(set: &Joined) -> String {
    let (matched, all) = (set.matched_bytes(), set.written_bytes);
    let share = outcome::percent_rounded(matched as f64 / all.max(1) as f64);
    let (matched, all) = (number::bytes(matched), number::bytes(all));
    format!(
        "{}: its rules match {matched} of {all} written, {share}\n",
        set.name
    )
}

/// What a condition without discards is called beside others.
pub(super) fn discards(condition: Condition) -> &'static str {
    if condition.trim { "" } else { ", no discards" }
}

/// How far the steady state was waited for.
fn steadiness(found: &Found<'_>, condition: Condition, runs: &[&Run]) -> String {
    let Some(run) = runs.first() else {
        return String::new();
    };
    let [warm_up, measured] = run.case.outcome.repetitions;
    let pages = (warm_up * found.footprint.totals().written_pages) as f64;
    let size = f64::from(run.case.logical_pages);
    format!(
        "{} live, {} ever written; the trace was repeated {warm_up} times as warm-up ({:.1} device sizes) and {measured} times \
         measured\n\n",
        percent(condition.utilisation),
        percent(f64::from(found.footprint.pages()) / size),
        (pages / size * 10.0).floor() / 10.0,
    )
}

/// Every set under every placement, with columns for each of what tells streams apart.
fn comparison(found: &Found<'_>, runs: &[&Run]) -> String {
    let mut bys: Vec<By> = Vec::new();
    for set in found.sets {
        if !bys.contains(&set.by) {
            bys.push(set.by);
        }
    }
    match bys[..] {
        [] => table::<7>(found, runs, &[By::Stream]),
        [_] => table::<7>(found, runs, &bys),
        [_, _] => table::<12>(found, runs, &bys),
        _ => table::<17>(found, runs, &bys),
    }
}

/// Two columns of names, and five for each of `bys`.
fn table<const N: usize>(found: &Found<'_>, runs: &[&Run], bys: &[By]) -> String {
    let mut header = vec!["rules".to_owned(), "placement".to_owned()];
    for by in bys {
        header.push(match bys.len() {
            1 => "streams".to_owned(),
            _ => format!("streams by {}", by.name()),
        });
        header.extend(["WAF", "half range", "writes to flash", "not moved"].map(str::to_owned));
    }
    let header: [String; N] = cells(&header);
    let mut table = Table::new(header.each_ref().map(String::as_str));
    let shown =
        |run: &&&Run| run.placement == Placement::OneStream || run.is_oracle || run.by == bys[0];
    for run in runs.iter().filter(shown) {
        let mut row = vec![run.set.clone(), placement_name(run.placement).to_owned()];
        for by in bys {
            let is_same = |other: &&&Run| {
                let is_by = other.placement == Placement::OneStream || other.by == *by;
                is_by && (&other.set, other.placement) == (&run.set, run.placement)
            };
            let other = runs.iter().find(is_same);
            row.extend(other.map_or_else(blank, |run| figures(run, found.runs)));
        }
        table.row(cells(&row));
    }
    table.to_string()
}

/// What a column has that a run is not of.
fn blank() -> [String; 5] {
    ["-"; 5].map(str::to_owned)
}

/// The most that any placement can save.
fn most(found: &Found<'_>, runs: &[&Run]) -> String {
    let ceiling = runs.first().and_then(|run| ceiling(found.runs, run));
    ceiling.map_or(String::new(), |ceiling| {
        format!(
            "no placement saves more than {} of what is written to flash; {ORACLE} knows when each page dies\n",
            outcome::percent_rounded(ceiling)
        )
    })
}

/// Streams, write amplification, half its range, what is written to flash beside one stream, and
/// the share of what that moves that is not moved.
fn figures(run: &Run, all: &[Run]) -> [String; 5] {
    let change = ratio(all, run).map_or(0.0, |ratio| (ratio - 1.0) * 100.0);
    [
        run.case.streams.len().to_string(),
        format!("{:.3}", run.case.outcome.waf()),
        run.half_range()
            .map_or("-".to_owned(), |half| format!("{half:.3}")),
        if run.placement == Placement::OneStream {
            String::new()
        } else {
            format!("{change:+.1} %")
        },
        match spared(all, run) {
            Some(share) if run.placement != Placement::OneStream => outcome::percent_rounded(share),
            Some(_) | None => String::new(),
        },
    ]
}

/// As many of them as a table has columns.
fn cells<const N: usize>(all: &[String]) -> [String; N] {
    std::array::from_fn(|column| all.get(column).cloned().unwrap_or_default())
}

/// Whose pages were moved because of whom.
fn victims(run: &Run) -> String {
    let case = &run.case;
    let title = format!("\n{}, {}: ", run.label(), placement_name(run.placement));
    let moved = case.outcome.measured.moved_pages();
    if moved == 0 {
        return format!("{title}nothing was moved\n");
    }
    let mut table = Table::new([
        "moved",
        "because these died in the same unit",
        "share of moved pages",
    ]);
    for charge in outcome::charges(&case.outcome, &case.classes)
        .into_iter()
        .take(CHARGES)
    {
        table.row([
            charge.moved.to_owned(),
            charge.died.to_owned(),
            outcome::percent_rounded(charge.share),
        ]);
    }
    format!("{title}{moved} pages were moved\n{table}")
}

/// What is to be said of this trace and these sets.
pub(super) fn notes(found: &Found<'_>) -> Vec<String> {
    let mut notes: Vec<String> = suggested::holes(found.trace).into_iter().collect();
    let writes = found.footprint.writes_per_page();
    if writes < replay::FEW_WRITES_PER_PAGE {
        notes.push(format!(
            "the trace writes its pages {writes:.1} times in the mean. Repeated, that looks like a ring, and write \
             amplification comes out too low; record at least {} times as long",
            (replay::FEW_WRITES_PER_PAGE / writes).ceil()
        ));
    }
    let first = found.conditions.first();
    let runs = found
        .runs
        .iter()
        .filter(|run| Some(&run.condition) == first);
    for run in runs.filter(|run| run.placement == Placement::InitiallyIsolated) {
        if !run.case.without_handle.is_empty() {
            notes.push(format!(
                "{}: streams {:?} shared the first handle, for the device has {}",
                run.set, run.case.without_handle, found.device.handles
            ));
        }
    }
    let doubts = found.suggestion.map_or(0, |suggestion| {
        let classes = suggestion.classes.iter();
        classes
            .filter(|class| class.conclusion.or.is_some())
            .count()
    });
    if doubts > 0 {
        notes.push(format!(
            "the trace is too short to tell how long {doubts} kinds of files live; `saiga streams suggest --out FILE.toml` \
             says which"
        ));
    }
    notes
}
