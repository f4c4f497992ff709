//! `saiga gateway up --prepare` with a network card behind an IOMMU: DPDK has it, a client is
//! served through it, and `down` gives it back.
//!
//! The card and that of the client are emulated, and joined by a hub of QEMU. DPDK finds no mounted
//! hugetlbfs. Needs DPDK with its headers.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::machine::{Machine, said};

/// The machine takes 15 seconds on an idle host.
const LIMIT: Duration = Duration::from_secs(600);
const MODULES: [&str; 6] = [
    "drivers/net/tun",
    "virt/lib/irqbypass",
    "drivers/vfio/vfio",
    "drivers/vfio/vfio_iommu_type1",
    "drivers/vfio/pci/vfio-pci-core",
    "drivers/vfio/pci/vfio-pci",
];
/// Where Debian has the drivers of DPDK.
const DRIVERS: &str = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0";
const SETTINGS: &str = r#"
[[device]]
pci = "0000:00:05.0"
addresses = "10.0.0.1/24"
ring = 256
[[serve]]
port = 6379
[tcp]
connections = 1024
[runtime]
user = "daemon"
control = "/run/gateway/gateway.sock"
"#;

fn plugin() -> String {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/libsaiga_dpdk.so");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/dpdk");
    assert!(Command::new(tool).arg(file).status().unwrap().success());
    file.to_owned()
}

fn run() -> String {
    let other = SETTINGS.replace("00:05.0", "00:06.0");
    let files = [
        ("gateway.toml", SETTINGS),
        ("client.toml", &other),
        ("script.sh", include_str!("prepare.sh")),
        (
            "etc/passwd",
            "root:x:0:0::/:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n",
        ),
    ];
    let plugin = plugin();
    let drivers = ["bus_pci", "bus_vdev", "mempool_ring", "net_virtio"];
    let drivers = drivers.map(|name| format!("{DRIVERS}/librte_{name}.so.23"));
    let mut libraries = vec![(Path::new(&plugin), "lib/saiga")];
    libraries.extend(drivers.iter().map(|driver| (Path::new(driver), "lib")));
    let machine = Machine::with_modules(
        &MODULES,
        &libraries,
        &["guest", "services"],
        &["ip", "redis-server", "redis-cli"],
        &files,
        Vec::new(),
    );
    let card = "virtio-net-pci,iommu_platform=on,disable-legacy=on,romfile=";
    let cards = ["a", "b"].map(|id| {
        let slot = if id == "a" { 5 } else { 6 };
        format!("{card},netdev={id},bus=pcie.0,addr={slot}.0,mac=02:00:00:00:00:0{slot}")
    });
    let mut options = vec![
        "-m",
        "1024",
        "-cpu",
        "max",
        "-device",
        "intel-iommu,intremap=on",
    ];
    for wire in ["hubport,id=a,hubid=1", "hubport,id=b,hubid=1"] {
        options.extend(["-netdev", wire]);
    }
    for card in &cards {
        options.extend(["-device", card]);
    }
    machine.boot("intel_iommu=on", &options, LIMIT)
}

#[test]
fn a_card_goes_to_dpdk_and_comes_back() {
    let console = run();
    println!("{console}");
    let state = |index| said(&console, "state", index).0;
    for (command, index, status, expected) in [
        ("check", 0, "1", "`up --prepare` binds it to vfio-pci"),
        ("check", 0, "1", "`up --prepare` reserves them"),
        ("refused", 0, "2", "eth1, which is up, and has 10.0.0.2"),
        ("failed", 0, "2", "restored 0000:00:05.0: driver virtio-pci"),
        (
            "prepared",
            0,
            "0",
            "0000:00:05.0: driver vfio-pci, before virtio-pci",
        ),
        ("there", 0, "0", "there    device.pci"),
        ("request", 0, "0", "PONG"),
        ("running", 0, "2", "end it first"),
        ("prepared", 1, "0", "huge pages and cards are there already"),
        ("request", 1, "0", "PONG"),
        ("end", 0, "0", ""),
        ("down", 0, "0", "restored huge pages of NUMA node 0: 3"),
        ("down", 1, "0", "nothing is left"),
    ] {
        let (text, code) = said(&console, command, index);
        assert_eq!(code, status, "{command} {index}");
        assert!(text.contains(expected), "{command} {index}: {text}");
    }
    let before = state(0);
    assert!(before.contains("pages 3") && before.contains("0000:00:05.0 virtio-pci (null)"));
    for (index, when) in [(1, "refused"), (2, "failed"), (4, "down")] {
        assert_eq!(state(index), before, "{when}");
    }
    assert!(
        state(3).contains("0000:00:05.0 vfio-pci vfio-pci"),
        "{}",
        state(3)
    );
}
