//! The report of a record. Its summary is printed; all of it is written to `report.html`.

use saiga_document::model::{
    Align, Block, Cell, Column, Document, Figure, Notice, Pointer, Row, Section, Table, Tone,
    Verdict as Answer, Visibility,
};

use super::clocks::{self, WorkerClock};
use super::notices::notices;
use super::record::{Consistency, Record, Steadiness};
use super::report_details;
use super::validity::{Check, Verdict, limit};
use crate::driver::clock::seconds;
use crate::latency::{Phase, TrackName};
use crate::spec::deck::Kind;

/// The report of one run.
#[must_use]
pub fn page(record: &Record) -> Document {
    let conditions = &record.conditions;
    let notices = notices(record);
    let pointers = pointers(record, notices.len());
    Document {
        title: format!("TPC-C on {}", conditions.server),
        subtitle: format!(
            "{}, {} warehouses, {} terminals, {:.0} s measured",
            conditions.session_start,
            conditions.warehouses,
            conditions.terminals,
            record.run.seconds
        ),
        verdict: answer(record),
        figures: vec![Figure {
            label: record.tpmc_name(),
            value: format!("{:.2}", record.tpmc()),
            detail: format!(
                "{:.2} transactions of all types per minute",
                record.tpm_total()
            ),
            tone: Tone::Neutral,
        }],
        pointers,
        sections: sections(record, notices),
        origin: format!(
            "saiga {}, record format {}",
            env!("CARGO_PKG_VERSION"),
            record.format_version
        ),
    }
}

/// The sections of the report, in the order of the page. All sections made with [`section`] are
/// also printed.
fn sections(record: &Record, notices: Vec<Notice>) -> Vec<Section> {
    let table = transactions(record);
    let mut sections = vec![section("transactions", "Transactions", table)];
    if !notices.is_empty() {
        let block = Block::Notices(notices);
        sections.push(section("warnings", "Warnings", block));
    }
    sections.push(section("validity", "Validity", validity(record)));
    if !record.clocks.is_empty() {
        sections.push(section("workers", "Workers", workers(record)));
    }
    if !record.consistency.is_empty() {
        let checks = record.consistency.iter().map(consistency).collect();
        let block = Block::Facts(checks);
        sections.push(section("consistency", "Consistency", block));
    }
    sections.extend(report_details::charts(record));
    sections.push(section(
        "deviations",
        "Deviations of this run from TPC-C",
        Block::List(record.deviations.clone()),
    ));
    sections.extend(report_details::errors(record));
    sections.push(section("run", "Run", Block::Facts(facts(record))));
    sections.extend(report_details::settings(record));
    sections
}

/// Links from the top of the page to warnings and failed checks.
fn pointers(record: &Record, notices: usize) -> Vec<Pointer> {
    let failing = record.validity.iter();
    let failing = failing.filter(|check| check.verdict == Verdict::Fails);
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(one.to_owned()),
        _ => Some(format!("{count} {more}")),
    };
    let warnings = counted(
        notices,
        "1 warning to read before you rely on this",
        "warnings to read before you rely on this",
    );
    let checks = counted(failing.count(), "1 check fails", "checks fail");
    let all = [(warnings, "warnings"), (checks, "validity")];
    let there = all.into_iter().filter_map(|(text, section)| {
        Some(Pointer {
            text: text?,
            section: section.to_owned(),
        })
    });
    there.collect()
}

fn section(id: &'static str, title: &str, block: Block) -> Section {
    Section {
        id,
        title: title.to_owned(),
        visibility: Visibility::Summary,
        blocks: vec![block],
    }
}

fn answer(record: &Record) -> Answer {
    let (tone, lead) = match record.end.as_str() {
        "done" => of_whole_run(record),
        "interrupted" => (
            Tone::Caution,
            "Interrupted; the figures cover the time until then.".to_owned(),
        ),
        "gave up" => (
            Tone::Worse,
            "Given up: the server completed no transaction for too long. The figures cover the time until then."
                .to_owned(),
        ),
        _ => (
            Tone::Worse,
            "Ended early: not one transaction succeeded.".to_owned(),
        ),
    };
    match &record.partial {
        None => Answer {
            tone,
            lead,
            more: Vec::new(),
        },
        Some(partial) => Answer {
            tone: Tone::Worse,
            lead: format!("Partial: {}.", partial.describe()),
            more: vec!["It is not a result of TPC-C.".to_owned(), lead],
        },
    }
}

