//! Handles the fanotify events of a file system: names that appear, and overflows of the queue.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{Labeller, Level};
use crate::counters::count;
use crate::events::{self, Event};
use crate::hint::Hint;
use crate::sys::{self, Handle};
use crate::tree::{self, Entry};

/// Most reads of one queue at a time: signals must not wait for a busy file system.
const READS: usize = 64;

impl Labeller<'_> {
    /// Handles the queued events of the file system `device`.
    pub(super) fn on_names(&mut self, device: (u32, u32)) {
        let mut buffer = vec![0; 1 << 16];
        let mut mounts: Option<Vec<OwnedFd>> = None;
        for _ in 0..READS {
            let Some(group) = self.watcher.group(device) else {
                return;
            };
            let len = match rustix::io::read(group, &mut *buffer) {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(error) => {
                    let text = format!("cannot read the events of a file system: {error}");
                    self.log(Level::Warn, &text);
                    return;
                }
            };
            for event in events::read(buffer.get(..len).unwrap_or_default()) {
                match event {
                    Event::Overflow => self.on_overflow(),
                    Event::Named { dir, name, is_dir } => {
                        let mounts = mounts.get_or_insert_with(|| self.mounts_of(device));
                        self.on_name(mounts, &dir, &name, is_dir);
                    }
                    Event::Opening { .. } | Event::Other => {}
                }
                if self.control.shall_end() {
                    return;
                }
            }
        }
    }

    /// Opens one root on each mount of `device`, to resolve handles by.
    fn mounts_of(&self, device: (u32, u32)) -> Vec<OwnedFd> {
        let mut found: Vec<(Option<u64>, OwnedFd)> = Vec::new();
        for watched in self.roots.iter().filter_map(|root| root.watched()) {
            if found.iter().any(|(mount, _)| *mount == watched.mount) {
                continue;
            }
            let Ok(dir) = tree::open_dir(&watched.dir) else {
                continue;
            };
            if tree::identity(dir.as_fd()).is_ok_and(|it| it.device() == device) {
                found.push((watched.mount, dir));
            }
        }
        found.into_iter().map(|(_, dir)| dir).collect()
    }

    /// Opens the directory with this handle and returns its path if it is in a root. Tries each
    /// mount, because a mount may show only a part of its file system.
    fn open_handle(&self, mounts: &[OwnedFd], handle: &Handle) -> Option<(OwnedFd, PathBuf)> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        mounts.iter().find_map(|mount| {
            // Fails for a deleted directory, whose files are deleted, too.
            let dir = sys::open_by_handle(mount.as_fd(), handle, flags).ok()?;
            let path = tree::known_path(dir.as_fd()).ok()?;
            self.view.branch(&path).is_some().then_some((dir, path))
        })
    }

    fn on_overflow(&mut self) {
        count(&self.counters.overflows);
        self.log(
            Level::Warn,
            "the kernel dropped events (more at once than fs.fanotify.max_queued_events); scanning \
             all files",
        );
        self.scan_all();
        self.log(Level::Info, "scanned all files");
    }

    fn on_name(&mut self, mounts: &[OwnedFd], dir: &Handle, name: &OsStr, is_dir: bool) {
        let Some((dir, parent)) = self.open_handle(mounts, dir) else {
            return;
        };
        let path = parent.join(name);
        if is_dir {
            self.on_directory(&dir, name, &path);
            return;
        }
        match tree::inspect(dir.as_fd(), name) {
            Ok(Entry::File(identity, _)) => self.label(dir.as_fd(), name, &path, identity),
            Ok(Entry::Elsewhere) => {
                self.follow_link(&path);
                self.scan_queued(&mut HashSet::new());
            }
            Err(Errno::NOENT) => self.on_missed(&path),
            Ok(Entry::Directory | Entry::Other) | Err(_) => {}
        }
    }

    /// Counts a file that was deleted or renamed before its event was read: its first writes had no
    /// hint, unless the gate has set it.
    fn on_missed(&mut self, path: &Path) {
        let view = std::sync::Arc::clone(&self.view);
        let has_rule = view
            .decide(path)
            .is_some_and(|rule| rule.hint != Hint::NotSet);
        if has_rule && self.gate.is_none() {
            count(&self.counters.missed);
        }
    }

    /// Scans a directory that was created or moved here: its content may have caused no events.
    fn on_directory(&mut self, dir: &OwnedFd, name: &OsStr, path: &Path) {
        if let Ok(child) = tree::open_child(dir.as_fd(), name) {
            let mut seen = HashSet::new();
            let links = self.scan_below(child.as_fd(), path, &mut seen);
            drop(child);
            links.iter().for_each(|path| self.follow_link(path));
            self.scan_queued(&mut seen);
        }
    }
}
