//! Named groups of processes: root processes and all of their descendants.
//!
//! Children are found by their parent PIDs among the new processes in `/proc`. A process stays in
//! its group even if its parent ends. A root of one group is never in another group, even if it
//! descends from a root of that group.

use std::collections::{HashMap, HashSet};

use procfs::FromRead;
use procfs::process::Stat;

use crate::config::Group;
use crate::table::{Column, Table};
use crate::throttle::Throttle;

use super::group::{Accounts, Member, ProcessStat, Ticks, Used};
use super::text::Files;
use super::threads::Threads;

/// Limit for reading processes: processes per row, on average.
const PROCESSES_PER_ROW: usize = 150;

/// The units of the kernel's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    pub(crate) ticks_per_s: u64,
    pub(crate) page_bytes: u64,
}

#[derive(Debug)]
struct Columns {
    processes: Column,
    threads: Column,
    cpu: Column,
    user: Column,
    system: Column,
    rss: Column,
    rss_anon: Column,
    minor_faults: Column,
    major_faults: Column,
    switches: Column,
}

/// A group with its columns.
#[derive(Debug)]
struct GroupState {
    name: String,
    roots: HashSet<i32>,
    /// Whether any reading had a process of this group.
    was_found: bool,
    columns: Columns,
    detail: Threads,
}

/// Reader of the processes of all groups.
#[derive(Debug)]
pub(crate) struct Processes {
    units: Units,
    groups: Vec<GroupState>,
    accounts: Accounts,
    /// PIDs of processes that are in no group. A PID that is reused between two rows would wrongly
    /// stay here, but PIDs are not reused that fast.
    ungrouped: HashSet<i32>,
    before_s: Option<f64>,
    throttle: Throttle,
}

impl Processes {
    pub(crate) fn new(groups: &[Group], units: Units, table: &mut Table) -> Self {
        let mut watched = |group: &Group| GroupState {
            name: group.name.clone(),
            roots: pid_set(&group.pids),
            was_found: false,
            columns: Columns::new(&group.name, table),
            detail: Threads::new(),
        };
        Self {
            units,
            groups: groups.iter().map(&mut watched).collect(),
            accounts: Accounts::default(),
            ungrouped: HashSet::new(),
            before_s: None,
            throttle: Throttle::new(PROCESSES_PER_ROW),
        }
    }

    /// Replaces the roots of a group. Accounting starts again for all groups, because a process may
    /// move from one group to another.
    pub(crate) fn set_roots(&mut self, name: &str, pids: &[u32]) {
        for group in self.groups.iter_mut().filter(|group| group.name == name) {
            group.roots = pid_set(pids);
        }
        for group in &mut self.groups {
            group.detail = Threads::new();
        }
        self.accounts.clear();
        self.ungrouped.clear();
        self.before_s = None;
        self.throttle = Throttle::new(PROCESSES_PER_ROW);
    }

    /// The group of a process at the last reading.
    pub(crate) fn group_of(&self, pid: u32) -> Option<usize> {
        self.accounts.group_of(i32::try_from(pid).ok()?)
    }

    /// Names of groups that have roots, but never had a process.
    pub(crate) fn never_found(&self) -> impl Iterator<Item = &str> {
        let missing = |group: &&GroupState| !group.was_found && !group.roots.is_empty();
        self.groups
            .iter()
            .filter(missing)
            .map(|group| group.name.as_str())
    }

    /// Fills a row. Returns the CPU seconds of each group since the previous reading; `None` if
    /// this row did not read the processes, or if there was no previous reading.
    pub(crate) fn sample(
        &mut self,
        at_s: f64,
        files: &mut Files,
        table: &mut Table,
    ) -> Option<Vec<f64>> {
        if self.groups.is_empty() || !self.throttle.is_due() {
            return None;
        }
        let now = self.members(files);
        self.throttle.on_read(now.len());
        let mut stats: Vec<Vec<ProcessStat>> = vec![Vec::new(); self.groups.len()];
        for member in &now {
            stats[member.group].push(member.stat.clone());
        }
        let used = self.accounts.account(self.groups.len(), now);
        let seconds = self.before_s.replace(at_s).map(|before| at_s - before);
        for ((group, stats), used) in self.groups.iter_mut().zip(&stats).zip(&used) {
            group.was_found |= !stats.is_empty();
            group.gauges(self.units, stats, table);
            group.details(self.units, at_s, stats, files, table);
            if let Some(seconds) = seconds.filter(|_| !stats.is_empty()) {
                group.rates(self.units, *used, seconds, table);
            }
        }
        let ticks_per_s = self.units.ticks_per_s as f64;
        seconds?;
        let cpu_s = |used: &Used| (used.cpu.user + used.cpu.system) as f64 / ticks_per_s;
        Some(used.iter().map(cpu_s).collect())
    }

