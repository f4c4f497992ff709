//! Options of a service's sandbox that keep its connections on TCP, each of which one line of a
//! drop-in relaxes ([`Obstacle::relaxation`]).
//!
//! Spec: `man 5 systemd.exec`. Deliberately absent, because they are not obstacles:
//! NoNewPrivileges, MemoryDenyWriteExecute (the library is mapped like any other),
//! AmbientCapabilities (the loader still trusts its environment), CapabilityBoundingSet,
//! ProtectProc and ProcSubset (the library reads its own process only), PrivateDevices, RemoveIPC,
//! IPAddressDeny.

use std::path::Path;

use crate::isolation::covering;
use crate::obstacle::Obstacle;
use crate::unit::Unit;

/// The obstacles in the sandbox of `unit` for `library`, a path for the service.
pub(crate) fn obstacles(unit: &Unit, library: &Path) -> Vec<Obstacle> {
    [
        address_families(unit),
        private_users(unit),
        system_calls(unit),
        not_executable(unit, library),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The library finds its peer by AF_NETLINK (sock_diag) and talks to it by AF_UNIX.
fn address_families(unit: &Unit) -> Option<Obstacle> {
    let is_missing = |family: &&str| !is_allowed(unit, "RestrictAddressFamilies", &[*family]);
    let needed = ["AF_UNIX", "AF_NETLINK"];
    let missing: Vec<&str> = needed.into_iter().filter(is_missing).collect();
    (!missing.is_empty()).then_some(Obstacle::AddressFamilies(missing))
}

/// In a user namespace all other users appear as the overflow user. Its connections are not
/// upgraded.
fn private_users(unit: &Unit) -> Option<Obstacle> {
    let is_private = unit.is_on("PrivateUsers") || unit.value("PrivateUsers") == Some("self");
    is_private.then_some(Obstacle::PrivateUsers)
}

/// System calls of the library that a service may do without, by the smallest of systemd's groups
/// that contains them (`systemd-analyze syscall-filter`). A filter kills the process at any other.
const CALLS: [(&str, &[&str]); 10] = [
    ("@ipc", &["memfd_create"]),
    (
        "@network-io",
        &[
            "socket",
            "bind",
            "connect",
            "listen",
            "accept4",
            "sendto",
            "recvfrom",
            "sendmsg",
            "recvmsg",
            "setsockopt",
            "getsockopt",
            "getsockname",
            "getpeername",
            "shutdown",
        ],
    ),
    (
        "@file-system",
        &[
            "openat",
            "fstat",
            "readlink",
            "readlinkat",
            "statx",
            "fallocate",
            "ftruncate",
            "fcntl",
        ],
    ),
    ("@basic-io", &["read", "pread64", "lseek", "write"]),
    ("@io-event", &["ppoll", "epoll_pwait", "epoll_ctl"]),
    ("@memlock", &["munlock"]),
    ("@process", &["kill"]),
    (
        "@signal",
        &["rt_sigaction", "rt_sigprocmask", "sigaltstack"],
    ),
    // sched_getcpu(3) makes a system call on Arm, before glibc 2.35: there is no vDSO for it.
    ("@system-service", &["getcpu", "ioctl", "madvise"]),
    (
        "@default",
        &[
            "membarrier",
            "mprotect",
            "prlimit64",
            "sched_getaffinity",
            "sched_yield",
            "getrandom",
        ],
    ),
];

fn system_calls(unit: &Unit) -> Option<Obstacle> {
    let is_missing = |group: &str, call: &str| {
        let names = [call, group, "@system-service", "@known"];
        !is_allowed(unit, "SystemCallFilter", &names)
    };
    let missing: Vec<&str> = CALLS
        .iter()
        .flat_map(|(group, calls)| calls.iter().map(move |call| (*group, *call)))
        .filter(|(group, call)| is_missing(group, call))
        .map(|(_, call)| call)
        .collect();
    (!missing.is_empty()).then_some(Obstacle::SystemCalls(missing))
}

/// Whether a filter list allows one of `names`. The first line makes it a list of what is allowed
/// or, with a tilde, of what is denied; further lines add and remove. A list of what is allowed
/// always includes `@default`.
fn is_allowed(unit: &Unit, key: &str, names: &[&str]) -> bool {
    let lines = unit.values(key);
    let Some(first) = lines.first() else {
        return true;
    };
    let mut allowed = first.starts_with('~') || names.contains(&"@default");
    for line in lines {
        let denies = line.starts_with('~');
        let mut words = line.trim_start_matches('~').split_whitespace();
        if words.any(|word| names.contains(&word.split(':').next().unwrap_or(word))) {
            allowed = !denies;
        }
    }
    allowed
}

/// A library is mapped for execution. Of several paths, the longest takes precedence.
fn not_executable(unit: &Unit, library: &Path) -> Option<Obstacle> {
    let denied = covering(unit, "NoExecPaths", library)?;
    if covering(unit, "ExecPaths", library).is_some_and(|allowed| allowed >= denied) {
        return None;
    }
    Some(Obstacle::NotExecutable {
        library: library.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that relax the sandbox of a service.
    fn relaxations(service: &str) -> Vec<String> {
        let mut unit = Unit::default();
        unit.parse(&format!("[Service]\n{service}\n"));
        let found = obstacles(&unit, Path::new("/opt/50%/lib/libsaiga.so"));
        found.iter().filter_map(Obstacle::relaxation).collect()
    }

    #[test]
    fn each_obstacle_has_a_line_that_relaxes_it() {
        for (service, line) in [
            (
                "RestrictAddressFamilies=AF_INET AF_UNIX",
                "RestrictAddressFamilies=AF_NETLINK",
            ),
            (
                "RestrictAddressFamilies=~AF_UNIX",
                "RestrictAddressFamilies=AF_UNIX",
            ),
            (
                "RestrictAddressFamilies=~AF_NETLINK AF_PACKET",
                "RestrictAddressFamilies=AF_NETLINK",
            ),
            (
                "RestrictAddressFamilies=none",
                "RestrictAddressFamilies=AF_UNIX AF_NETLINK",
            ),
            ("PrivateUsers=yes", "PrivateUsers=no"),
            ("PrivateUsers=self", "PrivateUsers=no"),
            (
                "SystemCallFilter=@basic-io @network-io @file-system @io-event @process @signal ioctl",
                "SystemCallFilter=memfd_create munlock getcpu madvise",
            ),
            (
                "SystemCallFilter=~@default",
                "SystemCallFilter=membarrier mprotect prlimit64 sched_getaffinity sched_yield getrandom",
            ),
            (
                "SystemCallFilter=@system-service\nSystemCallFilter=~memfd_create:EPERM",
                "SystemCallFilter=memfd_create",
            ),
            ("SystemCallFilter=~@ipc", "SystemCallFilter=memfd_create"),
            ("NoExecPaths=/", "ExecPaths=-/opt/50%%/lib"),
            (
                "NoExecPaths=/opt/50%%\nExecPaths=/opt /usr",
                "ExecPaths=-/opt/50%%/lib",
            ),
        ] {
            assert_eq!(relaxations(service), [line], "{service}");
            let relaxed = relaxations(&format!("{service}\n{line}"));
            assert_eq!(relaxed, [""; 0], "{service}, then {line}");
        }
    }

    #[test]
    fn options_that_let_the_library_work_are_not_obstacles() {
        for service in [
            "NoExecPaths=/\nExecPaths=/opt",
            "RestrictAddressFamilies=AF_INET\nRestrictAddressFamilies=AF_UNIX AF_NETLINK",
            "RestrictAddressFamilies=~AF_PACKET",
            "SystemCallFilter=@system-service\nSystemCallFilter=~@privileged",
            "PrivateUsers=yes\nPrivateUsers=no",
            "NoNewPrivileges=yes\nMemoryDenyWriteExecute=yes",
        ] {
            assert_eq!(relaxations(service), [""; 0], "{service}");
        }
    }

    /// System calls that every program makes, so that no filter lacks them.
    const OF_EVERY_PROGRAM: [&str; 6] = ["close", "geteuid", "getpid", "gettid", "mmap", "munmap"];

    #[test]
    fn every_system_call_of_the_library_is_in_the_table() {
        let source = include_str!("../../../net/channel/src/sys.rs");
        let is_known = |call: &str| {
            OF_EVERY_PROGRAM.contains(&call) || CALLS.iter().any(|(_, calls)| calls.contains(&call))
        };
        let made = source.split("Sysno::").skip(1).map(|text| {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
            &text[..end.unwrap_or(text.len())]
        });
        let made: Vec<&str> = made.collect();
        assert!(made.contains(&"memfd_create"), "{made:?}");
        let unknown: Vec<&str> = made.into_iter().filter(|call| !is_known(call)).collect();
        assert_eq!(unknown, [""; 0]);
    }
}
