//! `kill -9` of clients and servers in the middle of transactions: the sum of all balances is
//! correct, and every acknowledged transaction is there.

use std::{fmt::Write as _, fs, path::PathBuf};

use saiga_trials::{
    mariadb::Server,
    parity::Arm,
    peer::Peer,
    scale::{Rng, by_scale, seed},
    sys::{self, Signal},
};

use crate::{
    KIND, cells,
    channels::{await_answer, through_channels, warm},
};

const ACCOUNTS: u64 = 20;
const OPENING: u64 = 1000;
const WORKERS: u64 = 4;

fn open_bank(server: &Server) {
    let accounts: Vec<String> = (1..=ACCOUNTS)
        .map(|id| format!("({id}, {OPENING})"))
        .collect();
    server.must(
        Arm::Kernel,
        &format!(
            "USE trial; \
             CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB; \
             CREATE TABLE done (worker INT, number INT, PRIMARY KEY (worker, number)) ENGINE=InnoDB; \
             INSERT INTO account VALUES {}",
            accounts.join(", ")
        ),
    );
}

/// A script of transfers between random accounts; after each commit it selects the transfer's
/// number.
fn transfers(server: &Server, rng: &mut Rng, worker: u64, first: u64) -> PathBuf {
    let mut script = String::new();
    for number in first..first + by_scale(2000, 20_000) {
        // In the order of the accounts, so that workers cannot deadlock.
        let from = 1 + rng.below(ACCOUNTS - 1);
        let to = from + 1 + rng.below(ACCOUNTS - from);
        let amount = rng.below(200);
        writeln!(
            script,
            "BEGIN;\n\
             UPDATE account SET balance = balance - {amount} WHERE id = {from};\n\
             UPDATE account SET balance = balance + {amount} WHERE id = {to};\n\
             INSERT INTO done VALUES ({worker}, {number});\n\
             COMMIT;\n\
             SELECT {number};"
        )
        .expect("memory");
    }
    let path = server.folder().join(format!("transfers-{worker}-{first}"));
    fs::write(&path, script).expect("room on the disk");
    path
}

/// Waits for `count` acknowledgements; returns the last number.
fn acknowledged(worker: &mut Peer, count: u64) -> u64 {
    let lines = (0..count).map_while(|_| worker.line());
    lines
        .last()
        .and_then(|line| line.parse().ok())
        .expect("an acknowledged transfer")
}

/// The last acknowledgement in the pipe of a client whose server was killed.
fn last_acknowledged(worker: &mut Peer, so_far: u64) -> u64 {
    std::iter::from_fn(|| worker.line())
        .filter_map(|line| line.parse().ok())
        .last()
        .unwrap_or(so_far)
}

/// Checks that the sums are correct, and that each worker's completed transfers are its first ones:
/// at least the acknowledged ones, at most one more.
fn check_bank(server: &Server, arm: Arm, told: &[u64]) -> Vec<u64> {
    let sums = server.must(arm, "SELECT SUM(balance), COUNT(*) FROM trial.account");
    assert_eq!(sums, format!("{}\t{ACCOUNTS}", ACCOUNTS * OPENING));
    let query =
        "SELECT worker, COUNT(*), MAX(number) FROM trial.done GROUP BY worker ORDER BY worker";
    let rows = server.must(arm, query);
    let mut done = Vec::new();
    for (row, &told) in rows.lines().zip(told) {
        let fields: Vec<u64> = row
            .split('\t')
            .map(|n| n.parse().expect("a number"))
            .collect();
        assert_eq!(fields[1], fields[2], "a hole in worker {}'s", fields[0]);
        assert!(
            (told..=told + 1).contains(&fields[2]),
            "worker {} had {told} acknowledged, {} are done",
            fields[0],
            fields[2]
        );
        done.push(fields[2]);
    }
    assert_eq!(done.len(), told.len(), "{rows}");
    done
}

