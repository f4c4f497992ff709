//! Kills and lists process groups whose leader is a child of this process.
//!
//! A child may have started other processes, such as the rest of a shell's pipeline or the server
//! behind a wrapper. They are killed with the child; otherwise they would still run during the next
//! steps. Source: `man 2 kill`.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::pidfd::Process;
use crate::proc::{self, Stat};

/// Kills the group of `leader`, which is not reaped yet, and waits for at most `limit` until only
/// the leader is left. The wait is necessary because a dying process may still have files open.
pub(crate) fn end(leader: Pid, limit: Duration) {
    // An error means that no process is left in the group.
    let _ = kill_process_group(leader, Signal::KILL);
    let began = Instant::now();
    while let Some(pid) = other(leader) {
        let left = limit.saturating_sub(began.elapsed());
        match Process::open(pid) {
            Ok(Some(process)) if !left.is_zero() => drop(process.ends_within(left)),
            // The process ended after it was listed.
            Ok(None) if !left.is_zero() => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Whether a process of the group other than its leader is alive.
pub(crate) fn outlives(leader: Pid) -> bool {
    other(leader).is_some()
}

fn other(leader: Pid) -> Option<u32> {
    let mut living = living(leader).map(|(pid, _)| pid);
    living.find(|pid| *pid != number(leader))
}

/// PID and name of each living process of the group.
pub(crate) fn living(leader: Pid) -> impl Iterator<Item = (u32, String)> {
    let leader = number(leader);
    let pids = proc::pids().unwrap_or_default().into_iter();
    let stats = pids.filter_map(|pid| Stat::of(pid).ok());
    stats
        .filter(move |stat| stat.group == leader && !stat.has_ended())
        .map(|stat| (stat.pid, stat.name))
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}
