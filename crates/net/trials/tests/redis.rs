//! A real redis-server under the library, with clients on both arms, and operations that are hard
//! for an interposed library: fork for BGSAVE, daemonize, kills, blocking commands.

use saiga_trials::{
    census::Census,
    parity::Arm::{self, Kernel, Library},
    redis::{Client, Server},
    scale::by_scale,
};

const BOTH: [Arm; 2] = [Library, Kernel];

/// Checks that an accelerated client of an accelerated server was upgraded.
fn assert_upgraded(server: &Server, arm: Arm) {
    if arm == Library {
        assert!(
            Census::upgrades(server.pid()) > 0,
            "the server has upgraded nothing"
        );
    }
}

/// Checks that every connection of an accelerated client was upgraded.
fn assert_moved(server: &Server, clients: &[Arm]) {
    let accelerated = clients.iter().filter(|arm| **arm != Kernel).count() as u64;
    let upgrades = Census::upgrades(server.pid());
    assert!(upgrades >= accelerated, "{upgrades} of {accelerated}");
}

/// Enough commands for an upgrade under `SAIGA_EVIDENCE_MESSAGES=0`.
fn warm(client: &mut Client) {
    for i in 0..60 {
        assert_eq!(client.ask(&format!("ECHO warm-{i}")), format!("warm-{i}"));
    }
}

/// Sets `count` keys to known values.
fn fill(client: &mut Client, count: u32) {
    for i in 0..count {
        assert_eq!(client.ask(&format!("SET key:{i} value-{}", i * 7)), "OK");
    }
}

fn check(client: &mut Client, count: u32) {
    assert_eq!(client.ask("DBSIZE"), count.to_string());
    for i in (0..count).step_by(7) {
        assert_eq!(
            client.ask(&format!("GET key:{i}")),
            format!("value-{}", i * 7)
        );
    }
}

/// Repeats INFO until `field` of `section` is `wanted`, for work in the background.
fn await_info(client: &mut Client, section: &str, field: &str, wanted: &str) {
    for _ in 0..20_000 {
        let info = client.ask(&format!("INFO {section}"));
        if info
            .lines()
            .any(|line| line.trim() == format!("{field}:{wanted}"))
        {
            return;
        }
    }
    panic!("{field} does not become {wanted}");
}

#[test]
fn saves_and_rewrites_under_load() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &["--appendonly", "yes"]);
        let mut client = server.client(arm);
        fill(&mut client, 300);
        let load = server.load(arm, &["-q", "-t", "incr", "-n", "60000", "-c", "20"]);
        for _ in 0..by_scale(3, 30) {
            assert!(
                client
                    .ask("BGSAVE")
                    .starts_with("Background saving started")
            );
            await_info(&mut client, "persistence", "rdb_bgsave_in_progress", "0");
            await_info(&mut client, "persistence", "rdb_last_bgsave_status", "ok");
            let answer = client.ask("BGREWRITEAOF");
            assert!(answer.contains("append only file rewriting"), "{answer}");
            await_info(&mut client, "persistence", "aof_rewrite_in_progress", "0");
            await_info(
                &mut client,
                "persistence",
                "aof_last_bgrewrite_status",
                "ok",
            );
        }
        let (_, status) = load.finish();
        assert!(status.success(), "redis-benchmark: {status}");
        assert_eq!(client.ask("GET counter:__rand_int__"), "60000");
        assert_eq!(client.ask("DEBUG RELOAD"), "OK");
        assert_eq!(client.ask("GET counter:__rand_int__"), "60000");
        assert_eq!(client.ask("DEL counter:__rand_int__"), "1");
        assert_upgraded(&server, arm);
        check(&mut client, 300);
    }
}

#[test]
fn values_of_every_size_come_back() {
    for (server_arm, arm) in [(Library, Library), (Library, Kernel), (Kernel, Library)] {
        for host in ["127.0.0.1", "::1"] {
            let server = Server::start(server_arm, host, &[]);
            let mut client = server.client(arm);
            for size in [0, 1, 100, 4095, 4096, 65_535, 65_536, 200_001, 1_000_000] {
                let value = "0123456789abcdef".repeat(size / 16 + 1)[..size].to_owned();
                assert_eq!(client.ask(&format!("SET big \"{value}\"")), "OK");
                assert_eq!(client.ask("STRLEN big"), size.to_string());
                assert_eq!(client.ask("GET big"), value, "size {size}");
            }
            fill(&mut client, 50);
            if server_arm == Library {
                assert_upgraded(&server, arm);
            }
            let reply = client.ask("EVAL \"return redis.call('DBSIZE')\" 0");
            assert_eq!(reply, "51");
        }
    }
}

#[test]
fn killed_clients_do_not_affect_the_others() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &[]);
        let (mut killer, mut bystander, mut victim) =
            (server.client(arm), server.client(arm), server.client(arm));
        warm(&mut bystander);
        warm(&mut killer);
        for _ in 0..by_scale(10, 200) {
            warm(&mut victim);
            let id = victim.ask("CLIENT ID");
            assert_eq!(killer.ask(&format!("CLIENT KILL ID {id}")), "1");
            // redis-cli notices at its next command, and connects again.
            victim.ask("PING");
            assert_eq!(victim.ask("PING"), "PONG");
            assert_ne!(victim.ask("CLIENT ID"), id);
            warm(&mut bystander);
        }
        assert_upgraded(&server, arm);
        let clients = killer.ask("CLIENT LIST TYPE normal");
        assert_eq!(clients.lines().count(), 3, "{clients}");
    }
}