#[test]
fn a_killed_server_keeps_what_it_acknowledged() {
    let mut rng = Rng::new(seed(31));
    for (handling, pair) in cells() {
        let mut server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut done = vec![0; 4];
        for _ in 0..by_scale(2, 40) {
            let (mut workers, mut told) = through_channels(&server, pair, WORKERS, || {
                let mut workers: Vec<Peer> = (0..WORKERS)
                    .zip(&done)
                    .map(|(worker, done)| {
                        server.batch(pair.1, &transfers(&server, &mut rng, worker, done + 1))
                    })
                    .collect();
                let count = 30 + rng.below(60);
                let told: Vec<u64> = workers
                    .iter_mut()
                    .map(|worker| acknowledged(worker, count))
                    .collect();
                (workers, told)
            });
            server.kill();
            for (worker, told) in workers.iter_mut().zip(&mut told) {
                *told = last_acknowledged(worker, *told);
            }
            server.resume();
            done = check_bank(&server, pair.1, &told);
        }
    }
}

/// The process that the generator selects.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Client,
    Connection,
    Server,
}

const VICTIMS: [Victim; 3] = [Victim::Client, Victim::Connection, Victim::Server];

#[test]
fn sums_are_correct_after_random_kills() {
    let mut rng = Rng::new(seed(33));
    for (handling, pair) in cells() {
        let mut server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut done = vec![0; 4];
        for _ in 0..by_scale(4, 100) {
            let mut workers: Vec<Peer> = (0..WORKERS)
                .zip(&done)
                .map(|(worker, done)| {
                    server.batch(pair.1, &transfers(&server, &mut rng, worker, done + 1))
                })
                .collect();
            let count = 10 + rng.below(60);
            let mut told: Vec<u64> = workers
                .iter_mut()
                .map(|worker| acknowledged(worker, count))
                .collect();
            let chosen = VICTIMS[usize::try_from(rng.below(3)).expect("below 3")];
            let nth = usize::try_from(rng.below(WORKERS)).expect("small");
            println!("{chosen:?}, worker {nth}, after {told:?}");
            match chosen {
                Victim::Client => workers[nth].signal(Signal::KILL),
                Victim::Connection => {
                    let id = "SELECT id FROM information_schema.processlist \
                              WHERE db = 'trial' LIMIT 1";
                    let id = server.must(Arm::Kernel, id);
                    server.must(Arm::Kernel, &format!("KILL CONNECTION {id}"));
                }
                Victim::Server => server.kill(),
            }
            // Stop the other workers somewhere, too: the next round continues from there.
            for (worker, told) in workers.iter_mut().zip(&mut told) {
                if !matches!(chosen, Victim::Server) {
                    // It may be the victim, which has ended.
                    let _ = sys::signal(worker.pid(), Signal::KILL);
                }
                *told = last_acknowledged(worker, *told);
            }
            drop(workers);
            if matches!(chosen, Victim::Server) {
                server.resume();
            }
            await_no_client(&server, pair.1);
            done = check_bank(&server, pair.1, &told);
        }
    }
}

/// Waits until the server has noticed the end of its clients: a commit in progress is finished.
fn await_no_client(server: &Server, arm: Arm) {
    let mut watcher = server.session(arm);
    await_answer(
        &mut watcher,
        "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'trial'",
        "0",
    );
}

#[test]
fn killed_clients_leave_no_half_transfer_and_no_lock() {
    let mut rng = Rng::new(seed(32));
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut watcher = server.session(pair.1);
        warm(&mut watcher);
        let mut next = 1;
        for _ in 0..by_scale(4, 100) {
            let script = transfers(&server, &mut rng, 0, next);
            let mut worker = server.batch(pair.1, &script);
            let count = 1 + rng.below(40);
            acknowledged(&mut worker, count);
            worker.kill();
            // A transaction that stays open on locked rows: its client is killed inside it.
            let mut holder = server.session(pair.1);
            warm(&mut holder);
            assert_eq!(holder.ask("BEGIN"), "");
            let grab = "UPDATE trial.account SET balance = balance - 1";
            assert_eq!(holder.ask(grab), "");
            holder.kill();
            await_answer(
                &mut watcher,
                "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'",
                "1",
            );
            // This would wait if a lock were left.
            let free = "SELECT SUM(balance) FROM trial.account FOR UPDATE";
            assert_eq!(watcher.ask(free), (ACCOUNTS * OPENING).to_string());
            let highest = watcher.ask("SELECT MAX(number), COUNT(*) FROM trial.done");
            let (highest, count) = highest.split_once('\t').expect("two columns");
            assert_eq!(highest, count, "a hole in the transfers");
            next = 1 + highest.parse::<u64>().expect("a number");
        }
    }
}
