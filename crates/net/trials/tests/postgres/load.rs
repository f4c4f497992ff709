//! pgbench: many concurrent sessions, correct sums, and resources after their end.

use rustix::process::Signal;
use saiga_trials::{census::Census, parity::Arm::Library, postgres::Server, scale::by_scale, sys};

use crate::{PAIRS, Pair, is_joined, joined_pairs};

/// The invariant of TPC-B: every transaction adds one amount to one row of each table.
pub(crate) fn assert_sums(server: &Server) {
    let sums = server.query(
        "select count(distinct sum) from (select sum(bbalance) from pgbench_branches \
         union all select sum(tbalance) from pgbench_tellers \
         union all select sum(abalance) from pgbench_accounts \
         union all select coalesce(sum(delta), 0) from pgbench_history) sums;",
    );
    assert_eq!(sums, "1", "branches, tellers, accounts and history differ");
}

/// Number of committed TPC-B transactions.
pub(crate) fn history(server: &Server) -> u64 {
    let count = server.query("select count(*) from pgbench_history;");
    count.parse().expect("a number")
}

/// The number of transactions that pgbench reports as processed.
pub(crate) fn processed(report: &str) -> u64 {
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let number = line.and_then(|line| line.split('/').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no number of transactions: {report}"))
}

/// PIDs of the backends that serve client programs by TCP now.
fn backends(server: &Server) -> Vec<u32> {
    let pids = server.query(
        "select pid from pg_stat_activity where application_name = 'pgbench' and client_port > 0;",
    );
    pids.lines()
        .map(|pid| pid.parse().expect("a pid"))
        .collect()
}

/// The work of every session of a pgbench.
struct Work<'a> {
    script: &'a str,
    /// pgbench's query mode.
    mode: &'a str,
    transactions: u64,
}

/// SQL with which a session waits until the holder of the advisory lock `key` releases it.
fn meet(key: u8) -> String {
    format!("select pg_advisory_lock_shared({key});\nselect pg_advisory_unlock_shared({key});\n")
}

/// Runs pgbench, whose script comes twice in a transaction. In between, all `clients` sessions wait
/// for each other: there, they and their backends must have upgraded if they can.
///
/// A connection is upgraded only after its program was seen to wait for it. On a busy machine,
/// every query may come before its backend looks for one. So pgbench first waits for all backends,
/// and then stands still until every backend waits for it.
fn assert_all_upgraded(server: &Server, pair: Pair, clients: u32, work: &Work<'_>) {
    let path = server.folder().join("meet.sql");
    let script = work.script;
    let whole = [&meet(1), script, &meet(2), script].concat();
    std::fs::write(&path, whole).expect("a file");
    let path = path.display().to_string();
    let mut gate = server.client(pair.0);
    gate.ask("select pg_advisory_lock(1); select pg_advisory_lock(2);");
    let (count, transactions) = (clients.to_string(), work.transactions.to_string());
    let words = ["-n", "-c", &count, "-j", "2", "-f", &path];
    let more = ["-M", work.mode, "-t", &transactions];
    let load = server.background("pgbench", pair.1, &[&words[..], &more].concat());
    let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted;";
    server.await_query(waiting, &count);
    load.signal(Signal::STOP);
    sys::wait_stopped(load.pid()).expect("our child");
    gate.ask("select pg_advisory_unlock(1);");
    let idle = "select count(*) from pg_stat_activity \
                where application_name = 'pgbench' and wait_event = 'ClientRead';";
    server.await_query(idle, &count);
    load.signal(Signal::CONT);
    server.await_query(waiting, &count);
    let backends = backends(server);
    assert_eq!(backends.len().to_string(), count);
    if is_joined(pair) {
        let all = backends.iter().map(|backend| (*backend, 1));
        for (pid, channels) in all.chain([(load.pid(), u64::from(clients))]) {
            let shown = Census::shown(pid);
            let sockets: Vec<_> = shown
                .sockets
                .iter()
                .map(|one| (one.fd, one.state, one.reason))
                .collect();
            assert_eq!(
                shown.channels, channels,
                "process {pid} of {count}: {sockets:?}"
            );
        }
    }
    gate.ask("select pg_advisory_unlock(2);");
    let (report, status) = load.finish();
    assert!(status.success(), "pgbench: {status}");
    assert_eq!(processed(&report), work.transactions * u64::from(clients));
}

