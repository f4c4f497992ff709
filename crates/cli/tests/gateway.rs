//! `saiga gateway` on a TAP device and on an interface of the kernel, between real servers and a
//! kernel client in another network namespace. Needs what `support/gateway.rs` needs.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use saiga_gateway::settings::Settings;
use saiga_process::network::{Namespace, within};
use saiga_trials::snapshot::ip;
use saiga_trials::witness::await_true;
use serde_json::Value;

mod support;
#[path = "support/gateway.rs"]
mod world;
use support::{Installation, said};
use world::{SETTINGS, Talk, Wire, World, in_namespace, network};

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
        gateway.stop();
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
        gateway.stop();
    });
}

/// What the file asks for and the device or the machine does not have.
#[test]
fn what_the_machine_does_not_have_is_named() {
    for (device, tables, expected) in [
        ("", "[workers]\ncpus = \"0,1\"\n", "one worker"),
        ("queues = 2", "", "ethtool -L veth0 combined 2"),
        (
            "vlan = 5",
            "",
            "ip link add link veth0 name veth0.5 type vlan id 5",
        ),
        (
            "",
            "[workers]\nmemory_bind = \"0,1023\"\n",
            "NUMA node 1023",
        ),
    ] {
        in_namespace(|| {
            let world = World::made(Wire::Xdp, tables);
            world.add_to_device(device);
            let mut up = world.saiga.saiga(&["gateway", "up", "--config"]);
            let out = said(up.arg(world.saiga.path("gateway.toml")));
            assert_eq!(out.code, Some(2), "{}", out.stdout);
            assert!(out.stderr.contains(expected), "{}", out.stderr);
            assert_eq!(network(), world.before);
        });
    }
}

/// Each worker of a TAP device has a queue, and the kernel spreads the connections over them.
#[test]
fn workers_share_the_connections_of_a_tap_device() {
    in_namespace(|| {
        let world = World::made(
            Wire::Tap,
            "[workers]\ncpus = \"0,1\"\nmemory_bind = \"0\"\n",
        );
        ip("link delete tap0");
        let _server = world.redis(true);
        let gateway = world.gateway();
        let _talks: Vec<Talk> = (0..32)
            .map(|_| Talk::new(world.on_client("redis-cli -h 10.9.0.1")))
            .collect();
        let words = ["gateway", "status", "--json", "--control"];
        let mut status = world.saiga.saiga(&words);
        let status = said(status.arg(world.saiga.path("run/gateway.sock")));
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
        let workers = status["workers"].as_array().unwrap();
        let counts = workers.iter().map(|one| one["conversations"].as_u64());
        let counts: Vec<u64> = counts.map(Option::unwrap).collect();
        assert_eq!((counts.len(), counts.iter().sum()), (2, 32), "{status}");
        // That all 32 come to one queue has the probability 2 to the power of -31.
        assert!(!counts.contains(&0), "{status}");
        check_redis(&world);
        gateway.stop();
        assert_eq!(network(), world.before);
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
        let _other = world.saiga.redis(false, &["10.9.0.1"], 6380, &[]);
        assert_eq!(world.client("redis-cli -h 10.9.0.1 -p 6380 ping"), "PONG\n");
        gateway.stop();
        assert_eq!(network(), world.before);
        assert_eq!(world.client(ping), "PONG\n");
    });
}

/// A router behind which packets must be smaller tells so once: the next connections know it, in
/// both versions of IP.
#[test]
fn the_mtu_of_a_path_is_kept() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(false);
        // The client's host is the router.
        let beyond = Namespace::new().unwrap();
        for line in [
            "link add far type veth peer name beyond",
            "link set beyond mtu 1300 up",
            "address add 10.10.0.1/24 dev beyond",
            "address add fd10::1/64 dev beyond nodad",
            &format!("link set far netns {}", beyond.path().display()),
        ] {
            world.client(&format!("ip {line}"));
        }
        world.client("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        for line in [
            "link set far mtu 1300 up",
            "address add 10.10.0.2/24 dev far",
            "address add fd10::2/64 dev far nodad",
            "route add default via 10.10.0.1",
            "-6 route add default via fd10::1",
        ] {
            within(Some(&beyond.path()), || Ok(ip(line))).unwrap();
        }
        ip("route add 10.10.0.0/24 via 10.9.0.2");
        ip("-6 route add fd10::/64 via fd09::2");
        let gateway = world.gateway();
        let value = "x".repeat(50_000);
        let set = format!("redis-cli -h 10.9.0.1 set key {value}");
        assert_eq!(run(&set), "OK\n");
        for (server, headers) in [("10.9.0.1", 40), ("fd09::1", 60)] {
            let cli = || {
                let mut cli = Command::new("nsenter");
                cli.arg(format!("--net={}", beyond.path().display()));
                cli.args(["redis-cli", "-h", server]);
                cli
            };
            let got = said(cli().args(["get", "key"])).stdout;
            assert_eq!(got.trim_end(), value);
            let _next = Talk::new(cli());
            // 12 bytes are those of the timestamps.
            assert_eq!(segment_size(&world), 1300 - headers - 12);
        }
        gateway.stop();
    });
}

