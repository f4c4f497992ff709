//! What the programs are attached to: a network namespace and a cgroup.
//!
//! Source: `man 7 network_namespaces`, `man 7 cgroups`, `man 5 proc_pid_mountinfo`, and
//! SO_NETNS_COOKIE of include/uapi/asm-generic/socket.h: the number of a namespace, which no other
//! one has until the next start of the kernel.
#![expect(
    unsafe_code,
    reason = "no crate of the workspace wraps SO_NETNS_COOKIE"
)]

use std::fs::{File, read_to_string};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use socket2::{Domain, Socket, Type};

use crate::{OutgoingError, system};

/// The network namespace of the calling thread.
pub(crate) fn network() -> Result<File, OutgoingError> {
    let opened = File::open("/proc/thread-self/ns/net");
    opened.map_err(system("open a network namespace"))
}

/// Its number.
pub(crate) fn cookie() -> Result<u64, OutgoingError> {
    let any = Socket::new(Domain::UNIX, Type::DGRAM, None);
    let cookie = any.and_then(|socket| {
        let mut cookie = 0_u64;
        let mut length = libc::socklen_t::try_from(size_of::<u64>()).unwrap_or(0);
        let to: *mut libc::c_void = (&raw mut cookie).cast();
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `to` is writable for `length` bytes, and both live until the call returns.
        let done = unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_NETNS_COOKIE,
                to,
                &raw mut length,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(cookie)
    });
    cookie.map_err(system("read the number of a network namespace"))
}

/// The root of the cgroups, which all processes are in.
pub(crate) fn cgroups() -> Result<File, OutgoingError> {
    let mounts = read_to_string("/proc/thread-self/mountinfo");
    let mounts = mounts.map_err(system("read the mounted file systems"))?;
    let path = mounts.lines().find_map(cgroup_root);
    let path = path.ok_or(OutgoingError::NoCgroup)?;
    File::open(path).map_err(system("open the root of the cgroups"))
}

/// The mount point of a line, if it has the root of cgroup2.
fn cgroup_root(line: &str) -> Option<String> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let is_root = root == "/" && file_system.split(' ').next() == Some("cgroup2");
    // Spaces in mount points are escaped, and no one mounts cgroups there.
    is_root.then(|| point.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_of_cgroup2_is_found() {
        let line =
            |root, kind| format!("35 24 0:30 {root} /sys/fs/cgroup rw shared:9 - {kind} x rw");
        let found = cgroup_root(&line("/", "cgroup2"));
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(cgroup_root(&line("/user.slice", "cgroup2")), None);
        assert_eq!(cgroup_root(&line("/", "cgroup")), None);
    }
}
