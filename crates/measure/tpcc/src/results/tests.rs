//! Records of synthetic runs. Expected figures are literals, and the merged parts of a run are
//! compared with the whole run.

use std::path::PathBuf;
use std::time::Duration;

use super::validity::Verdict;
use super::*;
use crate::driver::sample::{Ending, InputTraits, Sample};
use crate::driver::{
    Arrivals, DeliveryMode, Length, Measurement, Pace, RampUp, RunEnd, Setup, Share,
};
use crate::latency::statistics::{Interval, RunStatistics};
use crate::latency::{Gap, Phase};
use crate::spec::deck::{Kind, Mix};
use crate::spec::nurand::Constants;

mod html;
mod lost_workers;
mod worker_clocks;

fn setup(share: Share) -> Setup {
    Setup {
        warehouses: 2,
        terminals: 4,
        share,
        length: Length::Lasting(Duration::from_secs(30)),
        ramp_up: RampUp::Lasting(Duration::from_secs(10)),
        pace: Pace::Open {
            per_min: 600.0,
            arrivals: Arrivals::Poisson,
        },
        mix: Mix::SPECIFIED,
        fixed_warehouse: true,
        delivery: DeliveryMode::Queued { workers: 2 },
        constants: Constants {
            last_name: 1,
            customer: 2,
            item: 3,
        },
        seed: 8,
        max_retries: 3,
        drain: Duration::from_secs(30),
        give_up: Duration::from_secs(60),
    }
}

const S: u64 = 1_000_000;

/// Forty seconds of four terminals. Every twentieth transaction fails, every tenth is retried.
fn samples() -> Vec<Sample> {
    let sample = |n: u64| {
        let kind = Kind::ALL[[0, 1, 0, 1, 2, 3, 0, 1, 4, 0][(n % 10) as usize]];
        let due_us = n * S / 20 + 1;
        Sample {
            kind,
            terminal: (n % 4) as u32,
            deferred: kind == Kind::Delivery,
            ending: if n % 20 == 7 {
                Ending::Failed
            } else {
                Ending::Committed
            },
            retries: u16::from(n % 10 == 3),
            skipped: 0,
            traits: InputTraits {
                lines: 5 + (n % 11) as u8,
                by_name: n % 5 < 3,
                ..InputTraits::default()
            },
            due_us,
            began_us: due_us,
            ended_us: due_us + 1000 * (n % 37),
        }
    };
    let mut all: Vec<Sample> = (0..800).map(sample).collect();
    all.sort_by_key(|sample| sample.ended_us);
    all
}

fn measured(share: Share, samples: &[Sample]) -> Measurement {
    let interval = Interval {
        from_us: Some(10 * S),
        to_us: 40 * S,
    };
    let mut statistics = RunStatistics::new(interval, share.of > 1);
    statistics.record(samples);
    statistics.close_seconds(100 * S);
    let gap = Gap {
        from_us: S,
        to_us: 4 * S,
        lost: 2,
    };
    let RunStatistics {
        tracks,
        input_counts,
        series,
        last_us,
        ..
    } = statistics;
    Measurement {
        end: RunEnd::Completed,
        interval_us: (10 * S, 40 * S),
        last_us,
        tracks,
        input_counts,
        series,
        gaps: vec![gap],
        lost: 2,
        errors: vec![("deadlock".to_owned(), 3)],
        backlog: 1,
        undelivered: 0,
        unanswered: 0,
        settled: None,
        cpu_s: (1.5, Some(0.5)),
    }
}

fn conditions(share: Share) -> Conditions {
    Conditions {
        started_unix_s: 1_763_690_459,
        session_start: "2025-11-21 02:00:59".to_owned(),
        session_end: format!("2025-11-21 02:01:4{}", share.index),
        props: vec![
            ("db".to_owned(), "mysql".to_owned()),
            ("password".to_owned(), "***".to_owned()),
        ],
        server: "MariaDB 10.11.6".to_owned(),
        isolation: "REPEATABLE-READ".to_owned(),
        db: "mysql".to_owned(),
        loaded_warehouses: 5,
        ..Conditions::of(&setup(share))
    }
}

fn record(share: Share, samples: &[Sample]) -> Record {
    let started = "2025-11-21T02:00:59Z".to_owned();
    Record::new(conditions(share), measured(share, samples), started)
}

fn whole() -> Record {
    record(Share::WHOLE, &samples())
}

/// The record of a worker, written as JSON and read again.
fn part(index: u32, of: u32) -> (PathBuf, Record) {
    let share = Share { index, of };
    let mine: Vec<Sample> = samples()
        .into_iter()
        .filter(|one| share.has(one.terminal))
        .collect();
    let record: Record = serde_json::from_str(&files::json(&record(share, &mine))).unwrap();
    (PathBuf::from(format!("worker-{index}.json")), record)
}