/// Runs a command on the server's host; returns its output.
fn run(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    said(Command::new(words[0]).args(&words[1..])).stdout
}

/// Bytes of the segments of the connection that is open.
fn segment_size(world: &World) -> u64 {
    let words = ["gateway", "status", "--json", "--connections", "--config"];
    let mut status = world.saiga.saiga(&words);
    let status = said(status.arg(world.saiga.path("gateway.toml"))).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    let connections = status["connections"].as_array().unwrap();
    let mut open = connections
        .iter()
        .filter(|one| one["state"] == "ESTABLISHED");
    let size = open.next().and_then(|one| one["tcp"]["mss_bytes"].as_u64());
    assert_eq!(open.next(), None);
    size.unwrap()
}

/// A connection from before the gateway stays with the kernel, and its host comes to the gateway
/// when it has ended.
#[test]
fn a_host_with_an_old_connection_is_taken_over_at_its_end() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.redis(false);
        let mut old = Talk::new(world.on_client("redis-cli -h 10.9.0.1"));
        let gateway = world.gateway();
        let throws = || ip("route show table 79").contains("throw 10.9.0.2");
        assert!(throws());
        old.ping();
        let ping = "redis-cli -h 10.9.0.1 ping";
        assert_eq!(world.client(ping), "PONG\n", "by the kernel");
        drop(old);
        await_true(|| !throws(), || "the host stays with the kernel".to_owned());
        assert_eq!(world.client(ping), "PONG\n", "by the gateway");
        gateway.stop();
        assert_eq!(network(), world.before);
    });
}

/// The gateway follows the kernel's addresses, and the MAC address of a neighbour.
#[test]
fn changes_of_the_network_are_followed() {
    in_namespace(|| {
        let world = World::over(Wire::Xdp);
        let _server = world.saiga.redis(false, &["0.0.0.0"], 6379, &[]);
        let gateway = world.gateway();
        let list = |server: &str| world.client(&format!("redis-cli -h {server} client list"));
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        for change in ["down", "address 02:00:00:00:00:77", "up"] {
            world.client(&format!("ip link set tap0 {change}"));
        }
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        ip("address add 10.9.0.3/24 dev veth0");
        let is_served = || ip("rule").contains("from 10.9.0.3");
        await_true(is_served, || "the new address is not served".to_owned());
        assert!(list("10.9.0.3").contains("addr=10.9.0.2:"));
        ip("link set veth0 down");
        ip("link set veth0 up");
        assert!(list("10.9.0.1").contains("addr=10.9.0.2:"));
        gateway.stop();
    });
}

/// A client beyond a limit gets no answer, and is served once another connection has ended.
#[test]
fn connections_of_a_client_are_limited() {
    in_namespace(|| {
        let world = World::with("[[serve]]\nport = 6380\nconnections_per_client = 2\n");
        let _server = world.saiga.redis(false, &["10.9.0.1"], 6380, &[]);
        let mut up = world.saiga.saiga(&["gateway", "up", "--config"]);
        up.stderr(Stdio::piped());
        let mut gateway = world.gateway_by(up);
        let cli = "redis-cli -h 10.9.0.1 -p 6380";
        let first = Talk::new(world.on_client(cli));
        let _second = Talk::new(world.on_client(cli));
        let third = world.on_client(&format!("{cli} ping"));
        let third = { third }.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(gateway.0.stderr.take().unwrap()).lines();
        let is_full = said.any(|line| line.unwrap().contains("`serve.connections_per_client`, 2"));
        assert!(is_full);
        drop(first);
        assert_eq!(third.wait_with_output().unwrap().stdout, b"PONG\n");
        gateway.stop();
    });
}

#[test]
fn a_port_without_a_server_refuses() {
    in_namespace(|| {
        let world = World::new();
        let gateway = world.gateway();
        let answer = said(&mut world.on_client("redis-cli -h 10.9.0.1 ping"));
        let text = answer.stdout + &answer.stderr;
        assert!(text.contains("Connection refused"), "{text}");
        gateway.stop();
    });
}

