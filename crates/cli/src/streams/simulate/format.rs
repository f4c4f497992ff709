//! The results of a trace simulation as text.

use std::fmt::Write as _;
use std::time::Duration;

use saiga_document::number;
use saiga_ftl::replay::{self, Placement};
use saiga_ftl::{Config, Device};
use saiga_whatif::compare::{ORACLE, ceiling, placement_name, ratio, spared};
use saiga_whatif::directories::Directories;
use saiga_whatif::document::condition_words;
use saiga_whatif::format::round_percent;
use saiga_whatif::{By, Condition, Joined, Run};

use super::super::suggested;
use super::outcome;
use super::trace::TraceResults;
use saiga_document::table::{Grid, Table};

/// Maximum rows of the table of victims, for each case.
const CHARGES: usize = 6;

pub(super) fn text(found: &TraceResults<'_>) -> anyhow::Result<String> {
    let mut text = head(found);
    let mut named: Vec<&str> = Vec::new();
    for set in found.sets {
        if !named.contains(&set.name.as_str()) {
            text.push_str(&matched(set));
            named.push(&set.name);
        }
    }
    for alike in found.conditions.chunk_by(Condition::is_like) {
        if found.conditions.len() > 1 {
            let condition = Condition {
                unit_pages: alike[0].unit_pages.filter(|_| alike.len() == 1),
                ..alike[0]
            };
            let _ = writeln!(text, "\n{}", condition_words(condition));
        }
        for condition in alike {
            let (config, device) = device(found, condition)?;
            text.push_str(&outcome::device_lines(&config, &device));
            text.push_str(&steadiness(found, *condition));
        }
        match alike {
            [_] => {
                let runs: Vec<&Run> = runs_under(found, alike[0]).collect();
                text.push_str(&comparison(found, &runs));
                text.push_str(&most(found, &runs));
            }
            _ => text.push_str(&by_size(found, alike)),
        }
    }
    let first = found.conditions.first();
    let by = found.sets.first().map(|set| set.by);
    let is_shown = |run: &&Run| {
        let is_first = run.placement == Placement::OneStream || Some(run.by) == by;
        Some(&run.condition) == first && is_first && run.without.is_none() && !run.is_oracle
    };
    for run in found.runs.iter().filter(is_shown) {
        text.push_str(&victims(run));
    }
    if let Some(directories) = found.directories {
        for run in found.runs.iter().filter(is_shown) {
            text.push_str(&parts(directories, run));
        }
    }
    for note in notes(found)? {
        let _ = writeln!(text, "\nnote: {note}");
    }
    Ok(text)
}

fn runs_under<'a>(found: &TraceResults<'a>, condition: Condition) -> impl Iterator<Item = &'a Run> {
    let runs = found.runs.iter();
    runs.filter(move |run| run.condition == condition)
}

fn device(found: &TraceResults<'_>, condition: &Condition) -> anyhow::Result<(Config, Device)> {
    let config = replay::device(found.footprint, &condition.device(found.device))?;
    Ok((config.clone(), Device::new(config)?))
}

pub(super) fn trace(found: &TraceResults<'_>) -> String {
    let totals = found.footprint.totals();
    format!(
        "trace: {}, {} in {} files",
        found.path.display(),
        number::time(Duration::from_nanos(totals.duration_ns)),
        found.trace.files.len(),
    )
}

