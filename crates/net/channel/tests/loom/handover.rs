//! Words by which one thread gives memory to another: agreements, locks and notifications. And a
//! thread that looks at a ring which it neither reads nor writes.

use super::*;
use saiga_channel::agreement::Agreement;
use saiga_channel::lock_word::LockWord;

fn cell() -> Cells {
    Cells(vec![UnsafeCell::new(0)])
}

fn content(cells: &Cells) -> u8 {
    let mut byte = [0];
    cells.take(0, &mut byte);
    byte[0]
}

/// The proposal for one connection is withdrawn, if there is time, and the slot is prepared for
/// another connection.
#[test]
fn a_slot_is_prepared_for_the_connection_that_accepts_it() {
    check(4, || {
        let slot = Arc::new((Agreement::model(), cell()));
        let accepting = thread::spawn({
            let slot = slot.clone();
            move || {
                let (agreement, words) = &*slot;
                let accepted = (1..=2).find(|name| agreement.accept(&[*name; 36]));
                accepted.inspect(|name| assert_eq!(content(words), *name))
            }
        });
        let (agreement, words) = &*slot;
        let mut proposed = 1;
        words.put(0, &[1]);
        agreement.request(&[1; 36]);
        if agreement.cancel() {
            proposed = 2;
            words.put(0, &[2]);
            agreement.request(&[2; 36]);
        }
        let accepted = accepting.join().unwrap();
        assert!(accepted.is_none_or(|name| name == proposed));
        assert_eq!(agreement.is_accepted(), accepted.is_some());
    });
}

#[test]
fn the_holder_of_a_lock_has_what_it_guards_to_itself() {
    check(4, || {
        let lock = Arc::new((LockWord::model(), cell()));
        let add = |lock: &(LockWord, Cells), holder| {
            let (word, count) = lock;
            let taken = word.take(0, holder);
            if taken {
                count.put(0, &[content(count) + 1]);
                word.free();
            }
            u8::from(taken)
        };
        let other = thread::spawn({
            let lock = lock.clone();
            move || add(&lock, 1)
        });
        let mine = add(&lock, 2) + add(&lock, 2);
        assert_eq!(mine + other.join().unwrap(), content(&lock.1));
    });
}

/// A thread that is awake takes a notification and then looks at the channel, as in `absorb`.
#[test]
fn what_came_before_a_notification_is_seen_by_the_thread_that_takes_it() {
    check(4, || {
        let slot = Arc::new((WaitSlot::model(), cell()));
        let notifier = thread::spawn({
            let slot = slot.clone();
            move || {
                slot.1.put(0, &[1]);
                slot.0.notify(5)
            }
        });
        if slot.0.take() != 0 {
            assert_eq!(content(&slot.1), 1);
        }
        assert_eq!(notifier.join().unwrap(), None, "no thread sleeps");
    });
}

/// One thread reads the last byte, another releases the memory of the empty ring, and a third one
/// looks, for example for `poll`.
#[test]
fn a_thread_that_looks_at_a_ring_finds_it_consistent() {
    check(3, || {
        let c = Channel::new(1, 2);
        assert_eq!(c.send(&[1]), 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || c.ring.sleep(2)
        });
        let looking = thread::spawn({
            let c = c.clone();
            move || c.ring.pending(2)
        });
        c.read(1, &mut Vec::new());
        assert!(looking.join().unwrap().is_some());
        writer.join().unwrap();
    });
}
