//! Threads that wait in an epoll set: its ready list, its wait slot, its sleepers and its bell.
//!
//! `Set` performs the steps of `epoll_wait.rs` and `registration.rs` in the same order, on a list.

use super::*;
use saiga_channel::sleepers::Sleepers;

/// The only fork epoch: no process forks here.
const EPOCH: u32 = 1;
const BELL: u64 = 7;

struct Set {
    /// The ready list; its lock is the set's.
    ready: Mutex<Vec<u8>>,
    wait_slot: WaitSlot,
    sleepers: Sleepers,
    /// Stands for the kernel's set, which contains the bell.
    bell: Bell,
}

impl Set {
    fn new() -> Arc<Self> {
        let wait_slot = WaitSlot::model();
        wait_slot.open(BELL);
        Arc::new(Self {
            ready: Mutex::new(Vec::new()),
            wait_slot,
            sleepers: Sleepers::model(),
            bell: Bell {
                rung: Mutex::new(false),
                rings: Condvar::new(),
            },
        })
    }

    fn with_bell() -> Arc<Self> {
        let set = Self::new();
        set.sleepers.hang_bell(BELL);
        set
    }

    fn ring(&self, bell: Option<u64>) {
        if bell.is_some() {
            self.bell.ring();
        }
    }

    /// Adds an entry, as a thread that registers a connection does.
    fn add(&self, entry: u8) {
        let mut ready = self.ready.lock().unwrap();
        ready.push(entry);
        self.ring(self.sleepers.to_ring(EPOCH));
    }

    /// Notifies the wait slot of an event, as a peer does.
    fn notify(&self, slot: u8) {
        self.ring(self.wait_slot.notify(usize::from(slot)));
    }

    /// Waits for one event, as a call with room for one event does.
    fn wait(&self) -> u8 {
        loop {
            let mut ready = self.ready.lock().unwrap();
            let bits = self.wait_slot.take();
            ready.extend((0..64).filter(|slot| bits & 1 << slot != 0));
            if let Some(entry) = ready.pop() {
                self.leave(&ready);
                return entry;
            }
            drop(ready);
            self.sleep();
        }
    }

    fn sleep(&self) {
        let ticket = self.sleepers.join(EPOCH);
        if !self.wait_slot.sleep() && self.ready.lock().unwrap().is_empty() {
            self.bell.wait();
        }
        self.sleepers.part(ticket, EPOCH);
        self.wait_slot.wake();
    }

    fn leave(&self, ready: &[u8]) {
        let left = || self.wait_slot.sleep() || !ready.is_empty();
        self.ring(self.sleepers.hand_over(EPOCH, left));
    }
}

#[test]
fn a_thread_that_falls_asleep_finds_the_entry_or_is_rung() {
    check(3, || {
        let set = Set::with_bell();
        let adder = thread::spawn({
            let set = set.clone();
            move || set.add(9)
        });
        assert_eq!(set.wait(), 9);
        adder.join().unwrap();
    });
}

/// Runs `act` beside two threads that wait for one event each: slots 1 and 2, in any order.
fn two_waiters(act: impl Fn(&Set) + Sync + Send + Copy + 'static) {
    check(2, move || {
        let set = Set::with_bell();
        let other = thread::spawn({
            let set = set.clone();
            move || set.wait()
        });
        let actor = thread::spawn({
            let set = set.clone();
            move || act(&set)
        });
        let mut got = [set.wait(), other.join().unwrap()];
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        actor.join().unwrap();
    });
}

/// The bell keeps one ring, and the thread that it wakes has room for one event.
#[test]
fn two_entries_wake_two_threads() {
    two_waiters(|set| {
        set.add(1);
        set.add(2);
    });
}

/// The thread that wakes first makes the wait slot look awake while the other one sleeps.
#[test]
fn events_of_two_channels_wake_two_threads() {
    two_waiters(|set| {
        set.notify(1);
        set.notify(2);
    });
}

#[test]
fn an_entry_and_an_event_wake_two_threads() {
    two_waiters(|set| {
        set.notify(1);
        set.add(2);
    });
}

/// A set without channels is left to the kernel: its waiters check only the bell. `is_first`: no
/// thread has slept in the set before.
fn first_channel(is_first: bool) {
    check(4, move || {
        let set = Set::new();
        if !is_first {
            set.sleepers.part(set.sleepers.join(EPOCH), EPOCH);
        }
        let binder = thread::spawn({
            let set = set.clone();
            move || {
                let mut ready = set.ready.lock().unwrap();
                set.sleepers.hang_bell(BELL);
                ready.push(3);
                set.ring(set.sleepers.to_ring(EPOCH));
            }
        });
        let ticket = set.sleepers.join(EPOCH);
        if set.sleepers.bell().is_none() {
            set.bell.wait();
        }
        set.sleepers.part(ticket, EPOCH);
        assert_eq!(set.wait(), 3);
        binder.join().unwrap();
    });
}

#[test]
fn a_set_s_first_channel_is_seen_by_a_thread_that_falls_asleep_or_rings_for_it() {
    first_channel(true);
}

#[test]
fn a_set_s_first_channel_is_seen_by_a_thread_that_sleeps_once_more_or_rings_for_it() {
    first_channel(false);
}
