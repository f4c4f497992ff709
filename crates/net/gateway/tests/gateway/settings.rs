//! Whole files, what is written of them, and what they need.

use std::net::SocketAddr;
use std::path::Path;

use saiga_gateway::settings::{
    Addresses, Bytes, Copying, Feature, Kind, Memory, Mode, Polling, Port, Requirement,
};
use saiga_tcp::Algorithm;

use crate::{SHORTEST, parsed};

#[test]
fn the_shortest_file_has_three_lines() {
    let settings = parsed(SHORTEST);
    let [device] = settings.devices.as_slice() else {
        panic!("{settings:?}");
    };
    let expected = Kind::Xdp {
        interface: "enp4s0".parse().unwrap(),
        queues: None,
        mode: Mode::Auto,
        copy: Copying::Auto,
    };
    assert_eq!(device.kind, expected);
    assert_eq!(device.addresses, Addresses::Kernel);
    assert_eq!((device.ring, device.frames), (2048, 4096));
    assert_eq!(settings.serve[0].ports, [6379]);
    assert_eq!(settings.serve[0].backlog, 64);
    assert_eq!(settings.workers.count(), 1);
    assert_eq!(settings.tcp.connections, 65_536);
    let keep_alive = settings.tcp.keep_alive.unwrap();
    assert_eq!(
        (keep_alive.idle_ms, keep_alive.interval_ms.get()),
        (300_000, 60_000)
    );
    assert_eq!(settings.metrics.listen, None);
    assert_eq!(settings.runtime.user, "saiga");
}

const WHOLE: &str = r#"
[[device]]
interface = "enp4s0"
mode = "native"
copy = "zero-copy"
queues = 6
cpus = "2-5"
ring = 4096
frames = 10000
vlan = 100
mtu = 9000

[[device]]
pci = "84:00.1"
interface = "enp132s0"
queues = 2
cpus = "66-67"
addresses = ["192.168.1.10/24", "2001:db8::10/64"]
routes = ["default via 192.168.1.1", "default via fe80::1", "10.0.0.0/8 via 192.168.1.254"]

[[device]]
kind = "tap"
interface = "tap0"
addresses = "10.77.0.1/24"
cpus = "2"

[[serve]]
address = "192.168.1.10"
port = [3306, 5432]
backlog = 1000
connections = 2000
connections_per_client = 500
allow = ["192.168.0.0/16", "10.0.0.0/8"]
deny = "10.1.0.0/16"

[[serve]]
port = 6379

[workers]
cpus = "2-5,66-67"
spin = "always"
memory_bind = "0,2"

[tcp]
congestion = "newreno"
keep_alive = "90s"
keep_alive_interval = "10s"
keep_alive_probes = 3
user_timeout = "1m 30s"
connections = 20_000
buffer = "256KiB"
memory = "1GiB"

[dpdk]
memory = ["2GiB", "0MiB", "1024MiB"]
huge_dir = "/mnt/huge"
eal = ["--iova-mode=va", "-d", "librte_net_mlx5.so"]

[outgoing]
prefixes = ["10.9.0.0/16"]

[metrics]
listen = "[::1]:9464"

[capture]
snap_length = 128
file_size = "1GiB"

[runtime]
user = "daemon"
control = "/run/gateway/control"
"#;

#[test]
fn a_whole_file_is_read() {
    let settings = parsed(WHOLE);
    let [xdp, dpdk, tap] = settings.devices.as_slice() else {
        panic!("{settings:?}");
    };
    let expected = Kind::Xdp {
        interface: "enp4s0".parse().unwrap(),
        queues: Some(6),
        mode: Mode::Native,
        copy: Copying::ZeroCopy,
    };
    assert_eq!(xdp.kind, expected);
    assert_eq!((xdp.vlan, xdp.mtu), (Some(100), Some(9000)));
    assert_eq!((xdp.ring, xdp.frames), (4096, 10_000));
    let expected = Kind::Dpdk {
        port: Port::Pci("0000:84:00.1".parse().unwrap()),
        interface: Some("enp132s0".parse().unwrap()),
        queues: Some(2),
    };
    assert_eq!(dpdk.kind, expected);
    let Addresses::Own { addresses, routes } = &dpdk.addresses else {
        panic!("{dpdk:?}");
    };
    assert_eq!(addresses.len(), 2);
    let shown: Vec<String> = routes.iter().map(ToString::to_string).collect();
    assert_eq!(shown[1], "default via fe80::1");
    assert_eq!(shown[2], "10.0.0.0/8 via 192.168.1.254");
    assert_eq!(tap.addresses.own().len(), 1);
    assert_eq!(settings.serve[0].ports, [3306, 5432]);
    assert_eq!(settings.serve[0].connections, Some(2000));
    assert!(
        !settings.serve[0]
            .clients
            .admits("10.1.2.3".parse().unwrap())
    );
    assert_eq!(settings.workers.cpus, [2, 3, 4, 5, 66, 67]);
    assert_eq!(settings.workers.spin, Polling::Always);
    assert_eq!(settings.tcp.congestion, Algorithm::NewReno);
    assert_eq!(settings.tcp.user_timeout_ms, Some(90_000));
    assert_eq!(settings.tcp.buffer.get(), 262_144);
    let mib = |number: u64| Bytes(number << 20);
    let nodes = vec![mib(2048), mib(0), mib(1024)];
    assert_eq!(settings.dpdk.memory, Memory::PerNode(nodes));
    assert_eq!(
        settings.metrics.listen,
        Some(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 9464)))
    );
    assert_eq!(settings.capture.file_size, Bytes(1 << 30));
    assert_eq!(settings.runtime.control, Path::new("/run/gateway/control"));
    assert_eq!(parsed(&settings.to_toml()), settings);
}