/// Of the 600 transactions that began within 30 s, four of ten are New-Orders.
#[test]
fn figures_are_per_minute_of_the_measured_interval() {
    let record = whole();
    // The last transaction begins 50 ms before the end and takes at most 36 ms, so none ends
    // outside.
    assert_eq!(record.tracks.done(Phase::Measured, Kind::NewOrder), 240);
    assert_eq!(record.run.seconds, 30.0);
    assert_eq!(record.tpmc(), 480.0);
    // Every twentieth of the 600 transactions failed.
    assert_eq!(record.tpm_total(), 1140.0);
    assert_eq!(
        (
            record.failures(Phase::Measured),
            record.tracks.done(Phase::RampUp, Kind::NewOrder)
        ),
        (30, 80)
    );
    let metrics = &record.run.metrics;
    assert_eq!(metrics["tpmc_no_think_time"], 480.0);
    assert_eq!(
        (
            metrics["throughput_ops_s"],
            metrics["errors"],
            metrics["retries"]
        ),
        (19.0, 30.0, 60.0)
    );
    // 1.5 s of CPU time for 760 completed transactions.
    assert!((metrics["client_cpu_us_per_op"] - 1_973.684).abs() < 0.001);
    let lines = closing::lines(&record);
    assert_eq!(
        lines,
        "Term-00, Measured tpmC (NewOrders) = 480.0\n\
         Term-00, Measured tpmTOTAL = 1140.0\n\
         Term-00, Session Start     = 2025-11-21 02:00:59\n\
         Term-00, Session End       = 2025-11-21 02:01:41\n\
         Term-00, Transaction Count = 760\n"
    );
}

#[test]
fn the_sum_of_all_parts_is_the_whole_run() {
    let sum = merge(vec![part(2, 3), part(3, 3), part(1, 3)]).unwrap();
    let mut expected = whole();
    // The values that differ between workers.
    expected.conditions.session_end = "2025-11-21 02:01:43".to_owned();
    (expected.lost_connections, expected.backlog) = (6, 3);
    (expected.client_cpu_s, expected.run.foreign_cpu_s) = (4.5, 1.5);
    expected.errors = vec![("deadlock".to_owned(), 9)];
    expected.gaps[0].lost = 6;
    expected.conditions.delivery_workers = 6;
    expected.clocks = (1..=3)
        .map(|worker| clocks::WorkerClock {
            worker,
            offset: None,
        })
        .collect();
    // Written as JSON and read again, because only a series in memory has the number of closed
    // seconds.
    expected.series =
        serde_json::from_str(&serde_json::to_string(&expected.series).unwrap()).unwrap();
    expected.conclude();
    assert_eq!(sum.series, expected.series);
    assert_eq!(sum, expected);
}

#[test]
fn series_of_load_hosts_keep_the_number_of_their_worker() {
    let with_host = |index: u32| {
        let mut part = part(index, 2);
        let series = &mut part.1.run.detail.as_mut().unwrap().series;
        let mut of_host = series[0].clone();
        of_host.name = "cpu_user_percent".to_owned();
        of_host.mean[0] = Some(f64::from(index));
        series.push(of_host);
        part
    };
    let sum = merge(vec![with_host(2), with_host(1)]).unwrap();
    let series = sum.run.detail.unwrap().series;
    let first_mean = |name: &str| {
        let mut all = series.iter().filter(|one| one.name == name);
        let found = all.next().and_then(|one| one.mean[0]);
        assert_eq!(all.count(), 0, "{name}");
        found
    };
    assert_eq!(first_mean("worker_1_cpu_user_percent"), Some(1.0));
    assert_eq!(first_mean("worker_2_cpu_user_percent"), Some(2.0));
    assert_eq!(first_mean("cpu_user_percent"), None);
    assert!(first_mean("throughput_ops_s").is_some());
}

/// All hosts together complete 240 New-Orders in thirty seconds. One host reports an earlier end.
#[test]
fn a_part_that_ends_early_does_not_raise_the_figure() {
    let ended = |interval_us: (u64, u64)| {
        let (mut early, late) = (part(1, 2), part(2, 2));
        early.1.interval_us = interval_us;
        merge(vec![early, late]).unwrap()
    };
    for early in [(10 * S, 25 * S), (10 * S, 40 * S), (4 * S, 4 * S)] {
        let sum = ended(early);
        assert_eq!(sum.interval_us, (10 * S, 40 * S), "{early:?}");
        assert_eq!(sum.tpmc(), 480.0, "{early:?}");
    }
}

