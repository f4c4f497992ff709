//! One psql at a time: queries, notifications, cancels, timeouts, SSL.

use std::process::Command;

use saiga_trials::{
    census::Census,
    certificate, compile,
    parity::Arm::{self, Library},
    peer::Peer,
    postgres::{Account, Client, Server},
    sys::Signal,
};

use crate::{PAIRS, is_joined, joined_pairs, same_story, some_pairs};

/// A client after warm-up; upgraded if both sides can be.
fn warm_client(server: &Server, server_arm: Arm, arm: Arm) -> Client {
    let mut client = server.client(arm);
    client.warm();
    if is_joined((server_arm, arm)) {
        client.assert_upgraded();
    }
    client
}

#[test]
fn psql_gets_its_answers_as_either_user() {
    for (server_arm, arm) in PAIRS {
        let server = Server::start(server_arm, &[]);
        for account in [Account::Ours, Account::Server] {
            for host in ["127.0.0.1", "::1"] {
                let mut client = server.client_as(account, arm, &[("PGHOST", host)]);
                client.warm();
                for size in [1, 8_191, 8_192, 65_536, 1_000_001] {
                    let answer = client.ask(&format!("select repeat('x', {size});"));
                    assert_eq!(answer.len(), size);
                    let literal = "y".repeat(size);
                    let answer = client.ask(&format!(
                        "select md5('{literal}') = md5(repeat('y', {size}));"
                    ));
                    assert_eq!(answer, "t", "{size}");
                }
                let rows = client.ask(
                    "select i, repeat(chr(65 + i % 26), i % 300) from generate_series(1, 20000) i;",
                );
                assert_eq!(rows.lines().count(), 20_000);
                if is_joined((server_arm, arm)) {
                    client.assert_upgraded();
                }
            }
        }
    }
}

/// A backend notifies its idle client after another backend has interrupted it by a signal.
#[test]
fn notifications_reach_idle_listeners() {
    for (server_arm, arm) in PAIRS {
        let server = Server::start(server_arm, &[]);
        let mut listener = {
            let mut command = Command::new(compile::tool("listener"));
            server.set_environment(&mut command, Account::Ours, arm);
            command.args([&server.port.to_string(), "news"]);
            Peer::spawn(command)
        };
        let backend = listener.expect("listening");
        let mut speaker = warm_client(&server, server_arm, arm);
        for i in 0..200 {
            assert_eq!(speaker.ask(&format!("notify news, 'item-{i}';")), "");
            assert_eq!(listener.expect("heard"), format!("item-{i}"));
        }
        if is_joined((server_arm, arm)) {
            let backend = backend.parse().expect("a pid");
            assert!(Census::upgrades(backend) > 0, "the backend is on TCP");
        }
    }
}

#[test]
fn a_query_is_cancelled_and_the_session_goes_on() {
    same_story(&PAIRS, |server_arm, arm| {
        let server = Server::start(server_arm, &[]);
        let mut client = warm_client(&server, server_arm, arm);
        let backend = client.backend();
        let mut story = String::new();
        for _ in 0..5 {
            client.send("select pg_sleep(600);");
            await_sleeper(&server, backend);
            assert_eq!(
                server.query(&format!("select pg_cancel_backend({backend});")),
                "t"
            );
            story += &client.reply();
            story += &client.ask("select 'and on';");
        }
        // Ctrl-C: psql opens a second connection for the request, then ends its script.
        client.send("select pg_sleep(600);");
        await_sleeper(&server, backend);
        client.signal(Signal::INT);
        let (rest, status) = client.finish();
        format!("{story}\n{rest}\n{status}")
    });
}

fn await_sleeper(server: &Server, backend: u32) {
    let active = "select wait_event from pg_stat_activity where state = 'active' and pid =";
    server.await_query(&format!("{active} {backend};"), "PgSleep");
}

fn await_end(server: &Server, backend: u32) {
    let left = format!("select count(*) from pg_stat_activity where pid = {backend};");
    server.await_query(&left, "0");
}

#[test]
fn a_terminated_session_gets_an_error() {
    same_story(&PAIRS, |server_arm, arm| {
        let server = Server::start(server_arm, &[]);
        let mut story = String::new();
        for at_work in [false, true] {
            let mut client = warm_client(&server, server_arm, arm);
            let backend = client.backend();
            if at_work {
                client.send("select pg_sleep(600);");
                await_sleeper(&server, backend);
            }
            assert_eq!(
                server.query(&format!("select pg_terminate_backend({backend});")),
                "t"
            );
            await_end(&server, backend);
            if at_work {
                let (rest, status) = client.finish();
                story += &format!("{rest}\n{status}\n");
            } else {
                story += &client.farewell("select 'too late';");
            }
        }
        story
    });
}

