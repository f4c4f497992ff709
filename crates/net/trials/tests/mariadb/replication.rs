//! Two servers: the stream of changes to the replica uses a channel.

use saiga_status::Reason;
use saiga_trials::{
    census::Census,
    mariadb::Server,
    parity::Arm,
    scale::{Rng, by_scale, seed},
};

use crate::{HANDLING, KIND, channels::await_answer};

/// Whether `server` has exchanged bytes with `other` by a channel.
fn is_linked(server: &Server, other: &Server) -> bool {
    Census::channels_to(server.pid(), other.pid()) > 0
}

/// Whether a connection stays on TCP because `server` was never seen to wait for it.
fn is_never_waiting(server: &Server) -> bool {
    let sockets = Census::shown(server.pid()).sockets;
    sockets.iter().any(|one| one.reason == Reason::WaitsUnseen)
}

/// A server that logs its changes as number `id`.
fn logging(arm: Arm, handling: &[&str], id: u32) -> Server {
    let own = KIND.logging(id);
    let mut options = handling.to_vec();
    options.extend(own.iter().map(String::as_str));
    Server::start(KIND, arm, &options)
}

fn primary(arm: Arm, handling: &[&str]) -> Server {
    logging(arm, handling, 1)
}

fn replica(arm: Arm, handling: &[&str], of: &Server) -> Server {
    let mut options = handling.to_vec();
    options.push("--read-only=1");
    let server = logging(arm, &options, 2);
    // The harness's own statements are not replicated.
    server.must(Arm::Kernel, "DROP DATABASE trial");
    server.follow(of);
    server
}

/// Waits until `replica` has applied all changes of `primary`; then both have the same rows.
fn assert_equal(primary: &Server, replica: &Server) {
    replica.catch_up(primary);
    let rows = "SELECT COUNT(*) FROM trial.sbtest1; \
                CHECKSUM TABLE trial.sbtest1, trial.sbtest2 EXTENDED";
    assert_eq!(
        primary.must(Arm::Kernel, rows),
        replica.must(Arm::Kernel, rows)
    );
}

/// Waits until `server` has committed `more` further transactions.
fn await_commits(server: &Server, more: u64) {
    let wanted = server.count("Com_commit") + more;
    let reached = (0..10_000).any(|_| server.count("Com_commit") >= wanted);
    assert!(reached, "the load stands still\n{}", server.log());
}

#[test]
fn a_replica_follows_through_a_channel() {
    for handling in HANDLING {
        for arm in [Arm::Library, Arm::Shipped] {
            let first = primary(arm, handling);
            let mut second = replica(arm, handling, &first);
            first.prepare_sysbench(arm);
            // One send carries many changes: evidence takes a while.
            for _ in 0..50 {
                first.sysbench(arm, "oltp_read_write", 4, by_scale(50, 1000));
                if is_linked(&first, &second) {
                    break;
                }
                // The primary found each of the replica's first messages at once, so it was never
                // seen to wait, and now it only sends (docs/limits.md).
                if is_never_waiting(&first) {
                    second.connect_again();
                }
            }
            assert_equal(&first, &second);
            assert!(
                is_linked(&first, &second),
                "{}\n{}",
                first.shown(),
                first.log()
            );
            assert!(is_linked(&second, &first), "{}", second.log());
            second.kill();
            first.sysbench(arm, "oltp_read_write", 4, by_scale(50, 1000));
            second.resume();
            assert_equal(&first, &second);
        }
    }
}

/// Either server is killed while transactions run; afterwards both have all committed transactions.
#[test]
fn a_primary_and_its_replica_are_killed_in_turn_under_load() {
    let mut rng = Rng::new(seed(34));
    for handling in HANDLING {
        let mut first = primary(Arm::Library, handling);
        let mut second = replica(Arm::Library, handling, &first);
        first.prepare_sysbench(Arm::Library);
        for _ in 0..by_scale(2, 40) {
            for is_primary in [true, false] {
                let load = first.load(Arm::Library, "oltp_read_write", 4);
                await_commits(&first, 20 + rng.below(200));
                let victim = if is_primary { &mut first } else { &mut second };
                victim.kill();
                victim.resume();
                load.kill();
                let mut session = second.session(Arm::Kernel);
                await_answer(&mut session, &KIND.following(), "ON");
                assert_equal(&first, &second);
            }
        }
    }
}

#[test]
fn a_replica_finds_its_restarted_primary_again() {
    for (left, right) in [
        (Arm::Library, Arm::Library),
        (Arm::Library, Arm::Kernel),
        (Arm::Kernel, Arm::Library),
    ] {
        let mut first = primary(left, HANDLING[0]);
        let second = replica(right, HANDLING[0], &first);
        first.prepare_sysbench(left);
        assert_equal(&first, &second);
        first.kill();
        first.resume();
        let mut session = second.session(right);
        await_answer(&mut session, &KIND.following(), "ON");
        first.sysbench(left, "oltp_read_write", 2, 50);
        assert_equal(&first, &second);
    }
}
