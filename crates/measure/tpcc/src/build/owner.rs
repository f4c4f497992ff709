//! Whose a job of a load is: host, process, and when that process began.
//!
//! The number alone says little: it is given again, and in a container a loader has the same one
//! each time. `db7:4711:9f3c2a1b` has a tag of the host's boot and the process's start behind it; marks
//! of an earlier Saiga have none.

use std::fs;
use std::io::ErrorKind;

use sha2::{Digest, Sha256};

/// `cfg_value` has fifty characters, of which number and tag take seventeen at most.
const HOST_CHARS: usize = 30;
/// Of `/proc/PID/stat`, behind the name: field 22, `man 5 proc_pid_stat`.
const START_TIME: usize = 19;

/// This process's mark.
#[must_use]
pub fn here() -> String {
    // Without a name the number alone must do.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().take(HOST_CHARS).collect();
    let pid = std::process::id();
    match tag(pid) {
        Ok(tag) => format!("{host}:{pid}:{tag}"),
        Err(_) => format!("{host}:{pid}"),
    }
}

/// The number of the process that made a mark, if it is another one of this host and alive; `who` is our
/// own mark.
pub(super) fn alive(mark: &str, who: &str) -> Option<u32> {
    let (theirs, ours) = (Mark::of(mark)?, Mark::of(who)?);
    if mark == who || theirs.host != ours.host {
        return None;
    }
    let is_alive = match (tag(theirs.pid), theirs.tag) {
        (Ok(now), Some(then)) => now == then,
        // Without a tag it is any process of this number, but not of our own: we made no such mark.
        (Ok(_), None) => theirs.pid != ours.pid,
        // It is there, and not ours to look at.
        (Err(kind), _) => kind == ErrorKind::PermissionDenied,
    };
    is_alive.then_some(theirs.pid)
}

/// A mark for people, who know no tags.
pub(super) fn shown(mark: &str) -> String {
    Mark::of(mark).map_or_else(
        || mark.to_owned(),
        |Mark { host, pid, .. }| format!("{host}:{pid}"),
    )
}

/// What a mark says.
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

/// Eight digits that no other process of the same number has, before this boot or after it.
fn tag(pid: u32) -> Result<String, ErrorKind> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| error.kind())?;
    // The name may have blanks and brackets.
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let start = behind_name.split_whitespace().nth(START_TIME).unwrap_or("");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digest = Sha256::digest(format!("{} {start}", boot.trim()));
    Ok(digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that lives until it is dropped.
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
    fn a_mark_is_of_one_process_and_not_of_its_number() {
        let ours = here();
        let Mark { host, pid, .. } = Mark::of(&ours).unwrap();
        assert_eq!(pid, std::process::id());
        assert!(ours.len() <= 50, "{ours}");
        assert_eq!(shown(&ours), format!("{host}:{pid}"));
        let other = Other::new();
        let (number, tag) = (other.0.id(), tag(other.0.id()).unwrap());
        let theirs = format!("{host}:{number}:{tag}");
        assert_eq!(alive(&theirs, &ours), Some(number));
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
            assert_eq!(alive(&mark, &ours), None, "{name}");
        }
        assert_eq!(alive(&format!("{host}:1"), &ours), Some(1));
    }
}
