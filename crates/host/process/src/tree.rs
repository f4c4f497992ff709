//! CPU time of a process and all of its descendants, including those that have ended.
//!
//! Living processes are read from their CPU clocks with nanosecond resolution. Processes that have
//! ended are in the sums that the kernel keeps for their parents (`cutime` and `cstime` of `man 5
//! proc`), in ticks of 10 ms, so a tree with many short-lived members is only as precise as that.
//! Children whose parent ended before them are lost; database servers wait for theirs.

use std::io;
use std::time::Duration;

use rustix::process::Pid;

use crate::child::{Child, cpu_time_of};
use crate::proc::{self, Stat};

/// After this many reads of a tree that keeps changing, the last one is used.
const TRIES: u32 = 20;

/// The result of one read of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    /// PID of each member, and the ticks of its children that have ended.
    members: Vec<(u32, u64)>,
    living_time: Duration,
}

impl Child {
    /// CPU time of the child and its descendants so far.
    ///
    /// # Errors
    /// The process is gone.
    pub fn tree_cpu_time(&self) -> io::Result<Duration> {
        let mut latest = snapshot(self.pid())?;
        for _ in 0..TRIES {
            // A member that ended during the read may be counted twice or not at all.
            let again = snapshot(self.pid())?;
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
        Ok(snapshot(self.pid())?.members.len() - 1)
    }
}

fn snapshot(root: u32) -> io::Result<Snapshot> {
    let mut snapshot = Snapshot {
        members: vec![member(root)?],
        living_time: clock(root)?,
    };
    let mut next = 0;
    while let Some(&(pid, _)) = snapshot.members.get(next) {
        next += 1;
        for child in proc::children(pid) {
            // A process that has ended is in its parent's sum at the next read.
            if let (Ok(member), Ok(time)) = (member(child), clock(child)) {
                snapshot.members.push(member);
                snapshot.living_time += time;
            }
        }
    }
    Ok(snapshot)
}

fn clock(pid: u32) -> io::Result<Duration> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    cpu_time_of(pid.ok_or(io::ErrorKind::InvalidInput)?)
}

fn member(pid: u32) -> io::Result<(u32, u64)> {
    Ok((pid, Stat::of(pid)?.children_ticks))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::child::CommandLine;

    #[test]
    fn living_and_ended_descendants_are_counted() {
        let null = || File::create("/dev/null").unwrap();
        let burn = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 1000 & wait";
        let shell = CommandLine::new("sh", ["-c", burn])
            .spawn("dash", null(), null())
            .unwrap();
        let sleeps = |child| proc::name(child) == "sleep";
        while !proc::children(shell.pid()).into_iter().any(sleeps) {
            std::thread::yield_now();
        }
        let own = shell.cpu_time().unwrap();
        let tree = shell.tree_cpu_time().unwrap();
        assert!(tree > own + Duration::from_millis(20), "{own:?} {tree:?}");
        assert_eq!(shell.descendants().unwrap(), 1);
    }
}