/// The verdict on a completed run. It names the most severe problem, if there is one.
fn of_whole_run(record: &Record) -> (Tone, String) {
    let first_check = |is_so: fn(&&Consistency) -> bool| record.consistency.iter().find(is_so);
    if !record.is_served() {
        let lead = "Nothing is measured: no transaction was done.";
        return (Tone::Worse, lead.to_owned());
    }
    if let Some(checked) = first_check(|checked| !checked.broken.is_empty()) {
        let when = &checked.when;
        let lead = format!("Measured, but the tables are not consistent {when} the run.");
        return (Tone::Worse, lead);
    }
    if let Some(checked) = first_check(|checked| !checked.holds()) {
        let when = &checked.when;
        let lead = format!("Measured; the tables were not checked {when} the run.");
        return (Tone::Caution, lead);
    }
    let failing = |check: &&Check| check.verdict == Verdict::Fails;
    match record.validity.iter().filter(failing).count() {
        0 => (
            Tone::Neutral,
            "Measured; inputs and response times are as TPC-C allows.".to_owned(),
        ),
        fails => (
            Tone::Caution,
            format!(
                "Measured; {fails} of {} validity checks fail.",
                record.validity.len()
            ),
        ),
    }
}

fn transactions(record: &Record) -> Block {
    let titles = [
        "type",
        "done",
        "%",
        "p50 ms",
        "p90 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "p90 limit",
        "rolled back",
        "failed",
        "unknown",
        "retries",
        "skipped",
    ];
    let columns = titles.into_iter().enumerate().map(|(at, title)| Column {
        title: title.to_owned(),
        align: if at == 0 { Align::Left } else { Align::Right },
    });
    let rows = TrackName::ALL
        .into_iter()
        .filter_map(|name| row(record, name));
    Block::Table(Table {
        caption: "Transactions wholly inside the measured interval".to_owned(),
        columns: columns.collect(),
        rows: rows.collect(),
    })
}

fn row(record: &Record, name: TrackName) -> Option<Row> {
    let track = record.tracks.of(Phase::Measured, name);
    let count = track.done() + track.queued;
    if name == TrackName::Deferred && count + track.failed + track.unknown == 0 {
        return None;
    }
    let share = record.tracks.share_percent(Phase::Measured, name);
    let ms =
        |us: Option<u64>| us.map_or_else(|| "–".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let at = |quantile| ms(track.latency.quantile_us(quantile));
    let cells = [
        name.name().to_owned(),
        count.to_string(),
        share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}")),
        at(0.5),
        at(0.9),
        at(0.95),
        at(0.99),
        ms(track.latency.max_us()),
        format!("{} s", limit(name).as_secs()),
        track.rolled_back.to_string(),
        track.failed.to_string(),
        track.unknown.to_string(),
        track.retries.to_string(),
        track.skipped.to_string(),
    ];
    Some(Row::Cells(cells.into_iter().map(Cell::new).collect()))
}

fn validity(record: &Record) -> Block {
    let titles = ["check", "clause", "found", "allowed", ""];
    let columns = titles.into_iter().map(|title| Column {
        title: title.to_owned(),
        align: Align::Left,
    });
    let row = |check: &Check| {
        let verdict = match check.verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Fails => "FAILS".to_owned(),
            Verdict::TooFew { needed } => format!("too few to tell: {needed} are needed"),
            Verdict::Nothing => "nothing to check".to_owned(),
            Verdict::CannotTell => "cannot tell".to_owned(),
        };
        let cells = [
            &check.name,
            &check.clause,
            &check.found,
            &check.allowed,
            &verdict,
        ];
        Row::Cells(cells.into_iter().map(Cell::new).collect())
    };
    Block::Table(Table {
        caption: "Inputs, mix and response times".to_owned(),
        columns: columns.collect(),
        rows: record.validity.iter().map(row).collect(),
    })
}

