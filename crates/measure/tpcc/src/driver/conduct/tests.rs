//! When a run begins to be measured, and when it ends.

use super::*;
use crate::driver::sample::{Ending, Traits};
use crate::driver::{Arrivals, Delivery, Pace, Share};
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
        delivery: Delivery::Inline,
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
        traits: Traits::default(),
        due_us,
        began_us: due_us,
        ended_us,
    }
}

#[test]
fn only_what_is_wholly_inside_the_interval_is_measured() {
    let course = Course::new(&setup(
        RampUp::Lasting(seconds(2)),
        Length::Lasting(seconds(3)),
    ));
    let mut ledger = Ledger::new(course.interval(), false);
    let s = SECOND_US;
    ledger.take(&[
        order(0, s),
        order(2 * s - 1, 2 * s + 5), // Began in the ramp-up.
        order(2 * s, 3 * s),
        order(3 * s, 5 * s),
        order(3 * s, 5 * s + 1), // Ended too late.
    ]);
    let counts = Phase::ALL.map(|phase| ledger.tracks[phase.index()][0].done());
    assert_eq!(counts, [2, 2, 1]);
    let orders = &ledger.tracks[1][TrackName::Of(Kind::NewOrder).index()];
    assert_eq!(orders.latency.count(), 2);
}

#[test]
fn in_each_second_as_many_are_in_the_system_as_the_law_of_little_says() {
    let mut ledger = Ledger::new(
        Interval {
            from_us: Some(0),
            to_us: u64::MAX,
        },
        false,
    );
    // From 0.5 s to 2.25 s, and 1.0 s to 1.5 s.
    ledger.take(&[order(1_000_000, 1_500_000), order(500_000, 2_250_000)]);
    let within: Vec<u64> = ledger
        .series
        .seconds
        .iter()
        .map(|second| second.in_system_us)
        .collect();
    assert_eq!(within, [500_000, 1_500_000, 250_000]);
    let latencies: u64 = ledger
        .series
        .seconds
        .iter()
        .map(|second| second.latency_sum_us)
        .sum();
    assert_eq!(latencies, within.iter().sum::<u64>());
    let done: Vec<u32> = ledger
        .series
        .seconds
        .iter()
        .map(|second| second.total())
        .collect();
    assert_eq!(done, [0, 1, 1]);
}

#[test]
fn a_run_until_steady_begins_when_the_throughput_has_settled() {
    let mut course = Course::new(&setup(
        RampUp::UntilSteady {
            at_most: seconds(600),
        },
        Length::Lasting(seconds(100)),
    ));
    let mut ledger = Ledger::new(course.interval(), false);
    let mut began = None;
    for second in 1..=300u64 {
        // Rises for 50 seconds, then stays.
        let count = 100 * second.min(50) + second % 3;
        for _ in 0..count {
            ledger.take(&[order(
                (second - 1) * SECOND_US,
                (second - 1) * SECOND_US + 1,
            )]);
        }
        course.look_for_steadiness(second, &ledger.series);
        if began.is_none() && course.from_us.is_some() {
            began = Some(second);
        }
    }
    // The cut at about 50 s must lie in the first half.
    let began = began.unwrap();
    assert!((85..=110).contains(&began), "{began}");
    // Nothing that began before its books were closed is in the interval.
    assert_eq!(course.from_us, Some((began + 1) * SECOND_US));
    assert_eq!(course.to_us, (began + 101) * SECOND_US);
    assert_eq!(course.settled, Some(true));
}

#[test]
fn one_that_never_settles_is_measured_all_the_same_and_says_so() {
    let mut course = Course::new(&setup(
        RampUp::UntilSteady {
            at_most: seconds(90),
        },
        Length::Lasting(seconds(10)),
    ));
    let mut ledger = Ledger::new(course.interval(), false);
    for second in 1..=90u64 {
        for _ in 0..second {
            ledger.take(&[order(
                (second - 1) * SECOND_US,
                (second - 1) * SECOND_US + 1,
            )]);
        }
        course.look_for_steadiness(second, &ledger.series);
        assert_eq!(course.from_us.is_some(), second == 90);
    }
    assert_eq!(
        (course.settled, course.to_us),
        (Some(false), 101 * SECOND_US)
    );
}

