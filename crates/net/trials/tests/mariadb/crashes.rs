//! `kill -9` of clients and servers in the middle of transactions: the sum of all
//! balances holds, and what a client was told is done, is done.

use std::{fmt::Write as _, fs, path::PathBuf};

use saiga_trials::{
    mariadb::Server,
    parity::Arm,
    peer::Peer,
    scale::{Dice, by_scale, seed},
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

/// A file of transfers between random accounts; after each commit comes a row with its number.
fn transfers(server: &Server, dice: &mut Dice, worker: u64, first: u64) -> PathBuf {
    let mut script = String::new();
    for number in first..first + by_scale(2000, 20_000) {
        // In the order of the accounts, so that no two workers deadlock.
        let from = 1 + dice.below(ACCOUNTS - 1);
        let to = from + 1 + dice.below(ACCOUNTS - from);
        let amount = dice.below(200);
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

/// Waits for `count` acknowledgements; the number of the last one.
fn acknowledged(worker: &mut Peer, count: u64) -> u64 {
    let lines = (0..count).map_while(|_| worker.line());
    lines
        .last()
        .and_then(|line| line.parse().ok())
        .expect("an acknowledged transfer")
}

/// What is left in the pipe of a client whose server has gone.
fn last_acknowledged(worker: &mut Peer, so_far: u64) -> u64 {
    std::iter::from_fn(|| worker.line())
        .filter_map(|line| line.parse().ok())
        .last()
        .unwrap_or(so_far)
}

/// The sums hold, and of each worker just the first so many transfers are done: at least
/// those that it was told of, at most the one behind them.
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
            "worker {} was told of {told}, {} are done",
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
    let mut dice = Dice::new(seed(31));
    for (handling, pair) in cells() {
        let mut server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut done = vec![0; 4];
        for _ in 0..by_scale(2, 40) {
            let (mut workers, mut told) = through_channels(&server, pair, WORKERS, || {
                let mut workers: Vec<Peer> = (0..WORKERS)
                    .zip(&done)
                    .map(|(worker, done)| {
                        server.batch(pair.1, &transfers(&server, &mut dice, worker, done + 1))
                    })
                    .collect();
                let count = 30 + dice.below(60);
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

/// Whom the dice choose.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Client,
    Connection,
    Server,
}

const VICTIMS: [Victim; 3] = [Victim::Client, Victim::Connection, Victim::Server];

#[test]
fn sums_hold_whoever_is_killed_at_random() {
    let mut dice = Dice::new(seed(33));
    for (handling, pair) in cells() {
        let mut server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut done = vec![0; 4];
        for _ in 0..by_scale(4, 100) {
            let mut workers: Vec<Peer> = (0..WORKERS)
                .zip(&done)
                .map(|(worker, done)| {
                    server.batch(pair.1, &transfers(&server, &mut dice, worker, done + 1))
                })
                .collect();
            let count = 10 + dice.below(60);
            let mut told: Vec<u64> = workers
                .iter_mut()
                .map(|worker| acknowledged(worker, count))
                .collect();
            let chosen = VICTIMS[usize::try_from(dice.below(3)).expect("below 3")];
            let nth = usize::try_from(dice.below(WORKERS)).expect("small");
            println!("{chosen:?}, worker {nth}, after {told:?}");
            match chosen {
                Victim::Client => workers[nth].signal(Signal::Kill),
                Victim::Connection => {
                    let id = "SELECT id FROM information_schema.processlist \
                              WHERE db = 'trial' LIMIT 1";
                    let id = server.must(Arm::Kernel, id);
                    server.must(Arm::Kernel, &format!("KILL CONNECTION {id}"));
                }
                Victim::Server => server.kill(),
            }
            // Those who are left are stopped somewhere, too: the next round goes on from there.
            for (worker, told) in workers.iter_mut().zip(&mut told) {
                if !matches!(chosen, Victim::Server) {
                    // It may be the victim and gone.
                    let _ = sys::signal(worker.pid(), Signal::Kill);
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

/// Waits until the server has noticed that its clients are gone: one in the middle of a commit
/// finishes it.
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
    let mut dice = Dice::new(seed(32));
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        open_bank(&server);
        let mut watcher = server.session(pair.1);
        warm(&mut watcher);
        let mut next = 1;
        for _ in 0..by_scale(4, 100) {
            let script = transfers(&server, &mut dice, 0, next);
            let mut worker = server.batch(pair.1, &script);
            let count = 1 + dice.below(40);
            acknowledged(&mut worker, count);
            worker.kill();
            // A transaction that stays open on locked rows: its client is killed in it.
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
            // Nobody holds a lock: this would wait for it.
            let free = "SELECT SUM(balance) FROM trial.account FOR UPDATE";
            assert_eq!(watcher.ask(free), (ACCOUNTS * OPENING).to_string());
            let highest = watcher.ask("SELECT MAX(number), COUNT(*) FROM trial.done");
            let (highest, count) = highest.split_once('\t').expect("two columns");
            assert_eq!(highest, count, "a hole in the transfers");
            next = 1 + highest.parse::<u64>().expect("a number");
        }
    }
}