/// A table of the workers of a merged record, missing ones included, with their clocks.
fn workers(record: &Record) -> Block {
    let titles = ["worker", "server's clock", "began"];
    let columns = titles.into_iter().map(|title| Column {
        title: title.to_owned(),
        align: Align::Left,
    });
    let first = clocks::first(&record.clocks);
    let row = |clock: &WorkerClock| {
        let after_us = first.as_ref().and_then(|first| clock.after_us(first));
        let began = after_us.map_or_else(
            || "–".to_owned(),
            |us| format!("{} after the first", clocks::ms(us.unsigned_abs())),
        );
        let offset = clock.offset.as_ref();
        let offset = offset.map(|offset| offset.describe("the worker's"));
        let offset = offset.unwrap_or_else(|| "not known".to_owned());
        (clock.worker, [offset, began])
    };
    let mut rows: Vec<(u32, [String; 2])> = record.clocks.iter().map(row).collect();
    let missing = record.partial.iter().flat_map(|partial| &partial.missing);
    rows.extend(missing.map(|worker| (*worker, ["MISSING".to_owned(), "–".to_owned()])));
    rows.sort();
    let cells = |(worker, texts): (u32, [String; 2])| {
        let all = std::iter::once(worker.to_string()).chain(texts);
        Row::Cells(all.map(Cell::new).collect())
    };
    Block::Table(Table {
        caption: "Load hosts, each with its clock before the start".to_owned(),
        columns: columns.collect(),
        rows: rows.into_iter().map(cells).collect(),
    })
}

fn consistency(checked: &Consistency) -> (String, String) {
    let found = match (&checked.not_checked, checked.broken.as_slice()) {
        (Some(why), _) => format!("NOT CHECKED: {why}"),
        (None, []) => "all rules hold".to_owned(),
        (None, rules) => format!("BROKEN: {}", rules.join("; ")),
    };
    let text = match checked.not_checked {
        Some(_) => found,
        None => {
            let sample = checked.sample.as_ref();
            let of = sample.map_or_else(String::new, |sample| format!(" of {sample}"));
            format!(
                "{} rules{of}, {:.2} s: {found}",
                checked.checked, checked.seconds
            )
        }
    };
    (format!("{} the run", checked.when), text)
}

fn facts(record: &Record) -> Vec<(String, String)> {
    let conditions = &record.conditions;
    let (from_us, to_us) = record.interval_us;
    let all: u64 = Phase::ALL
        .into_iter()
        .map(|phase| record.tracks.total(phase))
        .sum();
    let steady = match record.steady {
        Steadiness::From(second) => format!("from {second} s on (MSER-5)"),
        Steadiness::NotSettled => "not settled (MSER-5)".to_owned(),
        Steadiness::TooShort => "the interval is shorter than a minute".to_owned(),
    };
    let per_1000 = 1000.0 * record.client_cpu_s / all.max(1) as f64;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let clock = record.clock.map(|clock| clock.describe("this host's"));
    let clock = clock.map(|words| fact("server's clock", words));
    let mut list = vec![
        fact("isolation", conditions.isolation.clone()),
        fact(
            "measured",
            format!(
                "{:.1} s to {:.1} s after the start",
                seconds(from_us),
                seconds(to_us)
            ),
        ),
        fact("steady", steady),
        fact("concurrency", concurrency(record)),
        fact("pace", pace(record)),
        fact("seed", conditions.seed.to_string()),
        fact(
            "client CPU",
            format!(
                "{:.2} s, {per_1000:.3} s for 1000 transactions",
                record.client_cpu_s
            ),
        ),
        fact(
            "New-Orders",
            record
                .tracks
                .done(Phase::Measured, Kind::NewOrder)
                .to_string(),
        ),
    ];
    list.extend(clock);
    list
}

fn pace(record: &Record) -> String {
    let conditions = &record.conditions;
    let (keying, thinking) = conditions.keying_thinking;
    match (conditions.pace.as_str(), conditions.per_min) {
        ("human", _) => format!("closed loop, keying times x {keying}, think times x {thinking}"),
        ("open", Some(rate)) => format!("open loop, {rate} transactions per minute"),
        ("limited", Some(limit)) => format!("closed loop, up to {limit} transactions per minute"),
        _ => "closed loop without pauses".to_owned(),
    }
}

/// The mean number N of transactions in the system, and the product of throughput X and mean
/// response time R, over the whole seconds of the measured interval. By Little's law, both must
/// agree.
fn concurrency(record: &Record) -> String {
    let Some(series) = &record.series else {
        return "in series.csv".to_owned();
    };
    let (from, to) = (
        record.interval_us.0.div_ceil(1_000_000),
        record.interval_us.1 / 1_000_000,
    );
    let index = |second: u64| usize::try_from(second).unwrap_or(usize::MAX);
    let inside = || series.seconds.iter().take(index(to)).skip(index(from));
    let count = inside().count().max(1) as f64;
    let n = inside().map(|second| second.concurrency()).sum::<f64>() / count;
    let xr = inside()
        .map(|second| second.latency_sum_us as f64 / 1e6)
        .sum::<f64>()
        / count;
    format!("N = {n:.2}, X * R = {xr:.2}")
}