    /// Reads the current members of all groups.
    fn members(&mut self, files: &mut Files) -> Vec<Member> {
        let pids = pids(files);
        let mut members = HashMap::new();
        let mut new = Vec::new();
        for &pid in &pids {
            if self.ungrouped.contains(&pid) {
                continue;
            }
            let Some(stat) = read_stat(pid, files) else {
                continue; // The process has ended since it was listed.
            };
            match self.accounts.member(pid) {
                Some(known) if known.stat.started == stat.started => {
                    let group = known.group;
                    members.insert(pid, Member { group, stat });
                }
                Some(_) | None => new.push(stat),
            }
        }
        self.assign(new, &mut members);
        let listed: HashSet<i32> = pids.into_iter().collect();
        self.ungrouped.retain(|pid| listed.contains(pid));
        members.into_values().collect()
    }

    /// Assigns new processes to groups. Repeats until no remaining process has a parent in a group,
    /// because a child may be listed before its parent.
    fn assign(&mut self, mut new: Vec<ProcessStat>, members: &mut HashMap<i32, Member>) {
        loop {
            let left = new.len();
            new.retain(|stat| {
                let of_parent = members.get(&stat.parent).map(|parent| parent.group);
                let Some(group) = self.root_of(stat.pid).or(of_parent) else {
                    return true;
                };
                let stat = stat.clone();
                members.insert(stat.pid, Member { group, stat });
                false
            });
            if new.len() == left {
                break;
            }
        }
        self.ungrouped.extend(new.iter().map(|stat| stat.pid));
    }

    fn root_of(&self, pid: i32) -> Option<usize> {
        self.groups
            .iter()
            .position(|group| group.roots.contains(&pid))
    }
}

impl Columns {
    fn new(group: &str, table: &mut Table) -> Self {
        let mut column = |metric: &str| table.column(&format!("{group}_{metric}"));
        Self {
            processes: column("processes"),
            threads: column("threads"),
            cpu: column("cpu_percent"),
            user: column("cpu_user_percent"),
            system: column("cpu_system_percent"),
            rss: column("rss_kb"),
            rss_anon: column("rss_anon_kb"),
            minor_faults: column("minor_faults_s"),
            major_faults: column("major_faults_s"),
            switches: column("context_switches_s"),
        }
    }
}

impl GroupState {
    fn gauges(&self, units: Units, stats: &[ProcessStat], table: &mut Table) {
        if self.roots.is_empty() {
            return;
        }
        table.put(self.columns.processes, Some(stats.len() as f64));
        if stats.is_empty() {
            return;
        }
        let threads: u64 = stats.iter().map(|stat| stat.threads).sum();
        let pages: u64 = stats.iter().map(|stat| stat.rss_pages).sum();
        table.put(self.columns.threads, Some(threads as f64));
        table.put(self.columns.rss, Some(units.kb(pages)));
    }

    fn details(
        &mut self,
        units: Units,
        at_s: f64,
        stats: &[ProcessStat],
        files: &mut Files,
        table: &mut Table,
    ) {
        let pids: Vec<i32> = stats.iter().map(|stat| stat.pid).collect();
        let Some(detail) = self.detail.sample(at_s, &pids, files) else {
            return;
        };
        table.put(self.columns.switches, detail.switches_s);
        let anon = detail.private_pages.map(|pages| units.kb(pages));
        table.put(self.columns.rss_anon, anon);
    }

    fn rates(&self, units: Units, used: Used, seconds: f64, table: &mut Table) {
        let Used {
            cpu: Ticks { user, system },
            minor_faults,
            major_faults,
        } = used;
        let per_s = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let percent =
            |ticks: u64| per_s(ticks).map(|ticks| 100.0 * ticks / units.ticks_per_s as f64);
        table.put(self.columns.cpu, percent(user + system));
        table.put(self.columns.user, percent(user));
        table.put(self.columns.system, percent(system));
        table.put(self.columns.minor_faults, per_s(minor_faults));
        table.put(self.columns.major_faults, per_s(major_faults));
    }
}

impl Units {
    fn kb(self, pages: u64) -> f64 {
        (pages * self.page_bytes / 1024) as f64
    }
}

fn pid_set(pids: &[u32]) -> HashSet<i32> {
    let valid = pids.iter().filter_map(|&pid| i32::try_from(pid).ok());
    valid.collect()
}

