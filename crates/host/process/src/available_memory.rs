//! The memory that this process can use without swapping out other processes.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::proc;

/// The least of `MemAvailable` of `/proc/meminfo`, `RLIMIT_AS`, and what the limits of the memory
/// cgroups of this process leave, in bytes. `u64::MAX` without any of them.
#[must_use]
pub fn available_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = [
        proc::bytes(&meminfo, "MemAvailable"),
        getrlimit(Resource::As).current,
        left_by_cgroups(Path::new("/sys/fs/cgroup"), &cgroups),
    ];
    limits.into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// Names of the files of a memory cgroup.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Key of `memory.stat` for page cache that the kernel drops first.
    cache: &'static str,
}

/// Kernel, Documentation/admin-guide/cgroup-v2.rst.
const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    cache: "inactive_file ",
};

/// Kernel, Documentation/admin-guide/cgroup-v1/memory.rst.
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file ",
};

/// What the strictest limit of a cgroup and its ancestors leaves; `None` without a limit.
/// `cgroups` has lines of the form `ID:CONTROLLERS:PATH`; the one of version 2 has no controllers.
fn left_by_cgroups(mount: &Path, cgroups: &str) -> Option<u64> {
    let mut lines = cgroups.lines().map(|line| line.splitn(3, ':').skip(1));
    let (root, path, files) = lines.find_map(|mut fields| {
        let (controllers, path) = (fields.next()?, fields.next()?);
        if controllers.split(',').any(|one| one == "memory") {
            return Some((mount.join("memory"), path, V1));
        }
        (controllers.is_empty() && mount.join("cgroup.controllers").exists())
            .then(|| (mount.to_owned(), path, V2))
    })?;
    let group: PathBuf = root.join(path.trim_start_matches('/'));
    let groups = group
        .ancestors()
        .take_while(|group| group.starts_with(&root));
    groups.filter_map(|group| left(group, &files)).min()
}

fn left(group: &Path, files: &Files) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(files.limit)?, number(files.usage)?);
    let stat = read("memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix(files.cache));
    let cache: u64 = cache.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_machine_is_known() {
        assert!(available_bytes() < 1 << 60);
    }

    fn group(path: &Path, files: &Files, limit: &str, usage: &str, cache: u64) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join(files.limit), limit).unwrap();
        fs::write(path.join(files.usage), usage).unwrap();
        let stat = format!("anon 1\n{}{cache}\n", files.cache);
        fs::write(path.join("memory.stat"), stat).unwrap();
    }

    #[test]
    fn the_strictest_limit_of_all_ancestors_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mount = dir.path();
        fs::write(mount.join("cgroup.controllers"), "memory").unwrap();
        group(&mount.join("a"), &V2, "1000\n", "700\n", 200);
        group(&mount.join("a/b"), &V2, "max\n", "100\n", 0);
        assert_eq!(left_by_cgroups(mount, "0::/a/b\n"), Some(500));
        group(&mount.join("a/b"), &V2, "150\n", "100\n", 0);
        assert_eq!(left_by_cgroups(mount, "0::/a/b\n"), Some(50));
        group(&mount.join("a/b"), &V2, "90\n", "100\n", 0);
        assert_eq!(left_by_cgroups(mount, "0::/a/b\n"), Some(0));
        assert_eq!(left_by_cgroups(mount, "0::/elsewhere\n"), None);
        assert_eq!(left_by_cgroups(mount, ""), None);
    }

    #[test]
    fn version_1_has_a_mount_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let group_path = dir.path().join("memory/a");
        group(&group_path, &V1, "1000", "400", 100);
        let cgroups = "9:cpu,cpuacct:/a\n8:memory:/a\n0::/\n";
        assert_eq!(left_by_cgroups(dir.path(), cgroups), Some(700));
    }
}
