//! The upgrade and downgrade of a real connection against two byte queues.
//!
//! Both ends of a loopback connection are in this process and nothing blocks, so a list of
//! operations is one interleaving of sends, receives and hand-shake steps. `oracle` predicts TCP's
//! behaviour; the same operations also run on the kernel alone, which checks the oracle.
//! Deliberately absent: threads and fork.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the test `meeting` uses more of them")]
mod ends;
mod gaps;
mod oracle;
mod terms;

use oracle::World;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use terms::{Ctl, Mode, Side};

/// One step; a step on a closed end does nothing.
#[derive(Debug, Clone)]
enum Op {
    Send(Side, usize),
    Recv(Side, usize),
    Peek(Side, usize),
    Discard(Side, usize),
    Readable(Side),
    /// The end releases the memory of its empty ring.
    Rest(Side),
    /// A number of requests, each with its answer.
    Talk(Side, usize),
    Control(usize, Side, Ctl, Mode),
    Wait(usize, usize),
    StayOnTcp(Side),
    /// `fdopen`: sends and receives of this end go past the library from here on.
    Stdio(Side),
    ShutdownWrite(Side),
    Close(Side),
    CloseSet(usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1usize..200, 2 => 1000usize..9000, 1 => 20_000usize..150_000]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::A), Just(Side::B)]
}

fn step() -> impl Strategy<Value = Op> {
    let mode = prop_oneof![
        3 => Just(Mode::Level),
        1 => Just(Mode::LevelOut),
        1 => Just(Mode::LevelHup),
        3 => Just(Mode::Edge),
        2 => Just(Mode::OneShot),
    ];
    let ctl = prop_oneof![4 => Just(Ctl::Add), 2 => Just(Ctl::Mod), 1 => Just(Ctl::Del)];
    prop_oneof![
        12 => (side(), size()).prop_map(|(s, n)| Op::Send(s, n)),
        14 => (side(), size()).prop_map(|(s, n)| Op::Recv(s, n)),
        2 => (side(), size()).prop_map(|(s, n)| Op::Peek(s, n)),
        1 => (side(), size()).prop_map(|(s, n)| Op::Discard(s, n)),
        2 => side().prop_map(Op::Readable),
        3 => side().prop_map(Op::Rest),
        4 => (side(), 1usize..12).prop_map(|(s, n)| Op::Talk(s, n)),
        6 => (0usize..2, side(), ctl, mode).prop_map(|(e, s, c, m)| Op::Control(e, s, c, m)),
        10 => (0usize..2, prop_oneof![Just(1usize), Just(8)]).prop_map(|(e, n)| Op::Wait(e, n)),
    ]
}

/// A step, or a downgrade that the application causes.
fn step_or_downgrade() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => step(),
        2 => side().prop_map(Op::StayOnTcp),
        1 => side().prop_map(Op::Stdio),
    ]
}

/// Operations, and sometimes an end: half-closes, and closes in the middle.
fn history_of<S: Strategy<Value = Op>>(step: fn() -> S) -> impl Strategy<Value = Vec<Op>> {
    let ending = prop_oneof![
        3 => side().prop_map(Op::ShutdownWrite),
        2 => side().prop_map(Op::Close),
        1 => (0usize..2).prop_map(Op::CloseSet),
        4 => step(),
    ];
    let early = proptest::collection::vec(step(), 1..60);
    let late = proptest::collection::vec(ending, 0..16);
    (early, late).prop_map(|(mut early, late)| {
        early.extend(late);
        early
    })
}

/// A history. Few have downgrades: each waits for a peer that makes no call in this model.
fn history() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![6 => history_of(step), 1 => history_of(step_or_downgrade)]
}

fn run(world: &mut World, ops: &[Op]) {
    for op in ops {
        match *op {
            Op::Send(side, n) => world.send(side, n),
            Op::Recv(side, n) => world.recv(side, n),
            Op::Peek(side, n) => world.peek(side, n),
            Op::Discard(side, n) => world.discard(side, n),
            Op::Readable(side) => world.readable_bytes(side),
            Op::Rest(side) => world.rest(side),
            Op::Talk(side, n) => world.talk(side, n),
            Op::Control(set, side, ctl, mode) => world.control(set, side, ctl, mode),
            Op::Wait(set, room) => world.wait(set, room),
            Op::StayOnTcp(side) => world.stay_on_tcp(side),
            Op::Stdio(side) => world.turn_to_stdio(side),
            Op::ShutdownWrite(side) => world.shutdown_write(side),
            Op::Close(side) => world.close(side),
            Op::CloseSet(set) => world.close_set(set),
        }
    }
    world.finish();
}

