//! Two real ends that count messages very differently get their channel soon.
//!
//! One end sends many small messages; the other receives them in one call and rarely sends. Both
//! ends are in this process, with the default evidence.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    dead_code,
    reason = "the model's ends have more operations than this test uses"
)]

#[path = "../model/ends.rs"]
mod ends;

/// The items that `ends` expects from the model's oracle.
mod oracle {
    pub(crate) const PATIENCE_MS: i32 = 1000;
}

use ends::End;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Messages that the library asks for by default.
const EVIDENCE: usize = 64;

fn start_library() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let few = libc::rlimit {
            rlim_cur: 1024,
            rlim_max: 1024,
        };
        // SAFETY: the limit is readable.
        #[expect(unsafe_code, reason = "half of our own descriptor numbers is then 64")]
        let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few) };
        assert_eq!(set, 0);
        saiga_socket::start(&saiga_socket::Start {
            ppoll: libc::ppoll,
            single_threaded: core::ptr::null_mut(),
            program: b"meeting",
            invoked_as: b"meeting",
            bound_program: None,
            missing: None,
        });
    });
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends `count` messages of a byte; during the switch there may be no room for some.
fn send(end: &End, count: usize) {
    for _ in 0..count {
        let _ = end.send(b"x");
    }
}

/// Receives all available bytes in one call.
fn take(end: &End) {
    let _ = end.recv(1 << 16, 0);
}

/// The number of rounds, with one call of the slower end each, until both ends have their channel.
fn rounds_to_meet(ends: &[End; 2], round: impl Fn(usize), most: usize) -> usize {
    for i in 0..most {
        if ends.iter().all(End::is_bound) {
            return i;
        }
        round(i);
    }
    panic!(
        "after {most} rounds: bound {:?}",
        ends.each_ref().map(End::is_bound)
    );
}

#[test]
fn a_fast_and_a_slow_sender_meet_soon() {
    let _alone = start_library();
    for ratio in [1, 3, 50, 1000, 5000] {
        for fast_offers in [true, false] {
            let ends = ends::connect(true, fast_offers);
            let [fast, slow] = &ends;
            let round = |_| {
                send(fast, ratio);
                take(slow);
                send(slow, 1);
                take(fast);
            };
            let rounds = rounds_to_meet(&ends, round, 4 * EVIDENCE);
            // Two messages of the slow end per round: its evidence, at most as much again until the
            // fast end searches, and the steps of the hand-shake.
            assert!(rounds <= EVIDENCE + 8, "{ratio}, {fast_offers}: {rounds}");
        }
    }
}

#[test]
fn an_end_that_only_listens_meets_a_fast_sender() {
    let _alone = start_library();
    for ratio in [1, 50, 5000] {
        for fast_offers in [true, false] {
            let ends = ends::connect(true, fast_offers);
            let [fast, slow] = &ends;
            let round = |_| {
                send(fast, ratio);
                take(slow);
            };
            let rounds = rounds_to_meet(&ends, round, 8 * EVIDENCE);
            assert!(
                rounds <= 2 * EVIDENCE + 8,
                "{ratio}, {fast_offers}: {rounds}"
            );
        }
    }
}

/// An end that has waited for long, and rarely searches by now, is still found soon.
#[test]
fn an_end_that_begins_late_is_met() {
    let _alone = start_library();
    for early_offers in [true, false] {
        let ends = ends::connect(true, early_offers);
        let [early, late] = &ends;
        for _ in 0..EVIDENCE / 2 {
            send(early, 2000);
            take(late); // Half of the late end's evidence.
        }
        let round = |_| {
            send(early, 1);
            take(late);
            send(late, 1);
            take(early);
        };
        let meets_within = 2 * EVIDENCE * 2000;
        let rounds = rounds_to_meet(&ends, round, meets_within);
        println!("{rounds} rounds of single messages");
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A server whose clients do not use Saiga makes no offers, so it opens no descriptors.
#[test]
fn strangers_cost_no_descriptor() {
    let _alone = start_library();
    let mut held = Vec::new();
    let talk = |[client, server]: &[End; 2]| {
        for _ in 0..10 * EVIDENCE {
            send(client, 1);
            take(server);
            send(server, 1);
            take(client);
        }
    };
    held.push(ends::connect_to_stranger());
    talk(&held[0]); // Opens the status page, sock_diag and the like.
    let before = descriptors();
    for _ in 0..100 {
        held.push(ends::connect_to_stranger());
        talk(&held[held.len() - 1]);
    }
    assert_eq!(descriptors() - before, 2 * 100);
    assert!(held.iter().flatten().all(|end| !end.is_bound()));
}

/// Peers that have the mark and never connect hold no more offers than the table has entries, and
/// do not keep other connections from making offers.
#[test]
fn offers_stay_within_their_places() {
    let _alone = start_library();
    let mut held = Vec::new();
    let before = descriptors();
    for _ in 0..200 {
        let [client, server] = ends::connect_to_stranger();
        client.mark();
        for _ in 0..EVIDENCE {
            send(&client, 1);
            take(&server);
            send(&server, 1);
            take(&client);
        }
        held.push([client, server]);
    }
    let own = descriptors() - before - 2 * 200;
    assert!((1..=64 + 4).contains(&own), "{own} descriptors of our own");
    drop(held);
    let left = descriptors() - before;
    assert!(left <= 4, "{left} descriptors are left behind");
}
