//! Growth and reduction of the window, against the formulas of the RFCs in floating point.

use saiga_wire::SeqNum;

use super::*;

const MSS: u16 = 1460;

fn acked(bytes: u32, una: u32, rtt_ms: u64, now_ms: u64) -> Acked {
    Acked {
        bytes,
        una: SeqNum(una),
        nxt: SeqNum(una.wrapping_add(100_000)),
        rtt: Some(Micros::from_millis(rtt_ms)),
        srtt: Micros::from_millis(rtt_ms),
        is_limited: true,
        now: Instant(now_ms * 1000),
    }
}

fn new(algorithm: Algorithm) -> Congestion {
    Congestion::new(algorithm, MSS, 0, SeqNum(0))
}

/// A connection in congestion avoidance with this window, after a reduction from `before`.
fn reduced(algorithm: Algorithm, before: u32) -> Congestion {
    let mut congestion = new(algorithm);
    congestion.set_cwnd(before);
    congestion.on_congestion(before);
    congestion.set_cwnd(congestion.ssthresh());
    congestion
}

#[test]
fn the_initial_window_follows_the_segment_size() {
    for (mss, window) in [(536, 5360), (1460, 14_600), (2190, 14_600), (9000, 18_000)] {
        assert_eq!(initial_window(mss), window, "{mss}");
    }
    for (syn_retries, window) in [(1, 14_600), (2, 1460)] {
        let after_loss = Congestion::new(Algorithm::Cubic, MSS, syn_retries, SeqNum(0));
        assert_eq!(after_loss.cwnd(), window, "{syn_retries} repetitions");
    }
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip() {
    let mut congestion = new(Algorithm::NewReno);
    for ack in 1..=10 {
        congestion.on_ack(&acked(1460, ack * 1460, 50, 50));
    }
    assert_eq!(congestion.cwnd(), 29_200);
    // A load that the application limits does not grow the window.
    let idle = Acked {
        is_limited: false,
        ..acked(1460, 20_000, 50, 60)
    };
    congestion.on_ack(&idle);
    assert_eq!(congestion.cwnd(), 29_200);
}

#[test]
fn newreno_halves_and_grows_by_a_segment_for_each_window() {
    let mut congestion = reduced(Algorithm::NewReno, 100 * 1460);
    assert_eq!(congestion.cwnd(), 50 * 1460);
    for ack in 0..50 {
        congestion.on_ack(&acked(1460, ack * 1460, 50, 50));
    }
    assert_eq!(congestion.cwnd(), 51 * 1460);
}

/// RFC 9438 §4.2 in floating point, with windows in segments and times in seconds.
fn w_cubic(seconds: f64, w_max: f64, cwnd: f64) -> f64 {
    let k = ((w_max - cwnd) / 0.4).cbrt();
    0.4 * (seconds - k).powi(3) + w_max
}

/// Each round trip of 100 ms acknowledges the whole window, evenly. The window must follow the
/// function, within one percent.
#[test]
fn cubic_grows_along_its_function() {
    let mut congestion = reduced(Algorithm::Cubic, 1000 * 1460);
    assert_eq!(congestion.cwnd(), 700 * 1460);
    let mut una = 0_u32;
    for round in 0..150_u64 {
        let acks = u64::from(congestion.cwnd() / 1460);
        for ack in 0..acks {
            una = una.wrapping_add(1460);
            let ack = Acked {
                now: Instant(round * 100_000 + ack * 100_000 / acks),
                ..acked(1460, una, 100, 0)
            };
            congestion.on_ack(&ack);
        }
        let segments = f64::from(congestion.cwnd()) / 1460.0;
        let expected = w_cubic((round + 1) as f64 / 10.0, 1000.0, 700.0);
        assert!(
            (segments / expected - 1.0).abs() < 0.01,
            "round {round}: {segments} segments, the function has {expected}"
        );
    }
}

/// With a small window and a short round trip, NewReno is faster, and CUBIC follows it.
#[test]
fn cubic_is_friendly_to_newreno() {
    let mut congestion = reduced(Algorithm::Cubic, 20 * 1460);
    assert_eq!(congestion.cwnd(), 14 * 1460);
    let (mut una, mut acks) = (0, 0);
    // 9/17 of a segment for each round trip up to 20 segments, then one.
    for round in 0..17_u64 {
        for _ in 0..congestion.cwnd() / 1460 {
            una += 1460;
            acks += 1;
            congestion.on_ack(&acked(1460, una, 1, round));
        }
    }
    let segments = f64::from(congestion.cwnd()) / 1460.0;
    assert!((24.5..=26.0).contains(&segments), "{segments} after {acks}");
}

#[test]
fn cubic_reduces_to_seven_tenths_and_converges_fast() {
    let mut congestion = reduced(Algorithm::Cubic, 100 * 1460);
    assert_eq!(congestion.ssthresh(), 70 * 1460);
    // A second reduction below the first maximum gives bandwidth up: the plateau is 0.85 * 70.
    congestion.on_congestion(70 * 1460);
    congestion.set_cwnd(congestion.ssthresh());
    assert_eq!(congestion.ssthresh(), 49 * 1460);
    let mut una = 0;
    for round in 0..8_u64 {
        for _ in 0..congestion.cwnd() / 1460 {
            una += 1460;
            congestion.on_ack(&acked(1460, una, 500, round * 500));
        }
    }
    // K is 3 s for 10.5 missing segments: after 4 s, the window is at the plateau.
    let segments = f64::from(congestion.cwnd()) / 1460.0;
    assert!((58.5..60.5).contains(&segments), "{segments}");
}

/// RFC 9438 §4.2: the target is at most one and a half times the window, so that half of what is
/// acknowledged is added after any time.
#[test]
fn cubic_grows_by_half_of_what_is_acknowledged_at_most() {
    let mut congestion = reduced(Algorithm::Cubic, 100 * 1460);
    congestion.on_ack(&acked(1460, 1460, 100, 0));
    let before = congestion.cwnd();
    congestion.on_ack(&acked(1460, 2920, 100, 100_000));
    let growth = congestion.cwnd() - before;
    assert!((728..=731).contains(&growth), "{growth}");
}

#[test]
fn time_without_load_does_not_count() {
    let mut congestion = reduced(Algorithm::Cubic, 1000 * 1460);
    congestion.on_ack(&acked(1460, 1460, 100, 0));
    let before = congestion.cwnd();
    // Ten seconds later, the function of a busy connection would have passed its plateau.
    let idle = Acked {
        is_limited: false,
        ..acked(0, 1460, 100, 10_000)
    };
    congestion.on_ack(&idle);
    congestion.on_ack(&acked(1460, 2920, 100, 10_001));
    assert!(congestion.cwnd() - before < 1460, "{congestion:?}");
}

#[test]
fn a_time_out_leaves_one_segment_and_reduces_once() {
    let mut congestion = reduced(Algorithm::Cubic, 100 * 1460);
    congestion.on_timeout(70 * 1460, true);
    assert_eq!(
        (congestion.cwnd(), congestion.ssthresh()),
        (1460, 49 * 1460)
    );
    congestion.on_timeout(1460, false);
    assert_eq!(
        (congestion.cwnd(), congestion.ssthresh()),
        (1460, 49 * 1460)
    );
    congestion.undo();
    assert_eq!(
        (congestion.cwnd(), congestion.ssthresh()),
        (70 * 1460, 70 * 1460)
    );
}

/// RFC 9438 §4.8: K is 0, so that the window grows at once. With the plateau of before, 59.5
/// segments, it would have 57 after a second and a half.
#[test]
fn after_a_time_out_the_plateau_is_where_slow_start_ends() {
    let mut congestion = reduced(Algorithm::Cubic, 100 * 1460);
    congestion.on_timeout(70 * 1460, true);
    congestion.set_cwnd(congestion.ssthresh());
    let mut una = 0;
    for round in 0..3_u64 {
        for _ in 0..congestion.cwnd() / 1460 {
            una += 1460;
            congestion.on_ack(&acked(1460, una, 500, round * 500));
        }
    }
    let segments = f64::from(congestion.cwnd()) / 1460.0;
    assert!((49.5..52.0).contains(&segments), "{segments}");
}

#[test]
fn a_confirmed_reduction_is_not_undone() {
    let mut congestion = reduced(Algorithm::Cubic, 100 * 1460);
    congestion.confirm();
    congestion.undo();
    assert_eq!(congestion.cwnd(), 70 * 1460);
}

/// The round-trip time rises by a half when the queue begins to fill: slow start ends long before
/// loss.
#[test]
fn hystart_leaves_slow_start_when_the_round_trip_time_rises() {
    let mut congestion = new(Algorithm::Cubic);
    let mut una = 0_u32;
    let mut rounds = 0;
    while congestion.is_slow_start() && rounds < 40 {
        let window = congestion.cwnd();
        // The path holds 100 segments in 50 ms; what is above waits in the queue.
        let queued = window.saturating_sub(100 * 1460);
        let rtt_ms = 50 + u64::from(queued) * 50 / (100 * 1460);
        for _ in 0..window / 1460 {
            una = una.wrapping_add(1460);
            let ack = Acked {
                nxt: SeqNum(una.wrapping_add(window)),
                ..acked(1460, una, rtt_ms, rounds * 50)
            };
            congestion.on_ack(&ack);
        }
        rounds += 1;
    }
    let segments = congestion.cwnd() / 1460;
    assert!(!congestion.is_slow_start(), "{segments} segments");
    // Five rounds of conservative slow start grow by a quarter each.
    assert!((100..=550).contains(&segments), "{segments} segments");
}

#[test]
fn hystart_goes_on_when_the_rise_was_spurious() {
    let mut congestion = new(Algorithm::Cubic);
    let mut una = 0_u32;
    for round in 0..12_u64 {
        // One round is slower by 20 ms.
        let rtt_ms = if round == 3 { 70 } else { 50 };
        for _ in 0..10 {
            una = una.wrapping_add(1460);
            let ack = Acked {
                nxt: SeqNum(una),
                ..acked(1460, una, rtt_ms, round * 50)
            };
            congestion.on_ack(&ack);
        }
    }
    assert!(congestion.is_slow_start());
}

#[test]
fn an_idle_connection_begins_again_with_the_initial_window() {
    let mut congestion = reduced(Algorithm::Cubic, 1000 * 1460);
    congestion.on_idle();
    assert_eq!(congestion.cwnd(), 14_600);
    assert_eq!(congestion.ssthresh(), 700 * 1460);
}

/// Round-trip times rise by 20 ms in each round, and the window doubles all the same.
#[test]
fn hystart_is_for_the_first_slow_start_only() {
    let mut congestion = new(Algorithm::Cubic);
    congestion.set_cwnd(1000 * 1460);
    congestion.on_timeout(1000 * 1460, true);
    assert_eq!(congestion.cwnd(), 1460);
    let mut una = 0;
    for round in 0..8_u64 {
        for _ in 0..congestion.cwnd() / 1460 {
            una += 1460;
            let ack = Acked {
                nxt: SeqNum(una + congestion.cwnd()),
                ..acked(1460, una, 50 + 20 * round, round * 100)
            };
            congestion.on_ack(&ack);
        }
    }
    assert_eq!(congestion.cwnd(), 256 * 1460);
}