#[test]
fn monitor_and_pubsub_deliver_everything_in_order() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &[]);
        let (mut monitor, mut subscriber, mut speaker) = (
            server.client(arm),
            server.client(arm),
            server.client(Library),
        );
        for client in [&mut monitor, &mut subscriber, &mut speaker] {
            warm(client);
        }
        subscriber.listen_by("SUBSCRIBE news");
        assert_eq!(
            [subscriber.line(), subscriber.line(), subscriber.line()].join(" "),
            "subscribe news 1"
        );
        monitor.listen_by("MONITOR");
        assert_eq!(monitor.line(), "OK");
        for i in 0..200 {
            assert_eq!(speaker.ask(&format!("PUBLISH news item-{i}")), "1");
            let heard = [subscriber.line(), subscriber.line(), subscriber.line()];
            assert_eq!(
                heard,
                ["message".to_owned(), "news".to_owned(), format!("item-{i}")]
            );
            let seen = [monitor.line(), monitor.line()];
            assert!(
                seen[0].ends_with(&format!("\"PUBLISH\" \"news\" \"item-{i}\"")),
                "{seen:?}"
            );
            assert!(seen[1].contains("\"ECHO\""), "{seen:?}");
        }
        assert_moved(&server, &[arm, arm, Library]);
    }
}

#[test]
fn blocking_commands_wake_and_time_out() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &[]);
        let (mut sleeper, mut waker) = (server.client(arm), server.client(Library));
        warm(&mut sleeper);
        warm(&mut waker);
        for i in 0..50 {
            sleeper.send("BLPOP queue 0");
            await_info(&mut waker, "clients", "blocked_clients", "1");
            assert_eq!(waker.ask(&format!("RPUSH queue job-{i}")), "1");
            assert_eq!(sleeper.reply(), format!("queue\njob-{i}"));
        }
        assert_eq!(sleeper.ask("BLPOP queue 0.05"), "");
        sleeper.send("BRPOPLPUSH one two 0");
        await_info(&mut waker, "clients", "blocked_clients", "1");
        assert_eq!(waker.ask("LPUSH one x"), "1");
        assert_eq!(sleeper.reply(), "x");
        assert_eq!(waker.ask("LRANGE two 0 -1"), "x");
        assert_upgraded(&server, arm);
    }
}

#[test]
fn transactions_are_whole() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &[]);
        let (mut one, mut two) = (server.client(arm), server.client(Library));
        for round in 0..60 {
            assert_eq!(one.ask("WATCH guarded"), "OK");
            assert_eq!(one.ask_line("MULTI"), "OK");
            assert_eq!(one.ask_line("INCR counter"), "QUEUED");
            if round % 2 == 1 {
                assert_eq!(two.ask(&format!("SET guarded {round}")), "OK");
            }
            let done = one.ask_line("EXEC");
            let expected = if round % 2 == 1 {
                String::new()
            } else {
                (round / 2 + 1).to_string()
            };
            assert_eq!(done, expected, "round {round}");
        }
        assert_moved(&server, &[arm, Library]);
    }
}

#[test]
fn shutdown_ends_the_server_and_its_clients_notice() {
    for arm in BOTH {
        let server = Server::start(Library, "127.0.0.1", &[]);
        let mut client = server.client(arm);
        warm(&mut client);
        let outcome = server.run_cli(arm, &["SHUTDOWN", "NOSAVE"]);
        assert_eq!(outcome.stdout, "", "{outcome:?}");
        let noticed = client.ask_line("PING");
        let errors = [
            "closed the connection",
            "reset by peer",
            "Could not connect",
        ];
        assert!(
            errors.iter().any(|error| noticed.contains(error)),
            "{noticed}"
        );
        for _ in 0..10_000 {
            if server.is_gone() {
                break;
            }
            server.run_cli(Kernel, &["PING"]);
        }
        assert!(server.is_gone(), "{}", server.log());
    }
}

#[test]
fn io_threads_and_benchmark_threads_work() {
    for options in [
        &["--io-threads", "2", "--io-threads-do-reads", "yes"][..],
        &[],
    ] {
        let server = Server::start(Library, "127.0.0.1", options);
        for arm in BOTH {
            for words in [
                &["-q", "-t", "set,get", "-n", "20000", "-c", "50"][..],
                &[
                    "-q",
                    "-t",
                    "set,get",
                    "-n",
                    "20000",
                    "-c",
                    "50",
                    "--threads",
                    "2",
                ],
                &["-q", "-t", "set,get", "-n", "40000", "-c", "50", "-P", "16"],
                &[
                    "-q", "-t", "set,get", "-n", "2000", "-c", "50", "-d", "100000",
                ],
                &[
                    "-q",
                    "-t",
                    "ping_mbulk",
                    "-n",
                    "2000",
                    "-c",
                    "10",
                    "-k",
                    "0",
                ],
            ] {
                let outcome = server.benchmark(arm, words);
                assert!(
                    outcome.ending == saiga_trials::bounded::Ending::Exited(0),
                    "{words:?}: {outcome:?}\n{}",
                    server.log()
                );
                let errors = outcome.stdout.matches("rror").count();
                assert_eq!(errors, 0, "{}", outcome.stdout);
            }
            let mut client = server.client(arm);
            fill(&mut client, 20);
            assert_eq!(client.ask("GET key:3"), "value-21");
            assert_eq!(client.ask("FLUSHALL"), "OK");
        }
    }
}