#[test]
fn time_outs_end_statements_and_sessions() {
    same_story(some_pairs(), |server_arm, arm| {
        let server = Server::start(server_arm, &[]);
        let mut client = warm_client(&server, server_arm, arm);
        client.ask("set statement_timeout = '20ms';");
        let mut story = client.ask("select pg_sleep(600);");
        story += &client.ask("reset statement_timeout;");
        story += &client.ask("select 'and on';");
        for setting in [
            "idle_session_timeout",
            "idle_in_transaction_session_timeout",
        ] {
            let mut client = warm_client(&server, server_arm, arm);
            let backend = client.backend();
            if setting == "idle_in_transaction_session_timeout" {
                client.ask("begin;");
            }
            client.ask(&format!("set {setting} = '20ms';"));
            await_end(&server, backend);
            story += &client.farewell("select 'too late';");
        }
        story
    });
}

/// `client_connection_check_interval` polls the connection for the peer's end during a query.
#[test]
fn a_query_whose_client_was_killed_ends() {
    for &(server_arm, arm) in some_pairs() {
        let server = Server::start(server_arm, &["client_connection_check_interval=50ms"]);
        let mut client = warm_client(&server, server_arm, arm);
        let backend = client.backend();
        client.send("select pg_sleep(600);");
        await_sleeper(&server, backend);
        client.kill();
        await_end(&server, backend);
    }
}

#[test]
fn a_client_killed_in_its_transaction_leaves_no_lock() {
    for (server_arm, arm) in PAIRS {
        let server = Server::start(server_arm, &[]);
        server.query("create table account (id int primary key, balance int); insert into account values (1, 100);");
        let mut survivor = warm_client(&server, server_arm, arm);
        for _ in 0..10 {
            let mut victim = warm_client(&server, server_arm, arm);
            victim.ask("begin;");
            victim.ask("update account set balance = balance - 1;");
            survivor.send("update account set balance = balance + 1 returning balance;");
            server.await_query("select count(*) > 0 from pg_locks where not granted;", "t");
            victim.kill();
            survivor.reply();
        }
        assert_eq!(survivor.ask("select balance from account;"), "110");
    }
}

#[test]
fn encrypted_sessions_are_upgraded_too() {
    for &(server_arm, arm) in joined_pairs() {
        let mut server = Server::start(server_arm, &[]);
        let files = certificate::make(&server.data());
        for (name, file) in ["ssl_cert_file", "ssl_key_file"].into_iter().zip(&files) {
            Account::Server.own(file);
            server.query(&format!("alter system set {name} = '{}';", file.display()));
        }
        server.query("alter system set ssl = on;");
        server.restart();
        let mut client = server.client_as(Account::Ours, arm, &[("PGSSLMODE", "require")]);
        client.warm();
        assert_eq!(
            client.ask("select ssl from pg_stat_ssl where pid = pg_backend_pid();"),
            "t"
        );
        for size in [100, 16_384, 3_000_000] {
            assert_eq!(
                client.ask(&format!("select repeat('x', {size});")).len(),
                size
            );
        }
        if is_joined((server_arm, arm)) {
            client.assert_upgraded();
        }
        let words = ["-i", "-q", "-s", "1"];
        server.must("pgbench", arm, &words);
        server.must(
            "pgbench",
            arm,
            &["-n", "-S", "-c", "4", "-j", "2", "-t", "100"],
        );
    }
}

/// Backends as clients of other backends: both ends of the connection are forked from one process.
#[test]
fn backends_connect_to_each_other() {
    let server = Server::start(Library, &[]);
    let mut client = server.client(Library);
    client.ask("create extension postgres_fdw;");
    client.ask(&format!(
        "create server other foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{}');",
        server.port
    ));
    client.ask("create user mapping for postgres server other options (user 'postgres');");
    client.ask("create table here as select i, i * 3 as n from generate_series(1, 20000) i;");
    client
        .ask("create foreign table there (i int, n int) server other options (table_name 'here');");
    for i in 1..=100 {
        let answer = client.ask(&format!("select n from there where i = {i};"));
        assert_eq!(answer, (i * 3).to_string());
    }
    assert_eq!(client.ask("select sum(n) from there;"), "600030000");
    assert_eq!(
        client.ask("insert into there select i, 0 from generate_series(30001, 33000) i;"),
        ""
    );
    assert_eq!(client.ask("select count(*) from here;"), "23000");
    // The backend has two upgraded connections: the client's and its own.
    let backend = client.backend();
    assert!(Census::upgrades(backend) >= 2);
}

#[test]
fn a_fast_restart_ends_the_sessions_and_takes_new_ones() {
    same_story(some_pairs(), |server_arm, arm| {
        let mut server = Server::start(server_arm, &[]);
        let mut story = String::new();
        for _ in 0..3 {
            let before = [
                warm_client(&server, server_arm, arm),
                warm_client(&server, server_arm, arm),
            ];
            server.restart();
            for client in before {
                story += &client.farewell("select 'too late';");
            }
            warm_client(&server, server_arm, arm);
        }
        story
    });
}
