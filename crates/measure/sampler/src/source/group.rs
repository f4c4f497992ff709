//! CPU time of groups of processes whose members come and go.
//!
//! What a member used between two looks is in its own clock. What a child used that ended in
//! between is in the sums of the parent that waited for it (`cutime`, `cstime` of `man 5
//! proc_pid_stat`), together with what was counted for it while it lived. So each ending is
//! debited to the nearest living ancestor: nothing is lost and nothing counted twice.
//!
//! Deliberately absent: children for whom nobody waits. Their last part of a second is lost.

use std::collections::HashMap;

/// CPU time in ticks, by where it was spent.
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

    /// Never below zero: clocks of the dead are rounded once more than those of the living.
    fn minus(self, other: Self) -> Self {
        Self {
            user: self.user.saturating_sub(other.user),
            system: self.system.saturating_sub(other.system),
        }
    }
}

/// One look at one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// When it started; tells it from an earlier process with its number.
    pub(super) started: u64,
    pub(super) own: Ticks,
    /// Of children that ended and were waited for.
    pub(super) waited: Ticks,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) threads: u64,
    pub(super) rss_pages: u64,
}

/// What a group used between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) cpu: Ticks,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

/// A process and the group that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) group: usize,
    pub(super) look: Look,
}

/// Members as they were at the last look.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    members: HashMap<i32, Member>,
}

impl Ledger {
    /// The group of a process at the last look.
    pub(super) fn group_of(&self, pid: i32) -> Option<usize> {
        self.members.get(&pid).map(|member| member.group)
    }

    pub(super) fn member(&self, pid: i32) -> Option<&Member> {
        self.members.get(&pid)
    }

    pub(super) fn clear(&mut self) {
        self.members.clear();
    }

    /// Takes the next look; answers what each of `groups` groups used since the last one.
    ///
    /// A member that was not there before has used all that its clocks say: it is younger
    /// than the last look.
    pub(super) fn account(&mut self, groups: usize, now: Vec<Member>) -> Vec<Used> {
        let now: HashMap<i32, Member> = now
            .into_iter()
            .map(|member| (member.look.pid, member))
            .collect();
        let debits = self.debits(&now);
        let mut used = vec![Used::default(); groups];
        for (pid, Member { group, look }) in &now {
            let before = self.living(*pid, &now);
            let debit = debits.get(pid).copied().unwrap_or_default();
            let waited_before = before.map(|before| before.waited).unwrap_or_default();
            let own_before = before.map(|before| before.own).unwrap_or_default();
            let faults = |count: fn(&Look) -> u64| {
                count(look).saturating_sub(before.map(count).unwrap_or_default())
            };
            let used = &mut used[*group];
            used.cpu = used.cpu.plus(look.own.minus(own_before));
            used.cpu = used.cpu.plus(look.waited.minus(waited_before).minus(debit));
            used.minor_faults += faults(|look| look.minor_faults);
            used.major_faults += faults(|look| look.major_faults);
        }
        self.members = now;
        used
    }

    /// The last look at a process that still lives.
    fn living(&self, pid: i32, now: &HashMap<i32, Member>) -> Option<&Look> {
        let before = &self.members.get(&pid)?.look;
        let lives = now.get(&pid)?.look.started == before.started;
        lives.then_some(before)
    }

    /// What was counted for the dead, by the ancestor in whose sums it comes again.
    fn debits(&self, now: &HashMap<i32, Member>) -> HashMap<i32, Ticks> {
        let mut debits: HashMap<i32, Ticks> = HashMap::new();
        for (pid, member) in &self.members {
            if self.living(*pid, now).is_some() {
                continue;
            }
            if let Some(heir) = self.heir(member, now) {
                let counted = member.look.own.plus(member.look.waited);
                let debit = debits.entry(heir).or_default();
                *debit = debit.plus(counted);
            }
        }
        debits
    }

    /// The nearest ancestor that lives. A loop of numbers that were used again ends the search.
    fn heir(&self, dead: &Member, now: &HashMap<i32, Member>) -> Option<i32> {
        let mut parent = dead.look.parent;
        for _ in 0..self.members.len() {
            if self.living(parent, now).is_some() {
                return Some(parent);
            }
            parent = self.members.get(&parent)?.look.parent;
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
            look: Look {
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
        let mut ledger = Ledger::default();
        ledger.account(1, before);
        ledger.account(1, now)[0].cpu.user
    }

    #[test]
    fn what_ended_is_counted_once() {
        for (what, before, now, used) in [
            (
                "two that live",
                vec![process(1, 0, 10, 0), process(2, 1, 20, 0)],
                vec![process(1, 0, 13, 0), process(2, 1, 24, 0)],
                7,
            ),
            (
                "a child that was never seen",
                vec![process(1, 0, 10, 5)],
                vec![process(1, 0, 10, 45)],
                40,
            ),
            (
                "a new child, seen with what it used since",
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
                "a child for whom nobody waits",
                vec![process(1, 0, 10, 0), process(2, 1, 20, 0)],
                vec![process(1, 0, 11, 0)],
                1,
            ),
            (
                "the last one ends",
                vec![process(1, 0, 10, 0)],
                Vec::new(),
                0,
            ),
        ] {
            assert_eq!(user_ticks(before, now), used, "{what}");
        }
    }

    #[test]
    fn a_number_that_was_used_again_is_another_process() {
        let mut again = process(2, 1, 3, 0);
        again.look.started = 99;
        let before = vec![process(1, 0, 0, 0), process(2, 1, 20, 0)];
        // The first one ended with 21 ticks, the second has used 3.
        let now = vec![process(1, 0, 0, 21), again];
        assert_eq!(user_ticks(before, now), 4);
    }

    /// A client that starts and waits for a server must not get the server's time in the end.
    #[test]
    fn a_server_that_ends_does_not_fall_to_the_client_who_waited_for_it() {
        let mut ledger = Ledger::default();
        let mut server = process(2, 1, 500, 0);
        server.group = 1;
        ledger.account(2, vec![process(1, 0, 10, 0), server]);
        let used = ledger.account(2, vec![process(1, 0, 11, 500)]);
        assert_eq!((used[0].cpu.user, used[1].cpu.user), (1, 0));
    }
}
