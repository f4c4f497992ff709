//! Requirements of steps: programs, paths, devices, users, CPUs and memory nodes.
//!
//! In: a step and a [`Machine`]. Out: what the machine lacks for this step, for dry runs and for
//! the check before the first run. Tests and dry runs of examples use other machines.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

use saiga_experiment::file::{Arm, Experiment, How, Kind, Launch};
use saiga_process::account::Account;
use saiga_process::cores::Cores;

use crate::step::Step;

/// Keywords and built-in commands of the shell, which are not searched in `PATH`.
const SHELL_BUILTINS: [&str; 20] = [
    ".", "[", "case", "cd", "command", "echo", "eval", "exec", "exit", "export", "for", "if",
    "printf", "set", "test", "trap", "true", "ulimit", "umask", "while",
];

/// The port of the discard service (RFC 863). connect(2) needs a port, but nothing is sent.
const DISCARD_PORT: u16 = 9;

/// The properties of a machine that steps depend on.
pub trait Machine {
    /// Whether a program exists, by its path or in `PATH`.
    fn program(&self, name: &str) -> bool;
    /// Whether a file or directory exists.
    fn path(&self, path: &Path) -> bool;
    /// Whether a disk or network interface of this name exists.
    fn device(&self, name: &str) -> bool;
    /// Whether a user of this name exists and this process may start programs as that user.
    fn user(&self, name: &str) -> bool;
    /// Whether the CPU is in the affinity mask of this process.
    fn cpu(&self, number: usize) -> bool;
    /// Whether the NUMA node exists.
    fn node(&self, number: usize) -> bool;
    /// Whether this process runs as root.
    fn root(&self) -> bool;
    /// Checks that every address of a host belongs to this machine.
    ///
    /// # Errors
    /// Returns the reason, for messages: the host has no address, or one of another machine.
    fn host(&self, name: &str) -> Result<(), String>;
}

/// The machine on which this process runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn program(&self, name: &str) -> bool {
        if name.contains('/') {
            return Path::new(name).is_file();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }

    fn path(&self, path: &Path) -> bool {
        path.exists()
    }

    fn device(&self, name: &str) -> bool {
        ["/sys/class/block", "/sys/class/net"]
            .iter()
            .any(|class| Path::new(class).join(name).exists())
    }

    fn user(&self, name: &str) -> bool {
        let ours = rustix::process::geteuid();
        Account::named(name).is_some_and(|user| ours.is_root() || ours.as_raw() == user.uid)
    }

    fn cpu(&self, number: usize) -> bool {
        Cores::choose().is_ok_and(|cores| cores.allowed.contains(&number))
    }

    fn node(&self, number: usize) -> bool {
        fs::exists(format!("/sys/devices/system/node/node{number}")).unwrap_or(false)
    }

    fn root(&self) -> bool {
        Account::is_root()
    }

    fn host(&self, name: &str) -> Result<(), String> {
        let found = (name, DISCARD_PORT).to_socket_addrs();
        let found = found.map_err(|error| format!("it has no address: {error}"))?;
        let addresses: Vec<SocketAddr> = found.collect();
        match addresses.iter().find(|address| !is_own(address)) {
            Some(other) => Err(format!("this machine does not have {}", other.ip())),
            None if addresses.is_empty() => Err("it has no address".to_owned()),
            None => Ok(()),
        }
    }
}

/// Whether an address belongs to an interface of this machine. For such an address the kernel
/// chooses the address itself as the source address. Connecting a UDP socket sends nothing.
fn is_own(address: &SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    if ip.is_loopback() || ip.is_unspecified() {
        return true;
    }
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address.ip())
}

/// A requirement of a step that the machine does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// For example `program /usr/sbin/mysqld`.
    pub(crate) name: String,
    /// Whether the experiment is refused. Directories do not block, because hooks may create them.
    pub(crate) blocks: bool,
}

