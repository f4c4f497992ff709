//! CPU time of groups of processes whose members start and end during the run.
//!
//! The time of a member between two readings is the difference of its own counters. When a child
//! ends, its whole time is added to the counters of the parent that waits for it (`cutime`,
//! `cstime` of `man 5 proc_pid_stat`), including the time that was counted for it before. The
//! counted time of an ended process is therefore subtracted from its nearest living ancestor, so
//! that no time is lost or counted twice.
//!
//! Deliberately absent: children without a waiting parent. Their time since the last reading is
//! lost.

use std::collections::HashMap;

/// CPU time in ticks, in user mode and in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) user: u64,
    pub(super) system: u64,
}

impl Ticks {
    fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }

    /// Saturates at zero, because the time of an ended process is rounded once more.
    fn minus(self, other: Self) -> Self {
        Self {
            user: self.user.saturating_sub(other.user),
            system: self.system.saturating_sub(other.system),
        }
    }
}

/// One reading of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Start time, which distinguishes the process from an earlier one with the same PID.
    pub(super) started: u64,
    pub(super) own: Ticks,
    /// Time of children that have ended and were waited for.
    pub(super) waited: Ticks,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) threads: u64,
    pub(super) rss_pages: u64,
}

/// CPU time and page faults of a group between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) cpu: Ticks,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

/// A process with the index of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) group: usize,
    pub(super) stat: ProcessStat,
}

/// Accounts the CPU time of groups from successive readings of their members.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// The members at the previous reading, by PID.
    members: HashMap<i32, Member>,
}

impl Accounts {
    /// The group of a process at the previous reading.
    pub(super) fn group_of(&self, pid: i32) -> Option<usize> {
        self.members.get(&pid).map(|member| member.group)
    }

    pub(super) fn member(&self, pid: i32) -> Option<&Member> {
        self.members.get(&pid)
    }

    pub(super) fn clear(&mut self) {
        self.members.clear();
    }

    /// Takes the next reading. Returns the use of each of `groups` groups since the previous one.
    ///
    /// A new member has started since the previous reading, so all of its time counts.
    pub(super) fn account(&mut self, groups: usize, now: Vec<Member>) -> Vec<Used> {
        let now: HashMap<i32, Member> = now
            .into_iter()
            .map(|member| (member.stat.pid, member))
            .collect();
        let debits = self.debits(&now);
        let mut used = vec![Used::default(); groups];
        for (pid, Member { group, stat }) in &now {
            let before = self.survivor(*pid, &now);
            let debit = debits.get(pid).copied().unwrap_or_default();
            let waited_before = before.map(|before| before.waited).unwrap_or_default();
            let own_before = before.map(|before| before.own).unwrap_or_default();
            let faults = |count: fn(&ProcessStat) -> u64| {
                count(stat).saturating_sub(before.map(count).unwrap_or_default())
            };
            let used = &mut used[*group];
            used.cpu = used.cpu.plus(stat.own.minus(own_before));
            used.cpu = used.cpu.plus(stat.waited.minus(waited_before).minus(debit));
            used.minor_faults += faults(|stat| stat.minor_faults);
            used.major_faults += faults(|stat| stat.major_faults);
        }
        self.members = now;
        used
    }

    /// The previous reading of a process that has not ended since.
    fn survivor(&self, pid: i32, now: &HashMap<i32, Member>) -> Option<&ProcessStat> {
        let before = &self.members.get(&pid)?.stat;
        let is_same = now.get(&pid)?.stat.started == before.started;
        is_same.then_some(before)
    }

    /// Time that was counted for ended processes, by the ancestor whose counters now include it.
    fn debits(&self, now: &HashMap<i32, Member>) -> HashMap<i32, Ticks> {
        let mut debits: HashMap<i32, Ticks> = HashMap::new();
        for (pid, member) in &self.members {
            if self.survivor(*pid, now).is_some() {
                continue;
            }
            if let Some(ancestor) = self.living_ancestor(member, now) {
                let counted = member.stat.own.plus(member.stat.waited);
                let debit = debits.entry(ancestor).or_default();
                *debit = debit.plus(counted);
            }
        }
        debits
    }

    /// The nearest ancestor of an ended process that has not ended. The number of steps is limited,
    /// because reused PIDs may form a loop.
    fn living_ancestor(&self, ended: &Member, now: &HashMap<i32, Member>) -> Option<i32> {
        let mut parent = ended.stat.parent;
        for _ in 0..self.members.len() {
            if self.survivor(parent, now).is_some() {
                return Some(parent);
            }
            parent = self.members.get(&parent)?.stat.parent;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, user: u64, waited_user: u64) -> Member {
        let ticks = |user| Ticks { user, system: 0 };
        Member {
            group: 0,
            stat: ProcessStat {
                pid,
                parent,
                started: 1,
                own: ticks(user),
                waited: ticks(waited_user),
                minor_faults: 0,
                major_faults: 0,
                threads: 1,
                rss_pages: 1,
            },
        }
    }

    fn user_ticks(before: Vec<Member>, now: Vec<Member>) -> u64 {
        let mut accounts = Accounts::default();
        accounts.account(1, before);
        accounts.account(1, now)[0].cpu.user
    }

    #[test]
    fn the_time_of_ended_processes_is_counted_once() {
        for (what, before, now, used) in [
            (
                "two running processes",
                vec![process(1, 0, 10, 0), process(2, 1, 20, 0)],
                vec![process(1, 0, 13, 0), process(2, 1, 24, 0)],
                7,
            ),
            (
                "a child that started and ended between the readings",
                vec![process(1, 0, 10, 5)],
                vec![process(1, 0, 10, 45)],
                40,
            ),
            (
                "a new child that is still running",
                vec![process(1, 0, 10, 0)],
                vec![process(1, 0, 10, 0), process(2, 1, 30, 3)],
                33,
            ),
            (
                "a child with 20 counted ticks ends after 4 more",
                vec![process(1, 0, 10, 5), process(2, 1, 20, 0)],
                vec![process(1, 0, 10, 29)],
                4,
            ),
            (
                "parent and grandchild end together; 2 and 3 more ticks",
                vec![
                    process(1, 0, 0, 0),
                    process(2, 1, 20, 7),
                    process(3, 2, 30, 0),
                ],
                vec![process(1, 0, 0, 62)],
                5,
            ),
            (
                "a child without a waiting parent",
                vec![process(1, 0, 10, 0), process(2, 1, 20, 0)],
                vec![process(1, 0, 11, 0)],
                1,
            ),
            (
                "the last process ends",
                vec![process(1, 0, 10, 0)],
                Vec::new(),
                0,
            ),
        ] {
            assert_eq!(user_ticks(before, now), used, "{what}");
        }
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut again = process(2, 1, 3, 0);
        again.stat.started = 99;
        let before = vec![process(1, 0, 0, 0), process(2, 1, 20, 0)];
        // The first process has ended with 21 ticks, the second has used 3.
        let now = vec![process(1, 0, 0, 21), again];
        assert_eq!(user_ticks(before, now), 4);
    }

    /// The server is a child of the client. When it ends, its time is in the client's counters.
    #[test]
    fn the_time_of_an_ended_server_is_not_counted_for_the_client_that_waits() {
        let mut accounts = Accounts::default();
        let mut server = process(2, 1, 500, 0);
        server.group = 1;
        accounts.account(2, vec![process(1, 0, 10, 0), server]);
        let used = accounts.account(2, vec![process(1, 0, 11, 500)]);
        assert_eq!((used[0].cpu.user, used[1].cpu.user), (1, 0));
    }
}
