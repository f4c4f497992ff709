//! Waits for the events of the labeller, and reads them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify::WatchFlags;
use rustix::io::Errno;

use crate::gate;
use crate::pins::{WatchEvent, Watches};
use crate::sys;

/// Device numbers of a file system.
pub(super) type Device = (u32, u32);

pub(super) struct Watcher {
    /// fanotify groups for the names that appear, one for each file system.
    groups: HashMap<Device, OwnedFd>,
    /// The labelled directories.
    roots: Watches,
    /// The directories in which roots and rule files may appear.
    parents: PathWatches,
    /// All links and directories on the paths of the roots.
    ancestors: PathWatches,
    mounts: File,
}

/// The watches of a set of paths.
struct PathWatches {
    watches: Watches,
    current: HashSet<i32>,
}

/// The sources of events that are ready. Watches are read without asking whether they are ready.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) mounts: bool,
    pub(super) groups: Vec<Device>,
    /// The first of the descriptors of others that is ready.
    pub(super) other: Option<usize>,
}

impl Watcher {
    /// # Errors
    /// The kernel refuses an inotify instance, or `/proc` is not mounted.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            groups: HashMap::new(),
            roots: Watches::new()?,
            parents: PathWatches::new()?,
            ancestors: PathWatches::new()?,
            mounts: File::open("/proc/self/mountinfo")?,
        })
    }

    /// Waits for an event of these sources or of `others`, but not longer than `longest`.
    pub(super) fn wait(&self, longest: Duration, others: &[BorrowedFd<'_>]) -> Ready {
        let devices: Vec<Device> = self.groups.keys().copied().collect();
        let mut wait: Vec<PollFd<'_>> =
            [&self.roots, &self.parents.watches, &self.ancestors.watches]
                .map(|watches| PollFd::new(watches, PollFlags::IN))
                .into();
        // A change of mounts is reported as POLLERR | POLLPRI (proc_pid_mountinfo(5)).
        let mounts_at = wait.len();
        wait.push(PollFd::new(&self.mounts, PollFlags::PRI));
        let groups_at = wait.len();
        let groups = self.groups.values();
        wait.extend(groups.map(|group| PollFd::new(group, PollFlags::IN)));
        let others_at = wait.len();
        wait.extend(others.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let timeout = Timespec::try_from(longest).ok();
        if rustix::event::poll(&mut wait, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let is_ready = |at: usize| wait.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let groups = (groups_at..).zip(devices).filter(|(at, _)| is_ready(*at));
        Ready {
            mounts: is_ready(mounts_at),
            groups: groups.map(|(_, device)| device).collect(),
            other: (0..others.len()).find(|at| is_ready(others_at + at)),
        }
    }

    /// Watches a root for its deletion and for moves. Returns the ID of the watch.
    pub(super) fn add_root(&self, path: &Path) -> Result<i32, Errno> {
        let flags = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        self.roots.add(path, flags)
    }

    pub(super) fn remove_root(&self, watch: i32) {
        self.roots.remove(watch);
    }

    pub(super) fn root_events(&self) -> Vec<WatchEvent> {
        self.roots.read_events()
    }

    /// Replaces the watched directories in which roots and rule files may appear.
    pub(super) fn watch_parents(&mut self, paths: &BTreeSet<PathBuf>) {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        self.parents.replace(paths, flags);
    }

    /// Replaces the watched links and directories on the paths of the roots.
    pub(super) fn watch_ancestors(&mut self, paths: &BTreeSet<PathBuf>) {
        let flags = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW;
        self.ancestors.replace(paths, flags);
    }

    /// Whether something has appeared in a watched parent since the last call.
    pub(super) fn has_appeared(&self) -> bool {
        !self.parents.watches.read_events().is_empty()
    }

    /// Whether a path of a root has changed since the last call.
    pub(super) fn has_path_changed(&self) -> bool {
        !self.ancestors.watches.read_events().is_empty()
    }

    /// The group for the names that appear on a file system.
    pub(super) fn group(&self, device: Device) -> Option<&OwnedFd> {
        self.groups.get(&device)
    }

    /// Watches the file system of an open directory, unless it is watched already.
    pub(super) fn watch_file_system(
        &mut self,
        device: Device,
        dir: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        if let Entry::Vacant(place) = self.groups.entry(device) {
            place.insert(name_events(dir)?);
        }
        Ok(())
    }

    /// Ends the watches of all other file systems.
    pub(super) fn retain_file_systems(&mut self, devices: &HashSet<Device>) {
        self.groups.retain(|device, _| devices.contains(device));
    }
}

impl PathWatches {
    fn new() -> io::Result<Self> {
        Ok(Self {
            watches: Watches::new()?,
            current: HashSet::new(),
        })
    }

    fn replace(&mut self, paths: &BTreeSet<PathBuf>, flags: WatchFlags) {
        self.watches.watch(&mut self.current, paths, flags);
    }
}

/// Creates a fanotify group for the names that appear on the file system of an open directory.
fn name_events(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags =
        libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_DFID_NAME | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
    let files = (libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned();
    let group = sys::fanotify_init(flags, files)?;
    if group.as_raw_fd() >= gate::NUMBER {
        // If this process is killed, the group must be closed after the gate: see `gate::NUMBER`.
        return Err(Errno::MFILE);
    }
    let mask = libc::FAN_CREATE | libc::FAN_MOVED_TO | libc::FAN_ONDIR;
    let mark = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    sys::fanotify_mark(group.as_fd(), mark, mask, dir)?;
    Ok(group)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn events_are_of_the_kind_of_their_watch() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let mut watcher = Watcher::new().unwrap();
        let watch = watcher.add_root(&root).unwrap();
        watcher.watch_parents(&BTreeSet::from([folder.path().to_owned()]));
        watcher.watch_ancestors(&BTreeSet::from([root.clone()]));
        let state = |watcher: &Watcher| {
            let ended = watcher.root_events().iter().any(|event| event.is_end());
            (ended, watcher.has_appeared(), watcher.has_path_changed())
        };
        assert_eq!(state(&watcher), (false, false, false));
        fs::write(root.join("a file of the database"), "").unwrap();
        assert_eq!(state(&watcher), (false, false, false));
        fs::write(folder.path().join("rules.toml"), "").unwrap();
        assert_eq!(state(&watcher), (false, true, false));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(state(&watcher), (true, false, true));
        // The kernel has removed the watch already.
        watcher.remove_root(watch);
    }

    #[test]
    fn a_path_that_is_watched_no_longer_has_no_events() {
        let folder = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new().unwrap();
        watcher.watch_parents(&BTreeSet::from([folder.path().to_owned()]));
        watcher.watch_parents(&BTreeSet::new());
        watcher.has_appeared();
        fs::write(folder.path().join("rules.toml"), "").unwrap();
        assert!(!watcher.has_appeared());
    }

    #[test]
    fn a_wait_names_the_first_ready_descriptor_of_others() {
        let watcher = Watcher::new().unwrap();
        let (silent, _writer) = io::pipe().unwrap();
        let (ended, writer) = io::pipe().unwrap();
        drop(writer);
        let others = [silent.as_fd(), ended.as_fd()];
        let ready = watcher.wait(Duration::MAX, &others);
        assert_eq!(ready.other, Some(1));
        assert_eq!(watcher.wait(Duration::ZERO, &others[..1]), Ready::default());
    }
}
