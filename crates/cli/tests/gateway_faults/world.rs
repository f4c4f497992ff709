//! Three hosts in network namespaces: a server with a gateway, its client, and a switch between
//! them to which a test can connect an attacker.
//!
//! The device of the gateway is a parameter: a TAP device whose other end is a port of the switch,
//! or an interface of the server's host that a veth connects with the switch. The client's link is
//! one, too: a veth, or a link that loses and corrupts packets. The namespaces have no names and
//! end with the test.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use saiga_netdev::tap::{Origin, Settings, Tap};
use saiga_process::network::{Namespace, within};
use saiga_trials::census::Census;
use saiga_trials::snapshot::{self, ip};
use saiga_trials::{Signal, reaper};

use crate::bystander::Bystander;
use crate::link::Faulty;
use crate::support::program::{Ended, start};
use crate::support::{Installation, said};

/// The address of the server's host, which private servers of databases listen on, too
/// ([`saiga_hosts::SERVER`]).
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Its other address.
pub(crate) const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1);
/// The address of the client's host.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The port of the server that is attacked or killed.
pub(crate) const PORT: u16 = 6379;
/// The port of the server that must not be affected.
pub(crate) const OTHER_PORT: u16 = 6380;
/// The ports of the nodes of a cluster.
pub(crate) const CLUSTER_PORTS: [u16; 3] = [7001, 7002, 7003];
/// All served ports: those above, of the buses of a cluster, and of MariaDB and PostgreSQL.
const SERVED: [u16; 10] = [
    PORT, OTHER_PORT, 7001, 7002, 7003, 17001, 17002, 17003, 3306, 5432,
];
/// MAC address of the gateway. That of a TAP device differs in the last bit.
pub(crate) const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 0, 9, 0x11];
const TAP_MAC: &str = "02:00:00:00:09:10";
const INTERFACE_MAC: &str = "02:00:00:00:09:11";
/// A network of many hosts behind the switch, from RFC 2544. None of them exists.
const FOREIGN: &str = "198.18.0.0/15 via 10.77.0.3";
/// SYNs beyond so many handshakes get cookies.
const BACKLOG: u32 = 512;

impl Wire {
    pub(crate) const ALL: [Self; 2] = [Self::Tap, Self::Xdp];
}

/// The device of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// A TAP device, `kind = "tap"`.
    Tap,
    /// An interface that the kernel keeps, `kind = "xdp"`.
    Xdp,
}

/// The link between client and switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// A veth with all offloads.
    Veth,
    /// A link that loses, doubles, reorders and corrupts packets, from a seed.
    Faulty(u64),
}

/// The hosts.
pub(crate) struct World {
    /// Present with [`Link::Faulty`]. It ends before the namespaces of its devices.
    pub(crate) faulty: Option<Faulty>,
    pub(crate) saiga: Installation,
    pub(crate) wire: Wire,
    /// That of the calling thread.
    server: Namespace,
    client: Namespace,
    switch: Namespace,
}

/// A running gateway.
pub(crate) struct Gateway {
    process: Ended,
    /// Its resources before it had a client.
    pub(crate) fresh: Census,
}

impl Gateway {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn census(&self) -> Census {
        Census::of(self.pid()).unwrap()
    }
}

/// Runs `test` on the server's host. One after the other: each test loads both CPUs, and expects
/// answers in time.
pub(crate) fn in_world(wire: Wire, link: Link, test: impl FnOnce(&World)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Namespace::new().expect("tests of the gateway need root");
    let place = server.path();
    let done = within(Some(&place), || {
        test(&World::new(wire, link, server));
        Ok(())
    });
    done.unwrap();
}

impl World {
    fn new(wire: Wire, link: Link, server: Namespace) -> Self {
        let saiga = Installation::with_real_library();
        let mut world = Self {
            saiga,
            wire,
            server,
            client: Namespace::new().unwrap(),
            switch: Namespace::new().unwrap(),
            faulty: None,
        };
        world.write_settings();
        world.make_switch();
        world.make_wire();
        world.make_client(link);
        world
    }

    fn make_switch(&self) {
        for line in [
            "link add br0 type bridge",
            "address add 10.77.0.3/24 dev br0",
            "link set br0 up",
        ] {
            self.on_switch(line);
        }
        // A filter of the kernel would drop malformed packets before the gateway sees them.
        let unfilter = || -> io::Result<()> {
            for table in ["arptables", "iptables", "ip6tables"] {
                let file = format!("/proc/sys/net/bridge/bridge-nf-call-{table}");
                match fs::write(file, "0") {
                    // A kernel without br_netfilter.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    done => done?,
                }
            }
            Ok(())
        };
        within(Some(&self.switch.path()), unfilter).unwrap();
    }

