//! Options of a service's sandbox that keep its connections on TCP, and the line that changes each.
//!
//! Spec: `man 5 systemd.exec`. Deliberately absent, because they are no obstacle: NoNewPrivileges,
//! MemoryDenyWriteExecute (the library is mapped as every other), AmbientCapabilities (they do not
//! make the loader distrust its environment), CapabilityBoundingSet, ProtectProc and ProcSubset
//! (the library reads its own process only), PrivateDevices, RemoveIPC, IPAddressDeny.

use std::path::{Path, PathBuf};

use super::obstacle::Obstacle;
use super::reach::Library;
use super::unit::Unit;

/// Everything that a line in a drop-in can change.
pub(super) fn all(unit: &Unit, library: &Library) -> Vec<Obstacle> {
    [
        families(unit),
        users(unit),
        system_calls(unit),
        not_executable(unit, &library.seen),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The library asks the kernel for its peer by AF_NETLINK (sock_diag) and talks to it by AF_UNIX.
fn families(unit: &Unit) -> Option<Obstacle> {
    let missing = |family: &&str| !is_allowed(unit, "RestrictAddressFamilies", &[*family]);
    let needed = ["AF_UNIX", "AF_NETLINK"];
    let lacking: Vec<&str> = needed.into_iter().filter(missing).collect();
    if lacking.is_empty() {
        return None;
    }
    let lacking = lacking.join(" ");
    Some(Obstacle::relievable(
        format!("RestrictAddressFamilies= lacks {lacking}, by which the two ends find each other"),
        format!("RestrictAddressFamilies={lacking}"),
    ))
}

/// In a user namespace every other user is nobody, whose connections are not upgraded.
fn users(unit: &Unit) -> Option<Obstacle> {
    unit.is_on("PrivateUsers").then(|| {
        Obstacle::relievable(
            "PrivateUsers= hides who its clients are: only root's and its own user's would be accelerated"
                .to_owned(),
            "PrivateUsers=no".to_owned(),
        )
    })
}

/// Calls that the library makes and a service may do without, by the smallest of systemd's groups
/// that contains them (`systemd-analyze syscall-filter`). A filter kills who makes another.
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
            "statx",
            "fallocate",
            "ftruncate",
            "fcntl",
        ],
    ),
    ("@basic-io", &["read", "pread64", "lseek"]),
    ("@io-event", &["ppoll", "epoll_pwait", "epoll_ctl"]),
    ("@memlock", &["munlock"]),
    ("@process", &["kill"]),
    (
        "@signal",
        &["rt_sigaction", "rt_sigprocmask", "sigaltstack"],
    ),
    ("@system-service", &["ioctl", "madvise"]),
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
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(" ");
    Some(Obstacle::relievable(
        format!("SystemCallFilter= lacks {missing}, which the library calls"),
        format!("SystemCallFilter={missing}"),
    ))
}

/// Whether a filter list lets one of `names` through. The first line makes it a list of what is
/// allowed or, with a tilde, of what is not; further lines add and take away. What is allowed
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

/// A library is mapped for execution. Of several paths the longest one counts.
fn not_executable(unit: &Unit, library: &Path) -> Option<Obstacle> {
    let denied = covering(unit, "NoExecPaths", library)?;
    if covering(unit, "ExecPaths", library).is_some_and(|allowed| allowed >= denied) {
        return None;
    }
    let folder = library.parent()?.display().to_string();
    Some(Obstacle::relievable(
        format!(
            "NoExecPaths= keeps it from loading {}, and ExecPaths= lacks that",
            library.display()
        ),
        // Without the hyphen the service would not start once Saiga is uninstalled.
        format!("ExecPaths=-{}", folder.replace('%', "%%")),
    ))
}

/// How many parts the longest path of a list has that names `file` or a folder above it.
pub(super) fn covering(unit: &Unit, key: &str, file: &Path) -> Option<usize> {
    let paths = unit.words(key).into_iter().map(|word| {
        let path = word.trim_start_matches(['-', '+']);
        PathBuf::from(path.split(':').next().unwrap_or(path).replace("%%", "%"))
    });
    paths
        .filter(|path| file.starts_with(path))
        .map(|path| path.components().count())
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every program calls, so no filter can lack it.
    const EVERYBODY: [&str; 6] = ["close", "geteuid", "getpid", "gettid", "mmap", "munmap"];

    #[test]
    fn every_call_of_the_library_is_known() {
        let source = include_str!("../../../net/channel/src/sys.rs");
        let is_known = |call: &str| {
            EVERYBODY.contains(&call) || CALLS.iter().any(|(_, calls)| calls.contains(&call))
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
