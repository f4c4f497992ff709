//! What this process may use: cpuset, quotas and memory limit of its cgroup, version 1 or 2.
//!
//! A limit of a parent cgroup holds for its children, so the smallest limit from the cgroup of the
//! process up to the mounted one counts. Source: `Documentation/admin-guide/cgroup-v2.rst` and
//! `cgroup-v1/` of the kernel.

use saiga_process::proc::field;

use crate::machine::{Cpu, Limits, Node};
use crate::read::ReadError;
use crate::read::mounts::Mount;
use crate::source::{Source, numbers};

const CGROUP: &str = "/proc/self/cgroup";
/// Limits of memory above this one mean no limit in version 1.
const NO_LIMIT_BYTES: u64 = 1 << 62;

pub(super) fn read(
    source: &Source,
    mounts: &[Mount],
    cpus: &[Cpu],
    nodes: &[Node],
) -> Result<Limits, ReadError> {
    let groups = Groups::read(source, mounts)?;
    let status = source.text("/proc/self/status")?.unwrap_or_default();
    let allowed = |name| {
        field(&status, name)
            .and_then(numbers)
            .filter(|list| !list.is_empty())
    };
    let set = groups.cpuset(source)?;
    let keep = |mut all: Vec<u32>, limits: [Option<Vec<u32>>; 2]| {
        for limit in limits.into_iter().flatten() {
            all.retain(|one| limit.contains(one));
        }
        all
    };
    let online = cpus.iter().filter(|cpu| cpu.is_online).map(|cpu| cpu.id);
    let with_memory = nodes
        .iter()
        .filter(|node| node.memory_bytes > 0)
        .map(|node| node.id);
    Ok(Limits {
        cpus: keep(online.collect(), [set.cpus, allowed("Cpus_allowed_list")]),
        nodes: keep(
            with_memory.collect(),
            [set.nodes, allowed("Mems_allowed_list")],
        ),
        cpu_quota: groups.quota(source)?,
        memory_bytes: groups.memory(source)?,
        cgroup_version: groups.version(),
    })
}

/// CPUs and nodes of a cpuset; an empty list of version 2 means all, and is `None`.
#[derive(Default)]
struct Set {
    cpus: Option<Vec<u32>>,
    nodes: Option<Vec<u32>>,
}

/// The directories of this process's cgroups, from its own up to the mounted one.
#[derive(Default)]
struct Groups {
    unified: Vec<String>,
    cpuset: Vec<String>,
    cpu: Vec<String>,
    memory: Vec<String>,
    /// The cpuset file system of kernels before cgroups, whose files have no prefix.
    bare_cpuset: Vec<String>,
}

