//! The gateway in VLANs, on a kernel that has them (`CONFIG_VLAN_8021Q`): over AF_XDP on a veth
//! pair, and over TAP.

use std::time::Duration;

use serde_json::Value;

use crate::machine::{Machine, said};

/// The machine takes two minutes on an idle host.
const LIMIT: Duration = Duration::from_secs(600);
const MODULES: [&str; 7] = [
    "net/llc/llc",
    "net/802/stp",
    "net/802/garp",
    "net/802/mrp",
    "net/8021q/8021q",
    "drivers/net/veth",
    "drivers/net/tun",
];
/// Of every gateway.
const REST: &str = "
[[serve]]
port = 6379
[runtime]
user = \"daemon\"
control = \"/run/gateway.sock\"
";

fn settings(device: &str) -> String {
    format!("[[device]]\n{device}\n{REST}")
}

fn run() -> String {
    let xdp = "interface = \"veth0\"\n";
    let tap = "kind = \"tap\"\ninterface = \"tap0\"\naddresses = \"10.7.0.1/24\"\nvlan = 7";
    let files = [
        ("absent.toml", settings(&format!("{xdp}vlan = 9"))),
        ("vlan.toml", settings(&format!("{xdp}vlan = 5"))),
        ("untagged.toml", settings(xdp)),
        ("tap.toml", settings(tap)),
    ];
    let mut files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    files.extend([
        ("script.sh", include_str!("vlan.sh")),
        (
            "etc/passwd",
            "root:x:0:0::/:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n",
        ),
    ]);
    let programs = ["ip", "redis-server", "redis-cli"];
    let machine = Machine::with_modules(
        &MODULES,
        &[],
        &["guest", "services"],
        &programs,
        &files,
        Vec::new(),
    );
    machine.boot("", &["-m", "1024"], LIMIT)
}

/// The output of a command that succeeded.
fn done<'a>(console: &'a str, command: &str, index: usize) -> &'a str {
    let (text, status) = said(console, command, index);
    assert_eq!(status, "0", "{command}: {console}");
    text
}

/// Frames that the gateway has received.
fn received(console: &str, index: usize) -> u64 {
    let text = done(console, "frames", index);
    let status: Value = serde_json::from_str(text).expect(text);
    let frames = &status["workers"][0]["devices"][0]["received"]["frames"];
    frames.as_u64().expect(text)
}

#[test]
fn one_vlan_is_served_and_the_kernel_keeps_the_rest() {
    let console = run();
    let (text, status) = said(&console, "absent", 0);
    assert_eq!(status, "2", "{console}");
    assert!(
        text.contains("ip link add link veth0 name veth0.9"),
        "{text}"
    );
    for (command, index, expected) in [
        ("vlan", 0, "ethtool -K PEER txvlan off"),
        ("served v4", 0, "addr=10.5.0.2:"),
        ("served v6", 0, "addr=[fd05::2]:"),
        ("served value", 0, "OK\n300000"),
        ("kernel untagged", 0, "PONG"),
        ("kernel port", 0, "PONG"),
        ("served again", 0, "PONG"),
        ("end", 0, ""),
        ("served untagged", 0, "PONG"),
        ("kernel vlan", 0, "PONG"),
        ("end", 1, ""),
        ("served tap", 0, "addr=10.7.0.2:"),
        ("served value", 1, "OK\n300000"),
        ("end", 2, ""),
    ] {
        let text = done(&console, command, index);
        assert!(text.contains(expected), "{command}: {console}");
    }
    let frames: Vec<u64> = (0..5).map(|index| received(&console, index)).collect();
    assert!(frames[0] > 0, "{console}");
    assert_eq!(frames[0], frames[1], "the kernel has the rest: {console}");
    assert!(frames[2] > frames[1], "{console}");
    assert_eq!(frames[3], frames[4], "the kernel has the VLAN: {console}");
}