#[test]
fn records_that_do_not_fit_are_refused_by_name() {
    let said = |parts| merge(parts).unwrap_err().to_string();
    let twice = said(vec![part(1, 2), part(1, 2)]);
    assert_eq!(
        twice,
        "worker-1.json and worker-1.json are both records of worker 1"
    );
    let mut other_seed = part(2, 2);
    other_seed.1.conditions.seed = 9;
    assert_eq!(
        said(vec![part(1, 2), other_seed]),
        "worker-1.json and worker-2.json are not parts of one run: seed is 8 in one and 9 in the other"
    );
    let mut other_props = part(2, 2);
    other_props.1.conditions.props[0].1 = "postgres".to_owned();
    assert!(said(vec![part(1, 2), other_props]).contains("props is "));
    assert!(
        said(vec![part(1, 2), part(2, 3)]).contains("share is [0,2] in one and [0,3] in the other")
    );
    let differ: [fn(&mut Setup); 4] = [
        |setup| setup.max_retries = 4,
        |setup| setup.drain = Duration::from_secs(31),
        |setup| setup.give_up = Duration::from_secs(61),
        |setup| {
            setup.pace = Pace::Open {
                per_min: 600.0,
                arrivals: Arrivals::Fixed,
            };
        },
    ];
    for (change, wanted) in differ.into_iter().zip([
        "max_retries is 3 in one and 4 in the other",
        "drain is \"30 s\" in one and \"31 s\" in the other",
        "give_up is \"60 s\" in one and \"61 s\" in the other",
        "arrivals is \"poisson\" in one and \"fixed\" in the other",
    ]) {
        let (mut changed, mut other) = (setup(Share { index: 2, of: 2 }), part(2, 2));
        change(&mut changed);
        let of = Conditions::of(&changed);
        let all = &mut other.1.conditions;
        (all.max_retries, all.arrivals) = (of.max_retries, of.arrivals);
        (all.drain, all.give_up) = (of.drain, of.give_up);
        let refused = said(vec![part(1, 2), other]);
        assert!(refused.ends_with(wanted), "{refused}");
    }
    let mut later = part(2, 2);
    later.1.conditions.started_unix_s += 1;
    assert!(said(vec![part(1, 2), later]).contains("started_unix_s is "));
}

#[test]
fn files_that_are_not_records_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let said = || {
        merge::read(&[dir.path().to_owned()])
            .unwrap_err()
            .to_string()
    };
    assert!(said().starts_with("no worker-N.json in "));
    std::fs::write(dir.path().join("worker-1.json"), "{\"format_version\":1}").unwrap();
    assert!(said().contains("worker-1.json: not the record of a worker: missing field"));
}

#[test]
fn the_summary_has_benchmarksqls_format() {
    let text = files::tx_summary(&whole());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 9);
    assert_eq!(
        lines[1],
        "NEW_ORDER,240,47.059%,0.033s,0.036s,5.0,0.000%,0,NA"
    );
    assert_eq!(lines[2].split(',').nth(7), Some("30"));
    assert!(lines[6].starts_with("DELIVERY_BG,60,NA,"));
    assert_eq!(lines[7], "tpmC,480.00,1866.252%,NA,NA,NA,NA,NA,NA");
    let info = files::run_info(&whole());
    assert_eq!(
        info.lines().nth(1),
        Some("1,saiga,0.1.0,mysql,2025-11-21 02:00:59,0.5,5,2,4,0,0,0")
    );
    assert_eq!(files::run_properties(&whole()), "db=mysql\npassword=***\n");
}

#[test]
fn rows_of_single_transactions_have_benchmarksqls_format() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Directory::create(dir.path().join("r")).unwrap();
    let mut files = files::SampleFiles::create(&dir, true, true).unwrap();
    let failed = Sample {
        kind: Kind::Delivery,
        terminal: 0,
        deferred: false,
        ending: Ending::Failed,
        retries: 0,
        skipped: 2,
        traits: InputTraits::default(),
        due_us: 1_000_000,
        began_us: 1_500_000,
        ended_us: 2_250_000,
    };
    let delivered = crate::driver::DeliveryResult {
        queued_us: 1500,
        w_id: 7,
        carrier_id: 3,
        orders: vec![(1, 2101), (10, 2102)],
        completed_us: 9250,
    };
    files.append(&[failed], &[delivered]);
    files.finish().unwrap();
    let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(
        text("data/result.csv"),
        "run,elapsed,latency,dblatency,ttype,rbk,dskipped,error\n\
         1,2250,1250,750,DELIVERY,0,2,1\n1,2250,1250,750,DELIVERY_BG,0,2,1\n"
    );
    assert_eq!(
        text("delivery.csv"),
        "queued_ms,w_id,o_carrier_id,d_id,o_id,completed_ms\n\
         1.500,7,3,1,2101,9.250\n1.500,7,3,10,2102,9.250\n"
    );
}

