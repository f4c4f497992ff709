//! The start and the end of the measured interval.

use super::*;
use crate::driver::sample::{Ending, InputTraits};
use crate::driver::{Arrivals, DeliveryMode, Pace, Share};
use crate::latency::track::{Phase, TrackName};
use crate::spec::deck::{Kind, Mix};
use crate::spec::nurand::Constants;

fn setup(ramp_up: RampUp, length: Length) -> Setup {
    Setup {
        warehouses: 1,
        terminals: 2,
        share: Share::WHOLE,
        length,
        ramp_up,
        pace: Pace::Eager,
        mix: Mix::SPECIFIED,
        fixed_warehouse: true,
        delivery: DeliveryMode::Inline,
        constants: Constants {
            last_name: 1,
            customer: 2,
            item: 3,
        },
        seed: 1,
        max_retries: 1,
        drain: Duration::from_secs(10),
        give_up: Duration::from_secs(60),
    }
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn order(due_us: u64, ended_us: u64) -> Sample {
    Sample {
        kind: Kind::NewOrder,
        terminal: 0,
        deferred: false,
        ending: Ending::Committed,
        retries: 0,
        skipped: 0,
        traits: InputTraits::default(),
        due_us,
        began_us: due_us,
        ended_us,
    }
}

#[test]
fn only_transactions_wholly_inside_the_interval_are_measured() {
    let window = RunWindow::new(&setup(
        RampUp::Lasting(seconds(2)),
        Length::Lasting(seconds(3)),
    ));
    let mut statistics = RunStatistics::new(window.interval(), false);
    let s = SECOND_US;
    statistics.record(&[
        order(0, s),
        order(2 * s - 1, 2 * s + 5), // Began in the ramp-up.
        order(2 * s, 3 * s),
        order(3 * s, 5 * s),
        order(3 * s, 5 * s + 1), // Ended too late.
    ]);
    let counts = Phase::ALL.map(|phase| statistics.tracks[phase.index()][0].done());
    assert_eq!(counts, [2, 2, 1]);
    let orders = &statistics.tracks[1][TrackName::Of(Kind::NewOrder).index()];
    assert_eq!(orders.latency.count(), 2);
}

#[test]
fn the_time_in_the_system_follows_littles_law() {
    let mut statistics = RunStatistics::new(
        Interval {
            from_us: Some(0),
            to_us: u64::MAX,
        },
        false,
    );
    // Transactions from 0.5 s to 2.25 s, and from 1.0 s to 1.5 s.
    statistics.record(&[order(1_000_000, 1_500_000), order(500_000, 2_250_000)]);
    let within: Vec<u64> = statistics
        .series
        .seconds
        .iter()
        .map(|second| second.in_system_us)
        .collect();
    assert_eq!(within, [500_000, 1_500_000, 250_000]);
    let latencies: u64 = statistics
        .series
        .seconds
        .iter()
        .map(|second| second.latency_sum_us)
        .sum();
    assert_eq!(latencies, within.iter().sum::<u64>());
    let done: Vec<u32> = statistics
        .series
        .seconds
        .iter()
        .map(|second| second.total())
        .collect();
    assert_eq!(done, [0, 1, 1]);
}

#[test]
fn a_run_until_steady_begins_when_the_throughput_has_settled() {
    let mut window = RunWindow::new(&setup(
        RampUp::UntilSteady {
            at_most: seconds(600),
        },
        Length::Lasting(seconds(100)),
    ));
    let mut statistics = RunStatistics::new(window.interval(), false);
    let mut began = None;
    for second in 1..=300u64 {
        // The throughput rises for 50 seconds, then stays level.
        let count = 100 * second.min(50) + second % 3;
        for _ in 0..count {
            statistics.record(&[order(
                (second - 1) * SECOND_US,
                (second - 1) * SECOND_US + 1,
            )]);
        }
        window.check_steadiness(second, &statistics.series);
        if began.is_none() && window.from_us.is_some() {
            began = Some(second);
        }
    }
    // MSER-5 accepts the truncation point at about 50 s when it is in the first half of the series.
    let began = began.unwrap();
    assert!((85..=110).contains(&began), "{began}");
    // The interval begins one second after the decision.
    assert_eq!(window.from_us, Some((began + 1) * SECOND_US));
    assert_eq!(window.to_us, (began + 101) * SECOND_US);
    assert_eq!(window.settled, Some(true));
}

#[test]
fn a_run_that_never_settles_is_measured_and_reported_as_unsettled() {
    let mut window = RunWindow::new(&setup(
        RampUp::UntilSteady {
            at_most: seconds(90),
        },
        Length::Lasting(seconds(10)),
    ));
    let mut statistics = RunStatistics::new(window.interval(), false);
    for second in 1..=90u64 {
        for _ in 0..second {
            statistics.record(&[order(
                (second - 1) * SECOND_US,
                (second - 1) * SECOND_US + 1,
            )]);
        }
        window.check_steadiness(second, &statistics.series);
        assert_eq!(window.from_us.is_some(), second == 90);
    }
    assert_eq!(
        (window.settled, window.to_us),
        (Some(false), 101 * SECOND_US)
    );
}

#[test]
fn an_interrupted_run_has_a_short_drain() {
    let at = |first_s: u64| {
        let length = Length::Lasting(seconds(20));
        let mut window = RunWindow::new(&setup(RampUp::Lasting(seconds(0)), length));
        for later in 0..5 {
            window.interrupt((first_s + later) * SECOND_US);
        }
        let ends_us = window.to_us + window.drain_us;
        (window.to_us / SECOND_US, window.end, ends_us / SECOND_US)
    };
    // The run is interrupted in its measured interval, in its drain of ten seconds, and shortly
    // before the end of the drain.
    assert_eq!(at(7), (7, RunEnd::Interrupted, 10));
    assert_eq!(at(22), (20, RunEnd::Completed, 25));
    assert_eq!(at(29), (20, RunEnd::Completed, 30));
}

#[test]
fn a_run_without_success_or_service_is_ended() {
    let totals = |done, failed| Totals {
        done,
        failed,
        retries: 0,
        unknown: 0,
    };
    let window = RunWindow::new(&setup(
        RampUp::Lasting(seconds(0)),
        Length::Lasting(seconds(300)),
    ));
    let look = |now_s: u64, totals, is_down: bool| {
        let mut window = window.clone();
        let health = Health {
            totals,
            unserved_since_us: is_down.then_some(5 * SECOND_US),
            terminals: 50,
        };
        window.check_health(now_s * SECOND_US, health);
        (window.end, window.to_us / SECOND_US)
    };
    assert_eq!(look(70, totals(0, 49), false), (RunEnd::Completed, 300));
    assert_eq!(
        look(70, totals(0, 50), false),
        (RunEnd::NothingSucceeded, 70)
    );
    assert_eq!(look(70, totals(1, 500), false), (RunEnd::Completed, 300));
    assert_eq!(look(64, totals(1, 0), true), (RunEnd::Completed, 300));
    assert_eq!(look(65, totals(1, 0), true), (RunEnd::GaveUp, 65));
    assert_eq!(look(299, totals(1, 0), false), (RunEnd::Completed, 300));
    assert_eq!(look(301, totals(1, 0), true), (RunEnd::Completed, 300));
}

#[test]
fn losses_are_recorded_between_the_transactions_around_them() {
    let mut statistics = RunStatistics::new(
        Interval {
            from_us: Some(0),
            to_us: u64::MAX,
        },
        false,
    );
    let s = SECOND_US;
    record_in_order(
        &mut statistics,
        &[order(0, s), order(0, 5 * s), order(0, 9 * s)],
        &[
            (2 * s, ConnectionChange::Lost),
            (2 * s + 1, ConnectionChange::Lost),
            (3 * s, ConnectionChange::Reopened),
            (4 * s, ConnectionChange::Reopened),
        ]
        .map(|(at_us, change)| ConnectionEvent { at_us, change }),
    );
    let gaps = statistics.gaps.finish(9 * s);
    let gap = Gap {
        from_us: s,
        to_us: 5 * s,
        lost: 2,
    };
    assert_eq!(gaps, [gap]);
}

#[test]
fn a_connection_is_down_until_it_has_an_answer_or_is_abandoned() {
    let s = SECOND_US;
    let interval = Interval {
        from_us: Some(0),
        to_us: u64::MAX,
    };
    let down_since = |changes: &[ConnectionChange]| {
        let mut statistics = RunStatistics::new(interval, false);
        let events: Vec<ConnectionEvent> = (2..)
            .zip(changes)
            .map(|(at_s, change)| ConnectionEvent {
                at_us: at_s * s,
                change: *change,
            })
            .collect();
        record_in_order(&mut statistics, &[order(0, s)], &events);
        statistics.gaps.down_since_us()
    };
    for (changes, since_us) in [
        (&[ConnectionChange::Lost][..], Some(2 * s)),
        (&[ConnectionChange::Lost, ConnectionChange::Abandoned], None),
        (&[ConnectionChange::Lost, ConnectionChange::Reopened], None),
        (
            &[
                ConnectionChange::Lost,
                ConnectionChange::Reopened,
                ConnectionChange::FirstBegun,
            ],
            Some(2 * s),
        ),
        (
            &[
                ConnectionChange::Lost,
                ConnectionChange::Reopened,
                ConnectionChange::FirstBegun,
                ConnectionChange::FirstEnded,
            ],
            None,
        ),
    ] {
        assert_eq!(down_since(changes), since_us, "{changes:?}");
    }
}

#[test]
fn the_backlog_is_what_is_due_and_neither_done_nor_in_progress() {
    let pace = Pace::Open {
        per_min: 60.0,
        arrivals: Arrivals::Fixed,
    };
    let crate::driver::pacing::TerminalPace::Open(schedule) = pace.of_terminal(0, 1, 0) else {
        panic!()
    };
    let mut one = Backlog::of(schedule);
    // One start per second from 0: ten starts are due within 10 s.
    assert_eq!(one.backlog(10 * SECOND_US, true), 9);
    one.ended = 7;
    assert_eq!(
        (
            one.backlog(10 * SECOND_US, true),
            one.backlog(10 * SECOND_US, false)
        ),
        (2, 3)
    );
    one.ended = 11;
    assert_eq!(one.backlog(11 * SECOND_US, true), 0);
}
