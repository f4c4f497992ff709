//! Rings, wait slots and sleepers under every interleaving that loom finds.
//!
//! Run by `tools/loom`; without `--cfg loom` this file is empty. Rings have two to eight bytes,
//! threads make a few calls each, and preemptions are bounded. The bytes are loom's cells, so two
//! unordered accesses to one byte fail the test. A lost wake-up is a deadlock or a failed
//! assertion.

#![cfg(loom)]
#![expect(unsafe_code, reason = "the bytes of a ring are shared cells")]
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test"
)]

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use saiga_channel::ring::{Got, Put, Ring, Storage};
use saiga_channel::wait_slot::{WaitSlot, WaitSlotSet};
use std::sync::atomic::{AtomicUsize, Ordering};

mod handover;
mod recall;
mod sleepers;
mod switch;

/// Bytes whose unordered accesses loom reports.
struct Cells(Vec<UnsafeCell<u8>>);

// SAFETY: loom checks every access of the cells.
unsafe impl Sync for Cells {}
// SAFETY: as above.
unsafe impl Send for Cells {}

impl Storage for Cells {
    fn max_shift(&self) -> u32 {
        self.0.len().ilog2()
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        for (cell, byte) in self.0[offset..].iter().zip(bytes) {
            // SAFETY: loom fails the test when another thread may use the cell now.
            cell.with_mut(|at| unsafe { *at = *byte });
        }
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        for (cell, byte) in self.0[offset..].iter().zip(bytes) {
            // SAFETY: loom fails the test when another thread may write the cell now.
            *byte = cell.with(|at| unsafe { *at });
        }
    }
}

/// One direction of a channel, and the bell of its waiter.
struct Channel {
    ring: Ring,
    bytes: Cells,
    wait_slot: WaitSlot,
    bell: Bell,
}

/// A doorbell that remembers one ring.
struct Bell {
    rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.rings.notify_one();
    }

    /// Sleeps until the bell rings. If it never rings, loom reports a deadlock.
    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.rings.wait(rung).unwrap();
        }
        *rung = false;
    }
}

impl Channel {
    fn new(shift: u32, max_shift: u32) -> Arc<Self> {
        let wait_slot = WaitSlot::model();
        wait_slot.open(7);
        Arc::new(Self {
            ring: Ring::model(shift),
            bytes: Cells((0..1 << max_shift).map(|_| UnsafeCell::new(0xee)).collect()),
            wait_slot,
            bell: Bell {
                rung: Mutex::new(false),
                rings: Condvar::new(),
            },
        })
    }

    fn write(&self, bytes: &[u8]) -> Put {
        self.ring.write(&self.bytes, &[bytes], |_| true)
    }

    /// Writes as many bytes as fit, notifies the reader, and returns their number.
    fn send(&self, bytes: &[u8]) -> usize {
        match self.write(bytes) {
            Put::Bytes { n, notify } => {
                self.notify_if(notify);
                n
            }
            Put::Full | Put::NoMemory | Put::Frozen => 0,
            Put::Corrupt => panic!("the cursors contradict each other"),
        }
    }

    /// Reads at most `room` bytes and appends them to `out`.
    fn read(&self, room: usize, out: &mut Vec<u8>) -> Got {
        let mut buffer = vec![0; room];
        let got = self.ring.read(&self.bytes, &mut [&mut buffer], false);
        if let Got::Bytes { n, .. } = got {
            out.extend(&buffer[..n]);
        }
        assert_ne!(got, Got::Corrupt);
        got
    }

    /// Takes back at most `room` bytes that a recall has left.
    fn take_back(&self, room: usize) -> Vec<u8> {
        let mut bytes = vec![0; room];
        let got = self
            .ring
            .read_recalled(&self.bytes, &mut [&mut bytes], false);
        assert_ne!(got, Got::Corrupt);
        bytes.truncate(if let Got::Bytes { n, .. } = got { n } else { 0 });
        bytes
    }

