//! The scoreboard against a naive one that knows the state of each byte.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Instant {
    Instant(ms * 1000)
}

fn seq(number: u32) -> SeqNum {
    SeqNum(number)
}

/// Start, end and state of all records.
fn shown(flight: &Flight) -> Vec<(u32, u32, State)> {
    flight
        .iter()
        .map(|(start, record)| (start.0, record.end.0, record.state))
        .collect()
}

fn sums(flight: &Flight) -> [u32; 3] {
    [flight.in_flight(), flight.lost(), flight.sacked()]
}

#[test]
fn a_burst_is_one_record_and_a_later_send_another() {
    let mut flight = Flight::new(seq(100));
    flight.on_send(seq(1100), at(5));
    flight.on_send(seq(2100), at(5));
    flight.on_send(seq(3100), at(6));
    let expected = [(100, 2100, State::InFlight), (2100, 3100, State::InFlight)];
    assert_eq!(shown(&flight), expected);
    assert_eq!((flight.nxt(), sums(&flight)), (seq(3100), [3000, 0, 0]));
}

#[test]
fn a_selective_acknowledgement_divides_and_merges() {
    let mut flight = Flight::new(seq(0));
    flight.on_send(seq(5000), at(1));
    let mut seen = Vec::new();
    for (start, end) in [
        (1000, 2000),
        (3000, 4000),
        (1000, 2000),
        (2000, 3000),
        (0, 9000),
    ] {
        flight.sack(seq(start), seq(end), |one| {
            seen.push((one.start.0, one.end.0))
        });
    }
    let parts = [
        (1000, 2000),
        (3000, 4000),
        (2000, 3000),
        (0, 1000),
        (4000, 5000),
    ];
    assert_eq!(seen, parts);
    assert_eq!(shown(&flight), [(0, 5000, State::Sacked)]);
    assert!(flight.has_reneged());
}

#[test]
fn a_lost_range_is_sent_again_and_delivered() {
    let mut flight = Flight::new(seq(0));
    flight.on_send(seq(3000), at(1));
    flight.sack(seq(1000), seq(3000), |_| {});
    flight.mark_lost(|_, _| true);
    assert_eq!(sums(&flight), [0, 1000, 2000]);
    assert_eq!(flight.next_lost(400), Some((seq(0), seq(400))));
    flight.on_retransmit(seq(0), seq(400), at(9));
    assert_eq!(flight.next_lost(1000), Some((seq(400), seq(1000))));
    assert_eq!(sums(&flight), [400, 600, 2000]);
    let mut seen = Vec::new();
    flight.acknowledge(seq(3000), |one| seen.push(one));
    let of = |start, end, ms, is_retransmitted, was_lost| Delivered {
        start: seq(start),
        end: seq(end),
        at: at(ms),
        is_retransmitted,
        was_lost,
    };
    let expected = [of(0, 400, 9, true, false), of(400, 1000, 1, false, true)];
    assert_eq!(seen, expected);
    assert!(flight.is_empty());
    assert_eq!(sums(&flight), [0, 0, 0]);
}

#[test]
fn a_peer_that_dropped_what_it_acknowledged_gets_it_again() {
    let mut flight = Flight::new(seq(0));
    flight.on_send(seq(2000), at(1));
    flight.sack(seq(0), seq(1000), |_| {});
    assert!(flight.has_reneged());
    flight.forget_sacks();
    assert_eq!(sums(&flight), [1000, 1000, 0]);
}

/// Selective acknowledgements of every other byte cannot make the scoreboard grow without end.
#[test]
fn the_number_of_records_is_limited() {
    let mut flight = Flight::new(seq(0));
    flight.on_send(seq(100_000), at(1));
    for byte in 0..20_000 {
        flight.sack(seq(2 * byte), seq(2 * byte + 1), |_| {});
    }
    assert_eq!(flight.records.len(), LEAST_LIMIT);
    assert_eq!(sums(&flight).iter().sum::<u32>(), 100_000);
    for ms in 2..50 {
        flight.on_send(flight.nxt() + 10, at(ms));
    }
    assert_eq!(flight.records.len(), LEAST_LIMIT);
    flight.acknowledge(flight.nxt(), |_| {});
    assert_eq!(sums(&flight), [0, 0, 0]);
}

/// A long and fast path: every second one of 4,000 segments is lost.
#[test]
fn each_segment_of_a_large_window_can_have_a_record() {
    let mut flight = Flight::new(seq(0));
    for segment in 1..=4000 {
        flight.on_send(seq(1000 * segment), at(1));
    }
    for segment in 0..2000 {
        flight.sack(seq(2000 * segment), seq(2000 * segment + 1000), |_| {});
    }
    assert_eq!(flight.sacked(), 2_000_000);
}

