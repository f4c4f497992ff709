//! What `/proc` says about processes and the boot. Source: `man 5 proc`.
//!
//! A process may end at any moment, so a missing file is an answer, not an error of the host.

use std::fs;
use std::io;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The PIDs of all visible processes, in ascending order. A container shows only its own; `hidepid`
/// hides those of other users.
///
/// # Errors
/// `/proc` cannot be read.
pub fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

/// The command name as in `ps`, with `?` for control characters; empty if the process has ended.
#[must_use]
pub fn name(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name)
        .trim_end()
        .replace(char::is_control, "?")
}

/// The children of all threads of a process; empty if it has ended.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    children
}

/// The value of the first line `name: value` of a file such as `/proc/PID/status` or
/// `/proc/meminfo`.
#[must_use]
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find_map(|(key, value)| (key.trim() == name).then_some(value))?;
    Some(value.trim())
}

/// The value of the first line `name: N kB`, in bytes.
#[must_use]
pub fn bytes(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = field(text, name)?
        .strip_suffix(" kB")?
        .trim()
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

/// The kernel's ID of this boot.
///
/// # Errors
/// `/proc` cannot be read.
pub fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Fields of `/proc/PID/stat`. Times are in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// At most 15 bytes; it may contain any character.
    pub name: String,
    /// `R`, `S`, `Z` for a zombie, and so on.
    pub state: char,
    pub parent: u32,
    pub group: u32,
    pub is_kernel_thread: bool,
    /// CPU time in user and kernel mode.
    pub own_ticks: u64,
    /// CPU time of children that have ended and were waited for.
    pub children_ticks: u64,
    /// Time after boot at which the process started. With the PID, it identifies the process.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the fields of a process. The CPU times are those of all its threads.
    ///
    /// # Errors
    /// The process has ended.
    pub fn of(pid: u32) -> io::Result<Self> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    /// Reads the fields of one thread of a process.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn of_thread(pid: u32, tid: u32) -> io::Result<Self> {
        Self::read(&format!("/proc/{pid}/task/{tid}/stat"))
    }

    fn read(path: &str) -> io::Result<Self> {
        let text = fs::read(path)?;
        Self::parse(&String::from_utf8_lossy(&text)).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Fields are counted from the last parenthesis, because the name may contain any character.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(')')?;
        let (pid, name) = head.split_once(" (")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            is_kernel_thread: number(6)? & KERNEL_THREAD != 0,
            own_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
            start_ticks: number(19)?,
        })
    }

    /// Whether the process has ended: it is a zombie or is being removed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 5 7 0 -1 4194560 1 2 3 4 50 60 700 8000 20 0 1 0 99 0 0";
        let parsed = Stat::parse(stat).unwrap();
        assert_eq!(
            parsed,
            Stat {
                pid: 7,
                name: "a) b (c".to_owned(),
                state: 'S',
                parent: 1,
                group: 5,
                is_kernel_thread: false,
                own_ticks: 110,
                children_ticks: 8700,
                start_ticks: 99,
            }
        );
        assert!(!parsed.has_ended());
        let thread = stat.replace("4194560", "2129984");
        assert!(Stat::parse(&thread).unwrap().is_kernel_thread);
        assert!(
            Stat::parse(&stat.replace(" S ", " Z "))
                .unwrap()
                .has_ended()
        );
        for cut in [
            "",
            "7 (a) S 1",
            "7 a S 1 5 7 0 -1 4194560 1 2 3 4 5 6 7 8 2 0 1 0 9",
        ] {
            assert_eq!(Stat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let meminfo = "MemTotal:       65842888 kB\nSwapMemFree: 2 kB\nMemFree:  1 kB\nMemFree: 9 kB\n\
                       HugePages_Total:       3\nHuge: 18446744073709551615 kB\nSome: many kB\n";
        assert_eq!(bytes(meminfo, "MemFree"), Some(1024));
        assert_eq!(bytes(meminfo, "MemTotal"), Some(65_842_888 * 1024));
        for name in ["Mem", "HugePages_Total", "Huge", "Some"] {
            assert_eq!(bytes(meminfo, name), None, "{name}");
        }
        assert_eq!(field(meminfo, "HugePages_Total"), Some("3"));
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU: 2 GHz\nempty\t:\n";
        assert_eq!(field(cpuinfo, "model name"), Some("Some CPU: 2 GHz"));
        assert_eq!(field(cpuinfo, "empty"), Some(""));
    }

    #[test]
    fn children_of_all_threads_are_listed() {
        let start = || {
            let mut cat = Command::new("cat");
            cat.stdin(Stdio::piped()).spawn().unwrap()
        };
        let (sent, received) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            sent.send(start()).unwrap();
            let _ = ended.recv();
        });
        let mut started = [start(), received.recv().unwrap()];
        let listed = children(std::process::id());
        assert!(
            started.iter().all(|child| listed.contains(&child.id())),
            "{listed:?}"
        );
        for child in &mut started {
            assert_eq!(children(child.id()), []);
            assert_eq!(Stat::of(child.id()).unwrap().parent, std::process::id());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        drop(end);
        thread.join().unwrap();
        assert_eq!(children(1 << 23), []);
    }

    #[test]
    fn this_process_is_listed_with_its_name_and_group() {
        let pid = std::process::id();
        assert!(pids().unwrap().contains(&pid));
        let stat = Stat::of(pid).unwrap();
        assert_eq!((stat.pid, stat.name), (pid, name(pid)));
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(stat.group, group.unsigned_abs());
        // Greater than `PID_MAX_LIMIT` of the kernel.
        assert!(Stat::of(1 << 23).is_err());
        assert_eq!(name(1 << 23), "");
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }
}
