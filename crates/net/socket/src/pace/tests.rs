//! Tests of the schedule alone: two ends with different rates, and a simulated clock.

use super::*;
use proptest::prelude::*;

const EVIDENCE: u32 = 64;

/// One end of the rendezvous: its rate, and its search.
#[derive(Debug)]
struct End {
    /// Time between two calls.
    gap_ns: u64,
    /// Messages counted between two calls.
    per_call: u32,
    calls_at_ns: u64,
    messages: u32,
    began: Option<Moment>,
    next: Moment,
    looks: u32,
}

impl End {
    fn new(gap_ns: u64, per_call: u32, calls_at_ns: u64) -> End {
        End {
            gap_ns,
            per_call,
            calls_at_ns,
            messages: 0,
            began: None,
            next: Moment {
                messages: EVIDENCE,
                ns: u64::MAX,
            },
            looks: 0,
        }
    }

    /// Simulates the next call; true when it takes a step.
    fn call(&mut self) -> bool {
        let ns = self.calls_at_ns;
        self.calls_at_ns += self.gap_ns;
        let due = self.next.has_come(self.messages, || ns);
        let now = Moment {
            messages: self.messages,
            ns,
        };
        if due {
            self.looks += 1;
            let began = *self.began.get_or_insert(now);
            self.next = began.after_look_at(now);
        }
        self.messages = self.messages.saturating_add(self.per_call);
        due
    }

    fn begins_again(&mut self, ns: u64) {
        let now = Moment {
            messages: self.messages,
            ns,
        };
        self.began = Some(now);
        self.next = now.after_look_at(now);
    }
}

/// Simulates a hand-shake from the calls of both ends: whether each has seen the other's mark, and
/// the progress of offer, visit and agreement. Returns the time and both ends' steps.
fn meet(mut offerer: End, mut proposer: End, deadline_ns: u64) -> Option<(u64, [u32; 2])> {
    let (mut marks, mut seen) = ([false; 2], [false; 2]);
    let (mut offered, mut visited) = (false, false);
    loop {
        let first = offerer.calls_at_ns <= proposer.calls_at_ns;
        let (me, end) = if first {
            (0, &mut offerer)
        } else {
            (1, &mut proposer)
        };
        let ns = end.calls_at_ns;
        if ns > deadline_ns {
            return None;
        }
        if !end.call() {
            continue;
        }
        marks[me] = true;
        if marks[1 - me] && !seen[me] {
            seen[me] = true;
            end.begins_again(ns);
        }
        match (first, seen[me]) {
            (true, true) if visited => return Some((ns, [offerer.looks, proposer.looks])),
            (true, true) => offered = true,
            (false, true) => visited |= offered,
            (_, false) => {}
        }
    }
}

/// Upper bound of an end's steps for a number of messages and a time.
fn most_looks(messages: u32, ns: u64) -> f64 {
    let by_messages = f64::from(messages / (2 * FIRST_MESSAGES)).max(1.0).log(1.5);
    let by_time = (ns / FIRST_NS).max(1) as f64;
    2.0 * (10.0 + by_messages + by_time.log(1.25))
}

proptest! {
    /// At any rates, both ends meet within a few calls of the slower one after its evidence, or
    /// within a share of the time that it needed for the evidence.
    #[test]
    fn two_ends_meet_whatever_their_rates(
        slow_gap_us in 1u64..200_000,
        ratio in 1u64..=5000,
        coalesced in 1u32..=5000,
        phase_ns in 0u64..1_000_000_000,
        slow_offers in any::<bool>(),
        slow_is_late in any::<bool>(),
    ) {
        let gap_ns = slow_gap_us * 1000;
        let (early, late) = if slow_is_late { (phase_ns, 0) } else { (0, phase_ns) };
        // The fast end makes more calls, and counts more messages for each.
        let slow = End::new(gap_ns, 1, early);
        let fast = End::new((gap_ns / ratio).max(1), coalesced, late);
        let evidence_ns = phase_ns + (u64::from(EVIDENCE) + 1) * gap_ns;
        // Three steps that wait for the other end; the slow end may also begin to wait late.
        let bound_ns = 2 * evidence_ns + 8 * gap_ns + 16 * FIRST_NS;
        let met = if slow_offers {
            meet(slow, fast, 16 * bound_ns)
        } else {
            meet(fast, slow, 16 * bound_ns)
        };
        let Some((ns, looks)) = met else {
            return Err(TestCaseError::fail("they never meet"));
        };
        prop_assert!(ns <= bound_ns, "met after {ns} ns, not {bound_ns}");
        let messages = u32::try_from((ns / (gap_ns / ratio).max(1) + 1) * u64::from(coalesced));
        let most = most_looks(messages.unwrap_or(u32::MAX), ns);
        prop_assert!(looks.iter().all(|n| f64::from(*n) <= most), "{looks:?} looks, not {most}");
    }
}

/// A peer without Saiga, searched for an hour by connections of different rates.
#[test]
fn a_peer_that_never_comes_costs_few_looks() {
    for (name, gap_ns, most) in [
        ("one message a second", 1_000_000_000, 40),
        ("a thousand a second", 1_000_000, 80),
        ("a hundred thousand a second", 10_000, 110),
    ] {
        let mut end = End::new(gap_ns, 1, 0);
        while end.calls_at_ns < 3_600_000_000_000 {
            end.call();
        }
        assert!(end.looks <= most, "{name}: {} looks", end.looks);
    }
}

/// Examples of the schedule, as literals.
#[test]
fn the_pause_grows_with_what_has_passed() {
    let at = |messages, ms: u64| Moment {
        messages,
        ns: ms * 1_000_000,
    };
    for (name, began, now, next) in [
        ("at once", at(64, 10), at(64, 10), at(66, 11)),
        ("half the messages", at(64, 10), at(264, 10), at(364, 11)),
        (
            "a quarter of the time",
            at(64, 10),
            at(64, 810),
            at(66, 1010),
        ),
    ] {
        assert_eq!(began.after_look_at(now), next, "{name}");
    }
    assert!(at(5, 1000).has_come(5, || 0));
    assert!(at(5, 1000).has_come(0, || 1_000_000_000));
    assert!(!at(5, 1000).has_come(4, || 999_999_999));
    // A counter at its maximum means nothing any more.
    assert!(!at(u32::MAX, 1000).has_come(u32::MAX, || 0));
}
