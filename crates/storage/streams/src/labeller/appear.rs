//! Names that appear: what fanotify tells of one file system.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use super::{Labeller, Level};
use crate::counters::count;
use crate::events::{self, Event};
use crate::sys::{self, Handle};
use crate::tree::{self, Entry};

/// Reads of one queue before something else is looked at: signals must not wait for a busy file system.
const READS: usize = 64;

impl Labeller<'_> {
    /// Takes what the queue of the file system on `device` holds.
    pub(super) fn on_names(&mut self, device: (u32, u32)) {
        let mut buffer = vec![0; 1 << 16];
        let mut mount: Option<OwnedFd> = None;
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
                        if mount.is_none() {
                            mount = self.mount_of(device);
                        }
                        if let Some(mount) = &mount {
                            self.on_name(mount, &dir, &name, is_dir);
                        }
                    }
                    Event::Opening { .. } | Event::Other => {}
                }
                if self.control.shall_end() {
                    return;
                }
            }
        }
    }

    /// Any of our directories there: what handles are resolved against.
    fn mount_of(&self, device: (u32, u32)) -> Option<OwnedFd> {
        let mut armed = self.roots.iter().filter_map(|root| root.armed());
        armed.find_map(|armed| {
            let dir = tree::open_dir(&armed.dir).ok()?;
            let identity = tree::identity(dir.as_fd()).ok()?;
            (identity.device() == device).then_some(dir)
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

    fn on_name(&mut self, mount: &OwnedFd, dir: &Handle, name: &OsStr, is_dir: bool) {
        // A directory that is gone takes its names with it.
        let as_place = libc::O_PATH | libc::O_DIRECTORY;
        let Ok(dir) = sys::open_by_handle(mount.as_fd(), dir, as_place) else {
            return;
        };
        let Ok(place) = tree::known_path(dir.as_fd()) else {
            return;
        };
        let path = place.join(name);
        if self.view.branch(&path).is_none() {
            return;
        }
        if is_dir {
            self.on_directory(&dir, name, &path);
            return;
        }
        match tree::look(dir.as_fd(), name) {
            Ok(Entry::File(identity, _)) => self.label(dir.as_fd(), name, &path, identity),
            Ok(Entry::Elsewhere) => self.link(&path),
            Ok(Entry::Directory | Entry::Other) | Err(_) => {}
        }
    }

    /// A directory that was made or moved here: what is in it was not told of.
    fn on_directory(&mut self, dir: &OwnedFd, name: &OsStr, path: &Path) {
        if let Ok(child) = tree::open_child(dir.as_fd(), name) {
            self.scan_below(child.as_fd(), path, &mut |_| {});
        }
    }
}
