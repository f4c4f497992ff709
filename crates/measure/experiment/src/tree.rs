//! CPU time of a process and everything that descends from it, the dead included.
//!
//! The living are read from their own clocks, to the nanosecond. The dead are in the sums
//! that the kernel keeps for their parents (`cutime` and `cstime` of `man 5 proc`), in
//! ticks of 10 ms: a tree whose members come and go is as coarse as that. Children whose
//! parent died before them are lost; servers wait for theirs.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::Pid;

use crate::process::{Child, cpu_time_of};

/// A tree that changes during this many looks is taken as it was seen last.
const TRIES: u32 = 20;

/// One look at a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    /// Members, and the ticks of their dead children.
    members: Vec<(i32, u64)>,
    living: Duration,
}

impl Child {
    /// CPU time of this process and its descendants so far.
    ///
    /// # Errors
    /// The process is gone.
    pub fn tree_cpu_time(&self) -> io::Result<Duration> {
        let pid = i32::try_from(self.pid()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut seen = look(pid)?;
        for _ in 0..TRIES {
            // A member that ended between two reads is in both sums or in neither.
            let again = look(pid)?;
            let settled = again.members == seen.members;
            seen = again;
            if settled {
                break;
            }
        }
        let ticks: u64 = seen.members.iter().map(|(_, dead)| dead).sum();
        let rate = rustix::param::clock_ticks_per_second().max(1);
        Ok(seen.living + Duration::from_micros(ticks * 1_000_000 / rate))
    }

    /// Processes that descend from this one and live.
    ///
    /// # Errors
    /// The process is gone.
    pub fn descendants(&self) -> io::Result<usize> {
        let pid = i32::try_from(self.pid()).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(look(pid)?.members.len() - 1)
    }
}

fn look(root: i32) -> io::Result<Look> {
    let mut look = Look {
        members: vec![member(root)?],
        living: clock(root)?,
    };
    let mut next = 0;
    while let Some(&(pid, _)) = look.members.get(next) {
        next += 1;
        for child in children(pid) {
            // One that is gone by now is in its parent's sum at the next look.
            if let (Ok(member), Ok(time)) = (member(child), clock(child)) {
                look.members.push(member);
                look.living += time;
            }
        }
    }
    Ok(look)
}

fn clock(pid: i32) -> io::Result<Duration> {
    cpu_time_of(Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?)
}

fn member(pid: i32) -> io::Result<(i32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let dead = ticks_of_the_dead(&stat).ok_or(io::ErrorKind::InvalidData)?;
    Ok((pid, dead))
}

/// Fields 16 and 17, counted behind the program's name, which may contain anything.
fn ticks_of_the_dead(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// Children of all threads of a process; none when it is gone.
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
    fn the_sums_stand_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 700 8000 20 0 1 0 9 0 0";
        assert_eq!(ticks_of_the_dead(stat), Some(8700));
        assert_eq!(ticks_of_the_dead("7 (a) S 1"), None);
    }

    /// A shell whose first child burned CPU and died, and whose second one sleeps.
    #[test]
    fn the_living_and_the_dead_are_counted() {
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