    /// Reads all bytes in the ring; true when it has ended.
    fn drain(&self, out: &mut Vec<u8>) -> bool {
        loop {
            match self.read(8, out) {
                Got::Bytes { .. } => {}
                other => return other == Got::Ended,
            }
        }
    }

    fn notify_if(&self, notify: bool) {
        if notify && self.wait_slot.notify(0).is_some() {
            self.bell.ring();
        }
    }

    /// Sleeps as `wait` and `epoll_wait` do, unless `armed` returns that there is no need.
    fn sleep_unless(&self, armed: impl Fn() -> bool) {
        let has_event = armed();
        if !(self.wait_slot.sleep() || has_event) {
            self.bell.wait();
        }
        self.wait_slot.wake();
        self.wait_slot.take();
    }
}

/// Runs `test` under all interleavings with a bounded number of preemptions. Fails if there are
/// only a few: then loom does not see that the threads' accesses depend on each other.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    model.check({
        let runs = runs.clone();
        move || {
            runs.fetch_add(1, Ordering::Relaxed);
            test();
        }
    });
    let runs = runs.load(Ordering::Relaxed);
    assert!(runs > 10, "{runs} interleavings");
}

fn counting(n: usize) -> Vec<u8> {
    (1..=n).map(|i| u8::try_from(i).unwrap()).collect()
}

#[test]
fn bytes_are_read_once_and_in_order() {
    check(3, || {
        let c = Channel::new(1, 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                let all = counting(5);
                let mut sent = 0;
                for size in [1, 2, 1, 2] {
                    sent += c.send(&all[sent..(sent + size).min(5)]);
                }
                sent
            }
        });
        let mut got = Vec::new();
        for room in [1, 2, 1] {
            c.read(room, &mut got);
        }
        let sent = writer.join().unwrap();
        assert!(!c.drain(&mut got));
        assert_eq!(got, counting(sent));
    });
}

#[test]
fn peeked_bytes_stay_and_are_read_next() {
    check(3, || {
        let c = Channel::new(1, 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || c.send(&[1, 2]) + c.send(&[3])
        });
        let (mut got, mut peeked) = (Vec::new(), [0; 2]);
        for _ in 0..2 {
            let n = match c.ring.read(&c.bytes, &mut [&mut peeked], true) {
                Got::Bytes { n, .. } => n,
                _ => 0,
            };
            let before = got.len();
            c.read(2, &mut got);
            assert_eq!(peeked[..n], got[before..][..n]);
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_ring_that_starts_again_and_grows_never_mixes_old_and_new_bytes() {
    check(3, || {
        let c = Channel::new(1, 3);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                let all = counting(8);
                let mut sent = c.send(&all[..1]);
                sent += c.send(&all[sent..sent + 2]);
                sent += c.send(&all[sent..sent + 4]);
                sent + c.send(&all[sent..=sent])
            }
        });
        let mut got = Vec::new();
        for room in [2, 1, 3] {
            c.read(room, &mut got);
        }
        let sent = writer.join().unwrap();
        c.drain(&mut got);
        assert_eq!(got, counting(sent));
    });
}

#[test]
fn a_ring_that_falls_asleep_while_it_is_read_loses_nothing() {
    check(3, || {
        let c = Channel::new(1, 2);
        assert_eq!(c.send(&counting(3)), 3);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                // Releases its memory: the hole reads as zeros in every process.
                if c.ring.sleep(2) {
                    c.bytes.put(0, &[0; 4]);
                }
                c.send(&[4]) + c.send(&[5])
            }
        });
        let mut got = Vec::new();
        c.read(3, &mut got);
        c.read(1, &mut got);
        let sent = writer.join().unwrap();
        c.drain(&mut got);
        assert_eq!(got, counting(3 + sent));
    });
}

#[test]
fn a_reader_that_waits_for_a_ring_asleep_is_woken_by_its_next_byte() {
    check(3, || {
        let c = Channel::new(1, 2);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                assert!(c.ring.sleep(2), "nothing was written yet");
                c.send(&[1])
            }
        });
        let mut got = Vec::new();
        while got.is_empty() {
            if c.read(1, &mut got) == Got::Empty {
                c.sleep_unless(|| c.ring.arm());
            }
        }
        assert_eq!((writer.join().unwrap(), got), (1, vec![1]));
    });
}

