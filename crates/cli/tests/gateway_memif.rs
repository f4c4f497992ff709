//! `saiga gateway` on shared memory: two confined gateways, each with the TAP device of its host's
//! kernel. Needs what `support/gateway.rs` needs, and ping(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::program::{Ended, start};
use support::text;
use world::{Wire, World, in_namespace, network};

/// The settings of the client's host.
fn client_settings(world: &World) -> PathBuf {
    let settings = fs::read_to_string(world.saiga.path("gateway.toml")).unwrap();
    let settings = settings.replace("10.9.0.1/24", "10.9.0.2/24");
    let settings = settings.replace("fd09::1/64", "fd09::2/64");
    let settings = settings.replace("\"server\"", "\"client\"");
    let settings = settings.replace("run/gateway.sock", "other/gateway.sock");
    let file = world.saiga.path("client.toml");
    fs::write(&file, settings).unwrap();
    file
}

/// The gateway of the client's host.
fn client(world: &World) -> Ended {
    let (binary, file) = (world.saiga.path("bin/saiga"), client_settings(world));
    let up = [text(&binary), "gateway", "up", "--config", text(&file)];
    start(&mut world.program(&up), "serving")
}

/// The served port, and the kernel's answers to echo requests.
fn check(world: &World) {
    let value = "0123456789abcdef".repeat(60_000);
    for server in ["10.9.0.1", "fd09::1"] {
        world.client(&format!("ping -q -c 3 -i 0.01 -w 60 {server}"));
        let cli = format!("redis-cli -h {server}");
        world.client_with(&format!("{cli} -x set key"), value.as_bytes());
        assert!(world.client(&format!("{cli} get key")).trim_end() == value);
        let load = format!("redis-benchmark -h {server} -n 2000 -c 20 -P 4 -q -t set,get");
        world.client(&load);
    }
}

/// Each end is killed, and a new one takes its place: the other has given up its rights by then.
#[test]
fn two_hosts_are_joined_by_shared_memory() {
    in_namespace(|| {
        let world = World::over(Wire::Memif);
        world.client("ip link set lo up");
        // The client's gateway comes back to the socket without the rights of root.
        fs::set_permissions(world.saiga.path(""), Permissions::from_mode(0o755)).unwrap();
        let mut server = world.gateway();
        let mut other = client(&world);
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        assert!(status.contains("Seccomp:\t2"), "{status}");
        let _served = world.redis(true);
        check(&world);
        other.kill();
        other = client(&world);
        check(&world);
        server.kill();
        let server = world.gateway();
        check(&world);
        server.stop();
        other.stop();
        assert_eq!(network(), world.before);
    });
}
