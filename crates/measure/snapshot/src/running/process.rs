//! Inspects processes by `/proc`: open files, mapped files and working directories.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use saiga_process::pidfd::Process;
use saiga_process::proc::{self, field};

use super::Evidence;
use crate::name::escape;
use crate::stat::{Identity, Stat};

/// The processes that `/proc` lists.
pub(super) struct Visible {
    pub(super) pids: Vec<u32>,
    /// No process is hidden (`hidepid` of proc(5)).
    pub(super) is_complete: bool,
}

/// Result of inspecting one process.
pub(super) enum Inspection {
    /// The process uses this file.
    Uses(Evidence, Identity),
    /// The process uses none of the files, or has ended.
    Unused,
    /// Permission was denied. Holds the UIDs of the process, or nothing if they are unknown.
    Denied(Vec<u32>),
}

/// Lists the processes in `/proc`.
pub(super) fn all() -> io::Result<Visible> {
    let pids = proc::pids()?;
    // Process 1 always exists. If it is hidden, so are the processes of other users.
    let is_complete = pids.contains(&1);
    Ok(Visible { pids, is_complete })
}

/// Time for an uninspectable process to end; a program that only starts another one ends soon.
const GRACE: Duration = Duration::from_secs(2);

/// Whether a process ends within [`GRACE`]. Such a process is not a server.
pub(super) fn ends_soon(pid: u32) -> bool {
    match Process::open(pid) {
        Ok(Some(process)) => process.ends_within(GRACE).unwrap_or(false),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// The name of a process in a message.
pub(super) fn name(pid: u32) -> String {
    match fs::read(format!("/proc/{pid}/comm")) {
        Ok(name) => escape(name.trim_ascii_end()),
        Err(_) => "a process".to_owned(),
    }
}

/// The ancestors of `pid`. The shell that called this program may have any working directory.
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
    Some(proc::Stat::of(pid).ok()?.parent)
}

/// Finds the first file used by `pid` for which `is_wanted` returns true.
pub(super) fn inspect(pid: u32, is_wanted: impl Fn(&Identity) -> bool) -> Inspection {
    let usage = descriptors(pid, &is_wanted)
        .and_then(|usage| or_else(usage, || mappings(pid, &is_wanted)))
        .and_then(|usage| or_else(usage, || working_directory(pid, &is_wanted)));
    match usage {
        Ok(Some((evidence, identity))) => Inspection::Uses(evidence, identity),
        Ok(None) => Inspection::Unused,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied(pid),
        // The process has ended (ENOENT, ESRCH).
        Err(_) => Inspection::Unused,
    }
}

/// A use of a wanted file, if one was found.
type Usage = io::Result<Option<(Evidence, Identity)>>;

fn or_else(usage: Option<(Evidence, Identity)>, other: impl FnOnce() -> Usage) -> Usage {
    match usage {
        Some(usage) => Ok(Some(usage)),
        None => other(),
    }
}

fn descriptors(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Usage {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let stat = match Stat::through_links(&entry?.path()) {
            Ok(stat) => stat,
            // Some security modules list descriptors, but deny access to their files.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // The descriptor was closed, or its file is no longer accessible.
            Err(_) => continue,
        };
        if is_wanted(&stat.identity) {
            return Ok(Some((Evidence::Open, stat.identity)));
        }
    }
    Ok(None)
}

fn mappings(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Usage {
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

/// Device and inode in a line of maps, `7f00-7f01 r--s 00000000 fd:00 1234  /path`; `None` for
/// anonymous memory.
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

fn working_directory(pid: u32, is_wanted: &impl Fn(&Identity) -> bool) -> Usage {
    let identity = Stat::through_links(Path::new(&format!("/proc/{pid}/cwd")))?.identity;
    Ok(is_wanted(&identity).then_some((Evidence::WorkingDirectory, identity)))
}

/// The result for a process whose files this user may not see. Kernel threads and zombies have no
/// files.
fn denied(pid: u32) -> Inspection {
    let status = match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Inspection::Denied(Vec::new());
        }
        Err(_) => return Inspection::Unused,
    };
    if field(&status, "VmSize").is_none() {
        return Inspection::Unused;
    }
    let uids = field(&status, "Uid").unwrap_or_default();
    let uids = uids.split_whitespace().filter_map(|uid| uid.parse().ok());
    Inspection::Denied(uids.collect())
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