/// The summary of the trace.
pub(super) fn head(found: &TraceResults<'_>) -> String {
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
        "{} distinct pages of {}, {} of which held data before; one repetition writes {}",
        found.footprint.pages(),
        number::bytes(found.page_bytes),
        totals.present_pages,
        totals.written_pages,
    );
    if totals.partial_writes > 0 {
        let share = totals.partial_writes as f64 / totals.writes as f64;
        let _ = writeln!(
            text,
            "{} of the writes cover a page in part; these pages were written whole",
            number::percent(share)
        );
    }
    if let Some(sampling) = found.trace.sampled {
        let _ = writeln!(text, "{}", suggested::sample_words(sampling));
    }
    if let Some(out) = found.left_out {
        let share = out.written_bytes as f64 / totals.written_bytes.max(1) as f64;
        let _ = writeln!(
            text,
            "without {} ({}), {} ({}) less is written; changes are relative to the whole trace in \
             one stream",
            out.name,
            number::counted(out.files as u64, "file"),
            number::bytes(out.written_bytes),
            number::percent(share),
        );
    }
    text
}

fn matched(set: &Joined) -> String {
    let (matched, all) = (set.matched_bytes(), set.written_bytes);
    let share = number::percent(matched as f64 / all.max(1) as f64);
    let (matched, all) = (number::bytes(matched), number::bytes(all));
    format!(
        "{}: rules match {matched} of the {all} written ({share})\n",
        set.name
    )
}

/// The length of the warm-up and of the measurement.
fn steadiness(found: &TraceResults<'_>, condition: Condition) -> String {
    let Some(run) = runs_under(found, condition).next() else {
        return String::new();
    };
    let [warm_up, measured] = run.case.outcome.repetitions;
    let pages = (warm_up * found.footprint.totals().written_pages) as f64;
    let size = f64::from(run.case.logical_pages);
    format!(
        "{} live, {} ever written; the trace was repeated {warm_up} times as warm-up ({:.1} device \
         sizes) and {measured} times for the measurement\n\n",
        round_percent(condition.utilisation),
        round_percent(f64::from(found.footprint.pages()) / size),
        (pages / size * 10.0).floor() / 10.0,
    )
}

/// Every set under every placement, with columns for each value of `--by`.
fn comparison(found: &TraceResults<'_>, runs: &[&Run]) -> String {
    let mut bys: Vec<By> = Vec::new();
    for set in found.sets {
        if !bys.contains(&set.by) {
            bys.push(set.by);
        }
    }
    if bys.is_empty() {
        bys.push(By::Stream);
    }
    let mut header = vec!["rules".to_owned(), "placement".to_owned()];
    for by in &bys {
        header.push(match bys.len() {
            1 => "streams".to_owned(),
            _ => format!("streams by {}", by.name()),
        });
        header.extend(["WAF", "half range", "writes to flash", "not moved"].map(str::to_owned));
    }
    let mut table = Grid::new(header);
    let is_of_all = |run: &Run| run.placement == Placement::OneStream || run.is_oracle;
    let shown = |run: &&&Run| is_of_all(run) || run.by == bys[0];
    for run in runs.iter().filter(shown) {
        let mut row = vec![run.name(), placement_name(run.placement).to_owned()];
        for by in &bys {
            let is_same = |other: &&&Run| {
                let is_by = other.placement == Placement::OneStream || other.by == *by;
                is_by && (other.name(), other.placement) == (run.name(), run.placement)
            };
            let other = runs.iter().find(is_same);
            row.extend(other.map_or_else(blank, |run| figures(run, found.runs)));
        }
        table.row(row);
    }
    table.to_string()
}

/// The comparison for several unit sizes, which are the columns; each value of `--by` has its own
/// rows.
fn by_size(found: &TraceResults<'_>, alike: &[Condition]) -> String {
    let mut header = vec!["rules".to_owned(), "placement".to_owned()];
    for condition in alike {
        let pages = condition.unit_pages.unwrap_or_default();
        header.extend(["WAF", "to flash"].map(|title| format!("{title}, {pages} pages")));
    }
    let mut table = Grid::new(header);
    for run in runs_under(found, alike[0]) {
        let mut row = vec![run.label(), placement_name(run.placement).to_owned()];
        for condition in alike {
            let other = runs_under(found, *condition).find(|other| other.is_like(run));
            let [_, waf, _, change, _] = other.map_or_else(blank, |run| figures(run, found.runs));
            row.extend([waf, change]);
        }
        table.row(row);
    }
    table.to_string()
}