#[test]
fn a_mix_slightly_below_its_bound_is_too_small_a_sample() {
    let mut record = whole();
    let verdict = |record: &Record| {
        let checks = validity::checks(record);
        checks
            .iter()
            .find(|check| check.name == "PAYMENT in the mix")
            .unwrap()
            .verdict
    };
    // 150 Payments of 510, where 43.5 % are expected, cannot be chance.
    assert_eq!(verdict(&record), Verdict::Fails);
    record.tracks.0[1][1].committed = 265;
    // 42.4 %: the incomplete decks of four terminals, of 23 cards each, explain the difference.
    assert!(
        matches!(verdict(&record), Verdict::TooFew { .. }),
        "{:?}",
        verdict(&record)
    );
    record.tracks.0[1][1].committed = 275;
    assert_eq!(verdict(&record), Verdict::Holds);
    record.conditions.mix[1] = 42.0;
    record.tracks.0[1][1].committed = 265;
    assert_eq!(
        verdict(&record),
        Verdict::Fails,
        "a deck with too few Payments is not chance"
    );
}

/// Each deviation is in the record, in the report and, by its clause, in the table of
/// `docs/tpcc.md`.
#[test]
fn clauses_that_are_not_fulfilled_are_listed_with_every_run() {
    let record = whole();
    let text = format!("{:?}", page::page(&record));
    for clause in ["(§2.4.2.2)", "(§2.4.3)", "(§5.2.5.6)", "(§5.5.2.2)"] {
        let listed = record.deviations.iter().filter(|one| one.ends_with(clause));
        assert_eq!(listed.count(), 1, "{clause}");
        assert!(text.contains(clause), "{clause}");
    }
    let table = include_str!("../../../../../docs/tpcc.md");
    for deviation in &record.deviations {
        let clause = deviation.split('§').nth(1).unwrap();
        let end = clause.find(|c: char| c != '.' && !c.is_ascii_digit());
        let row = format!(
            "| §{} |",
            clause[..end.unwrap_or(clause.len())].trim_end_matches('.')
        );
        assert!(table.contains(&row), "{row}");
    }
}

#[test]
fn the_report_names_all_problems() {
    let text = format!("{:?}", page::page(&whole()));
    for part in [
        "tpmC (no think time)",
        "no service for 3.0 s, from 1.0 s to 4.0 s after the start; 2 connections were down",
        "1 intended starts were never begun",
        "3 times: deadlock",
        "isolation level REPEATABLE-READ",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_ramp_up_that_did_not_settle_is_reported() {
    let is_reported = |settled| {
        let measured = Measurement {
            settled,
            ..measured(Share::WHOLE, &samples())
        };
        let record = Record::new(conditions(Share::WHOLE), measured, String::new());
        let from_file: Record = serde_json::from_str(&files::json(&record)).unwrap();
        assert_eq!(from_file.ramp_up_settled, settled);
        let text = format!("{:?}", page::page(&from_file));
        text.contains(
            "had not settled at the end of the longest ramp-up; it was measured from 10 s",
        )
    };
    assert_eq!(
        [None, Some(true), Some(false)].map(is_reported),
        [false, false, true]
    );
}

#[test]
fn a_run_without_service_or_without_a_check_does_not_count() {
    let mut good = whole();
    good.validity.clear();
    let lead = |record: &Record| page::page(record).verdict.lead;
    let checked = |broken: &[&str]| record::Consistency {
        when: "after".to_owned(),
        checked: 12,
        sample: None,
        broken: broken.iter().map(|&rule| rule.to_owned()).collect(),
        not_checked: None,
        seconds: 0.1,
    };
    good.consistency.push(checked(&[]));
    // Connections without an answer cause a warning, but the run counts.
    good.unanswered = 3;
    assert!(good.all_checks_hold());
    assert!(
        lead(&good).starts_with("Measured; inputs"),
        "{}",
        lead(&good)
    );
    let mut broken = good.clone();
    broken.consistency[0] = checked(&["condition 1"]);
    let mut missing = good.clone();
    missing.consistency[0] = record::Consistency::missing("after", "it hangs".to_owned());
    let mut silent = good.clone();
    silent.tracks = record::Tracks::default();
    for (mut record, wanted) in [
        (broken, "Measured, but the tables are not consistent after"),
        (missing, "Measured; the tables were not checked after"),
        (silent, "Nothing is measured: no transaction was done"),
    ] {
        record.conclude();
        assert!(!record.all_checks_hold(), "{wanted}");
        assert!(record.run.rejected.is_some(), "{wanted}");
        assert!(lead(&record).starts_with(wanted), "{}", lead(&record));
    }
}
