//! What a reader of a record must not miss, in plain words.

use saiga_document::model::Notice;

use super::clocks::WINDOWS;
use super::partial::Partial;
use super::record::{Record, Steadiness};
use super::validity::{Check, Verdict};
use crate::driver::clock::seconds;
use crate::latency::Phase;
use crate::spec::timing::MOST_TPMC_PER_WAREHOUSE;

/// Errors that are told word by word; the record has all.
const MOST_ERRORS: usize = 5;

/// All of them, the gravest first.
pub(super) fn notices(record: &Record) -> Vec<Notice> {
    let mut list: Vec<Notice> = record.partial.iter().map(partial).collect();
    list.extend(windows(record));
    list.extend(service(record));
    list.extend(judgement(record));
    list.extend(left_over(record));
    let errors = record.errors.iter().take(MOST_ERRORS);
    list.extend(errors.map(|(text, count)| notice(format!("{count} times: {text}"), None, None)));
    list
}

fn notice(text: String, cause: Option<&str>, action: Option<&str>) -> Notice {
    Notice {
        text,
        cause: cause.map(str::to_owned),
        action: action.map(str::to_owned),
        about: Vec::new(),
    }
}

/// Workers that a sum lacks.
fn partial(partial: &Partial) -> Notice {
    notice(
        format!("partial: {}", partial.words()),
        Some("a worker was lost, or its file is elsewhere"),
        Some(
            "merge again with the missing files, or repeat the run: the server may have served the \
             missing terminals, so this is not the result of a smaller run either",
        ),
    )
}

/// Workers that have not measured at the same time.
fn windows(record: &Record) -> Option<Notice> {
    let mut checks = record.validity.iter();
    let is_so = |check: &&Check| check.name == WINDOWS && check.verdict == Verdict::Fails;
    let check = checks.find(is_so)?;
    Some(notice(
        format!(
            "the measured windows of the workers are not the same: {}",
            check.found
        ),
        Some("the clocks of the load hosts differ"),
        Some("have NTP (chrony) set the clocks of all load hosts, and repeat the run"),
    ))
}

/// Times without service, connections that were lost, and looks that are missing.
fn service(record: &Record) -> Vec<Notice> {
    let gap = |gap: &crate::latency::Gap| {
        let connections = match gap.lost {
            0 => "all connections were open and had no answer".to_owned(),
            lost => format!("{lost} connections were down"),
        };
        let text = format!(
            "no service for {:.1} s, from {:.1} s to {:.1} s after the start; {connections}",
            seconds(gap.to_us - gap.from_us),
            seconds(gap.from_us),
            seconds(gap.to_us),
        );
        notice(text, None, None)
    };
    let mut list: Vec<Notice> = record.gaps.iter().map(gap).collect();
    if record.lost_connections > 0 {
        let of = |phase| record.tracks.sum(phase, |track| track.unknown);
        let unknown: u64 = Phase::ALL.into_iter().map(of).sum();
        list.push(notice(
            format!(
                "{} connections were lost; of {unknown} transactions nobody knows whether they were kept",
                record.lost_connections
            ),
            Some("the server was restarted, failed over, or closed them"),
            None,
        ));
    }
    let missing = record.consistency.iter().filter_map(|look| {
        let why = look.not_checked.as_ref()?;
        Some((&look.when, why))
    });
    list.extend(missing.map(|(when, why)| {
        notice(
            format!("the tables were not checked {when} the run: {why}"),
            None,
            Some("`saiga bench tpcc check` tells whether they are consistent"),
        )
    }));
    list
}

/// Whether the figures mean what they seem to.
fn judgement(record: &Record) -> Vec<Notice> {
    let mut list = Vec::new();
    if record.ramp_up_settled == Some(false) {
        list.push(notice(
            format!(
                "the throughput had not settled when the longest ramp-up was over: it was measured \
                 from {:.0} s on all the same (--ramp-up auto)",
                seconds(record.interval_us.0)
            ),
            None,
            Some("give --ramp-up a longer time, or look for what keeps the server from settling"),
        ));
    }
    if record.steady == Steadiness::NotSettled {
        list.push(notice(
            "the throughput had not settled in the first half of the measured interval (MSER-5)"
                .to_owned(),
            None,
            Some("measure for longer, or begin later with --ramp-up"),
        ));
    }
    let most = MOST_TPMC_PER_WAREHOUSE * f64::from(record.conditions.warehouses);
    if record.conditions.is_human() && record.tpmc() > most {
        list.push(notice(
            format!(
                "{:.2} tpmC is more than {most:.2}, which so many warehouses can give (§4.2.2)",
                record.tpmc()
            ),
            None,
            None,
        ));
    }
    list
}

/// What was wanted and not done when the run was over.
fn left_over(record: &Record) -> Vec<Notice> {
    let rows = [
        (
            record.backlog,
            "intended starts were never begun: the system did not keep up with the rate",
            None,
            "their latencies are in no figure; take a lower --rate or more terminals",
        ),
        (
            record.undelivered,
            "queued deliveries were not carried out in time",
            None,
            "take more --delivery-workers, or a longer --drain",
        ),
        (
            record.unanswered,
            "connections had no answer when the time to drain was over",
            Some("the server hangs, or the path to it"),
            "what they had sent may have been done; check the tables",
        ),
    ];
    let there = rows.into_iter().filter(|(count, ..)| *count > 0);
    there
        .map(|(count, what, cause, action)| notice(format!("{count} {what}"), cause, Some(action)))
        .collect()
}
