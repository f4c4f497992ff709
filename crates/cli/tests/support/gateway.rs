//! A server's host with a gateway, and a client's host, in network namespaces.
//! Needs root, /dev/net/tun, ip(8), nsenter(1) and Redis.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use saiga_process::network::{Namespace, within};
use saiga_trials::snapshot::{self, ip};
use saiga_trials::witness::await_true;

use crate::support::program::{Ended, start};
use crate::support::{Installation, Said, said, text};

pub(crate) const SETTINGS: &str = r#"
[[device]]
kind = "tap"
interface = "tap0"
addresses = ["10.9.0.1/24", "fd09::1/64"]

[[serve]]
port = 6379
"#;

/// The kernel's interface, which has the addresses.
pub(crate) const XDP_SETTINGS: &str = r#"
[[device]]
interface = "veth0"

[[serve]]
port = 6379
"#;

/// A port of DPDK on the veth pair `port0`, without huge pages.
const DPDK_SETTINGS: &str = r#"
[[device]]
vdev = "net_af_packet0,iface=port0"
interface = "dpdk0"
addresses = ["10.9.0.1/24", "fd09::1/64"]
ring = 512

[[serve]]
port = 6379

[dpdk]
memory = "ordinary"

"#;

/// Shared memory; `SOCKET` stands for the path of its socket.
const MEMIF_SETTINGS: &str = r#"
[[device]]
kind = "memif"
socket = "SOCKET"
role = "server"
interface = "memif0"
addresses = ["10.9.0.1/24", "fd09::1/64"]

[[serve]]
port = 6379
"#;

/// The wire between the hosts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wire {
    /// A TAP device of the gateway.
    Tap,
    /// A veth pair, shared with the kernel by AF_XDP.
    Xdp,
    /// A veth pair, whose end is a port of DPDK.
    Dpdk,
    /// Memory that is shared with a gateway on the client's host, which the test starts.
    Memif,
}

/// A server's host with a gateway, and a client's host at the other end of its device.
pub(crate) struct World {
    pub(crate) saiga: Installation,
    /// The client's host.
    client: Namespace,
    wire: Wire,
    /// The server's network as it was before the gateway.
    pub(crate) before: String,
}