/// The tests count the process's descriptors: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many histories reached a channel, at one end and at both.
#[derive(Default)]
struct Reached {
    cases: AtomicUsize,
    one: AtomicUsize,
    both: AtomicUsize,
}

fn check(cases: u32, tracked: bool) -> Reached {
    let config = Config {
        cases,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 4000,
        max_shrink_time: 30_000,
        ..Config::default()
    };
    let reached = Reached::default();
    let count = |counter: &AtomicUsize, yes: bool| {
        counter.fetch_add(usize::from(yes), Ordering::Relaxed);
    };
    let outcome = TestRunner::new(config).run(&(any::<bool>(), history()), |(a_offers, ops)| {
        let mut world = World::new(tracked, a_offers);
        run(&mut world, &ops);
        count(&reached.cases, true);
        count(&reached.one, world.bound[0] || world.bound[1]);
        count(&reached.both, world.bound[0] && world.bound[1]);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    reached
}

fn start_library() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        for (name, value) in [("SAIGA_EVIDENCE_MESSAGES", "0"), ("SAIGA_RING", "64KiB")] {
            // SAFETY: nothing else in this process reads or writes the environment meanwhile.
            #[expect(unsafe_code, reason = "settings come from the environment")]
            unsafe {
                std::env::set_var(name, value);
            }
        }
        saiga_socket::start(&saiga_socket::Start {
            ppoll: libc::ppoll,
            single_threaded: core::ptr::null_mut(),
            program: b"model",
            invoked_as: b"model",
            bound_program: None,
            missing: None,
        });
    });
}

#[test]
fn the_oracle_is_right_about_the_kernel() {
    let _alone = alone();
    check(300, false);
}

#[test]
fn a_connection_that_is_upgraded_and_downgraded_is_still_tcp() {
    let _alone = alone();
    start_library();
    let before = descriptors();
    let reached = check(1000, true);
    let cases = reached.cases.into_inner();
    let (one, both) = (reached.one.into_inner(), reached.both.into_inner());
    assert!(
        both * 2 > cases,
        "only {both} of {cases} connections were bound at both ends"
    );
    assert!(one > both, "the hand-shake was never cut in the middle");
    // The page, sock_diag, the ringer, and spare segments at both ends.
    let grown = descriptors().saturating_sub(before);
    assert!(grown <= 3 + 2 * 5, "{grown} descriptors are left behind");
}

/// Histories that this model once found to fail.
#[test]
fn found_histories_stay_repaired() {
    use Op::{Peek, Recv, Send, ShutdownWrite, Talk};
    use Side::{A, B};
    let _alone = alone();
    start_library();
    let end_beside_unread = [
        Talk(A, 3),
        Send(A, 57),
        ShutdownWrite(A),
        ShutdownWrite(B),
        Peek(A, 1),
        Recv(B, 100),
    ];
    for a_offers in [true, false] {
        run(&mut World::new(true, a_offers), &end_beside_unread);
    }
}

/// The peer has not noticed the switch to the ring, and makes no call while stdio takes over: bytes
/// written by stdio come behind those in the ring.
#[test]
fn stdio_never_overtakes_the_ring() {
    use Op::{Recv, Send, Stdio, Talk};
    use Side::{A, B};
    let _alone = alone();
    start_library();
    for (a_offers, messages) in [(true, 4), (true, 5), (false, 4), (false, 5), (false, 6)] {
        let history = [
            Talk(A, messages),
            Send(A, 1000),
            Stdio(A),
            Send(A, 70),
            Recv(B, 5000),
            Recv(B, 5000),
            Talk(B, 9),
        ];
        let mut world = World::new(true, a_offers);
        run(&mut world, &history);
        world.expect_no_reset();
    }
}

/// The peer cannot send again the bytes that it sent before its FIN: a reset, and not a hole.
#[test]
fn a_recall_behind_a_fin_is_a_reset() {
    let _alone = alone();
    start_library();
    for a_offers in [true, false] {
        let mut world = World::new(true, a_offers);
        world.talk(Side::A, 5);
        world.send(Side::A, 1);
        world.shutdown_write(Side::A);
        world.stay_on_tcp(Side::B);
        world.expect_reset(Side::B);
    }
}
