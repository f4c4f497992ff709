//! CPU bandwidth and memory pressure of a process's cgroup and its ancestors.
//!
//! Source: kernel, Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.

use saiga_process::root::Root;

use crate::observation::process::Throttling;

/// Counters of the cgroups of one process.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Each level with a quota, the innermost first.
    levels: Vec<Level>,
    /// Microseconds in which some task waited for memory.
    memory_stall_us: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Level {
    dir: String,
    /// CPUs that the quota allows.
    cpus: f64,
    periods: u64,
    throttled: u64,
}

impl Counters {
    /// Reads the counters of the cgroups in `/proc/PID/cgroup`.
    pub(super) fn read(root: &Root, pid: u32) -> Self {
        let groups = root.text(format!("/proc/{pid}/cgroup")).ok().flatten();
        let groups = groups.unwrap_or_default();
        let mut counters = Self::default();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let bases: &[&str] = match controllers {
                "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                list if list.split(',').any(|one| one == "cpu") => {
                    &["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"]
                }
                _ => continue,
            };
            for base in bases {
                counters.add(root, base, path, controllers.is_empty());
            }
        }
        let host = || pressure_us(root, "/proc/pressure/memory");
        counters.memory_stall_us = counters.memory_stall_us.or_else(host);
        counters
    }

    /// Adds the levels of one hierarchy, from the cgroup to the root.
    fn add(&mut self, root: &Root, base: &str, path: &str, is_v2: bool) {
        let mut path = path.trim_end_matches('/');
        while !path.is_empty() {
            let dir = format!("{base}{path}");
            self.levels.extend(level(root, &dir));
            if is_v2 && self.memory_stall_us.is_none() {
                self.memory_stall_us = pressure_us(root, &format!("{dir}/memory.pressure"));
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// The level that was throttled most since `before`; `None` without a quota.
    pub(super) fn throttling_since(&self, before: &Self) -> Option<Throttling> {
        let throttling = self.levels.iter().filter_map(|now| {
            let then = before.levels.iter().find(|then| then.dir == now.dir)?;
            Some(Throttling {
                cpus: now.cpus,
                periods: now.periods.checked_sub(then.periods)?,
                throttled: now.throttled.checked_sub(then.throttled)?,
            })
        });
        throttling.max_by_key(|one| one.throttled)
    }

    /// Share of `seconds` since `before` in which some task waited for memory.
    pub(super) fn memory_stall_since(&self, before: &Self, seconds: f64) -> Option<f64> {
        let stalled = self.memory_stall_us?.checked_sub(before.memory_stall_us?)?;
        Some(stalled as f64 / 1e6 / seconds)
    }
}

/// A level with a quota.
fn level(root: &Root, dir: &str) -> Option<Level> {
    let text = |name: &str| root.text(format!("{dir}/{name}")).ok().flatten();
    let cpus = match text("cpu.max") {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?
        }
        None => {
            let quota: f64 = text("cpu.cfs_quota_us")?.parse().ok()?;
            quota / text("cpu.cfs_period_us")?.parse::<f64>().ok()?
        }
    };
    let stat = text("cpu.stat")?;
    let value = |name: &str| {
        let line = stat
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
    };
    (cpus > 0.0).then_some(Level {
        dir: dir.to_owned(),
        cpus,
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
    })
}

/// `total` of the line `some` of a pressure file, in microseconds.
fn pressure_us(root: &Root, name: &str) -> Option<u64> {
    let text = root.text(name).ok().flatten()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.rsplit_once("total=")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn the_throttled_ancestor_of_a_v2_group_counts() {
        let files = |throttled: &str| {
            tree(&[
                ("proc/7/cgroup", "0::/a.slice/b.service\n"),
                ("sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n"),
                (
                    "sys/fs/cgroup/a.slice/cpu.stat",
                    &format!("usage_usec 9\nnr_periods 100\nnr_throttled {throttled}\n"),
                ),
                ("sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n"),
                (
                    "sys/fs/cgroup/a.slice/b.service/memory.pressure",
                    &format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={throttled}00000\n"),
                ),
            ])
        };
        let (_first, before) = files("10");
        let (_second, after) = files("60");
        let (before, after) = (Counters::read(&before, 7), Counters::read(&after, 7));
        // Only the ancestor has a quota; both roots have the same paths.
        let throttling = after.throttling_since(&before);
        assert_eq!(
            throttling.map(|one| (one.cpus, one.throttled)),
            Some((0.5, 50))
        );
        assert_eq!(after.memory_stall_since(&before, 10.0), Some(0.5));
    }

    #[test]
    fn a_v1_group_has_files_of_its_own() {
        let (_dir, root) = tree(&[
            (
                "proc/7/cgroup",
                "2:cpu,cpuacct:/db\n1:name=systemd:/db\n0::/\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/db/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/db/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/db/cpu.stat",
                "nr_periods 5\nnr_throttled 1\n",
            ),
        ]);
        let counters = Counters::read(&root, 7);
        assert_eq!(counters.levels.len(), 1);
        assert_eq!(counters.levels[0].cpus, 2.0);
    }

    #[test]
    fn a_group_without_a_quota_is_not_throttled() {
        let (_dir, root) = tree(&[
            ("proc/7/cgroup", "0::/db\n"),
            ("sys/fs/cgroup/db/cpu.max", "max 100000\n"),
            (
                "sys/fs/cgroup/db/cpu.stat",
                "nr_periods 5\nnr_throttled 1\n",
            ),
        ]);
        let counters = Counters::read(&root, 7);
        assert_eq!(counters.throttling_since(&Counters::read(&root, 7)), None);
        assert_eq!(counters.memory_stall_us, None);
    }
}