/// A limit that is not kept would be worse than none.
#[test]
fn keys_without_effect_are_refused() {
    let saiga = Installation::bare();
    let file = saiga.path("gateway.toml");
    let key = "outgoing.prefixes";
    let lines = "[workers]\ncpus = \"0,1\"\n[outgoing]\nprefixes = \"10.0.0.0/8\"\n";
    fs::write(&file, format!("{SETTINGS}{lines}")).unwrap();
    let mut command = saiga.saiga(&["gateway", "up", "--inside", "--config"]);
    let out = said(command.arg(&file));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains(key), "{}", out.stderr);
    let out = said(saiga.saiga(&["gateway", "check", "--config"]).arg(&file));
    assert_eq!(out.code, Some(1));
    assert!(out.stdout.contains(key), "{}", out.stdout);
}

/// Each need of the file, and a rule of a packet filter that does not apply.
#[test]
fn the_machine_is_checked() {
    in_namespace(|| {
        let world = World::made(Wire::Xdp, "[tcp]\nconnections = 100\n");
        let check = || {
            let mut check = world.saiga.saiga(&["gateway", "check", "--config"]);
            // nft(8) is a program of administrators.
            check.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
            said(check.arg(world.saiga.path("gateway.toml")))
        };
        let out = check();
        assert_eq!(out.code, Some(0), "{}", out.stdout);
        for part in ["there    device.interface", "there    device.addresses"] {
            assert!(out.stdout.contains(part), "{}", out.stdout);
        }
        assert!(!out.stdout.contains("lacks") && !out.stdout.contains("does not apply"));

        world.add_to_device("mtu = 9000\nqueues = 9\nmode = \"native\"\nvlan = 5");
        for rule in [
            "table inet t",
            "chain inet t in { type filter hook input priority 0 ; }",
            "rule inet t in iifname lo accept",
            "rule inet t in tcp dport 6379 drop",
        ] {
            let mut nft = Command::new("nft");
            assert!(
                nft.arg("add")
                    .args(rule.split(' '))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let out = check();
        assert_eq!(out.code, Some(1), "{}", out.stdout);
        for part in [
            "lacks    device.mtu: MTU of veth0 of at least 9000: it is 1500: ip link set veth0 mtu 9000",
            "vlan: interface for VLAN 5 on veth0",
            ": ip link add link veth0 name veth0.5 type vlan id 5",
            "lacks    device.addresses: address of VLAN 5 on veth0",
            "untried  device.mode",
            "does not apply to clients of the gateway at port 6379",
        ] {
            assert!(out.stdout.contains(part), "{}", out.stdout);
        }
    });
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

/// The file of an operator of Gazelle, and what becomes of it.
#[test]
fn a_file_of_gazelle_is_translated() {
    let saiga = Installation::bare();
    let file = saiga.path("lstack.conf");
    let check = |conf: &str, ports: &str| {
        fs::write(&file, conf).unwrap();
        let words = ["gateway", "check", "--port", ports, "--lstack-conf"];
        said(saiga.saiga(&words).arg(&file))
    };
    let xdp = "dpdk_args=[\"--vdev\", \"net_af_xdp0,iface=eth7\"]\nnum_cpus=\"2\"\nuse_ltran=0\n";
    let out = check(xdp, "6379,6380");
    let settings = Settings::parse(&out.stdout).unwrap();
    assert_eq!(settings.serve[0].ports, [6379, 6380], "{}", out.stdout);
    assert!(
        out.stdout.contains("interface = \"eth7\""),
        "{}",
        out.stdout
    );
    assert!(
        out.stdout.contains("# line 3: use_ltran: "),
        "{}",
        out.stdout
    );
    let dpdk = "num_cpus=\"2\"\nhost_addr=\"192.168.1.10\"\nmask_addr=\"255.255.255.0\"\n\
                devices=\"aa:bb:cc:dd:ee:ff\"\n";
    let out = check(dpdk, "6379");
    let settings = Settings::parse(&out.stdout).unwrap();
    assert!(settings.devices[0].is_dpdk(), "{}", out.stdout);
    assert!(!out.stdout.contains("refuses"), "{}", out.stdout);
    assert_eq!(out.code, Some(1));
    assert!(out.stdout.contains("libdpdk-dev"), "{}", out.stdout);
    let out = check("num_cpus=\"x\"\n", "6379");
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("line 1: num_cpus"), "{}", out.stderr);
}
