//! Every process of a primary and its standby is killed in turn under load; and clients, backends
//! and servers are killed at random. The sums are correct, and acknowledged transactions are kept.

use std::time::Duration;

use saiga_trials::{
    parity::Arm,
    peer::Peer,
    postgres::Server,
    scale::{Rng, by_scale, seed},
    sys::{self, Signal},
};

use crate::{
    accelerated,
    load::{assert_sums, history, processed},
    process,
    replication::await_replay,
    some_pairs,
};

/// Longest wait for the end of a process that was killed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Sessions of one load: that many transactions may be done and not reported.
const SESSIONS: u64 = 4;

/// The processes that exist as long as a server, by the beginning of their titles. The sender and
/// the receiver of changes belong to the link between two servers.
const PRIMARY: [&str; 7] = [
    "checkpointer",
    "background writer",
    "walwriter",
    "autovacuum launcher",
    "logical replication launcher",
    "walsender",
    "postmaster",
];
const STANDBY: [&str; 5] = [
    "checkpointer",
    "background writer",
    "startup",
    "walreceiver",
    "postmaster",
];

/// Kills one process. The server recovers by itself, or, if it has ended, is started again.
fn kill_and_recover(server: &mut Server, title: &str) {
    let mark = server.log.mark();
    let victim = process(server, title);
    let all = server.processes();
    sys::signal(victim, Signal::KILL).expect("a running process");
    // Without its postmaster a server does not start again; and without the process that replays
    // the log, a standby's postmaster ends.
    if ["postmaster", "startup"].contains(&title) {
        for pid in all {
            let ended = sys::await_end(pid, PATIENCE).expect("a process to watch");
            assert!(ended, "{pid} outlives its {title}\n{}", server.log.tail());
        }
        server.reap();
        server.launch();
    } else {
        server.log.await_after(mark, "ready to accept");
    }
}

fn transfers(server: &Server, arm: Arm) -> Peer {
    let sessions = SESSIONS.to_string();
    let words = ["-n", "-c", &sessions, "-j", "2", "-T", "60"];
    server.background("pgbench", arm, &words)
}

fn await_more(server: &Server, more: u64) {
    let some = history(server) + more;
    let many = format!("select count(*) > {some} from pgbench_history;");
    server.await_query(&many, "t");
}

/// Ends a load whose server runs or was killed; returns the acknowledged transactions.
fn acknowledged(load: Peer) -> u64 {
    let (report, _) = load.finish();
    // A load whose connections were killed before its first transaction reports no number.
    if report.contains("transaction type:") {
        processed(&report)
    } else {
        0
    }
}

#[test]
fn every_process_of_a_primary_is_killed_in_turn() {
    for &arm in accelerated() {
        kill_primary(arm);
    }
}

fn kill_primary(arm: Arm) {
    let mut rng = Rng::new(seed(33));
    let mut primary = Server::start(arm, &[]);
    primary.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
    let standby = primary.standby(arm, &["wal_retrieve_retry_interval=20ms"]);
    for _ in 0..by_scale(1, 20) {
        for title in PRIMARY {
            let before = history(&primary);
            let load = transfers(&primary, arm);
            await_more(&primary, 20 + rng.below(80));
            kill_and_recover(&mut primary, title);
            let known = before + acknowledged(load);
            let kept = history(&primary);
            assert!(
                (known..=known + SESSIONS).contains(&kept),
                "{title}: {known} were acknowledged, {kept} are there"
            );
            assert_sums(&primary);
            await_replay(&primary, &standby);
            assert_eq!(history(&standby), kept, "after {title}");
            assert_sums(&standby);
        }
    }
}

#[test]
fn every_process_of_a_standby_is_killed_in_turn() {
    for &arm in accelerated() {
        kill_standby(arm);
    }
}

fn kill_standby(arm: Arm) {
    let mut rng = Rng::new(seed(34));
    let primary = Server::start(arm, &[]);
    primary.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
    let mut standby = primary.standby(arm, &["wal_retrieve_retry_interval=20ms"]);
    for _ in 0..by_scale(1, 20) {
        for title in STANDBY {
            let load = transfers(&primary, arm);
            await_more(&primary, 20 + rng.below(80));
            kill_and_recover(&mut standby, title);
            await_more(&primary, 20);
            load.kill();
            primary.await_query(
                "select count(*) from pg_stat_activity where application_name = 'pgbench';",
                "0",
            );
            await_replay(&primary, &standby);
            assert_eq!(history(&standby), history(&primary), "after {title}");
            assert_sums(&standby);
        }
    }
}

/// The process that the generator selects.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Client,
    Backend,
    Server,
}

const VICTIMS: [Victim; 3] = [Victim::Client, Victim::Backend, Victim::Server];

/// A random backend that serves a load; `None` while all are being replaced.
fn some_backend(server: &Server, rng: &mut Rng) -> Option<u32> {
    let busy = "select pid from pg_stat_activity where application_name = 'pgbench';";
    let pids: Vec<u32> = server
        .query(busy)
        .lines()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    let nth = usize::try_from(rng.below(pids.len() as u64)).expect("small");
    pids.get(nth).copied()
}

#[test]
fn sums_are_correct_after_random_kills() {
    let mut rng = Rng::new(seed(35));
    for &(server_arm, arm) in some_pairs() {
        let mut server = Server::start(server_arm, &[]);
        server.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
        for _ in 0..by_scale(5, 150) {
            let before = history(&server);
            let (survivor, victim) = (transfers(&server, arm), transfers(&server, arm));
            await_more(&server, 10 + rng.below(200));
            let chosen = VICTIMS[usize::try_from(rng.below(3)).expect("below 3")];
            println!("{chosen:?} after {} transfers", history(&server));
            let known = match chosen {
                Victim::Client => {
                    victim.kill();
                    await_more(&server, 20);
                    // The other load continues; its transactions so far are in the sums.
                    survivor.kill();
                    0
                }
                Victim::Backend => {
                    let mark = server.log.mark();
                    let backend = some_backend(&server, &mut rng).expect("both loads run");
                    sys::signal(backend, Signal::KILL).expect("a running backend");
                    server.log.await_after(mark, "ready to accept");
                    acknowledged(survivor) + acknowledged(victim)
                }
                Victim::Server => {
                    server.kill();
                    let known = acknowledged(survivor) + acknowledged(victim);
                    server.launch();
                    known
                }
            };
            let kept = history(&server);
            assert!(kept >= before + known, "{known} acknowledged, {kept} kept");
            assert_sums(&server);
        }
    }
}
