//! The owner mark of a load job: host, PID, and a tag of the process's start.
//!
//! A PID alone is ambiguous: PIDs are reused, and in a container a loader has the same PID each
//! time. In `db7:4711:9f3c2a1b` the tag is a hash of the host's boot ID and the process's start
//! time. Marks written by earlier versions of Saiga have no tag.

use std::fs;
use std::io::ErrorKind;

use saiga_process::proc::{self, Stat};
use sha2::{Digest, Sha256};

/// Limit on the host name: `cfg_value` has 50 characters; PID and tag take up to 17.
const HOST_CHARS: usize = 30;

/// The mark of this process.
#[must_use]
pub fn current() -> String {
    // If the host name cannot be read, the mark contains an empty name.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().take(HOST_CHARS).collect();
    let pid = std::process::id();
    match tag(pid) {
        Ok(tag) => format!("{host}:{pid}:{tag}"),
        Err(_) => format!("{host}:{pid}"),
    }
}

/// The PID of the process that wrote `mark`, if it is another process of this host and still runs.
/// `owner` is the mark of this process.
pub(super) fn running_pid(mark: &str, owner: &str) -> Option<u32> {
    let (theirs, ours) = (Mark::of(mark)?, Mark::of(owner)?);
    if mark == owner || theirs.host != ours.host {
        return None;
    }
    let is_alive = match (tag(theirs.pid), theirs.tag) {
        (Ok(now), Some(then)) => now == then,
        // Without a tag any process with this PID may be the owner, except this one.
        (Ok(_), None) => theirs.pid != ours.pid,
        // The process exists and belongs to another user.
        (Err(kind), _) => kind == ErrorKind::PermissionDenied,
    };
    is_alive.then_some(theirs.pid)
}

/// The mark as shown in messages: without its tag.
pub(super) fn shown(mark: &str) -> String {
    Mark::of(mark).map_or_else(
        || mark.to_owned(),
        |Mark { host, pid, .. }| format!("{host}:{pid}"),
    )
}

/// The parts of a mark.
#[derive(Debug, PartialEq, Eq)]
struct Mark<'a> {
    host: &'a str,
    pid: u32,
    tag: Option<&'a str>,
}

impl<'a> Mark<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (host, pid, tag) = (parts.next()?, parts.next()?, parts.next());
        let pid = pid.parse().ok()?;
        Some(Self { host, pid, tag })
    }
}

/// Eight hexadecimal digits that differ for two processes with the same PID, also across reboots.
fn tag(pid: u32) -> Result<String, ErrorKind> {
    let start = Stat::of(pid).map_err(|error| error.kind())?.start_ticks;
    let boot = proc::boot_id().unwrap_or_default();
    let digest = Sha256::digest(format!("{boot} {start}"));
    Ok(digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A child process that is killed when this value is dropped.
    struct Other(Child);

    impl Other {
        fn new() -> Self {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped());
            Self(command.spawn().unwrap())
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_mark_names_a_process_and_not_only_a_pid() {
        let ours = current();
        let Mark { host, pid, .. } = Mark::of(&ours).unwrap();
        assert_eq!(pid, std::process::id());
        assert!(ours.len() <= 50, "{ours}");
        assert_eq!(shown(&ours), format!("{host}:{pid}"));
        let other = Other::new();
        let (number, tag) = (other.0.id(), tag(other.0.id()).unwrap());
        let theirs = format!("{host}:{number}:{tag}");
        assert_eq!(running_pid(&theirs, &ours), Some(number));
        drop(other);
        for (name, mark) in [
            ("ended", theirs),
            ("ourselves", ours.clone()),
            (
                "before us, in a container",
                format!("{host}:{pid}:00000000"),
            ),
            ("the same, without a tag", format!("{host}:{pid}")),
            ("number given again", format!("{host}:1:00000000")),
            ("of another host", format!("{host}x:1")),
            ("no mark", "host".to_owned()),
        ] {
            assert_eq!(running_pid(&mark, &ours), None, "{name}");
        }
        assert_eq!(running_pid(&format!("{host}:1"), &ours), Some(1));
    }
}
