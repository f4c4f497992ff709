//! CPU time of a process and all of its descendants, including those that have ended.
//!
//! Living processes are read from their CPU clocks with nanosecond resolution. Processes that have
//! ended are in the sums that the kernel keeps for their parents (`cutime` and `cstime` of `man 5
//! proc`), in ticks of 10 ms, so a tree with many short-lived members is only as precise as that.
//! Children whose parent ended before them are lost; database servers wait for theirs.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::Pid;

use crate::process::{Child, cpu_time_of};

/// After this many reads of a tree that keeps changing, the last one is used.
const TRIES: u32 = 20;

/// The result of one read of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    /// PID of each member, and the ticks of its children that have ended.
    members: Vec<(i32, u64)>,
    living_time: Duration,
}

impl Child {
    /// CPU time of the child and its descendants so far.
    ///
    /// # Errors
    /// The process is gone.
    pub fn tree_cpu_time(&self) -> io::Result<Duration> {
        let pid = i32::try_from(self.pid()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut latest = snapshot(pid)?;
        for _ in 0..TRIES {
            // A member that ended during the read may be counted twice or not at all.
            let again = snapshot(pid)?;
            let settled = again.members == latest.members;
            latest = again;
            if settled {
                break;
            }
        }
        let ticks: u64 = latest.members.iter().map(|(_, dead)| dead).sum();
        let rate = rustix::param::clock_ticks_per_second().max(1);
        Ok(latest.living_time + Duration::from_micros(ticks * 1_000_000 / rate))
    }

    /// Number of living descendants of the child.
    ///
    /// # Errors
    /// The process is gone.
    pub fn descendants(&self) -> io::Result<usize> {
        let pid = i32::try_from(self.pid()).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(snapshot(pid)?.members.len() - 1)
    }
}

fn snapshot(root: i32) -> io::Result<Snapshot> {
    let mut snapshot = Snapshot {
        members: vec![member(root)?],
        living_time: clock(root)?,
    };
    let mut next = 0;
    while let Some(&(pid, _)) = snapshot.members.get(next) {
        next += 1;
        for child in children(pid) {
            // A process that has ended is in its parent's sum at the next read.
            if let (Ok(member), Ok(time)) = (member(child), clock(child)) {
                snapshot.members.push(member);
                snapshot.living_time += time;
            }
        }
    }
    Ok(snapshot)
}

fn clock(pid: i32) -> io::Result<Duration> {
    cpu_time_of(Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?)
}

fn member(pid: i32) -> io::Result<(i32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let dead = ended_children_ticks(&stat).ok_or(io::ErrorKind::InvalidData)?;
    Ok((pid, dead))
}

/// Fields 16 and 17 of `/proc/PID/stat`, counted from the last parenthesis, because the name may
/// contain any character.
fn ended_children_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// The children of all threads of a process; empty if it has ended.
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::process::CommandLine;

    #[test]
    fn the_sums_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 700 8000 20 0 1 0 9 0 0";
        assert_eq!(ended_children_ticks(stat), Some(8700));
        assert_eq!(ended_children_ticks("7 (a) S 1"), None);
    }

    /// A shell whose first child used CPU time and ended, and whose second child sleeps.
    #[test]
    fn living_and_ended_descendants_are_counted() {
        let null = || File::create("/dev/null").unwrap();
        let burn = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 1000 & wait";
        let shell = CommandLine::new("sh", ["-c", burn])
            .spawn("dash", null(), null())
            .unwrap();
        let sleeps = |child: i32| {
            fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "sleep\n")
        };
        let pid = i32::try_from(shell.pid()).unwrap();
        while !children(pid).into_iter().any(sleeps) {
            std::thread::yield_now();
        }
        let own = shell.cpu_time().unwrap();
        let tree = shell.tree_cpu_time().unwrap();
        assert!(tree > own + Duration::from_millis(20), "{own:?} {tree:?}");
        assert_eq!(shell.descendants().unwrap(), 1);
    }
}