/// Runs a test in a network namespace of its own: the server's host.
pub(crate) fn in_namespace(test: impl FnOnce()) {
    let host = Namespace::new().expect("tests of the gateway need root");
    let run = || {
        test();
        Ok(())
    };
    within(Some(&host.path()), run).unwrap();
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    pub(crate) fn over(wire: Wire) -> Self {
        Self::made(wire, "")
    }

    /// A server's host whose gateway has further tables of settings.
    pub(crate) fn with(tables: &str) -> Self {
        Self::made(Wire::Tap, tables)
    }

    /// A server's host with a wire whose gateway has further tables of settings.
    pub(crate) fn made(wire: Wire, tables: &str) -> Self {
        let saiga = Installation::with_real_library();
        // Gateways of other tests have the usual control socket.
        let control = saiga.path("run/gateway.sock");
        let (settings, lines): (_, &[&str]) = match wire {
            Wire::Tap => (
                SETTINGS,
                &[
                    "address add 10.9.0.1/32 dev lo",
                    "address add fd09::1/128 dev lo nodad",
                    "tuntap add tap0 mode tap",
                ],
            ),
            Wire::Xdp => (
                XDP_SETTINGS,
                &[
                    "link add veth0 type veth peer name tap0",
                    "link set veth0 addrgenmode none",
                    "address add 10.9.0.1/24 dev veth0",
                    "address add fd09::1/64 dev veth0 nodad",
                    // The kernel asks for neighbours with it.
                    "address add fe80::1/64 dev veth0 nodad",
                    "link set veth0 up",
                ],
            ),
            Wire::Dpdk => (
                DPDK_SETTINGS,
                &[
                    "link add port0 type veth peer name tap0",
                    "link set port0 addrgenmode none up",
                ],
            ),
            Wire::Memif => (MEMIF_SETTINGS, &[]),
        };
        let runtime = format!("[runtime]\nuser = \"daemon\"\ncontrol = {control:?}\n");
        let settings = format!("{settings}{runtime}{tables}");
        let settings = settings.replace("SOCKET", text(&saiga.path("run/memif.sock")));
        fs::write(saiga.path("gateway.toml"), settings).unwrap();
        ip("link set lo up");
        lines.iter().for_each(|line| drop(ip(line)));
        let client = Namespace::new().unwrap();
        let mut world = Self {
            saiga,
            client,
            wire,
            before: String::new(),
        };
        if !matches!(wire, Wire::Tap | Wire::Memif) {
            world.give_wire();
            await_carriers();
        }
        // The kernel makes the route of an address later. With DPDK and memif, the gateway brings
        // the address.
        let has_route = || ip("-6 route show table local").contains("fd09::1 ");
        if !matches!(wire, Wire::Dpdk | Wire::Memif) {
            await_true(has_route, || "fd09::1 has no route".to_owned());
        }
        world.before = network();
        world
    }

    /// Adds a key of the device to the settings.
    pub(crate) fn add_to_device(&self, line: &str) {
        let file = self.saiga.path("gateway.toml");
        let settings = fs::read_to_string(&file).unwrap();
        let settings = settings.replace("[[serve]]", &format!("{line}\n\n[[serve]]"));
        fs::write(file, settings).unwrap();
    }

    /// The device of the gateway.
    pub(crate) const fn device(&self) -> &'static str {
        match self.wire {
            Wire::Tap => "tap0",
            Wire::Xdp => "veth0",
            Wire::Dpdk => "dpdk0",
            Wire::Memif => "memif0",
        }
    }

    /// Gives the client its end of the wire.
    fn give_wire(&self) {
        let client = self.client.path();
        ip(&format!("link set tap0 netns {}", client.display()));
        for line in [
            "address add 10.9.0.2/24 dev tap0",
            "address add fd09::2/64 dev tap0 nodad",
            "link set tap0 up",
        ] {
            within(Some(&client), || Ok(ip(line))).unwrap();
        }
    }

    /// A veth pair besides the wire, in the network 10.10.0.0/24. `name` is that of both ends.
    pub(crate) fn add_veth(&self, name: &str) {
        let client = self.client.path();
        let peer = format!("peer name {name} netns {}", client.display());
        ip(&format!("link add {name} type veth {peer}"));
        let configure = |address: &str| {
            ip(&format!("link set {name} addrgenmode none"));
            ip(&format!("address add {address}/24 dev {name}"));
            ip(&format!("link set {name} up"));
        };
        configure("10.10.0.1");
        within(Some(&client), || {
            configure("10.10.0.2");
            Ok(())
        })
        .unwrap();
        await_carriers();
    }

    /// A Redis server, under the library or not.
    pub(crate) fn redis(&self, is_accelerated: bool) -> Ended {
        let addresses = ["10.9.0.1", "fd09::1"];
        self.saiga.redis(is_accelerated, &addresses, 6379, &[])
    }

    /// A Redis server on the client's host, without the library.
    pub(crate) fn redis_on_client(&self) -> Ended {
        let addresses = ["10.9.0.2", "fd09::2"];
        let start = || Ok(self.saiga.redis(false, &addresses, 6379, &[]));
        within(Some(&self.client.path()), start).unwrap()
    }

    /// Runs a verb for another gateway with the same settings, in a mount namespace that `prepare`
    /// changes first.
    pub(crate) fn second(&self, verb: &str, prepare: &str) -> Said {
        let settings = fs::read_to_string(self.saiga.path("gateway.toml")).unwrap();
        let file = self.saiga.path("second.toml");
        fs::write(&file, settings.replace("gateway.sock", "second.sock")).unwrap();
        let script = format!("{prepare}\nexec \"$0\" gateway {verb} --config \"$1\"");
        let mut command = Command::new("unshare");
        command.args(["-m", "bash", "-ec", &script]);
        said(command.args([self.saiga.path("bin/saiga"), file]))
    }

    /// The gateway, with the client's host at the other end of its device.
    pub(crate) fn gateway(&self) -> Ended {
        self.gateway_by(self.saiga.saiga(&["gateway", "up", "--config"]))
    }

    /// As [`Self::gateway`]; `command` lacks the file of settings.
    pub(crate) fn gateway_by(&self, mut command: Command) -> Ended {
        let settings = self.saiga.path("gateway.toml");
        let gateway = start(command.arg(settings), "serving");
        if self.wire == Wire::Tap {
            self.give_wire();
        }
        gateway
    }

    /// A command on the client's host.
    pub(crate) fn on_client(&self, line: &str) -> Command {
        let words: Vec<&str> = line.split(' ').collect();
        self.program(&words)
    }

    /// A command on the client's host, in words.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.client.path().display()))
            .args(words);
        command
    }

    /// Runs a command on the client's host; returns its output.
    pub(crate) fn client(&self, line: &str) -> String {
        self.client_with(line, b"")
    }

    /// As [`Self::client`], with bytes on stdin.
    pub(crate) fn client_with(&self, line: &str, input: &[u8]) -> String {
        let mut child = self
            .on_client(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A connection of redis-cli that stays open.
pub(crate) struct Talk(Ended);

impl Talk {
    /// Starts redis-cli, by a command that reaches its server.
    pub(crate) fn new(mut cli: Command) -> Self {
        let cli = cli.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut talk = Self(Ended(cli.unwrap()));
        talk.ping();
        talk
    }

    pub(crate) fn ping(&mut self) {
        let child = &mut self.0.0;
        writeln!(child.stdin.as_mut().unwrap(), "ping").unwrap();
        let mut answer = String::new();
        // Not a byte more: the reader ends with this call.
        let mut stdout = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, "PONG\n");
    }
}

/// Waits until all veth pairs of this host are up: the kernel notes a moment later that the other
/// ends are.
fn await_carriers() {
    let are_up = || {
        let links = ip("-o link show type veth");
        links.lines().all(|line| line.contains(" state UP "))
    };
    await_true(are_up, || "a veth pair has no carrier".to_owned());
}

/// The network of this host. A TAP device is the client's while a gateway runs.
pub(crate) fn network() -> String {
    let text = snapshot::network();
    let own = text.lines().filter(|line| !line.contains("tap0"));
    own.collect::<Vec<_>>().join("\n")
}
