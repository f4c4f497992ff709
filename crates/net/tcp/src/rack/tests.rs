//! The examples of RFC 8985 §8, and the adaptation of the reordering window.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::flight::State;

const MSS: u16 = 1000;

fn at(ms: u64) -> Instant {
    Instant(ms * 1000)
}

/// A sender with segments of 1,000 bytes, of which each is sent a millisecond after the one before.
struct Sender {
    flight: Flight,
    rack: Rack,
    is_in_recovery: bool,
}

impl Sender {
    fn new(segments: u32) -> Self {
        let mut flight = Flight::new(SeqNum(0));
        for number in 0..segments {
            flight.on_send(SeqNum((number + 1) * 1000), at(u64::from(number)));
        }
        Self {
            flight,
            rack: Rack::new(SeqNum(0)),
            is_in_recovery: false,
        }
    }

    /// Acknowledges all segments before `ack`, and selectively those in `sacked`.
    fn ack(&mut self, now: Instant, ack: u32, sacked: &[u32]) -> Option<Micros> {
        let rack = &mut self.rack;
        let min_rtt = Some(Micros::from_millis(100));
        let mut each = |one: Delivered| rack.on_delivered(&one, false, min_rtt, now);
        self.flight.acknowledge(SeqNum(ack * 1000), &mut each);
        for segment in sacked {
            let start = SeqNum(segment * 1000);
            self.flight.sack(start, start + 1000, &mut each);
        }
        self.detect(now)
    }

    fn detect(&mut self, now: Instant) -> Option<Micros> {
        let scene = Scene {
            now,
            min_rtt: Micros::from_millis(100),
            srtt: Micros::from_millis(120),
            mss: MSS,
            is_in_recovery: self.is_in_recovery,
        };
        self.rack.detect(&mut self.flight, &scene)
    }

    fn lost(&self) -> Vec<u32> {
        let lost = self
            .flight
            .iter()
            .filter(|(_, one)| one.state == State::Lost);
        lost.map(|(start, _)| start.0 / 1000).collect()
    }
}

/// Segment 0 is lost; the others arrive after 100 ms each.
#[test]
fn the_third_delivery_above_a_hole_makes_it_a_loss() {
    let mut sender = Sender::new(5);
    // A quarter of the round-trip time is left for reordering.
    let wait = sender.ack(at(101), 0, &[1]);
    assert_eq!(
        (wait, sender.lost()),
        (Some(Micros::from_millis(24)), vec![])
    );
    assert_eq!(
        sender.ack(at(102), 0, &[2]).map(Micros::as_millis),
        Some(23)
    );
    assert_eq!(
        (sender.ack(at(103), 0, &[3]), sender.lost()),
        (None, vec![0])
    );
}

/// Only one segment came after the hole, so the timer decides.
#[test]
fn a_hole_is_a_loss_when_the_reordering_window_has_passed() {
    let mut sender = Sender::new(2);
    let wait = sender.ack(at(101), 0, &[1]);
    assert_eq!(wait, Some(Micros::from_millis(24)));
    assert_eq!(sender.detect(at(124)), Some(Micros::from_millis(1)));
    assert_eq!((sender.detect(at(125)), sender.lost()), (None, vec![0]));
}

/// RFC 8985 §8.2: the last retransmission is lost. A segment that was sent after it is delivered.
#[test]
fn a_lost_retransmission_is_found() {
    let mut sender = Sender::new(4);
    sender.ack(at(103), 0, &[1, 2, 3]);
    assert_eq!(sender.lost(), [0]);
    sender.is_in_recovery = true;
    sender
        .flight
        .on_retransmit(SeqNum(0), SeqNum(1000), at(104));
    sender.flight.on_send(SeqNum(5000), at(105));
    assert_eq!(sender.lost(), []);
    sender.ack(at(206), 0, &[4]);
    assert_eq!(sender.lost(), [0]);
}

/// An acknowledgement that comes sooner than any round trip belongs to the first transmission.
#[test]
fn the_acknowledgement_of_a_spurious_retransmission_tells_no_time() {
    let mut sender = Sender::new(4);
    sender.ack(at(103), 0, &[1, 2, 3]);
    sender
        .flight
        .on_retransmit(SeqNum(0), SeqNum(1000), at(104));
    sender.ack(at(110), 4, &[]);
    assert_eq!(sender.rack.rtt_us, 100_000);
    assert_eq!(sender.rack.xmit_ts, at(3));
}

#[test]
fn reordering_opens_the_window_and_duplicates_widen_it() {
    let mut sender = Sender::new(8);
    // Segment 0 is delivered behind segment 1.
    sender.ack(at(101), 0, &[1]);
    sender.ack(at(102), 2, &[]);
    assert!(sender.rack.is_reordering_seen);
    // Three deliveries above segment 2 are not enough any more.
    let wait = sender.ack(at(106), 2, &[3, 4, 5, 6]);
    assert_eq!(sender.lost(), []);
    assert_eq!(wait.map(Micros::as_millis), Some(21));
    // One widening in a round trip.
    for una in [0, 0, 2000] {
        sender.rack.on_dsack(SeqNum(una), SeqNum(8000));
    }
    assert_eq!(sender.rack.multiplier, 2);
    assert_eq!(sender.detect(at(106)).map(Micros::as_millis), Some(46));
    sender.rack.on_dsack(SeqNum(8000), SeqNum(9000));
    assert_eq!(sender.rack.multiplier, 3);
    // The window is at most a round trip.
    for round in 9..20 {
        sender
            .rack
            .on_dsack(SeqNum(round * 1000), SeqNum(round * 1000 + 1000));
    }
    assert_eq!(sender.detect(at(106)).map(Micros::as_millis), Some(116));
    // Sixteen recoveries without a duplicate close it.
    for _ in 0..15 {
        sender.rack.on_recovered();
    }
    assert!(sender.rack.multiplier > 1);
    sender.rack.on_recovered();
    assert_eq!(sender.rack.multiplier, 1);
}
