//! What `/proc` tells of processes: what they have open, mapped, and as working directory.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::io;
use std::path::Path;

use super::Evidence;
use crate::name::escape;
use crate::stat::{Identity, Stat};

/// The processes that this user can list.
pub(super) struct Visible {
    pub(super) pids: Vec<u32>,
    /// No process is hidden (`hidepid` of proc(5)).
    pub(super) is_complete: bool,
}

/// What can be seen of one process.
pub(super) enum Sight {
    /// It uses this file.
    Uses(Evidence, Identity),
    /// It uses none of them, or has ended.
    Clear,
    /// This user may not see it; the users as whom it runs, if that can be told.
    Barred(Vec<u32>),
}

/// Lists `/proc`.
pub(super) fn all() -> io::Result<Visible> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    // There always is a first process; where it is not seen, others are not either.
    let is_complete = pids.contains(&1);
    Ok(Visible { pids, is_complete })
}

/// How long a process that nobody may look at is given to end: those that start others do.
const MOMENT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Whether a process has ended, or does within a moment: then it serves nothing.
pub(super) fn ends_soon(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return false };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => {
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut ended, Some(&MOMENT)).is_ok_and(|count| count > 0)
        }
        Err(error) => error == Errno::SRCH,
    }
}

/// A process's name.
pub(super) fn name(pid: u32) -> String {
    match fs::read(format!("/proc/{pid}/comm")) {
        Ok(name) => escape(name.trim_ascii_end()),
        Err(_) => "a process".to_owned(),
    }
}

/// The processes that `pid` comes from: the shell in which we were called may stand anywhere.
pub(super) fn ancestors(pid: u32) -> Vec<u32> {
    let mut line = Vec::new();
    let mut next = parent(pid);
    while let Some(pid) = next.filter(|pid| *pid != 0 && !line.contains(pid)) {
        line.push(pid);
        next = parent(pid);
    }
    line
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "PPid:")?.trim().parse().ok()
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key))
}

/// Looks for the first file of `pid` that `is_wanted`.
pub(super) fn look(pid: u32, is_wanted: impl Fn(&Identity) -> bool) -> Sight {
    let seen = descriptors(pid, &is_wanted)
        .and_then(|seen| or_else(seen, || mappings(pid, &is_wanted)))
        .and_then(|seen| or_else(seen, || working_directory(pid, &is_wanted)));
    match seen {
        Ok(Some((evidence, identity))) => Sight::Uses(evidence, identity),
        Ok(None) => Sight::Clear,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => barred(pid),
        // It has ended meanwhile (ENOENT, ESRCH).
        Err(_) => Sight::Clear,
    }
}

type Seen = io::Result<Option<(Evidence, Identity)>>;

fn or_else(seen: Option<(Evidence, Identity)>, other: impl FnOnce() -> Seen) -> Seen {
    match seen {
        Some(seen) => Ok(Some(seen)),
        None => other(),
    }
}

fn descriptors(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Seen {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let stat = match Stat::through_links(&entry?.path()) {
            Ok(stat) => stat,
            // Some security modules show that there are descriptors, and not what they are.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // Closed meanwhile, or of a file that cannot be looked at any more.
            Err(_) => continue,
        };
        if is_wanted(&stat.identity) {
            return Ok(Some((Evidence::Open, stat.identity)));
        }
    }
    Ok(None)
}

fn mappings(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Seen {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    for line in maps.split(|byte| *byte == b'\n') {
        if let Some(identity) = mapped(line)
            && is_wanted(&identity)
        {
            return Ok(Some((Evidence::Mapped, identity)));
        }
    }
    Ok(None)
}

/// `7f00-7f01 r--s 00000000 fd:00 1234  /path`: device and inode, of a file.
fn mapped(line: &[u8]) -> Option<Identity> {
    let mut fields = line.split(|byte| *byte == b' ').map(std::str::from_utf8);
    let device = fields.nth(3)?.ok()?;
    let inode = fields.next()?.ok()?.parse().ok()?;
    let (major, minor) = device.split_once(':')?;
    (inode != 0).then_some(Identity {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
        inode,
    })
}

fn working_directory(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Seen {
    let identity = Stat::through_links(Path::new(&format!("/proc/{pid}/cwd")))?.identity;
    Ok(is_wanted(&identity).then_some((Evidence::WorkingDirectory, identity)))
}

/// A process that may not be seen; kernel threads and zombies have nothing to see.
fn barred(pid: u32) -> Sight {
    let status = match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Sight::Barred(Vec::new());
        }
        Err(_) => return Sight::Clear,
    };
    if field(&status, "VmSize:").is_none() {
        return Sight::Clear;
    }
    let uids = field(&status, "Uid:").unwrap_or_default();
    let uids = uids.split_whitespace().filter_map(|uid| uid.parse().ok());
    Sight::Barred(uids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_names_its_file() {
        let line = b"7f1c4000-7f1c5000 rw-s 00000000 fe:10 4242                       /data/ibtmp1";
        let expected = Identity {
            major: 0xfe,
            minor: 0x10,
            inode: 4242,
        };
        assert_eq!(mapped(line), Some(expected));
        let anonymous = b"7f1c4000-7f1c5000 rw-p 00000000 00:00 0 ";
        assert_eq!(mapped(anonymous), None);
        assert_eq!(mapped(b""), None);
    }
}
