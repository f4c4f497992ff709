//! `kill -9` of backends and servers: recovery, and correct sums after it.

use saiga_trials::{
    postgres::Server,
    scale::{Rng, by_scale, seed},
    sys::{self, Signal},
};

use crate::{
    is_joined, joined_pairs,
    load::{assert_sums, history, processed},
    some_pairs,
};

/// One backend is killed; the postmaster ends the others, recovers and continues.
#[test]
fn a_killed_backend_takes_the_sessions_with_it_and_no_data() {
    crate::same_story(joined_pairs(), |server_arm, arm| {
        let server = Server::start(server_arm, &[]);
        server.query("create table t as select i from generate_series(1, 1000) i;");
        let mut story = String::new();
        for _ in 0..3 {
            let mut bystander = server.client(arm);
            let mut victim = server.client(arm);
            bystander.warm();
            victim.warm();
            if is_joined((server_arm, arm)) {
                victim.assert_upgraded();
            }
            let mark = server.log.mark();
            sys::signal(victim.backend(), Signal::KILL).expect("a running backend");
            server.log.await_after(mark, "ready to accept");
            story += &victim.farewell("select 'too late';");
            // Whether it receives the postmaster's warning is a race, also on the kernel.
            let end = bystander.farewell("select 'too late';");
            let lost = "server closed the connection unexpectedly";
            assert!(end.contains(lost), "{end}");
            let mut after = server.client(arm);
            after.warm();
            story += &after.ask("select sum(i) from t;");
        }
        story
    });
}

/// Kills the whole server under TPC-B load, `rounds` times; acknowledged transactions are kept.
#[test]
fn a_killed_server_recovers_every_committed_transaction() {
    let mut rng = Rng::new(seed(31));
    for &(server_arm, arm) in joined_pairs() {
        let mut server = Server::start(server_arm, &[]);
        server.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
        for _ in 0..by_scale(2, 30) {
            let before = history(&server);
            let load = server.background("pgbench", arm, &["-n", "-c", "6", "-j", "2", "-T", "60"]);
            let some = before + 50 + rng.below(300);
            server.await_query(
                &format!("select count(*) > {some} from pgbench_history;"),
                "t",
            );
            server.kill();
            let (report, _) = load.finish();
            server.launch();
            let (known, kept) = (before + processed(&report), history(&server));
            assert!(
                (known..=known + 6).contains(&kept),
                "{known} were acknowledged, {kept} are there"
            );
            assert_sums(&server);
        }
    }
}

/// Only the postmaster is killed: its backends notice by a pipe beside the socket, and end.
#[test]
fn backends_of_a_killed_postmaster_end() {
    for &(server_arm, arm) in some_pairs() {
        let mut server = Server::start(server_arm, &[]);
        let mut client = server.client(arm);
        client.warm();
        let processes = server.processes();
        sys::signal(server.pid(), Signal::KILL).expect("a running server");
        for pid in processes {
            let limit = std::time::Duration::from_secs(30);
            let ended = sys::await_end(pid, limit).expect("a process to watch");
            assert!(ended, "process {pid} outlives its postmaster");
        }
        let end = client.farewell("select 'too late';");
        assert!(
            end.contains("terminating connection due to unexpected postmaster exit"),
            "{end}"
        );
        server.reap();
        server.launch();
        server.client(arm).warm();
    }
}

/// Sessions are killed at random while others continue their transfers.
#[test]
fn killed_clients_do_not_change_the_sums() {
    let mut rng = Rng::new(seed(32));
    for &(server_arm, arm) in some_pairs() {
        let server = Server::start(server_arm, &[]);
        server.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
        let steady = server.background(
            "pgbench",
            arm,
            &["-n", "-c", "2", "-t", by_scale("400", "9000")],
        );
        for _ in 0..by_scale(6, 100) {
            let victim =
                server.background("pgbench", arm, &["-n", "-c", "4", "-j", "2", "-T", "60"]);
            let some = history(&server) + rng.below(60);
            server.await_query(
                &format!("select count(*) > {some} from pgbench_history;"),
                "t",
            );
            victim.kill();
        }
        let (report, status) = steady.finish();
        assert!(status.success(), "{status}: {report}");
        assert!(history(&server) >= processed(&report));
        assert_sums(&server);
    }
}
