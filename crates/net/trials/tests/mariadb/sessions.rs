//! Connections that are ended from outside: KILL, timeouts, limits, shutdown.

use saiga_trials::{
    bounded::Ending,
    mariadb::{Kind, Server, Session},
    parity::Arm,
    scale::by_scale,
};

use crate::{
    KIND, cells,
    channels::{Pair, await_answer, through_channels, warm},
};

/// Errors of a client whose connection the server has ended.
const ENDED: [&str; 3] = ["ERROR 2006", "ERROR 2013", "ERROR 1927"];

fn assert_ended(error: &str) {
    assert!(
        ENDED.iter().any(|ended| error.starts_with(ended)),
        "'{error}' from a connection that has ended"
    );
}

fn count_where(condition: &str) -> String {
    format!("SELECT COUNT(*) FROM information_schema.processlist WHERE {condition}")
}

/// A session after warm-up: on its channel if both ends have the library.
fn warmed(server: &Server, pair: Pair) -> Session {
    through_channels(server, pair, 1, || {
        let mut session = server.session(pair.1);
        warm(&mut session);
        session
    })
}

#[test]
fn killed_queries_end_and_their_connections_stay() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        let (mut victim, mut killer) = (warmed(&server, pair), warmed(&server, pair));
        let id = victim.id();
        for _ in 0..by_scale(3, 100) {
            victim.send("SELECT SLEEP(1000)");
            let asleep = count_where(&format!("id = {id} AND state = 'User sleep'"));
            await_answer(&mut killer, &asleep, "1");
            assert_eq!(killer.ask(&format!("KILL QUERY {id}")), "");
            let answer = victim.answer();
            assert!(answer == "1" || answer.contains("ERROR 1317"), "{answer}");
            assert_eq!(victim.ask("SELECT 'still there'"), "still there");
        }
    }
}

#[test]
fn killed_connections_end_both_busy_and_idle() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        let mut killer = warmed(&server, pair);
        for round in 0..by_scale(4, 100) {
            let mut victim = warmed(&server, pair);
            let id = victim.id();
            let busy = round % 2 == 0;
            if busy {
                victim.send("SELECT SLEEP(1000)");
                let asleep = count_where(&format!("id = {id} AND state = 'User sleep'"));
                await_answer(&mut killer, &asleep, "1");
            }
            assert_eq!(killer.ask(&format!("KILL CONNECTION {id}")), "");
            await_answer(&mut killer, &count_where(&format!("id = {id}")), "0");
            let error = if busy {
                victim.error()
            } else {
                victim.fail("SELECT 1")
            };
            assert_ended(&error);
        }
    }
}

#[test]
fn idle_connections_time_out() {
    for (handling, pair) in cells() {
        println!("{handling:?} {pair:?}"); // Identifies the cell if the test fails.
        let server = Server::start(KIND, pair.0, handling);
        let (mut idle, mut other) = (warmed(&server, pair), warmed(&server, pair));
        let id = idle.id();
        assert_eq!(idle.ask("SET SESSION wait_timeout = 1"), "");
        await_answer(&mut other, &count_where(&format!("id = {id}")), "0");
        let error = idle.fail("SELECT 1");
        match KIND {
            Kind::MariaDb => assert_ended(&error),
            // MySQL sends a last packet, which the client reads at its next statement.
            Kind::MySql => assert!(error.starts_with("ERROR 4031"), "{error}"),
        }
    }
}

#[test]
fn one_connection_too_many_is_refused_with_an_error() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        server.must(
            Arm::Kernel,
            "CREATE USER plain@'127.0.0.1'; GRANT ALL ON trial.* TO plain@'127.0.0.1'",
        );
        let plain = || server.session_with(pair.1, "-uplain");
        let mut held: Vec<Session> = (0..10).map(|_| plain()).collect();
        for session in &mut held {
            warm(session);
        }
        let extra = format!("-P{}", server.extra_port);
        let mut rescuer = server.session_with(pair.1, &extra);
        assert_eq!(rescuer.ask("SET GLOBAL max_connections = 10"), "");
        for _ in 0..3 {
            let refused = plain().error();
            assert!(refused.starts_with("ERROR 1040"), "{refused}");
        }
        warm(&mut rescuer);
        // More than one: MySQL also counts the rescuer, and sessions that have just ended.
        held.truncate(5);
        await_answer(&mut rescuer, &count_where("user = 'plain'"), "5");
        assert_eq!(plain().ask("SELECT 1"), "1");
        for session in &mut held {
            assert_eq!(session.ask("SELECT 2"), "2");
        }
    }
}

#[test]
fn shutdown_ends_the_server_and_its_clients_notice() {
    for (handling, pair) in cells() {
        let mut server = Server::start(KIND, pair.0, handling);
        let mut idle = warmed(&server, pair);
        let outcome = server.client(pair.1, &["-e", "SHUTDOWN"]);
        assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
        assert!(server.await_end().success(), "{}", server.log());
        assert_ended(&idle.fail("SELECT 1"));
        server.resume();
        warm(&mut server.session(pair.1));
    }
}
