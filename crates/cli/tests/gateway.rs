//! `saiga gateway` on a TAP device, between real servers and a kernel client in another network
//! namespace. Needs root, /dev/net/tun, ip(8), nsenter(1) and Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::{Installation, said};
use world::{Ended, SETTINGS, Wire, World, in_namespace, ip, network, stop};

/// What a client sees and what the server sees of it, over both versions of IP.
fn check_redis(world: &World) {
    for (server, client) in [("10.9.0.1", "10.9.0.2:"), ("fd09::1", "[fd09::2]:")] {
        let cli = format!("redis-cli -h {server}");
        assert_eq!(world.client(&format!("{cli} ping")), "PONG\n");
        let seen = world.client(&format!("{cli} client list"));
        assert!(seen.contains(&format!("addr={client}")), "{seen}");
        // Several windows in both directions.
        let value: String = (0..2_000_000)
            .map(|n| char::from(b'a' + u8::try_from(n % 23).unwrap()))
            .collect();
        world.client_with(&format!("{cli} -x set key"), value.as_bytes());
        let back = world.client(&format!("{cli} get key"));
        assert!(back.trim_end() == value, "other bytes came back");
        let load = format!("redis-benchmark -h {server} -n 3000 -c 30 -P 4 -q -t set,get");
        world.client(&load);
    }
}

#[test]
fn a_remote_client_reaches_an_unmodified_server() {
    in_namespace(|| {
        let world = World::new();
        let _server = world.redis(false);
        let gateway = world.gateway();
        check_redis(&world);
        stop(gateway);
        assert_eq!(network(), world.before);
    });
}

/// Whether its anchors are upgraded to channels does not show to the client.
#[test]
fn a_server_under_the_library_is_served() {
    in_namespace(|| {
        let world = World::new();
        let _server = world.redis(true);
        let gateway = world.gateway();
        check_redis(&world);
        stop(gateway);
    });
}

/// The kernel has interface, address and ARP, and serves before, beside and after the gateway.
#[test]
fn an_interface_of_the_kernel_is_shared() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(true);
        let ping = "redis-cli -h 10.9.0.1 ping";
        assert_eq!(world.client(ping), "PONG\n");
        let gateway = world.gateway();
        check_redis(&world);
        // Another port is the kernel's.
        let _other = world.redis_on("10.9.0.1", 6380);
        assert_eq!(world.client("redis-cli -h 10.9.0.1 -p 6380 ping"), "PONG\n");
        stop(gateway);
        assert_eq!(network(), world.before);
        assert_eq!(world.client(ping), "PONG\n");
    });
}

/// A connection from before the gateway stays with the kernel, and its host comes to the gateway
/// when it has ended.
#[test]
fn a_host_with_an_old_connection_is_taken_over_at_its_end() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(false);
        let mut old = world.on_client("redis-cli -h 10.9.0.1");
        let old = old.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut old = Ended(old.unwrap());
        let mut talk = |line: &str| {
            let child = &mut old.0;
            writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
            let mut answer = String::new();
            let stdout = child.stdout.as_mut().unwrap();
            BufReader::with_capacity(1, stdout)
                .read_line(&mut answer)
                .unwrap();
            answer
        };
        assert_eq!(talk("ping"), "PONG\n");
        let gateway = world.gateway();
        let throws = || ip("route show table 79").contains("throw 10.9.0.2");
        assert!(throws());
        assert_eq!(talk("ping"), "PONG\n");
        let ping = "redis-cli -h 10.9.0.1 ping";
        assert_eq!(world.client(ping), "PONG\n", "by the kernel");
        drop(old);
        while throws() {
            thread::yield_now();
        }
        assert_eq!(world.client(ping), "PONG\n", "by the gateway");
        stop(gateway);
        assert_eq!(network(), world.before);
    });
}

/// The gateway follows the kernel's addresses, and the MAC address of a neighbour.
#[test]
fn changes_of_the_network_are_followed() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis_on("0.0.0.0", 6379);
        let gateway = world.gateway();
        let list = |server: &str| world.client(&format!("redis-cli -h {server} client list"));
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        for change in ["down", "address 02:00:00:00:00:77", "up"] {
            world.client(&format!("ip link set tap0 {change}"));
        }
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        ip("address add 10.9.0.3/24 dev veth0");
        while !ip("rule").contains("from 10.9.0.3") {
            thread::yield_now();
        }
        assert!(list("10.9.0.3").contains("addr=10.9.0.2:"));
        ip("link set veth0 down");
        ip("link set veth0 up");
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        stop(gateway);
    });
}

#[test]
fn a_killed_gateway_leaves_what_down_removes() {
    for wire in [Wire::Tap, Wire::Xdp] {
        in_namespace(move || {
            let world = World::over(wire);
            let _server = world.redis(false);
            drop(world.gateway());
            assert_ne!(network(), world.before, "kill -9 leaves the rules");
            let out = said(&mut world.saiga.saiga(&["gateway", "down"]));
            assert_eq!(out.code, Some(0), "{}", out.stderr);
            assert_eq!(network(), world.before);
        });
    }
}

#[test]
fn a_port_without_a_server_refuses() {
    in_namespace(|| {
        let world = World::new();
        let gateway = world.gateway();
        let answer = said(&mut world.on_client("redis-cli -h 10.9.0.1 ping"));
        let text = answer.stdout + &answer.stderr;
        assert!(text.contains("Connection refused"), "{text}");
        stop(gateway);
    });
}

/// A limit that is not kept would be worse than none.
#[test]
fn keys_without_effect_are_refused() {
    let saiga = Installation::bare();
    let file = saiga.path("gateway.toml");
    for (lines, key) in [
        ("connections = 10", "serve.connections"),
        ("[outgoing]\nprefixes = \"10.0.0.0/8\"", "outgoing.prefixes"),
    ] {
        fs::write(&file, format!("{SETTINGS}{lines}\n")).unwrap();
        let mut command = saiga.saiga(&["gateway", "up", "--inside", "--config"]);
        let out = said(command.arg(&file));
        assert_eq!(out.code, Some(2), "{key}");
        assert!(out.stderr.contains(key), "{key}: {}", out.stderr);
    }
}

#[test]
fn mistakes_are_named() {
    let saiga = Installation::bare();
    let file = saiga.path("gateway.toml");
    fs::write(&file, SETTINGS.replace("\"tap\"", "\"tape\"")).unwrap();
    for verb in ["up", "check"] {
        let out = said(saiga.saiga(&["gateway", verb, "--config"]).arg(&file));
        assert_eq!(out.code, Some(2));
        assert!(out.stderr.contains("gateway.toml"), "{}", out.stderr);
        assert!(out.stderr.contains("tape"), "{}", out.stderr);
    }
}