    fn write_settings(&self) {
        let device = match self.wire {
            Wire::Tap => format!(
                "kind = \"tap\"\ninterface = \"wire0\"\n\
                 addresses = [\"{SERVER}/24\", \"{SERVER_V6}/64\"]\nroutes = [\"{FOREIGN}\"]\n"
            ),
            Wire::Xdp => "kind = \"xdp\"\ninterface = \"wire0\"\n".to_owned(),
        };
        let control = self.saiga.path("run/control");
        let text = format!(
            "[[device]]\n{device}[[serve]]\nport = {SERVED:?}\nbacklog = {BACKLOG}\n\
             [runtime]\nuser = \"daemon\"\ncontrol = \"{}\"\n",
            control.display()
        );
        fs::write(self.settings(), text).unwrap();
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.saiga.path("gateway.toml")
    }

    fn make_wire(&self) {
        ip("link set lo up");
        match self.wire {
            Wire::Tap => {
                ip(&format!("address add {SERVER}/32 dev lo"));
                ip(&format!("address add {SERVER_V6}/128 dev lo nodad"));
                ip("tuntap add wire0 mode tap");
                ip(&format!("link set wire0 address {TAP_MAC}"));
            }
            Wire::Xdp => {
                let switch = self.switch.path();
                let peer = format!("peer name port0 netns {}", switch.display());
                ip(&format!("link add wire0 type veth {peer}"));
                ip(&format!("link set wire0 address {INTERFACE_MAC}"));
                // No link-local address: the detection of duplicates would end at some time.
                ip("link set wire0 addrgenmode none");
                ip(&format!("address add {SERVER}/24 dev wire0"));
                ip(&format!("address add {SERVER_V6}/64 dev wire0 nodad"));
                ip("link set wire0 up");
                self.restore_route();
                self.add_port("port0");
            }
        }
    }

    fn make_client(&mut self, link: Link) {
        let client = self.client.path();
        match link {
            Link::Veth => {
                let peer = format!("peer name client0 netns {}", client.display());
                self.on_switch(&format!("link add port1 type veth {peer}"));
            }
            Link::Faulty(seed) => {
                let near = self.tap_of_switch("port1");
                let far = within(Some(&client), || Ok(tap("client0"))).unwrap();
                self.faulty = Some(Faulty::start(near, far, seed));
            }
        }
        self.add_port("port1");
        for line in [
            "link set lo up".to_owned(),
            format!("address add {CLIENT}/24 dev client0"),
            "address add fd09::2/64 dev client0 nodad".to_owned(),
            "link set client0 up".to_owned(),
        ] {
            self.on_client(&line);
        }
    }

    /// A TAP device whose other end is in the switch; [`Self::add_port`] makes it a port.
    pub(crate) fn tap_of_switch(&self, name: &str) -> Tap {
        within(Some(&self.switch.path()), || Ok(tap(name))).unwrap()
    }

    /// Connects an interface of the switch's namespace to the switch.
    pub(crate) fn add_port(&self, name: &str) {
        self.on_switch(&format!("link set {name} master br0"));
        self.on_switch(&format!("link set {name} up"));
    }

    /// A veth of the server's host loses the route when it goes down; a TAP device has none.
    fn restore_route(&self) {
        if self.wire == Wire::Xdp {
            ip(&format!("route replace {FOREIGN}"));
        }
    }

    /// A Redis server under the library.
    pub(crate) fn redis(&self, port: u16, more: &[&str]) -> Ended {
        let (v4, v6) = (SERVER.to_string(), SERVER_V6.to_string());
        self.saiga.redis(true, &[&v4, &v6], port, more)
    }

    /// A Redis server of the client's host, without the library.
    pub(crate) fn redis_on_client(&self, port: u16, more: &[&str]) -> Ended {
        let address = CLIENT.to_string();
        self.within_client(|| self.saiga.redis(false, &[&address], port, more))
    }

    /// A gateway that serves, connected to the switch.
    pub(crate) fn gateway(&self) -> Gateway {
        self.gateway_with(&[])
    }

    /// A gateway with further variables of the environment.
    pub(crate) fn gateway_with(&self, variables: &[(&str, &str)]) -> Gateway {
        let mut command = self.saiga.saiga(&["gateway", "up", "--config"]);
        command.envs(variables.iter().copied());
        let process = start(command.arg(self.settings()), "serving");
        let fresh = Census::of(process.pid()).unwrap();
        if self.wire == Wire::Tap {
            let switch = self.switch.path();
            ip(&format!("link set wire0 netns {}", switch.display()));
            self.add_port("wire0");
        }
        Gateway { process, fresh }
    }

    /// kill -9 of a gateway. Its device stays, as a network card does.
    pub(crate) fn kill(&self, mut gateway: Gateway) {
        gateway.process.kill();
        self.take_wire_back();
    }

    /// Ends a gateway as systemd does.
    pub(crate) fn stop(&self, gateway: Gateway) {
        gateway.process.stop();
        self.take_wire_back();
    }