#[derive(Debug, Clone)]
enum Op {
    Send(u32),
    Acknowledge(u32),
    Sack(u32, u32),
    Lose(u32),
    Retransmit(u32),
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1_u32..40).prop_map(Op::Send),
        2 => (0_u32..60).prop_map(Op::Acknowledge),
        4 => (0_u32..120, 1_u32..40).prop_map(|(from, length)| Op::Sack(from, length)),
        2 => (0_u32..120).prop_map(Op::Lose),
        2 => (1_u32..40).prop_map(Op::Retransmit),
        1 => Just(Op::Forget),
    ]
}

/// The naive scoreboard: a state for each byte from `una`.
#[derive(Debug, Default)]
struct Naive {
    una: u32,
    bytes: Vec<State>,
}

impl Naive {
    fn count(&self, state: State) -> u32 {
        let count = self.bytes.iter().filter(|one| **one == state).count();
        u32::try_from(count).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn the_scoreboard_knows_the_state_of_each_byte(
        ops in prop::collection::vec(op(), 1..60),
        start in prop_oneof![Just(0_u32), Just(u32::MAX - 50)],
    ) {
        let mut flight = Flight::new(seq(start));
        let mut naive = Naive { una: start, bytes: Vec::new() };
        for (turn, op) in (0_u64..).zip(ops) {
            apply(&mut flight, &mut naive, &op, at(turn));
            let expected = [State::InFlight, State::Lost, State::Sacked].map(|one| naive.count(one));
            prop_assert_eq!(sums(&flight), expected, "{:?}", op);
            let mut states = Vec::new();
            for (from, record) in flight.iter() {
                for _ in 0..record.end - from {
                    states.push(record.state);
                }
            }
            prop_assert_eq!(&states, &naive.bytes, "{:?}", op);
            let merged = flight.records.iter().zip(flight.records.iter().skip(1));
            let merged = merged.filter(|(a, b)| a.state == State::Sacked && b.state == a.state);
            prop_assert_eq!(merged.count(), 0);
        }
    }
}

/// Does the same to both, and compares what is reported as delivered.
fn apply(flight: &mut Flight, naive: &mut Naive, op: &Op, now: Instant) {
    let length = naive.bytes.len();
    let mut reported = 0;
    let mut each = |one: Delivered| reported += one.end - one.start;
    let mut expected = 0;
    match *op {
        Op::Send(bytes) => {
            flight.on_send(flight.nxt() + bytes, now);
            naive.bytes.resize(length + bytes as usize, State::InFlight);
        }
        Op::Acknowledge(bytes) => {
            let bytes = bytes.min(u32::try_from(length).unwrap());
            flight.acknowledge(seq(naive.una) + bytes, &mut each);
            naive.una = naive.una.wrapping_add(bytes);
            let gone = naive.bytes.drain(..bytes as usize);
            expected = u32::try_from(gone.filter(|one| *one != State::Sacked).count()).unwrap();
        }
        Op::Sack(from, bytes) => {
            let start = seq(naive.una) + from;
            flight.sack(start, start + bytes, &mut each);
            for index in from..from + bytes {
                if let Some(state) = naive.bytes.get_mut(index as usize) {
                    expected += u32::from(*state != State::Sacked);
                    *state = State::Sacked;
                }
            }
        }
        // Records begin and end where sends and acknowledgements did, so whole records are lost.
        Op::Lose(before) => {
            let limit = seq(naive.una) + before;
            flight.mark_lost(|_, record| record.end.before(limit));
            let ends: Vec<_> = flight
                .iter()
                .map(|(start, record)| (start, record.end))
                .collect();
            for (index, state) in naive.bytes.iter_mut().enumerate() {
                let byte = seq(naive.una) + u32::try_from(index).unwrap();
                let holds =
                    |(start, end): &&(SeqNum, SeqNum)| !byte.before(*start) && byte.before(*end);
                let (_, end) = ends.iter().find(holds).unwrap();
                if *state == State::InFlight && end.before(limit) {
                    *state = State::Lost;
                }
            }
        }
        Op::Retransmit(limit) => {
            if let Some((start, end)) = flight.next_lost(limit) {
                flight.on_retransmit(start, end, now);
                let first = (start - seq(naive.una)) as usize;
                for state in &mut naive.bytes[first..first + (end - start) as usize] {
                    assert_eq!(*state, State::Lost);
                    *state = State::InFlight;
                }
            }
        }
        Op::Forget => {
            flight.forget_sacks();
            for state in &mut naive.bytes {
                if *state == State::Sacked {
                    *state = State::Lost;
                }
            }
        }
    }
    assert_eq!(reported, expected, "{op:?}");
}