fn pids(files: &Files) -> Vec<i32> {
    let entries = std::fs::read_dir(files.proc_path("")).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn read_stat(pid: i32, files: &mut Files) -> Option<ProcessStat> {
    let bytes = files.proc_bytes(&format!("{pid}/stat"))?;
    let stat = Stat::from_read(bytes).ok()?;
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    Some(ProcessStat {
        pid,
        parent: stat.ppid,
        started: stat.starttime,
        own: Ticks {
            user: stat.utime,
            system: stat.stime,
        },
        waited: Ticks {
            user: positive(stat.cutime),
            system: positive(stat.cstime),
        },
        minor_faults: stat.minflt,
        major_faults: stat.majflt,
        threads: positive(stat.num_threads),
        rss_pages: stat.rss,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    const UNITS: Units = Units {
        ticks_per_s: 100,
        page_bytes: 4096,
    };

    /// Writes a line of `man 5 proc_pid_stat` with a name that is hard to parse.
    fn process(host: &Host, pid: u32, parent: u32, [user, system, waited]: [u64; 3]) {
        let name = "a) S 1 (b";
        host.proc(
            &format!("{pid}/stat"),
            &format!(
                "{pid} ({name}) S {parent} 1 1 0 -1 0 {minor} 9 2 9 {user} {system} {waited} 0 20 0 3 0 55 \
                 1000 25 184467440737095516 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                minor = user * 10,
            ),
        );
    }

    struct Row {
        host: Host,
        table: Table,
        processes: Processes,
    }

    impl Row {
        fn new(groups: &[Group]) -> Self {
            let mut table = Table::default();
            let processes = Processes::new(groups, UNITS, &mut table);
            Self {
                host: Host::new(),
                table,
                processes,
            }
        }

        fn sample(&mut self, at_s: f64) -> Option<Vec<f64>> {
            self.table.clear();
            let mut files = self.host.files();
            self.processes.sample(at_s, &mut files, &mut self.table)
        }

        fn cells(&self, names: &[&str]) -> Vec<Option<f64>> {
            let cell = |name: &&str| self.host.cell(&self.table, name);
            names.iter().map(cell).collect()
        }
    }

    fn group(name: &str, pids: &[u32]) -> Group {
        Group {
            name: name.into(),
            pids: pids.into(),
        }
    }

    #[test]
    fn a_group_is_its_roots_and_their_descendants() {
        let mut row = Row::new(&[group("server", &[10]), group("client", &[20])]);
        process(&row.host, 10, 20, [100, 50, 0]); // The client started the server.
        process(&row.host, 12, 11, [40, 0, 0]); // Listed before its parent by some kernels.
        process(&row.host, 11, 10, [0, 0, 0]);
        process(&row.host, 20, 1, [7, 0, 0]);
        process(&row.host, 30, 1, [999, 0, 0]);
        assert_eq!(row.sample(0.0), None);
        assert_eq!(
            row.cells(&["server_processes", "client_processes"]),
            [Some(3.0), Some(1.0)]
        );
        assert_eq!(
            row.cells(&["server_cpu_percent", "server_rss_kb"]),
            [None, Some(300.0)]
        );

        process(&row.host, 10, 20, [140, 60, 0]);
        process(&row.host, 13, 12, [10, 0, 0]);
        process(&row.host, 30, 1, [1999, 0, 0]);
        assert_eq!(row.sample(2.0), Some(vec![0.6, 0.0]));
        assert_eq!(
            row.cells(&[
                "server_cpu_percent",
                "server_cpu_user_percent",
                "server_cpu_system_percent",
                "server_minor_faults_s",
                "server_threads",
                "client_cpu_percent",
            ]),
            [
                Some(30.0),
                Some(25.0),
                Some(5.0),
                Some(250.0),
                Some(12.0),
                Some(0.0)
            ]
        );
    }

    #[test]
    fn an_ended_group_is_unknown_and_a_group_without_roots_is_empty() {
        let groups = ["server", "client", "gone"].map(|name| match name {
            "server" => group(name, &[10]),
            "gone" => group(name, &[77]),
            name => Group::named(name),
        });
        let mut row = Row::new(&groups);
        process(&row.host, 10, 1, [100, 50, 0]);
        row.sample(0.0);
        let never_found: Vec<&str> = row.processes.never_found().collect();
        assert_eq!(never_found, ["gone"]);
        row.host.remove("10");
        row.sample(1.0);
        assert_eq!(
            row.cells(&[
                "server_processes",
                "server_cpu_percent",
                "server_rss_kb",
                "client_processes"
            ]),
            [Some(0.0), None, None, None]
        );
    }

    #[test]
    fn time_before_a_process_becomes_a_root_does_not_count() {
        let mut row = Row::new(&[group("server", &[])]);
        process(&row.host, 10, 1, [100, 0, 0]);
        row.sample(0.0);
        row.processes.set_roots("server", &[10]);
        assert_eq!(row.sample(1.0), None);
        assert_eq!(row.cells(&["server_cpu_percent"]), [None]);
        process(&row.host, 10, 1, [150, 0, 0]);
        assert_eq!(row.sample(2.0), Some(vec![0.5]));
        assert_eq!(row.cells(&["server_cpu_percent"]), [Some(50.0)]);
        assert_eq!(row.processes.group_of(10), Some(0));
        assert_eq!(row.processes.group_of(11), None);
    }
}