    /// Lets the kernel drop what it gets for the served ports, as a firewall does: otherwise, it
    /// would serve clients that the gateway does not, and keep them.
    pub(crate) fn close_kernel_side(&self) {
        let ports = SERVED.map(|port| port.to_string()).join(", ");
        let rule = format!("iifname wire0 tcp dport {{ {ports} }} drop");
        let hook = "{ type filter hook input priority 0; }";
        for line in [
            "add table inet closed".to_owned(),
            format!("add chain inet closed input {hook}"),
            format!("add rule inet closed input {rule}"),
        ] {
            succeed(Command::new("nft").arg(line));
        }
    }

    fn take_wire_back(&self) {
        if self.wire == Wire::Tap {
            let server = self.server.path();
            self.on_switch(&format!("link set wire0 netns {}", server.display()));
        }
    }

    /// Sets the gateway's device `up` or `down`.
    pub(crate) fn set_wire(&self, state: &str) {
        let line = format!("link set wire0 {state}");
        match self.wire {
            Wire::Tap => self.on_switch(&line),
            Wire::Xdp => ip(&line),
        };
        if state == "up" {
            self.restore_route();
        }
    }

    /// Adds (`add`) or removes (`del`) the address of the server.
    pub(crate) fn change_address(&self, verb: &str) {
        match self.wire {
            Wire::Tap => ip(&format!("address {verb} {SERVER}/32 dev lo")),
            Wire::Xdp => ip(&format!("address {verb} {SERVER}/24 dev wire0")),
        };
        if verb == "add" {
            self.restore_route();
        }
    }

    /// ip(8) on the client's host.
    pub(crate) fn on_client(&self, line: &str) -> String {
        within(Some(&self.client.path()), || Ok(ip(line))).unwrap()
    }

    fn on_switch(&self, line: &str) -> String {
        within(Some(&self.switch.path()), || Ok(ip(line))).unwrap()
    }

    /// A client of the server that must not be affected; it checks each byte.
    pub(crate) fn bystander(&self, server: impl Into<IpAddr>, seed: u64) -> Bystander {
        Bystander::start(self, SocketAddr::new(server.into(), OTHER_PORT), seed)
    }

    /// A connection of the client's host to a server.
    pub(crate) fn connect(&self, port: u16, limit: Duration) -> io::Result<TcpStream> {
        let server = SocketAddr::new(SERVER.into(), port);
        within(Some(&self.client.path()), || {
            TcpStream::connect_timeout(&server, limit)
        })
    }

    /// Does `work` on the client's host.
    pub(crate) fn within_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(Some(&self.client.path()), || Ok(work())).unwrap()
    }

    /// Runs a program on the client's host, which must succeed; returns its output.
    pub(crate) fn run_on_client(&self, command: &mut Command) -> String {
        within(Some(&self.client.path()), || Ok(succeed(command))).unwrap()
    }

    /// Starts a program on the client's host; its output is dropped.
    pub(crate) fn start_on_client(&self, command: &mut Command) -> Ended {
        reaper::end_with_parent(command, Signal::KILL);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ended(within(Some(&self.client.path()), || command.spawn()).unwrap())
    }

    /// Runs `work` in a thread on the client's host.
    pub(crate) fn thread_on_client<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // A thread begins in the namespace of the one that starts it.
        within(Some(&self.client.path()), || Ok(thread::spawn(work))).unwrap()
    }

    /// The network settings of the server's host. A TAP device has been elsewhere, so its number
    /// differs.
    pub(crate) fn network(&self) -> String {
        let text = snapshot::network();
        let is_same = |line: &&str| self.wire == Wire::Xdp || !line.contains("wire0");
        let lines: Vec<&str> = text.lines().filter(is_same).collect();
        lines.join("\n")
    }
}

/// Runs a program, which must succeed; returns its output.
pub(crate) fn succeed(command: &mut Command) -> String {
    reaper::end_with_parent(command, Signal::KILL);
    let out = said(command.stdin(Stdio::null()));
    assert_eq!(out.code, Some(0), "{command:?}: {out:?}");
    out.stdout
}

/// Rules and routes of the server's host while a gateway runs; those of its own device, whose
/// addresses are random, are left out.
pub(crate) fn rules() -> String {
    let all = [
        "-4 rule",
        "-6 rule",
        "-4 route show table all",
        "-6 route show table all",
    ];
    let text = all.map(ip).concat();
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("saigal"))
        .collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// TCP sockets of the server's host, without listeners and those in TIME-WAIT.
pub(crate) fn sockets() -> usize {
    let tables = ["tcp", "tcp6"].map(|name| {
        // `/proc/net` is that of the process's first thread.
        fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap()
    });
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let states = lines.filter_map(|line| line.split_whitespace().nth(3));
    // States of include/net/tcp_states.h.
    states.filter(|state| !["0A", "06"].contains(state)).count()
}

/// A TAP device of the calling thread's network namespace, without offloads.
fn tap(name: &str) -> Tap {
    let settings = Settings {
        name,
        link: saiga_netdev::Link::Ethernet,
        origin: Origin::Make,
        queues: NonZeroU16::MIN,
        has_offloads: false,
    };
    Tap::open(&settings).unwrap().remove(0)
}
