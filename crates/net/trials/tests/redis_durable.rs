//! Redis that writes to disk and is restarted under load, and Redis with TLS, with every process
//! under the library.

use std::{process::Command, time::Duration};

use saiga_trials::{
    bounded::{self, Ending},
    certificate,
    parity::{
        self,
        Arm::{Library, Shipped},
    },
    port,
    redis::{Client, Server},
    redis_topology::await_same_data,
    scale::by_scale,
};

/// Counts up to `last`, and checks each answer.
fn count_up(client: &mut Client, from: u64, last: u64) {
    for n in from + 1..=last {
        assert_eq!(client.ask("INCR acknowledged"), n.to_string());
    }
}

/// Restarts the server repeatedly. Each redis-benchmark is cut short, so its end is not checked.
fn restarts(options: &[&str], end: impl Fn(&Server)) {
    for arm in [Library, Shipped] {
        let mut server = Server::start(arm, "::1", options);
        let mut acknowledged = 0;
        for _ in 0..by_scale(3, 100) {
            let load = [
                "-q",
                "-t",
                "set,incr",
                "-n",
                "100000000",
                "-r",
                "9000",
                "-c",
                "20",
            ];
            let load = server.load(arm, &load);
            let mut client = server.client(arm);
            count_up(&mut client, acknowledged, acknowledged + 100);
            acknowledged += 100;
            end(&server);
            server.await_gone();
            load.kill();
            server.start_again();
            let found = server.ask(&["GET", "acknowledged"]);
            assert_eq!(found, acknowledged.to_string(), "{}", server.log());
        }
    }
}

#[test]
fn an_append_only_file_keeps_what_was_acknowledged_when_the_server_is_killed() {
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    restarts(&options, Server::kill);
}

#[test]
fn a_snapshot_keeps_everything_when_the_server_is_shut_down() {
    restarts(&["--io-threads", "2"], |server| {
        server.run_cli(Library, &["SHUTDOWN", "SAVE"]);
    });
}

#[test]
fn tls_carries_commands_and_replication_through_channels() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let [cert, key] = certificate::make(folder.path()).map(|file| file.display().to_string());
    for arm in [Library, Shipped] {
        let ports = [port::free(), port::free()].map(|port| port.to_string());
        let options = |port| {
            [
                &[
                    "--tls-port",
                    port,
                    "--tls-cert-file",
                    &cert,
                    "--tls-key-file",
                    &key,
                ][..],
                &["--tls-ca-cert-file", &cert, "--tls-replication", "yes"],
            ]
            .concat()
        };
        let master = Server::start(arm, "127.0.0.1", &options(&ports[0]));
        let mut follows = options(&ports[1]);
        follows.extend(["--replicaof", "127.0.0.1", &ports[0]]);
        let replica = Server::start(arm, "127.0.0.1", &follows);
        let secured = |program: &str, port: &str, words: &[&str]| {
            let mut command = Command::new(program);
            parity::set_environment(&mut command, arm);
            command.args(["-p", port, "--tls", "--cacert", &cert, "--cert", &cert]);
            command.args(["--key", &key]).args(words);
            let outcome = bounded::run(command, Duration::from_secs(60));
            assert_eq!(
                outcome.ending,
                Ending::Exited(0),
                "{outcome:?}\n{}",
                master.log()
            );
            outcome.stdout
        };
        let load = [
            "-q", "-t", "set", "-n", "20000", "-r", "3000", "-d", "3000", "-c", "20",
        ];
        secured("redis-benchmark", &ports[0], &load);
        let value = "0123456789abcdef".repeat(20_000);
        assert_eq!(
            secured("redis-cli", &ports[0], &["SET", "big", &value[..100_000]]),
            "OK\n"
        );
        let got = secured("redis-cli", &ports[0], &["GET", "big"]);
        assert_eq!(got.trim_end(), &value[..100_000]);
        assert_eq!(replica.info("replication", "master_port"), ports[0]);
        await_same_data(&master, &replica);
        let got = secured("redis-cli", &ports[1], &["GET", "big"]);
        assert_eq!(got.trim_end(), &value[..100_000]);
        assert!(upgrades(&master) >= 20, "{} upgraded", upgrades(&master));
        assert_eq!(master.channels_to(replica.pid()), 1);
    }
}

fn upgrades(server: &Server) -> u64 {
    saiga_trials::census::Census::upgrades(server.pid())
}
