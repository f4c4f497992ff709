//! The warnings of a run: a problem, its likely cause, and what to do about it.

use saiga_document::model::Notice;

use super::clocks::WINDOWS;
use super::partial::Partial;
use super::record::{Record, Steadiness};
use super::validity::{Check, Verdict};
use crate::driver::clock::seconds;
use crate::latency::Phase;
use crate::spec::timing::MAX_TPMC_PER_WAREHOUSE;

/// Maximum number of error messages that become warnings. The record contains all of them.
const MAX_ERRORS: usize = 5;

/// All warnings, the most severe first.
pub(super) fn notices(record: &Record) -> Vec<Notice> {
    let mut list: Vec<Notice> = record.partial.iter().map(partial).collect();
    list.extend(windows(record));
    list.extend(service(record));
    list.extend(judgement(record));
    list.extend(left_over(record));
    let errors = record.errors.iter().take(MAX_ERRORS);
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

/// The warning about workers that are missing in a merged record.
fn partial(partial: &Partial) -> Notice {
    notice(
        format!("partial: {}", partial.describe()),
        Some("a worker was lost, or its file is elsewhere"),
        Some(
            "merge again with the missing files, or repeat the run: the server may have served the \
             missing terminals, so this is not the result of a smaller run either",
        ),
    )
}

/// The warning about measured windows that differ between workers.
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

/// Warnings about gaps in service, lost connections, and checks of the tables that were not made.
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
                "{} connections were lost; whether {unknown} transactions were committed is unknown",
                record.lost_connections
            ),
            Some("the server was restarted, failed over, or closed them"),
            None,
        ));
    }
    let missing = record.consistency.iter().filter_map(|checked| {
        let why = checked.not_checked.as_ref()?;
        Some((&checked.when, why))
    });
    list.extend(missing.map(|(when, why)| {
        notice(
            format!("the tables were not checked {when} the run: {why}"),
            None,
            Some("run `saiga bench tpcc check` to check whether they are consistent"),
        )
    }));
    list
}

/// Warnings about results that were not measured in a steady state, or that exceed the maximum of
/// TPC-C.
fn judgement(record: &Record) -> Vec<Notice> {
    let mut list = Vec::new();
    if record.ramp_up_settled == Some(false) {
        list.push(notice(
            format!(
                "the throughput had not settled at the end of the longest ramp-up; it was measured from \
                 {:.0} s nevertheless (--ramp-up auto)",
                seconds(record.interval_us.0)
            ),
            None,
            Some("set a longer --ramp-up, or find out what keeps the server from settling"),
        ));
    }
    if record.steady == Steadiness::NotSettled {
        list.push(notice(
            "the throughput had not settled in the first half of the measured interval (MSER-5)"
                .to_owned(),
            None,
            Some("measure for longer, or start later with --ramp-up"),
        ));
    }
    let most = MAX_TPMC_PER_WAREHOUSE * f64::from(record.conditions.warehouses);
    if record.conditions.is_human() && record.tpmc() > most {
        list.push(notice(
            format!(
                "{:.2} tpmC is more than {most:.2}, the maximum of so many warehouses (§4.2.2)",
                record.tpmc()
            ),
            None,
            None,
        ));
    }
    list
}

/// Warnings about transactions that were due but not completed at the end of the run.
fn left_over(record: &Record) -> Vec<Notice> {
    let rows = [
        (
            record.backlog,
            "intended starts were never begun: the system did not keep up with the rate",
            None,
            "their latencies are not in the figures; use a lower --rate or more terminals",
        ),
        (
            record.undelivered,
            "queued deliveries were not performed in time",
            None,
            "use more --delivery-workers, or a longer --drain",
        ),
        (
            record.unanswered,
            "connections had no answer at the end of the drain",
            Some("the server or the network does not respond"),
            "the transactions that they had sent may have been committed; check the tables",
        ),
    ];
    let there = rows.into_iter().filter(|(count, ..)| *count > 0);
    there
        .map(|(count, what, cause, action)| notice(format!("{count} {what}"), cause, Some(action)))
        .collect()
}