#[test]
fn every_way_of_pgbench_keeps_the_sums() {
    let count = by_scale("60", "3000");
    // Each transaction has a connection of its own.
    let connections = by_scale("15", "3000");
    for (server_arm, arm) in PAIRS {
        let server = Server::start(server_arm, &[]);
        server.must("pgbench", arm, &["-i", "-q", "-s", "2"]);
        let mut committed = 0;
        for (way, count) in [
            (&["-c", "1"][..], count),
            (&["-c", "8", "-j", "2"], count),
            (&["-c", "8", "-j", "2", "-M", "extended"], count),
            (&["-c", "8", "-j", "2", "-M", "prepared"], count),
            (&["-c", "4", "-j", "2", "-C"], connections),
        ] {
            let words: Vec<&str> = [&["-n", "-t", count], way].concat();
            committed += processed(&server.must("pgbench", arm, &words));
            let read: Vec<&str> = [&["-S"], &words[..]].concat();
            server.must("pgbench", arm, &read);
        }
        assert_eq!(history(&server), committed);
        // -N does not change branches and tellers, so those sums may differ from the others.
        server.query(
            "update pgbench_branches set bbalance = 0; update pgbench_tellers set tbalance = 0;",
        );
    }
}

#[test]
fn pipelined_queries_come_back_in_order() {
    for &pair in joined_pairs() {
        let server = Server::start(pair.0, &[]);
        // First single queries as evidence: a pipeline is sent by a few large sends.
        let alone = "select 1;\n".repeat(80);
        let many = "select repeat('p', 3000) as p;\n".repeat(80);
        let work = Work {
            script: &format!("{alone}\\startpipeline\n{many}\\endpipeline\n"),
            mode: "prepared",
            transactions: 20,
        };
        assert_all_upgraded(&server, pair, 4, &work);
    }
}

#[test]
fn a_hundred_sessions_are_upgraded() {
    let pair = (Library, Library);
    let server = Server::start(pair.0, &[]);
    let work = Work {
        script: &"select 1;\n".repeat(30),
        mode: "simple",
        transactions: 1,
    };
    for clients in [1, 10, 100] {
        assert_all_upgraded(&server, pair, clients, &work);
    }
}

#[test]
fn short_sessions_leave_nothing_in_the_postmaster() {
    let server = Server::start(Library, &[]);
    server.must("pgbench", Library, &["-i", "-q", "-s", "1"]);
    let churn = |count: &str| {
        let words = ["-n", "-S", "-C", "-c", "4", "-j", "2", "-t", count];
        server.must("pgbench", Library, &words);
        server.await_query(
            "select count(*) from pg_stat_activity where client_port > 0;",
            "1",
        );
        Census::of(server.pid()).expect("a running server")
    };
    let before = churn("30");
    let after = churn(by_scale("100", "5000"));
    before.assert_no_growth(&after, 0, 256, "short sessions");
}

/// The library's cost in a backend is fixed at its start and does not grow with queries.
#[test]
fn a_long_session_does_not_grow() {
    let server = Server::start(Library, &[]);
    let mut client = server.client(Library);
    client.warm();
    let backend = client.backend();
    let mut run = |rounds: u32| {
        for i in 0..rounds {
            assert_eq!(client.ask(&format!("select {i} + 1;")), (i + 1).to_string());
        }
        (
            Census::of(backend).expect("a running backend"),
            Census::of(client.pid()).expect("a running psql"),
        )
    };
    let before = run(1000);
    let after = run(by_scale(5000, 200_000));
    before
        .0
        .assert_no_growth(&after.0, 0, 256, "queries, backend");
    before.1.assert_no_growth(&after.1, 0, 256, "queries, psql");
}