/// `arm` finds a byte, or its writer is asked to notify. The ring begins armed, as `reset` leaves
/// it, or not.
fn asked_or_told(armed: bool) {
    check(4, move || {
        let c = Channel::new(1, 1);
        if armed {
            c.ring.reset(1);
        }
        let writer = thread::spawn({
            let c = c.clone();
            move || matches!(c.write(&[1]), Put::Bytes { notify: true, .. })
        });
        let there = c.ring.arm();
        let notified = writer.join().unwrap();
        assert!(there || notified, "a byte came without a notification");
    });
}

#[test]
fn arm_finds_the_byte_or_the_writer_finds_it_armed() {
    asked_or_told(false);
}

#[test]
fn arm_on_an_armed_ring_finds_the_byte_or_the_writer_finds_it_armed() {
    asked_or_told(true);
}

#[test]
fn a_reader_that_sleeps_is_woken_for_every_byte() {
    check(3, || {
        let c = Channel::new(1, 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || c.send(&[1]) + c.send(&[2])
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            if c.read(1, &mut got) == Got::Empty {
                c.sleep_unless(|| c.ring.arm());
            }
        }
        assert_eq!((writer.join().unwrap(), got), (2, vec![1, 2]));
    });
}

#[test]
fn a_reader_that_sleeps_is_woken_by_the_end() {
    check(3, || {
        let c = Channel::new(1, 1);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                c.send(&[1]);
                c.ring.freeze();
                c.ring.take_armed();
                c.notify_if(true);
            }
        });
        let mut got = Vec::new();
        loop {
            match c.read(2, &mut got) {
                Got::Ended => break,
                Got::Empty => c.sleep_unless(|| c.ring.arm()),
                _ => {}
            }
        }
        writer.join().unwrap();
        assert_eq!(got, [1]);
    });
}

#[test]
fn arm_space_finds_space_or_the_reader_finds_the_request() {
    check(4, || {
        let c = Channel::new(2, 2);
        assert_eq!(c.send(&counting(4)), 4);
        let reader = thread::spawn({
            let c = c.clone();
            move || matches!(c.read(1, &mut Vec::new()), Got::Bytes { notify: true, .. })
        });
        let space = c.ring.arm_space(2);
        let notified = reader.join().unwrap();
        assert!(space || notified, "a byte was read without a notification");
    });
}

#[test]
fn a_writer_that_sleeps_is_woken_for_space() {
    check(3, || {
        let c = Channel::new(2, 2);
        assert_eq!(c.send(&counting(4)), 4);
        let reader = thread::spawn({
            let c = c.clone();
            move || {
                let mut got = Vec::new();
                for room in [1, 2] {
                    if let Got::Bytes { notify, .. } = c.read(room, &mut got) {
                        c.notify_if(notify);
                    }
                }
                got
            }
        });
        let all = counting(6);
        let mut sent = 4;
        while sent < 6 {
            match c.write(&all[sent..]) {
                Put::Bytes { n, .. } => sent += n,
                Put::Full => c.sleep_unless(|| c.ring.arm_space(2)),
                other => panic!("{other:?}"),
            }
        }
        let mut got = reader.join().unwrap();
        c.drain(&mut got);
        assert_eq!(got, all);
    });
}

#[test]
fn a_wait_slot_that_falls_asleep_sees_the_event_or_is_rung() {
    check(4, || {
        let wait_slot = Arc::new(WaitSlot::model());
        wait_slot.open(7);
        let notifiers = [3, 5].map(|slot| {
            let wait_slot = wait_slot.clone();
            thread::spawn(move || wait_slot.notify(slot).is_some())
        });
        let has_event = wait_slot.sleep();
        let rung = notifiers.map(|t| t.join().unwrap());
        assert!(
            has_event || rung != [false; 2],
            "both notified a sleeper and neither rang"
        );
        assert_ne!(rung, [true; 2], "one sleep was ended by two rings");
        assert_eq!(wait_slot.take(), 1 << 3 | 1 << 5);
    });
}