/// The requirements of `step` that `machine` does not meet.
pub(crate) fn missing(
    file: &Experiment,
    arm: &Arm,
    step: &Step,
    machine: &dyn Machine,
) -> Vec<Missing> {
    let mut found = Finder {
        machine,
        missing: Vec::new(),
    };
    match step {
        Step::Start(index) => {
            let server = &arm.servers[*index];
            found.program(server.command.first().map_or("", String::as_str));
            found.launch(&server.launch);
            server
                .data
                .iter()
                .for_each(|dir| found.path("directory", dir));
        }
        Step::MakeHosts => {
            found.program("ip");
            found.need(machine.root(), true, || {
                "root privileges, which network namespaces need".to_owned()
            });
        }
        Step::Restore => {
            if let How::Snapshot {
                parts, snapshot, ..
            } = &file.restore.how
            {
                found.path("snapshot", snapshot);
                parts.iter().for_each(|part| found.path("directory", part));
            }
        }
        Step::DropCaches => found.need(machine.root(), true, || {
            "root privileges, which dropping caches needs".to_owned()
        }),
        Step::Load => {
            match &file.workload.kind {
                Kind::Tpcc { .. } => {}
                Kind::Redis { .. } => found.program("redis-benchmark"),
                Kind::Command { line, .. } => {
                    found.program(line.first().map_or("", String::as_str));
                }
            }
            found.launch(&arm.client);
            for device in &file.metrics.devices {
                found.need(machine.device(device), true, || format!("device {device}"));
            }
            for drive in &file.metrics.waf {
                found.need(machine.path(drive), true, || {
                    format!("drive {}", drive.display())
                });
            }
            file.metrics
                .fill
                .iter()
                .for_each(|dir| found.path("directory", dir));
        }
        Step::Hook { hook, .. } | Step::Logical(hook) => found.first_word(&hook.command),
        Step::CheckFree(_)
        | Step::Verify
        | Step::Check { .. }
        | Step::AwaitReady(_)
        | Step::Flush
        | Step::Fill { .. }
        | Step::Stop(_)
        | Step::AwaitPortClosed(_)
        | Step::RemoveHosts => {}
    }
    found.missing
}

struct Finder<'a> {
    machine: &'a dyn Machine,
    missing: Vec<Missing>,
}

impl Finder<'_> {
    fn need(&mut self, is_met: bool, blocks: bool, name: impl FnOnce() -> String) {
        if !is_met {
            let name = name();
            self.missing.push(Missing { name, blocks });
        }
    }

    fn program(&mut self, name: &str) {
        self.need(self.machine.program(name), true, || {
            format!("program {name}")
        });
    }

    /// The first word of a shell command, unless the word is a built-in or contains shell syntax.
    fn first_word(&mut self, line: &str) {
        let word = line.split_whitespace().next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if word.chars().all(plain) && !SHELL_BUILTINS.contains(&word) {
            let exists = self.machine.program(word);
            // Does not block: the hook may handle a missing program itself.
            self.need(exists, false, || format!("program {word}"));
        }
    }

    fn path(&mut self, kind: &str, path: &Path) {
        let exists = self.machine.path(path);
        self.need(exists, false, || format!("{kind} {}", path.display()));
    }

    fn launch(&mut self, launch: &Launch) {
        let Launch {
            env: _,
            cpus,
            memory,
            saiga: _,
            user,
            directory,
        } = launch;
        let lacks: Vec<usize> = cpus
            .iter()
            .copied()
            .filter(|cpu| !self.machine.cpu(*cpu))
            .collect();
        self.need(lacks.is_empty(), true, || {
            format!("CPUs {}", saiga_process::numbers::ranges(&lacks))
        });
        let nodes = memory.as_ref().map_or(&[][..], |memory| memory.nodes());
        let lacks: Vec<usize> = nodes
            .iter()
            .copied()
            .filter(|node| !self.machine.node(*node))
            .collect();
        self.need(lacks.is_empty(), true, || {
            format!("memory nodes {}", saiga_process::numbers::ranges(&lacks))
        });
        if let Some(user) = user {
            let is_usable = self.machine.user(user);
            self.need(is_usable, true, || {
                format!("user {user}, or the right to start programs as that user")
            });
        }
        if let Some(directory) = directory {
            self.path("directory", directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/net/fib_trie` has a line for each address, and its type on the next line.
    #[test]
    fn host_accepts_addresses_of_this_machine_only() {
        let table = fs::read_to_string("/proc/net/fib_trie").unwrap();
        let lines: Vec<&str> = table.lines().map(str::trim).collect();
        let own = lines
            .windows(2)
            .filter(|pair| pair[1] == "/32 host LOCAL")
            .filter_map(|pair| pair[0].strip_prefix("|-- "));
        let mut own: Vec<&str> = own.collect();
        assert!(own.contains(&"127.0.0.1"), "{own:?}");
        own.extend(["127.9.9.9", "localhost", "0.0.0.0", "::1"]);
        for name in own {
            assert_eq!(ThisMachine.host(name), Ok(()), "{name}");
        }
        // 192.0.2.0/24 is reserved for documentation (RFC 5737); the label is longer than 63 bytes.
        assert_eq!(
            ThisMachine.host("192.0.2.10"),
            Err("this machine does not have 192.0.2.10".to_owned())
        );
        let too_long = ThisMachine.host(&"x".repeat(64)).unwrap_err();
        assert!(too_long.starts_with("it has no address: "), "{too_long}");
    }
}
