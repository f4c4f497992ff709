//! Names that appear: what fanotify tells of one file system.

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

/// Reads of one queue before something else is looked at: signals must not wait for a busy file system.
const READS: usize = 64;

impl Labeller<'_> {
    /// Takes what the queue of the file system on `device` holds.
    pub(super) fn on_names(&mut self, device: (u32, u32)) {
        let mut buffer = vec![0; 1 << 16];
        let mut mounts: Option<Vec<OwnedFd>> = None;
        for _ in 0..READS {
            let Some(group) = self.groups.get(&device) else {
                return;
            };
            let len = match rustix::io::read(group, &mut *buffer) {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(error) => {
                    let text = format!("cannot read what happens on a file system: {error}");
                    self.say(Level::Warn, &text);
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

    /// One of our directories on each mount of it: what handles are resolved against.
    fn mounts_of(&self, device: (u32, u32)) -> Vec<OwnedFd> {
        let mut found: Vec<(Option<u64>, OwnedFd)> = Vec::new();
        for armed in self.roots.iter().filter_map(|root| root.armed()) {
            if found.iter().any(|(mount, _)| *mount == armed.mount) {
                continue;
            }
            let Ok(dir) = tree::open_dir(&armed.dir) else {
                continue;
            };
            if tree::identity(dir.as_fd()).is_ok_and(|it| it.device() == device) {
                found.push((armed.mount, dir));
            }
        }
        found.into_iter().map(|(_, dir)| dir).collect()
    }

    /// The directory with this handle, and where it is among ours; a mount may show a part of its file system only.
    fn place_of(&self, mounts: &[OwnedFd], handle: &Handle) -> Option<(OwnedFd, PathBuf)> {
        let as_place = libc::O_PATH | libc::O_DIRECTORY;
        mounts.iter().find_map(|mount| {
            // A directory that is gone takes its names with it.
            let dir = sys::open_by_handle(mount.as_fd(), handle, as_place).ok()?;
            let place = tree::known_path(dir.as_fd()).ok()?;
            self.view.branch(&place).is_some().then_some((dir, place))
        })
    }

    fn on_overflow(&mut self) {
        count(&self.counters.overflows);
        self.say(
            Level::Warn,
            "the kernel dropped events (more files at once than fs.fanotify.max_queued_events); looking at everything",
        );
        self.look();
        self.say(Level::Info, "looked at everything");
    }

    fn on_name(&mut self, mounts: &[OwnedFd], dir: &Handle, name: &OsStr, is_dir: bool) {
        let Some((dir, place)) = self.place_of(mounts, dir) else {
            return;
        };
        let path = place.join(name);
        if is_dir {
            self.on_directory(&dir, name, &path);
            return;
        }
        match tree::look(dir.as_fd(), name) {
            Ok(Entry::File(identity, _)) => self.label(dir.as_fd(), name, &path, identity),
            Ok(Entry::Elsewhere) => {
                self.link(&path);
                self.scan_queued(&mut HashSet::new());
            }
            Err(Errno::NOENT) => self.missed(&path),
            Ok(Entry::Directory | Entry::Other) | Err(_) => {}
        }
    }

    /// A file that lived shorter than it takes to hear of it, or has another name by now: what was
    /// written until then came without its hint, unless an open at the gate has set it.
    fn missed(&mut self, path: &Path) {
        let view = std::sync::Arc::clone(&self.view);
        let is_wanted = view
            .decide(path)
            .is_some_and(|rule| rule.hint != Hint::NotSet);
        if is_wanted && self.gate.is_none() {
            count(&self.counters.missed);
        }
    }

    /// A directory that was made or moved here: what is in it was not told of.
    fn on_directory(&mut self, dir: &OwnedFd, name: &OsStr, path: &Path) {
        if let Ok(child) = tree::open_child(dir.as_fd(), name) {
            let mut seen = HashSet::new();
            let links = self.scan_below(child.as_fd(), path, &mut seen);
            drop(child);
            links.iter().for_each(|path| self.link(path));
            self.scan_queued(&mut seen);
        }
    }
}