#[test]
fn events_taken_by_a_waking_wait_slot_are_never_lost() {
    check(4, || {
        let wait_slot = Arc::new(WaitSlot::model());
        wait_slot.open(7);
        let notifier = thread::spawn({
            let wait_slot = wait_slot.clone();
            move || {
                u32::from(wait_slot.notify(1).is_some()) + u32::from(wait_slot.notify(2).is_some())
            }
        });
        let mut seen = wait_slot.take();
        let asleep = !wait_slot.sleep();
        if !asleep {
            wait_slot.wake();
            seen |= wait_slot.take();
        }
        let rings = notifier.join().unwrap();
        let late = wait_slot.take();
        assert_eq!(seen | late, 1 << 1 | 1 << 2);
        assert!(
            !asleep || late == 0 || rings > 0,
            "asleep beside an event without a ring"
        );
    });
}

/// A thread's wait slot is entered into the channel's word just before the thread sleeps, as in
/// `wait`.
#[test]
fn a_wait_slot_entered_late_is_notified_or_sees_the_byte() {
    check(4, || {
        let c = Channel::new(1, 1);
        c.ring.reset(1);
        let waiters = Arc::new(WaitSlotSet::model());
        let writer = thread::spawn({
            let (c, waiters) = (c.clone(), waiters.clone());
            move || {
                for byte in [1, 2] {
                    let Put::Bytes { notify, .. } = c.write(&[byte]) else {
                        panic!("no space")
                    };
                    c.notify_if(notify && waiters.bits() != 0);
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            if c.read(1, &mut got) == Got::Empty {
                waiters.enter(0);
                c.sleep_unless(|| c.ring.arm());
                waiters.leave(0);
            }
        }
        writer.join().unwrap();
    });
}

/// The thread that ends the ring.
#[derive(Clone, Copy, PartialEq)]
enum Ender {
    Reader,
    OtherThread,
}

fn ends_at_an_exact_byte(ender: Ender) {
    check(if ender == Ender::Reader { 4 } else { 3 }, move || {
        let c = Channel::new(1, 2);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                let all = counting(4);
                let mut sent = 0;
                for size in [1, 2, 1] {
                    match c.write(&all[sent..sent + size]) {
                        Put::Bytes { n, .. } => sent += n,
                        Put::Frozen => return (sent, true),
                        other => assert_eq!(other, Put::Full),
                    }
                }
                (sent, false)
            }
        });
        let mut got = Vec::new();
        let mut ended = c.read(2, &mut got) == Got::Ended;
        if ender == Ender::OtherThread {
            let other = thread::spawn({
                let c = c.clone();
                move || c.ring.freeze()
            });
            ended |= c.read(2, &mut got) == Got::Ended;
            other.join().unwrap();
        } else {
            c.ring.freeze();
            ended |= c.read(1, &mut got) == Got::Ended;
        }
        let at_the_end = ended.then_some(got.len());
        let (sent, refused) = writer.join().unwrap();
        assert!(c.drain(&mut got), "the ring has ended and reports it");
        assert_eq!(
            got,
            counting(sent),
            "published bytes come out, refused bytes never do"
        );
        assert!(
            at_the_end.is_none_or(|n| n == sent),
            "bytes came after the end"
        );
        assert!(refused || c.write(&[9]) == Put::Frozen);
        assert!(c.drain(&mut got) && got.len() == sent);
    });
}

#[test]
fn a_ring_that_its_reader_ends_does_so_at_an_exact_byte() {
    ends_at_an_exact_byte(Ender::Reader);
}

#[test]
fn a_ring_that_another_thread_ends_does_so_at_an_exact_byte() {
    ends_at_an_exact_byte(Ender::OtherThread);
}
