//! A server's host with a gateway, and a client's host, in network namespaces.
//! Needs root, /dev/net/tun, ip(8), nsenter(1) and Redis.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::support::{Installation, Said, said};

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

/// The wire between the hosts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wire {
    /// A TAP device of the gateway.
    Tap,
    /// A veth pair, shared with the kernel by AF_XDP.
    Xdp,
}

/// A process that ends with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// A server's host with a gateway, and a client's host at the other end of its device.
pub(crate) struct World {
    pub(crate) saiga: Installation,
    /// Holds the client's network namespace.
    client: Ended,
    wire: Wire,
    /// The server's network as it was before the gateway.
    pub(crate) before: String,
}

/// Runs a test in a thread with a network namespace of its own: the server's host.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
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

pub(crate) fn ip(line: &str) -> String {
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
pub(crate) fn start(command: &mut Command, ready: &str) -> Ended {
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let is_ready = lines.any(|line| line.unwrap().contains(ready));
    assert!(is_ready, "{command:?} has ended");
    // The program must not be stopped by a full pipe.
    thread::spawn(move || lines.for_each(drop));
    child
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
                    "link set veth0 up",
                ],
            ),
        };
        let runtime = format!("[runtime]\nuser = \"daemon\"\ncontrol = {control:?}\n");
        let settings = format!("{settings}{runtime}{tables}");
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

    /// The device of the gateway.
    pub(crate) const fn device(&self) -> &'static str {
        match self.wire {
            Wire::Tap => "tap0",
            Wire::Xdp => "veth0",
        }
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
    pub(crate) fn redis(&self, is_accelerated: bool) -> Ended {
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
    pub(crate) fn redis_on(&self, address: &str, port: u16) -> Ended {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", address, "--port", &port.to_string()])
            .args(["--save", "", "--protected-mode", "no"])
            .current_dir(self.saiga.path(""));
        start(&mut command, "Ready to accept connections")
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
            .args(["-t", &self.client.0.id().to_string(), "-n"])
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

/// Rules and routes of this host. The device is the client's while a gateway runs.
pub(crate) fn network() -> String {
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
pub(crate) fn stop(mut gateway: Ended) {
    let pid = libc::pid_t::try_from(gateway.0.id()).unwrap();
    // SAFETY: the process is a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    assert_eq!(gateway.0.wait().unwrap().code(), Some(0));
}
