//! The end of a process group whose leader is a child of ours.
//!
//! A shell's pipeline, a wrapper's server and whatever else a child has started die with it when it
//! is killed, or they would run on under the next steps. Source: `man 5 proc`, `man 2 kill`.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Between two looks whether all are gone.
const PAUSE: Duration = Duration::from_millis(2);

/// Kills the group of `leader`, which is not reaped yet, and waits for `limit` at most until nobody
/// but the leader is left of it: who is dying may still have files open.
pub(crate) fn end(leader: Pid, limit: Duration) {
    // It fails when nobody is left who could be killed.
    let _ = kill_process_group(leader, Signal::KILL);
    let began = Instant::now();
    while outlives(leader) && began.elapsed() < limit {
        // They are nobody's children any more: there is nothing to wait for.
        let pause = Timespec::try_from(PAUSE).ok();
        let _ = poll(&mut [], pause.as_ref());
    }
}

/// Whether anybody of the group but its leader is alive.
pub(crate) fn outlives(leader: Pid) -> bool {
    let number = leader.as_raw_nonzero().get();
    living(leader).any(|(pid, _)| pid != number)
}

/// Who is alive of the group, by number and name.
pub(crate) fn living(leader: Pid) -> impl Iterator<Item = (i32, String)> {
    let leader = leader.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let is_of_it = group_of_the_living(&stat) == Some(leader);
        is_of_it.then(|| (pid, name(&stat).to_owned()))
    })
}

/// Field 2 without its brackets.
fn name(stat: &str) -> &str {
    let behind = stat.split_once('(').map_or("", |(_, behind)| behind);
    behind.rsplit_once(')').map_or("", |(name, _)| name)
}

/// Field 5 of a process that is neither a zombie nor dead, counted behind its name, which may
/// contain anything.
fn group_of_the_living(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    (!["Z", "X", "x"].contains(&state)).then_some(group.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_stands_behind_any_name_and_the_dead_have_none() {
        let stat = |state: &str| format!("7 (a) b (c) {state} 1 5 5 0 -1 4194560 1 2 3 4");
        assert_eq!(group_of_the_living(&stat("S")), Some(5));
        assert_eq!(group_of_the_living(&stat("Z")), None);
        assert_eq!(group_of_the_living(""), None);
        assert_eq!([name(&stat("S")), name("")], ["a) b (c", ""]);
    }
}
