//! What a step needs of the machine, and what of it is not here.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

use saiga_experiment::account::Account;
use saiga_experiment::cores::Cores;
use saiga_experiment::file::{Arm, Dress, Experiment, How, Kind};

use crate::step::Step;

/// Words that begin a line for a shell and are no programs.
const OF_THE_SHELL: [&str; 20] = [
    ".", "[", "case", "cd", "command", "echo", "eval", "exec", "exit", "export", "for", "if",
    "printf", "set", "test", "trap", "true", "ulimit", "umask", "while",
];

/// The port of the discard service (RFC 863): connecting a socket needs one. Nothing is sent there.
const DISCARD_PORT: u16 = 9;

/// A machine, as far as steps depend on it.
pub trait Machine {
    /// Whether a program can be found, by its path or in `PATH`.
    fn program(&self, name: &str) -> bool;
    /// Whether a file or a directory is there.
    fn path(&self, path: &Path) -> bool;
    /// Whether there is a disk or network interface of this name.
    fn device(&self, name: &str) -> bool;
    /// Whether there is a user of this name, and we may become them.
    fn user(&self, name: &str) -> bool;
    /// Whether this process may use a CPU.
    fn cpu(&self, number: usize) -> bool;
    /// Whether there is such a memory node.
    fn node(&self, number: usize) -> bool;
    /// Whether we are root.
    fn root(&self) -> bool;
    /// Whether every address of a host belongs to this machine.
    ///
    /// # Errors
    /// Why not, in words for people.
    fn host(&self, name: &str) -> Result<(), String>;
}

/// The machine on which we run.
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
        Account::are_root()
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

/// Whether an address belongs to an interface of this machine: the source address that the kernel
/// chooses is then the address itself. Connecting a UDP socket sends nothing.
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

/// Something that a step needs and that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// What: `program /usr/sbin/mysqld`.
    pub(crate) what: String,
    /// Whether nothing can be started without it; directories may be made by hooks.
    pub(crate) blocks: bool,
}

/// What `step` needs and `machine` lacks.
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
            found.dress(&server.dress);
            server
                .data
                .iter()
                .for_each(|dir| found.path("directory", dir));
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
            "root's rights, without which caches cannot be dropped".to_owned()
        }),
        Step::Load => {
            match &file.workload.kind {
                Kind::Tpcc { .. } => {}
                Kind::Redis { .. } => found.program("redis-benchmark"),
                Kind::Command { line, .. } => {
                    found.program(line.first().map_or("", String::as_str));
                }
            }
            found.dress(&arm.client);
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
        Step::Free(_)
        | Step::Verify
        | Step::Check { .. }
        | Step::Ready(_)
        | Step::Flush
        | Step::Fill { .. }
        | Step::Stop(_)
        | Step::Gone(_) => {}
    }
    found.missing
}

struct Finder<'a> {
    machine: &'a dyn Machine,
    missing: Vec<Missing>,
}

impl Finder<'_> {
    fn need(&mut self, there: bool, blocks: bool, what: impl FnOnce() -> String) {
        if !there {
            let what = what();
            self.missing.push(Missing { what, blocks });
        }
    }

    fn program(&mut self, name: &str) {
        self.need(self.machine.program(name), true, || {
            format!("program {name}")
        });
    }

    /// The program with which a line for a shell begins, where that is plain to see.
    fn first_word(&mut self, line: &str) {
        let word = line.split_whitespace().next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if word.chars().all(plain) && !OF_THE_SHELL.contains(&word) {
            let there = self.machine.program(word);
            // What the hook does about it is its own affair.
            self.need(there, false, || format!("program {word}"));
        }
    }

    fn path(&mut self, kind: &str, path: &Path) {
        let there = self.machine.path(path);
        self.need(there, false, || format!("{kind} {}", path.display()));
    }

    fn dress(&mut self, dress: &Dress) {
        let Dress {
            env: _,
            cpus,
            memory,
            saiga: _,
            user,
            directory,
        } = dress;
        let lacks: Vec<usize> = cpus
            .iter()
            .copied()
            .filter(|cpu| !self.machine.cpu(*cpu))
            .collect();
        self.need(lacks.is_empty(), true, || {
            format!("CPUs {}", saiga_experiment::numbers::ranges(&lacks))
        });
        let nodes = memory.as_ref().map_or(&[][..], |memory| memory.nodes());
        let lacks: Vec<usize> = nodes
            .iter()
            .copied()
            .filter(|node| !self.machine.node(*node))
            .collect();
        self.need(lacks.is_empty(), true, || {
            format!("memory nodes {}", saiga_experiment::numbers::ranges(&lacks))
        });
        if let Some(user) = user {
            let there = self.machine.user(user);
            self.need(there, true, || {
                format!("user {user}, or the right to act as them")
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

    /// The kernel's table has a line with each address, and its kind on the next line.
    #[test]
    fn addresses_of_this_machine_are_its_own_and_others_are_not() {
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
        // An address from a block for documentation (RFC 5737), and a name that is too long.
        assert_eq!(
            ThisMachine.host("192.0.2.10"),
            Err("this machine does not have 192.0.2.10".to_owned())
        );
        let nowhere = ThisMachine.host(&"x".repeat(64)).unwrap_err();
        assert!(nowhere.starts_with("it has no address: "), "{nowhere}");
    }
}
