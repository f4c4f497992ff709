//! `saiga gateway` on a TAP device and by AF_XDP, between real servers and a kernel client in
//! another network namespace. Needs root, /dev/net/tun, ip(8), nsenter(1) and Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

mod support;
use support::{Installation, Said, said};

const SETTINGS: &str = r#"
[[device]]
kind = "tap"
interface = "tap0"
addresses = ["10.9.0.1/24", "fd09::1/64"]

[[serve]]
port = 6379
"#;

/// The kernel's interface, which has the addresses.
const XDP_SETTINGS: &str = r#"
serve = [{ port = 6379 }]
[[device]]
interface = "veth0"
"#;

/// The wire between the hosts.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Tap,
    Xdp,
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// A server's host with a gateway, and a client's host at the other end of its device.
struct World {
    saiga: Installation,
    /// Holds the client's network namespace.
    client: Ended,
    wire: Wire,
    /// The server's network as it was before the gateway.
    before: String,
}

/// Runs a test in a thread with a network namespace of its own: the server's host.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: no memory is passed.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(done, 0, "needs root: {}", std::io::Error::last_os_error());
        test();
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

fn ip(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let Said {
        code,
        stdout,
        stderr,
    } = said(Command::new("ip").args(words));
    assert_eq!(code, Some(0), "ip {line}: {stderr}");
    stdout
}

/// Starts a program and waits for a line of its output that begins with `ready`.
fn start(command: &mut Command, ready: &str) -> Ended {
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let is_ready = lines.any(|line| line.unwrap().contains(ready));
    assert!(is_ready, "{command:?} has ended");
    // The program must not be stopped by a full pipe.
    thread::spawn(move || lines.for_each(drop));
    child
}

impl World {
    fn new() -> Self {
        Self::over(Wire::Tap)
    }

    fn over(wire: Wire) -> Self {
        let saiga = Installation::with_real_library();
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
                    "link set veth0 up",
                ],
            ),
        };
        fs::write(saiga.path("gateway.toml"), settings).unwrap();
        ip("link set lo up");
        lines.iter().for_each(|line| drop(ip(line)));
        let client = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo here; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut client = Ended(client.unwrap());
        let mut line = String::new();
        BufReader::new(client.0.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "here\n");
        let mut world = Self {
            saiga,
            client,
            wire,
            before: String::new(),
        };
        if wire == Wire::Xdp {
            world.give_wire();
        }
        world.before = network();
        world
    }

    /// Gives the client its end of the wire.
    fn give_wire(&self) {
        ip(&format!("link set tap0 netns {}", self.client.0.id()));
        for line in [
            "ip address add 10.9.0.2/24 dev tap0",
            "ip address add fd09::2/64 dev tap0 nodad",
            "ip link set tap0 up",
        ] {
            self.client(line);
        }
    }

    /// A Redis server, under the library or not.
    fn redis(&self, is_accelerated: bool) -> Ended {
        let server = "redis-server --bind 10.9.0.1 fd09::1 --port 6379 --save  --protected-mode no";
        let server = server.split(' ');
        let mut command = if is_accelerated {
            self.saiga.saiga(&["run", "--require", "--"])
        } else {
            Command::new("env")
        };
        start(
            command.args(server).current_dir(self.saiga.path("")),
            "Ready to accept connections",
        )
    }

    /// A plain server.
    fn redis_on(&self, address: &str, port: u16) -> Ended {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", address, "--port", &port.to_string()])
            .args(["--save", "", "--protected-mode", "no"])
            .current_dir(self.saiga.path(""));
        start(&mut command, "Ready to accept connections")
    }

    /// The gateway, with the client's host at the other end of its device.
    fn gateway(&self) -> Ended {
        let settings = self.saiga.path("gateway.toml");
        let mut command = self.saiga.saiga(&["gateway", "up", "--config"]);
        let gateway = start(command.arg(settings), "serving");
        if self.wire == Wire::Tap {
            self.give_wire();
        }
        gateway
    }

    /// A command on the client's host.
    fn on_client(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["-t", &self.client.0.id().to_string(), "-n"])
            .args(line.split(' '));
        command
    }

    /// Runs a command on the client's host; returns its output.
    fn client(&self, line: &str) -> String {
        self.client_with(line, b"")
    }

    /// As [`Self::client`], with bytes on stdin.
    fn client_with(&self, line: &str, input: &[u8]) -> String {
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

/// Rules and routes of this host. The device is the client's while a gateway runs.
fn network() -> String {
    let lines = [
        "rule",
        "-6 rule",
        "route show table all",
        "-6 route show table all",
    ];
    let all: Vec<String> = lines.into_iter().map(ip).collect();
    let foreign = |line: &&str| !line.contains("tap0");
    all.join("")
        .lines()
        .filter(foreign)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Ends a gateway as systemd does.
fn stop(mut gateway: Ended) {
    let pid = libc::pid_t::try_from(gateway.0.id()).unwrap();
    // SAFETY: the process is a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    assert_eq!(gateway.0.wait().unwrap().code(), Some(0));
}

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
            BufReader::with_capacity(1, stdout).read_line(&mut answer).unwrap();
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
        ("[tcp]\nmemory = \"1GiB\"", "tcp.memory"),
        ("[metrics]\nlisten = \"127.0.0.1:9100\"", "metrics.listen"),
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