#[test]
fn only_keys_without_their_defaults_are_written() {
    let expected = "[[device]]\nkind = \"xdp\"\ninterface = \"enp4s0\"\n\n[[serve]]\nport = 6379\n";
    assert_eq!(parsed(SHORTEST).to_toml(), expected);
}

#[test]
fn needs_follow_from_the_settings() {
    let shown = |text: &str| -> Vec<String> {
        let needs = parsed(text).needs();
        needs
            .iter()
            .map(|need| format!("{}: {}", need.key, need.requirement))
            .collect()
    };
    assert_eq!(
        shown(SHORTEST),
        [
            "device: TUN and TAP devices (CONFIG_TUN)",
            "serve.port: IP_LOCAL_PORT_RANGE (Linux 6.3)",
            "serve.port: CAP_NET_ADMIN, for rules, routes, devices and anchors",
            "serve.port: CAP_NET_BIND_SERVICE, for clients with ports below 1024",
            "device.kind: AF_XDP (CONFIG_XDP_SOCKETS)",
            "device.kind: CAP_NET_RAW, for AF_XDP sockets",
            "device.kind: CAP_BPF, for BPF programs",
            "device.interface: network interface enp4s0",
            "device.addresses: address of enp4s0",
            "tcp.connections: 66560 descriptors (RLIMIT_NOFILE)",
            "runtime.user: user saiga",
            "runtime.control: folder /run/saiga-gateway",
        ]
    );
    let whole = shown(WHOLE);
    for expected in [
        "device.queues: 6 receive queues of enp4s0",
        "device.mode: XDP in the driver of enp4s0",
        "device.copy: AF_XDP without copies in the driver of enp4s0",
        "device.vlan: interface for VLAN 100 on enp4s0, and tags in the frames (ethtool -K enp4s0 \
         rxvlan off)",
        "device.addresses: address of VLAN 100 on enp4s0",
        "device.mtu: MTU of enp4s0 of at least 9000",
        "device.kind: DPDK and Saiga's plug-in for it",
        "device.pci: network card at 0000:84:00.1",
        "device.interface: free name tap0 for a TAP device",
        "device.addresses: address 10.77.0.1 on an interface of the kernel",
        "dpdk.memory: free huge pages of 2GiB in total on node 0",
        "dpdk.memory: free huge pages of 1GiB in total on node 2",
        "dpdk.huge_dir: hugetlbfs at /mnt/huge",
        "workers.cpus: CPU 67",
        "workers.memory_bind: NUMA node 2 with memory",
        "tcp.memory: 1GiB of memory",
        "outgoing.prefixes: BPF programs for connect(2) and received packets (Linux 6.6)",
        "metrics.listen: free address and port [::1]:9464",
        "runtime.user: user daemon",
    ] {
        assert!(
            whole.iter().any(|need| need == expected),
            "{expected}: {whole:#?}"
        );
    }
    // The gateway gives the kernel the addresses of a DPDK device.
    assert!(
        !whole.iter().any(|need| need.contains("192.168.1.10")),
        "{whole:#?}"
    );
    let tun = Requirement::Kernel(Feature::Tun);
    let needs = parsed(WHOLE).needs();
    assert_eq!(
        needs.iter().filter(|need| need.requirement == tun).count(),
        1
    );
}