#[test]
fn a_user_who_wants_an_end_does_not_wait_for_all_of_the_drain() {
    let at = |first_s: u64| {
        let length = Length::Lasting(seconds(20));
        let mut course = Course::new(&setup(RampUp::Lasting(seconds(0)), length));
        for later in 0..5 {
            course.interrupt((first_s + later) * SECOND_US);
        }
        let ends_us = course.to_us + course.drain_us;
        (course.to_us / SECOND_US, course.end, ends_us / SECOND_US)
    };
    // In the run; in the drain of ten seconds; at its end.
    assert_eq!(at(7), (7, End::Interrupted, 10));
    assert_eq!(at(22), (20, End::Done, 25));
    assert_eq!(at(29), (20, End::Done, 30));
}

#[test]
fn a_run_is_called_off_when_there_is_no_hope() {
    let sums = |done, failed| Sums {
        done,
        failed,
        retries: 0,
        unknown: 0,
    };
    let course = Course::new(&setup(
        RampUp::Lasting(seconds(0)),
        Length::Lasting(seconds(300)),
    ));
    let look = |now_s: u64, sums, is_down: bool| {
        let mut course = course.clone();
        let hope = Hope {
            sums,
            unserved_since_us: is_down.then_some(5 * SECOND_US),
            terminals: 50,
        };
        course.look_for_hope(now_s * SECOND_US, hope);
        (course.end, course.to_us / SECOND_US)
    };
    assert_eq!(look(70, sums(0, 49), false), (End::Done, 300));
    assert_eq!(look(70, sums(0, 50), false), (End::Hopeless, 70));
    assert_eq!(look(70, sums(1, 500), false), (End::Done, 300));
    assert_eq!(look(64, sums(1, 0), true), (End::Done, 300));
    assert_eq!(look(65, sums(1, 0), true), (End::GaveUp, 65));
    assert_eq!(look(299, sums(1, 0), false), (End::Done, 300));
    assert_eq!(look(301, sums(1, 0), true), (End::Done, 300));
}

#[test]
fn losses_are_entered_between_the_transactions_around_them() {
    let mut ledger = Ledger::new(
        Interval {
            from_us: Some(0),
            to_us: u64::MAX,
        },
        false,
    );
    let s = SECOND_US;
    enter(
        &mut ledger,
        &[order(0, s), order(0, 5 * s), order(0, 9 * s)],
        &[
            (2 * s, Way::Lost),
            (2 * s + 1, Way::Lost),
            (3 * s, Way::Opened),
            (4 * s, Way::Opened),
        ]
        .map(|(at_us, way)| Turn { at_us, way }),
    );
    let gaps = ledger.gaps.finish(9 * s);
    let gap = Gap {
        from_us: s,
        to_us: 5 * s,
        lost: 2,
    };
    assert_eq!(gaps, [gap]);
}

#[test]
fn a_connection_counts_until_it_is_answered_or_not_wanted_any_more() {
    let s = SECOND_US;
    let interval = Interval {
        from_us: Some(0),
        to_us: u64::MAX,
    };
    let down_since = |ways: &[Way]| {
        let mut ledger = Ledger::new(interval, false);
        let turns: Vec<Turn> = (2..)
            .zip(ways)
            .map(|(at_s, way)| Turn {
                at_us: at_s * s,
                way: *way,
            })
            .collect();
        enter(&mut ledger, &[order(0, s)], &turns);
        ledger.gaps.down_since_us()
    };
    for (ways, since_us) in [
        (&[Way::Lost][..], Some(2 * s)),
        (&[Way::Lost, Way::Left], None),
        (&[Way::Lost, Way::Opened], None),
        (&[Way::Lost, Way::Opened, Way::Begun], Some(2 * s)),
        (&[Way::Lost, Way::Opened, Way::Begun, Way::Ended], None),
    ] {
        assert_eq!(down_since(ways), since_us, "{ways:?}");
    }
}

#[test]
fn what_is_late_is_due_and_neither_done_nor_under_way() {
    let pace = Pace::Open {
        per_min: 60.0,
        arrivals: Arrivals::Fixed,
    };
    let crate::driver::pacing::Stride::Open(schedule) = pace.of_terminal(0, 1, 0) else {
        panic!()
    };
    let mut one = Punctuality::of(schedule);
    // One a second from 0: within 10 s ten are due.
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
