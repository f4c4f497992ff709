//! Kills and lists process groups whose leader is a child of this process.
//!
//! A child may have started other processes, such as the rest of a shell's pipeline or the server
//! behind a wrapper. They are killed with the child; otherwise they would still run during the next
//! steps. Source: `man 5 proc`, `man 2 kill`.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Interval between two checks whether the group has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Kills the group of `leader`, which is not reaped yet, and waits for at most `limit` until only
/// the leader is left. The wait is necessary because a dying process may still have files open.
pub(crate) fn end(leader: Pid, limit: Duration) {
    // An error means that no process is left in the group.
    let _ = kill_process_group(leader, Signal::KILL);
    let began = Instant::now();
    while outlives(leader) && began.elapsed() < limit {
        // The other processes are not children of this process, so their end cannot be waited for.
        let pause = Timespec::try_from(PAUSE).ok();
        let _ = poll(&mut [], pause.as_ref());
    }
}

/// Whether a process of the group other than its leader is alive.
pub(crate) fn outlives(leader: Pid) -> bool {
    let number = leader.as_raw_nonzero().get();
    living(leader).any(|(pid, _)| pid != number)
}

/// PID and name of each living process of the group.
pub(crate) fn living(leader: Pid) -> impl Iterator<Item = (i32, String)> {
    let leader = leader.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let is_member = living_group(&stat) == Some(leader);
        is_member.then(|| (pid, name(&stat).to_owned()))
    })
}

/// Field 2 of `/proc/PID/stat` without its parentheses.
fn name(stat: &str) -> &str {
    let rest = stat.split_once('(').map_or("", |(_, rest)| rest);
    rest.rsplit_once(')').map_or("", |(name, _)| name)
}

/// Field 5, the process group; `None` for zombies and dead processes. Fields are counted from the
/// last parenthesis, because the name may contain any character.
fn living_group(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    (!["Z", "X", "x"].contains(&state)).then_some(group.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_behind_any_name_and_zombies_have_none() {
        let stat = |state: &str| format!("7 (a) b (c) {state} 1 5 5 0 -1 4194560 1 2 3 4");
        assert_eq!(living_group(&stat("S")), Some(5));
        assert_eq!(living_group(&stat("Z")), None);
        assert_eq!(living_group(""), None);
        assert_eq!([name(&stat("S")), name("")], ["a) b (c", ""]);
    }
}
