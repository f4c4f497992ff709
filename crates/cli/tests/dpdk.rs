//! `saiga gateway` on a port of DPDK: a packet socket on one end of a veth pair, whose other end is
//! the client's. Needs what `support/gateway.rs` needs, DPDK with its headers, ethtool(8), ping(8).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use saiga_trials::snapshot::ip;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::{Said, said, text};
use world::{Wire, World, in_namespace, network};

/// A server's host with a port of DPDK, and the plug-in.
fn world() -> World {
    let mut world = World::over(Wire::Dpdk);
    // A packet socket gets frames beside the kernel, which must not take them from this interface.
    for (key, value) in [
        ("ipv4/conf/port0/rp_filter", "1"),
        ("ipv6/conf/port0/disable_ipv6", "1"),
    ] {
        fs::write(PathBuf::from("/proc/sys/net").join(key), value).unwrap();
    }
    // The driver does not know that a checksum can be open.
    world.client("ethtool -K tap0 tx off");
    world.before = network();
    world
}

/// `saiga gateway VERB`, with the file of settings of the world.
fn gateway(world: &World, verb: &str) -> Said {
    let settings = world.saiga.path("gateway.toml");
    said(
        &mut world
            .saiga
            .saiga(&["gateway", verb, "--config", text(&settings)]),
    )
}

/// What `saiga gateway status` says.
fn status(world: &World) -> String {
    let control = world.saiga.path("run/gateway.sock");
    let status = ["gateway", "status", "--control", text(&control)];
    said(&mut world.saiga.saiga(&status)).stdout
}

/// The lines of each thread of a process that tell its rights.
fn rights(process: u32) -> (usize, BTreeSet<String>) {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let statuses =
        threads.map(|one| fs::read_to_string(one.unwrap().path().join("status")).unwrap());
    let rights: Vec<String> = statuses
        .map(|status| {
            let kept = ["Uid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];
            let lines = status.lines();
            let lines = lines.filter(|line| kept.iter().any(|key| line.starts_with(key)));
            lines.collect::<Vec<_>>().join("; ")
        })
        .collect();
    (rights.len(), rights.into_iter().collect())
}

/// The served port, and beside it the kernel's other port, echo requests and neighbours.
#[test]
fn a_port_of_dpdk_is_shared_with_the_kernel() {
    in_namespace(|| {
        let world = world();
        world.saiga.install_plugin();
        let gateway = world.gateway();
        let (threads, rights) = rights(gateway.0.id());
        assert!(threads > 2 && rights.len() == 1, "{rights:?}");
        let rights = rights.first().unwrap();
        assert!(
            rights.contains("Seccomp:\t2") && !rights.contains("Uid:\t0"),
            "{rights}"
        );
        let addresses = ["10.9.0.1", "fd09::1"];
        let _served = world.redis(true);
        let _other = world.saiga.redis(false, &addresses, 6380, &[]);
        let value = "0123456789abcdef".repeat(60_000);
        for (server, client) in addresses.into_iter().zip(["10.9.0.2:", "[fd09::2]:"]) {
            let mut pings = world.on_client(&format!("ping -q -c 50 -i 0.01 -w 60 {server}"));
            let pings = pings.stdout(std::process::Stdio::piped()).spawn().unwrap();
            for port in ["6379", "6380"] {
                let cli = format!("redis-cli -h {server} -p {port}");
                let seen = world.client(&format!("{cli} client list"));
                assert!(seen.contains(&format!("addr={client}")), "{seen}");
                world.client_with(&format!("{cli} -x set key"), value.as_bytes());
                assert!(world.client(&format!("{cli} get key")).trim_end() == value);
            }
            let load = format!("redis-benchmark -h {server} -n 2000 -c 20 -P 4 -q -t set,get");
            world.client(&load);
            let pings = pings.wait_with_output().unwrap();
            assert!(
                pings.status.success(),
                "{}",
                String::from_utf8_lossy(&pings.stdout)
            );
        }
        let status = status(&world);
        for part in ["net_af_packet0", "dpdk0", "PassiveOpens"] {
            assert!(status.contains(part), "{status}");
        }
        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

/// A card's queues need RSS; the driver net_null says that it has that.
#[test]
fn each_worker_has_a_queue_and_a_way_to_the_kernel() {
    in_namespace(|| {
        let world = World::over(Wire::Dpdk);
        world.saiga.install_plugin();
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let settings = settings.replace("net_af_packet0,iface=port0", "net_null0,no-rx=1");
        fs::write(&file, settings + "[workers]\ncpus = \"0,1\"\n").unwrap();
        let gateway = world.gateway();
        let status = status(&world);
        for worker in ["worker 0: up", "worker 1: up"] {
            assert!(status.contains(worker), "{status}");
        }
        for queue in ["net_null0", "dpdk0"] {
            let rows = status.lines().filter_map(|line| line.strip_prefix(queue));
            let numbers: Vec<&str> = rows
                .filter_map(|row| row.split_whitespace().next())
                .collect();
            assert_eq!(numbers, ["0", "1"], "{status}");
        }
        gateway.stop();
    });
}

/// The TAP device, its addresses and the rules are those of the process.
#[test]
fn what_dpdk_lacks_is_named_and_nothing_changes() {
    in_namespace(|| {
        let world = world();
        let out = gateway(&world, "up");
        assert_eq!(out.code, Some(2), "{}", out.stdout);
        assert!(out.stderr.contains("libdpdk-dev"), "{}", out.stderr);
        world.saiga.install_plugin();
        let file = world.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        for (from, to, reason) in [
            (
                "iface=port0",
                "iface=nowhere",
                "net_af_packet0,iface=nowhere",
            ),
            ("net_af_packet0", "net_nothing0", "net_nothing0"),
            ("[dpdk]\n", "[workers]\ncpus = \"0,1\"\n[dpdk]\n", "queue"),
            ("[dpdk]\n", "[dpdk]\neal = \"--nothing\"\n", "eal"),
            ("\"dpdk0\"", "\"port0\"", "exists already"),
        ] {
            fs::write(&file, settings.replace(from, to)).unwrap();
            let out = gateway(&world, "up");
            assert_eq!(out.code, Some(2), "{to}: {}{}", out.stdout, out.stderr);
            assert!(out.stderr.contains(reason), "{to}: {}", out.stderr);
            assert_eq!(network(), world.before);
        }
        assert!(!ip("link").contains("dpdk0"));
    });
}
