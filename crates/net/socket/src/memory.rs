//! Memory that this process may use: that of the machine, or less by the limits of its cgroups.

#![expect(unsafe_code, reason = "a system call with an out-parameter")]

use core::mem::MaybeUninit;
use saiga_channel::sys;
use std::fs;
use std::path::Path;
use syscalls::Sysno;

/// Memory of the machine, or the least limit of the process's memory cgroups, in bytes. `None` if
/// the kernel reports neither. Reads files: for the start of the library only.
pub(crate) fn usable() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limit = cgroup_limit(&cgroups, read);
    machine().into_iter().chain(limit).min()
}

/// Memory of the machine in bytes (`man 2 sysinfo`).
fn machine() -> Option<u64> {
    let mut known = MaybeUninit::<libc::sysinfo>::zeroed();
    let args = [known.as_mut_ptr() as usize, 0, 0, 0, 0, 0];
    // SAFETY: the kernel writes one sysinfo.
    unsafe { sys::call(Sysno::sysinfo, args) }.ok()?;
    // SAFETY: a structure of integers, for which zero is valid.
    let known = unsafe { known.assume_init() };
    Some(known.totalram.saturating_mul(known.mem_unit.into()))
}

/// The least limit of the memory cgroups and their ancestors, in bytes. `cgroups` is
/// `/proc/self/cgroup`, with lines `ID:CONTROLLERS:PATH`; a line of version 2 has no controllers.
/// A container may see its own cgroup at the mount point although the path is the host's.
/// Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
fn cgroup_limit(cgroups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least = None;
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, files): (_, &[&str]) = if controllers.is_empty() {
            ("/sys/fs/cgroup", &["memory.max", "memory.high"])
        } else if controllers.split(',').any(|one| one == "memory") {
            ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
        } else {
            continue;
        };
        let group = Path::new(mount).join(path.trim_start_matches('/'));
        let groups = group.ancestors().take_while(|at| at.starts_with(mount));
        let texts = groups.flat_map(|at| files.iter().filter_map(|file| read(&at.join(file))));
        // "max" means no limit.
        let limits = texts.filter_map(|text| text.trim().parse().ok());
        least = limits.chain(least).min();
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_ancestors_counts() {
        let files = [
            ("/sys/fs/cgroup/memory.max", "7000\n"),
            ("/sys/fs/cgroup/a/memory.max", "5000\n"),
            ("/sys/fs/cgroup/a/memory.high", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/c/memory.max", "6000\n"),
            ("/sys/fs/cgroup/c/memory.high", "4000\n"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/memory/d/memory.limit_in_bytes", "3000\n"),
            (
                "/sys/fs/cgroup/memory/e/memory.limit_in_bytes",
                "nonsense\n",
            ),
        ];
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        for (cgroups, expected) in [
            ("0::/a/b\n", Some(5000)),
            ("0::/c\n", Some(4000)),
            ("0::/docker/of-the-host\n", Some(7000)),
            ("0::/../a\n", Some(7000)),
            ("9:cpu,cpuacct:/c\n8:blkio,memory:/d/x\n0::/\n", Some(3000)),
            ("8:memory:/e\n", Some(9_223_372_036_854_771_712)),
            ("9:cpu:/a\nwithout colons\n", None),
            ("", None),
        ] {
            assert_eq!(cgroup_limit(cgroups, read), expected, "{cgroups}");
        }
    }

    #[test]
    fn the_memory_of_this_machine_is_known() {
        let all = machine().expect("sysinfo");
        assert!(all > 1 << 20 && usable().is_some_and(|memory| memory <= all));
    }
}
