//! How the two ends agree where TCP ends and a ring begins, and that TCP may follow the ring.

use super::*;

#[test]
fn the_switch_is_seen_with_its_total_and_before_the_first_byte() {
    check(4, || {
        let c = Channel::new(1, 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                let ready = c.ring.ready();
                if ready {
                    c.ring.switch(5);
                    c.send(&[1]);
                }
                c.ring.freeze();
                ready && c.ring.acknowledged()
            }
        });
        c.ring.set_ready();
        let mut got = Vec::new();
        let had = c.read(1, &mut got);
        let total = c.ring.switched();
        assert!(total.is_none_or(|t| t == 5));
        if matches!(had, Got::Bytes { .. }) {
            assert_eq!(total, Some(5), "a byte came out of a ring without a switch");
        }
        if total.is_some() {
            c.ring.acknowledge();
        }
        let acknowledged = writer.join().unwrap();
        assert!(!acknowledged || total.is_some());
        assert!(c.drain(&mut got));
        assert_eq!(c.ring.switched().is_some(), !got.is_empty());
    });
}

/// Bytes may follow an ended ring by TCP once the reader has acknowledged the switch to it, as in
/// `recv::turn` and `wait`.
#[test]
fn a_writer_that_waits_behind_its_ended_ring_is_woken_by_the_acknowledgement() {
    check(4, || {
        let c = Channel::new(1, 1);
        let waiters = Arc::new(WaitSlotSet::model());
        let reader = thread::spawn({
            let (c, waiters) = (c.clone(), waiters.clone());
            move || {
                c.ring.acknowledge();
                c.notify_if(c.ring.frozen() && waiters.bits() != 0);
            }
        });
        c.ring.freeze();
        waiters.enter(0);
        if !(c.wait_slot.sleep() || c.ring.acknowledged()) {
            c.bell.wait();
        }
        assert!(c.ring.acknowledged());
        reader.join().unwrap();
    });
}
