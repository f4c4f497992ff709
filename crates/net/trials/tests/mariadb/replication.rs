//! Two servers: the replica's stream of changes runs through a channel.

use saiga_status::reader::Page;
use saiga_trials::{
    mariadb::{Server, Under},
    scale::{Dice, by_scale, seed},
};

use crate::{HANDLING, await_answer};

/// Whether a replica receives and applies changes.
const RUNNING: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                       WHERE VARIABLE_NAME = 'SLAVE_RUNNING'";

/// Whether `server` has exchanged bytes with `other` through a channel.
fn is_linked(server: &Server, other: &Server) -> bool {
    let page = Page::open(server.pid()).expect("it runs under the library");
    let shown = page.snapshot(u32::MAX).expect("the page can be read");
    shown.sockets.iter().any(|socket| {
        socket.peer_pid == Some(other.pid()) && socket.channel_rx + socket.channel_tx > 0
    })
}

fn primary(under: Under, handling: &[&str]) -> Server {
    let mut options = handling.to_vec();
    options.extend(["--server-id=1", "--log-bin=changes", "--binlog-format=ROW"]);
    Server::start(under, &options)
}

fn replica(under: Under, handling: &[&str], of: &Server) -> Server {
    let mut options = handling.to_vec();
    options.extend(["--server-id=2", "--log-bin=changes", "--read-only=1"]);
    let server = Server::start(under, &options);
    // What the harness itself did is no change to be replicated.
    server.must(
        Under::Kernel,
        "DROP DATABASE trial; RESET MASTER; SET GLOBAL gtid_slave_pos = ''",
    );
    server.must(
        Under::Kernel,
        &format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root', \
             MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE",
            of.port
        ),
    );
    server
}

/// Waits until `replica` has applied all that `primary` has; then both have the same rows.
fn assert_equal(primary: &Server, replica: &Server) {
    let position = primary.must(Under::Kernel, "SELECT @@gtid_binlog_pos");
    let reached = replica.must(
        Under::Kernel,
        &format!("SELECT MASTER_GTID_WAIT('{position}', 60)"),
    );
    assert_eq!(
        reached,
        "0",
        "{position} is not reached\n{}\n{}",
        replica.must(Under::Kernel, "SHOW SLAVE STATUS\\G"),
        replica.log()
    );
    let rows = "SELECT COUNT(*) FROM trial.sbtest1; \
                CHECKSUM TABLE trial.sbtest1, trial.sbtest2 EXTENDED";
    assert_eq!(
        primary.must(Under::Kernel, rows),
        replica.must(Under::Kernel, rows)
    );
}

#[test]
fn a_replica_follows_through_a_channel() {
    for handling in HANDLING {
        for under in [Under::AtOnce, Under::Earned] {
            let first = primary(under, handling);
            let mut second = replica(under, handling, &first);
            first.prepare_sysbench(under);
            // One send carries as many changes as there are by then: evidence takes a while.
            for _ in 0..50 {
                first.sysbench(under, "oltp_read_write", 4, by_scale(50, 1000));
                if is_linked(&first, &second) {
                    break;
                }
            }
            assert_equal(&first, &second);
            assert!(is_linked(&first, &second), "{}", first.log());
            assert!(is_linked(&second, &first), "{}", second.log());
            second.kill();
            first.sysbench(under, "oltp_read_write", 4, by_scale(50, 1000));
            second.resume();
            assert_equal(&first, &second);
        }
    }
}

/// Either server is killed while transactions run; afterwards both have what was committed.
#[test]
fn a_primary_and_its_replica_are_killed_in_turn_under_load() {
    let mut dice = Dice::new(seed(34));
    for handling in HANDLING {
        let mut first = primary(Under::AtOnce, handling);
        let mut second = replica(Under::AtOnce, handling, &first);
        first.prepare_sysbench(Under::AtOnce);
        for _ in 0..by_scale(2, 40) {
            for is_primary in [true, false] {
                let load = first.load(Under::AtOnce, "oltp_read_write", 4);
                let committed = "SELECT VARIABLE_VALUE > {} FROM \
                                 information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'COM_COMMIT'";
                let mut session = first.session(Under::Kernel);
                let some = (20 + dice.below(200)).to_string();
                await_answer(&mut session, &committed.replace("{}", &some), "1");
                let victim = if is_primary { &mut first } else { &mut second };
                victim.kill();
                victim.resume();
                load.kill();
                let mut session = second.session(Under::Kernel);
                await_answer(&mut session, RUNNING, "ON");
                assert_equal(&first, &second);
            }
        }
    }
}

#[test]
fn a_replica_finds_its_restarted_primary_again() {
    for (left, right) in [
        (Under::AtOnce, Under::AtOnce),
        (Under::AtOnce, Under::Kernel),
        (Under::Kernel, Under::AtOnce),
    ] {
        let mut first = primary(left, HANDLING[0]);
        let second = replica(right, HANDLING[0], &first);
        first.prepare_sysbench(left);
        assert_equal(&first, &second);
        first.kill();
        first.resume();
        let mut session = second.session(right);
        await_answer(&mut session, RUNNING, "ON");
        first.sysbench(left, "oltp_read_write", 2, 50);
        assert_equal(&first, &second);
    }
}