impl Groups {
    fn read(source: &Source, mounts: &[Mount]) -> Result<Self, ReadError> {
        let mut groups = Self::default();
        let text = source.text(CGROUP)?.unwrap_or_default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                return Err(source.damaged(CGROUP, line, "a cgroup"));
            };
            let is_unified = controllers.is_empty();
            if is_unified {
                let mount = mounts.iter().find(|mount| mount.kind == "cgroup2");
                groups.unified = directories(source, mount, path)?;
                continue;
            }
            for controller in controllers.split(',') {
                let place = match controller {
                    "cpuset" => &mut groups.cpuset,
                    "cpu" => &mut groups.cpu,
                    "memory" => &mut groups.memory,
                    _ => continue,
                };
                let has = |mount: &&Mount| {
                    mount.kind == "cgroup" && mount.options.split(',').any(|it| it == controller)
                };
                *place = directories(source, mounts.iter().find(has), path)?;
            }
        }
        if let Some(path) = source.word("/proc/self/cpuset")? {
            let mount = mounts.iter().find(|mount| mount.kind == "cpuset");
            groups.bare_cpuset = directories(source, mount, &path)?;
        }
        Ok(groups)
    }

    fn version(&self) -> Option<u32> {
        if !(self.cpuset.is_empty() && self.cpu.is_empty() && self.memory.is_empty()) {
            Some(1)
        } else if self.unified.is_empty() {
            None
        } else {
            Some(2)
        }
    }

    fn cpuset(&self, source: &Source) -> Result<Set, ReadError> {
        for (dirs, cpus, nodes) in [
            (
                &self.cpuset,
                "cpuset.effective_cpus",
                "cpuset.effective_mems",
            ),
            (&self.cpuset, "cpuset.cpus", "cpuset.mems"),
            (
                &self.unified,
                "cpuset.cpus.effective",
                "cpuset.mems.effective",
            ),
            (&self.bare_cpuset, "cpus", "mems"),
        ] {
            // A cgroup without the controller has no such files; its parent's apply.
            for dir in dirs {
                let list = |name: &str| source.list(&format!("{dir}/{name}"));
                let set = Set {
                    cpus: list(cpus)?.filter(|list| !list.is_empty()),
                    nodes: list(nodes)?.filter(|list| !list.is_empty()),
                };
                if set.cpus.is_some() || set.nodes.is_some() {
                    return Ok(set);
                }
            }
        }
        Ok(Set::default())
    }

    /// The smallest quota, as a number of CPUs.
    fn quota(&self, source: &Source) -> Result<Option<String>, ReadError> {
        let mut hundredths: Vec<u64> = Vec::new();
        let mut add = |quota: u64, period: u64| {
            let share = u128::from(quota) * 100 / u128::from(period.max(1));
            hundredths.push(u64::try_from(share).unwrap_or(u64::MAX));
        };
        for dir in &self.unified {
            let file = format!("{dir}/cpu.max");
            let Some(text) = source.word(&file)? else {
                continue;
            };
            let (quota, period) = text.split_once(' ').unwrap_or((&text, "100000"));
            if quota != "max" {
                let (Ok(quota), Ok(period)) = (quota.parse(), period.parse()) else {
                    return Err(source.damaged(&file, &text, "a quota such as max 100000"));
                };
                add(quota, period);
            }
        }
        for dir in &self.cpu {
            // -1 means no quota.
            let quota = source.number::<i64>(&format!("{dir}/cpu.cfs_quota_us"))?;
            let period = source.number(&format!("{dir}/cpu.cfs_period_us"))?;
            if let (Some(Ok(quota)), Some(period)) = (quota.map(u64::try_from), period) {
                add(quota, period);
            }
        }
        let text = |hundredths: u64| {
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        Ok(hundredths.into_iter().min().map(text))
    }

    fn memory(&self, source: &Source) -> Result<Option<u64>, ReadError> {
        let mut limits: Vec<u64> = Vec::new();
        for dir in &self.unified {
            let file = format!("{dir}/memory.max");
            match source.word(&file)? {
                Some(text) if text != "max" => limits.extend(source.number::<u64>(&file)?),
                Some(_) | None => {}
            }
        }
        for dir in &self.memory {
            limits.extend(source.number::<u64>(&format!("{dir}/memory.limit_in_bytes"))?);
        }
        Ok(limits
            .into_iter()
            .filter(|limit| *limit < NO_LIMIT_BYTES)
            .min())
    }
}

/// The directories of a cgroup and of its parents. In a container, the mounted directory is the
/// cgroup itself, and its path in the host's hierarchy does not exist.
fn directories(
    source: &Source,
    mount: Option<&Mount>,
    path: &str,
) -> Result<Vec<String>, ReadError> {
    let Some(Mount {
        directory, root, ..
    }) = mount
    else {
        return Ok(Vec::new());
    };
    let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
    let mut path = path.trim_end_matches('/');
    let mut directories = Vec::new();
    while !path.is_empty() {
        let place = format!("{directory}{path}");
        if source.exists(&place)? {
            directories.push(place);
        }
        path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    directories.push(directory.clone());
    Ok(directories)
}
