//! Claims, black holes, and a search that ends.

use super::*;

const NOW: Instant = Instant(1_000_000);
const SEQ: SeqNum = SeqNum(5000);

fn seconds(seconds: u64) -> Instant {
    NOW + Micros::from_secs(seconds)
}

#[test]
fn a_claim_about_an_unproven_size_is_taken_at_once() {
    let mut path = PathMtu::new(1460);
    let verdict = path.on_claim((1300, SEQ), 1460, false, NOW);
    assert_eq!(verdict, Verdict::Shrink(1300));
    // No probe before the router's word is old.
    assert_eq!(path.next_probe(1300, seconds(599)), None);
    assert_eq!(path.next_probe(1300, seconds(600)), Some(1460));
}

#[test]
fn a_claim_above_the_present_size_says_nothing() {
    let mut path = PathMtu::new(1460);
    for size in [1460, 1461, u16::MAX] {
        let verdict = path.on_claim((size, SEQ), 1460, false, NOW);
        assert_eq!(verdict, Verdict::Ignore, "{size}");
    }
    assert!(path.is_over(1460));
}

#[test]
fn a_claim_against_acknowledgements_waits_for_a_timeout() {
    let mut path = PathMtu::new(1460);
    let verdict = path.on_claim((1300, SEQ), 1460, true, NOW);
    assert_eq!(verdict, Verdict::Ignore);
    assert!(!path.is_over(1460));
    // Other data arrives; the segment of the claim does not.
    assert_eq!(path.on_progress(SEQ, NOW), None);
    assert_eq!(path.on_timeout(1460, false, 512, NOW), Some(1300));
    assert_eq!(path.on_timeout(1300, false, 512, NOW), None);
}

#[test]
fn a_claim_about_a_segment_that_arrived_was_forged() {
    let mut path = PathMtu::new(1460);
    let _verdict = path.on_claim((1300, SEQ), 1460, true, NOW);
    assert_eq!(path.on_progress(SEQ + 1460, NOW), None);
    assert_eq!(path.on_timeout(1460, false, 512, NOW), None);
    assert!(path.is_over(1460));
}

#[test]
fn a_black_hole_is_left_in_steps_down_to_the_floor() {
    let mut path = PathMtu::new(8900);
    let mut size = 8900;
    let mut sizes = std::vec![];
    while let Some(smaller) = path.on_timeout(size, true, 300, NOW) {
        size = smaller;
        sizes.push(size);
    }
    assert_eq!(sizes, [1024, 512, 300]);
    assert_eq!(path.on_timeout(8900, false, 300, NOW), None);
}

/// Whatever the path takes, few probes find it to within a step.
#[test]
fn the_search_ends_near_what_the_path_takes() {
    for truth in 1024..=8900 {
        let mut path = PathMtu::new(8900);
        let mut size = path
            .on_timeout(8900, true, 512, NOW)
            .expect("a smaller size");
        let mut una = SEQ;
        let mut probes = 0;
        while let Some(next) = path.next_probe(size, NOW) {
            probes += 1;
            assert!(probes <= 16, "{truth}");
            assert!(next > size);
            path.on_probe_sent(Probe {
                start: una,
                size: next,
            });
            if next <= truth {
                una += u32::from(next);
                assert_eq!(path.on_progress(una, NOW), Some(next));
                size = next;
            } else {
                path.on_probe_lost(NOW);
            }
        }
        assert!(size <= truth && truth - size < STEP, "{truth}: {size}");
    }
}

#[test]
fn a_path_that_takes_everything_needs_one_probe() {
    let mut path = PathMtu::new(1460);
    assert_eq!(path.on_timeout(1460, true, 512, NOW), Some(1024));
    assert_eq!(path.next_probe(1024, NOW), Some(1460));
    path.on_probe_sent(Probe {
        start: SEQ,
        size: 1460,
    });
    assert_eq!(path.next_probe(1024, NOW), None);
    assert_eq!(path.on_progress(SEQ + 1459, NOW), None);
    assert_eq!(path.on_progress(SEQ + 1460, NOW), Some(1460));
    assert!(path.is_over(1460));
}

#[test]
fn a_claim_about_a_probe_is_the_end_of_the_search() {
    let mut path = PathMtu::new(1460);
    assert_eq!(path.on_timeout(1460, true, 512, NOW), Some(1024));
    let probe = Probe {
        start: SEQ,
        size: 1460,
    };
    path.on_probe_sent(probe);
    let verdict = path.on_claim((1300, SEQ), 1024, true, NOW);
    assert_eq!(verdict, Verdict::ProbeLost(probe));
    assert_eq!(path.next_probe(1024, NOW), Some(1162));
}
