//! The volumes to which the server writes, and how fast they fill up.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::server::tree;
use crate::observation::process::Volume;

/// Bits of `flags` in `/proc/PID/fdinfo/FD` that mean writing: O_WRONLY or O_RDWR.
const WRITING: u32 = 0o3;

/// Volumes by device number.
#[derive(Debug, Default)]
pub(super) struct Volumes(BTreeMap<u64, Space>);

#[derive(Debug, Clone)]
struct Space {
    directory: PathBuf,
    total_bytes: u64,
    free_bytes: u64,
}

impl Volumes {
    /// The volumes of all regular files that a process and its descendants have open for writing.
    /// Files that cannot be seen are left out.
    pub(super) fn read(pid: u32) -> Self {
        let mut volumes = Self::default();
        for pid in tree(pid) {
            let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                continue;
            };
            for descriptor in descriptors.flatten() {
                volumes.add(pid, &descriptor.path());
            }
        }
        volumes
    }

    fn add(&mut self, pid: u32, descriptor: &Path) {
        let Ok(file) = fs::metadata(descriptor) else {
            return;
        };
        if !file.is_file() || self.0.contains_key(&file.dev()) {
            return;
        }
        let name = fs::read_link(descriptor).ok();
        let directory = name.as_deref().and_then(Path::parent).map(Path::to_owned);
        // Anonymous files have a device of their own without a size.
        let space = statvfs(descriptor).ok().filter(|space| space.f_blocks > 0);
        if let (Some(directory), Some(space), true) =
            (directory, space, is_written(pid, descriptor))
        {
            let space = Space {
                directory,
                total_bytes: space.f_blocks * space.f_frsize,
                free_bytes: space.f_bavail * space.f_frsize,
            };
            self.0.insert(file.dev(), space);
        }
    }

    /// The volumes with what was used up since `before`, `seconds` ago.
    pub(super) fn since(self, before: &Self, seconds: f64) -> Vec<Volume> {
        let volume = |(device, space): (u64, Space)| {
            let then = before
                .0
                .get(&device)
                .map_or(space.free_bytes, |then| then.free_bytes);
            Volume {
                directory: space.directory,
                total_bytes: space.total_bytes,
                free_bytes: space.free_bytes,
                filled_bytes_s: (then as f64 - space.free_bytes as f64) / seconds,
                seen_s: seconds,
            }
        };
        self.0.into_iter().map(volume).collect()
    }
}

/// Whether a descriptor of a process is open for writing.
fn is_written(pid: u32, descriptor: &Path) -> bool {
    let Some(number) = descriptor.file_name() else {
        return false;
    };
    let info = fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number));
    let flags = info.ok().and_then(|info| flags(&info));
    flags.is_some_and(|flags| flags & WRITING != 0)
}

/// The octal number behind `flags:` (`man 5 proc_pid_fdinfo`).
fn flags(info: &str) -> Option<u32> {
    let text = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(text.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn volumes_of_files_that_are_written_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let device = fs::metadata(folder.path()).unwrap().dev();
        let written = File::create(&path).unwrap();
        let found = Volumes::read(std::process::id());
        let space = found.0.get(&device).expect("the volume of the file");
        assert!(space.total_bytes >= space.free_bytes && space.total_bytes > 0);
        drop(written);
        assert_eq!(
            flags("pos:\t0\nflags:\t0100002\n").map(|it| it & WRITING),
            Some(2)
        );
        assert_eq!(flags("flags:\t0100000\n").map(|it| it & WRITING), Some(0));
    }

    #[test]
    fn what_was_used_up_is_a_rate() {
        let space = |free_bytes| {
            let space = Space {
                directory: PathBuf::from("/srv/db"),
                total_bytes: 1000,
                free_bytes,
            };
            Volumes(BTreeMap::from([(7, space)]))
        };
        let [volume] = &space(400).since(&space(500), 10.0)[..] else {
            panic!("one volume");
        };
        assert_eq!(volume.filled_bytes_s, 10.0);
        assert_eq!(
            space(400).since(&Volumes::default(), 10.0)[0].filled_bytes_s,
            0.0
        );
    }
}
