//! `[outgoing]` of `saiga gateway`: programs of its host, and servers on another one, which has the
//! kernel's TCP. Needs what `support/gateway.rs` needs, and Linux 6.6.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use saiga_trials::snapshot::ip;
use serde_json::Value;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::said;
use world::{Talk, Wire, World, in_namespace, network};

const OUTGOING: &str = "[outgoing]\nprefixes = [\"10.9.0.0/24\", \"fd09::/64\"]\n";

/// Runs a command on the gateway's host; returns its output and errors.
fn run(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let out = said(Command::new(words[0]).args(&words[1..]));
    out.stdout + &out.stderr
}

/// redis-cli of the gateway's host, for the server on the other one.
fn cli() -> Command {
    let mut cli = Command::new("redis-cli");
    cli.args(["-h", "10.9.0.2"]);
    cli
}

/// Connections that the gateway has opened.
fn opened(world: &World) -> u64 {
    let words = ["gateway", "status", "--json", "--config"];
    let mut status = world.saiga.saiga(&words);
    let out = said(status.arg(world.saiga.path("gateway.toml")));
    let status: Value = serde_json::from_str(&out.stdout).unwrap();
    status["workers"][0]["tcp"]["ActiveOpens"].as_u64().unwrap()
}

/// What a program gets, and what the server on the other host sees of it.
fn check_redis(world: &World) {
    for (server, client) in [("10.9.0.2", "10.9.0.1:"), ("fd09::2", "[fd09::1]:")] {
        let cli = format!("redis-cli -h {server}");
        let before = opened(world);
        let seen = run(&format!("{cli} client list"));
        assert!(seen.contains(&format!("addr={client}")), "{seen}");
        assert_eq!(opened(world), before + 1, "the kernel carried it");
        let long = "x".repeat(100_000);
        assert_eq!(run(&format!("{cli} set key {long}")), "OK\n");
        assert_eq!(run(&format!("{cli} get key")), long.clone() + "\n");
        let load = format!("redis-benchmark -h {server} -n 3000 -c 30 -P 4 -q -t set,get");
        let out = run(&load);
        assert!(out.contains("GET"), "{out}");
        let mut accelerated = world.saiga.saiga(&["run", "--"]);
        let out = said(accelerated.args(load.split(' ')));
        assert!(out.stdout.contains("GET"), "{}{}", out.stdout, out.stderr);
    }
}

#[test]
fn programs_reach_servers_of_another_host() {
    for wire in [Wire::Tap, Wire::Xdp] {
        in_namespace(|| {
            let world = World::made(wire, OUTGOING);
            let gateway = world.gateway();
            let _server = world.redis_on_client();
            check_redis(&world);
            let refused = run("redis-cli -h 10.9.0.2 -p 7 ping");
            assert!(refused.contains("Connection refused"), "{refused}");
            let unreachable = run("redis-cli -h 10.9.0.77 ping");
            assert!(unreachable.contains("No route to host"), "{unreachable}");
            gateway.stop();
            assert_eq!(network(), world.before);
        });
    }
}

/// The stack has the addresses of its device alone.
#[test]
fn a_program_with_another_address_is_told_that_no_path_leads_there() {
    in_namespace(|| {
        let world = World::made(Wire::Tap, OUTGOING);
        let gateway = world.gateway();
        ip("address add 10.8.0.1/32 dev lo");
        let out = run("curl -sv --interface 10.8.0.1 http://10.9.0.2:6379/");
        assert!(out.contains("No route to host"), "{out}");
        gateway.stop();
    });
}

/// Connections from before the gateway, and those after its end, are the kernel's.
#[test]
fn the_kernel_carries_connections_without_a_gateway() {
    in_namespace(|| {
        let world = World::made(Wire::Xdp, OUTGOING);
        let _server = world.redis_on_client();
        let mut old = Talk::new(cli());
        let before = network();
        let mut gateway = world.gateway();
        old.ping();
        let _by_gateway = Talk::new(cli());
        assert_eq!(opened(&world), 1);
        gateway.kill();
        old.ping();
        assert_eq!(run("redis-cli -h 10.9.0.2 ping"), "PONG\n");
        let out = said(&mut world.saiga.saiga(&["gateway", "down"]));
        assert!(
            out.stdout.contains("fwmark"),
            "{}{}",
            out.stdout,
            out.stderr
        );
        assert_eq!(network(), before);
    });
}