/// Cells of a column that does not apply to a run.
fn blank() -> [String; 5] {
    ["-"; 5].map(str::to_owned)
}

/// The maximum that any placement can save.
fn most(found: &TraceResults<'_>, runs: &[&Run]) -> String {
    let ceiling = runs.first().and_then(|run| ceiling(found.runs, run));
    ceiling.map_or(String::new(), |ceiling| {
        format!(
            "no placement saves more than {} of the flash writes; {ORACLE} knows when each page \
             dies\n",
            number::percent(ceiling)
        )
    })
}

/// Streams, write amplification, half its range, flash writes relative to one stream, and the share
/// of one stream's moves that is avoided.
fn figures(run: &Run, all: &[Run]) -> [String; 5] {
    let change = ratio(all, run).map_or(0.0, |ratio| (ratio - 1.0) * 100.0);
    [
        run.case.streams.len().to_string(),
        format!("{:.3}", run.case.outcome.waf()),
        run.half_range()
            .map_or("-".to_owned(), |half| format!("{half:.3}")),
        if run.is_base() {
            String::new()
        } else {
            format!("{change:+.1} %")
        },
        match spared(all, run) {
            Some(share) if !run.is_base() => number::percent(share),
            Some(_) | None => String::new(),
        },
    ]
}

/// Which class caused moves of which class.
fn victims(run: &Run) -> String {
    let case = &run.case;
    let title = format!("\n{}, {}: ", run.label(), placement_name(run.placement));
    let moved = case.outcome.measured.moved_pages();
    if moved == 0 {
        return format!("{title}no pages were moved\n");
    }
    let mut table = Table::new(["moved", "because of deaths in", "share of moved pages"]);
    for charge in outcome::charges(&case.outcome, &case.classes)
        .into_iter()
        .take(CHARGES)
    {
        table.row([
            charge.moved.to_owned(),
            charge.died.to_owned(),
            number::percent(charge.share),
        ]);
    }
    format!("{title}{moved} pages were moved\n{table}")
}

/// Shares of the written and moved pages by directory.
fn parts(directories: &Directories, run: &Run) -> String {
    let parts = directories.parts(&run.case);
    if parts.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        "directory",
        "written",
        "of all",
        "pages moved",
        "WAF",
        "moves caused",
        "of all moved",
    ]);
    for part in parts {
        table.row([
            part.name.clone(),
            number::bytes(part.written_bytes),
            number::percent(part.of_written),
            part.moved_pages.to_string(),
            part.waf().map_or("-".to_owned(), |waf| format!("{waf:.3}")),
            format!("{:.0}", part.caused_pages),
            part.of_caused.map_or("-".to_owned(), number::percent),
        ]);
    }
    let placement = placement_name(run.placement);
    format!("\n{}, {placement}, by directory:\n{table}", run.label())
}

/// Notes on this trace and these sets.
pub(super) fn notes(found: &TraceResults<'_>) -> anyhow::Result<Vec<String>> {
    let mut notes: Vec<String> = suggested::holes(found.trace).into_iter().collect();
    for condition in found.conditions {
        let (_, device) = device(found, condition)?;
        let few = outcome::few_units(&device);
        notes.extend(few.filter(|few| !notes.contains(few)));
    }
    let writes = found.footprint.writes_per_page();
    if writes < replay::FEW_WRITES_PER_PAGE {
        notes.push(format!(
            "the trace writes each of its pages {writes:.1} times on average. Repeated, that \
             resembles cyclic writes, and write amplification comes out too low; record at least \
             {} times as long",
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
                "{}: streams {:?} share the first handle, because the device has only {}",
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
            "the trace is too short to tell the lifetime of {doubts} kinds of files; `saiga \
             streams suggest --out FILE.toml` lists them"
        ));
    }
    Ok(notes)
}
