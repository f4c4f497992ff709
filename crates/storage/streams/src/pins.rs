//! Pins: inotify watches that keep the inodes of labelled files in memory, and with them the hints.
//!
//! A hint is lost when the kernel evicts the inode. A watch on the file prevents that and, unlike
//! an open descriptor, lets a deleted file free its space at once. The kernel limits watches per
//! user (fs.inotify.max_user_watches); half of the limit is left to other programs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::tree::{self, Identity};

/// One inotify instance.
#[derive(Debug)]
pub(crate) struct Watches {
    fd: OwnedFd,
}

/// An inotify event, reduced to the ID of its watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// The kernel removed the watch: its file was deleted or unmounted.
    Gone(i32),
    /// Another event on the watched file or in the watched directory.
    Changed(i32),
    /// The queue overflowed, so that events were dropped.
    Overflow,
}

impl Watches {
    pub(crate) fn new() -> Result<Self, Errno> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { fd })
    }

    pub(crate) fn add(&self, path: &Path, flags: WatchFlags) -> Result<i32, Errno> {
        inotify::add_watch(&self.fd, path, flags)
    }

    pub(crate) fn remove(&self, watch: i32) {
        // Fails if the kernel has removed the watch already.
        let _ = inotify::remove_watch(&self.fd, watch);
    }

    /// Watches `paths` and ends all other `watches`. Watches that stay have no gap and no event.
    pub(crate) fn watch(
        &self,
        watches: &mut HashSet<i32>,
        paths: &BTreeSet<PathBuf>,
        flags: WatchFlags,
    ) {
        let added = paths.iter().map(|path| self.add(path, flags));
        let added: HashSet<i32> = added.filter_map(Result::ok).collect();
        for watch in watches.difference(&added) {
            self.remove(*watch);
        }
        *watches = added;
    }

    /// Returns the events since the last call.
    pub(crate) fn read_events(&self) -> Vec<WatchEvent> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        let mut events = Vec::new();
        while let Ok(event) = reader.next() {
            let flags = event.events();
            events.push(if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                WatchEvent::Overflow
            } else if flags.contains(ReadFlags::IGNORED) {
                WatchEvent::Gone(event.wd())
            } else {
                WatchEvent::Changed(event.wd())
            });
        }
        events
    }
}

impl AsFd for Watches {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The pinned files, up to a limit.
#[derive(Debug)]
pub(crate) struct Pins {
    watches: Watches,
    files: HashMap<i32, Identity>,
    /// The watch of each file. A new file can have the identity of a deleted one if the file system
    /// stores no times of birth, and can be pinned before the deletion has been read.
    pinned: HashMap<Identity, i32>,
    limit: usize,
}

/// The result of [`Pins::pin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinned {
    Yes,
    /// The limit of pins is reached.
    Full,
    /// The file cannot be watched.
    No,
}

impl Pins {
    /// Creates an empty set of at most `limit` pins.
    pub(crate) fn new(limit: usize) -> Result<Self, Errno> {
        Ok(Self {
            watches: Watches::new()?,
            files: HashMap::new(),
            pinned: HashMap::new(),
            limit,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn holds(&self, identity: &Identity) -> bool {
        self.pinned.contains_key(identity)
    }

    /// Pins an open file, unless it is pinned already.
    pub(crate) fn pin(&mut self, file: BorrowedFd<'_>, identity: Identity) -> Pinned {
        if self.holds(&identity) {
            return Pinned::Yes;
        }
        if self.files.len() >= self.limit {
            return Pinned::Full;
        }
        match self
            .watches
            .add(&tree::own_path(file), WatchFlags::DELETE_SELF)
        {
            Ok(watch) => {
                self.files.insert(watch, identity);
                self.pinned.insert(identity, watch);
                Pinned::Yes
            }
            Err(Errno::NOSPC | Errno::NOMEM) => {
                // Other programs of this user have used up the watches: keep what there is.
                self.limit = self.files.len();
                Pinned::Full
            }
            Err(_) => Pinned::No,
        }
    }

    /// Removes the pins of files that were deleted or unmounted, and returns those files.
    pub(crate) fn sweep(&mut self) -> Vec<Identity> {
        let mut gone = Vec::new();
        for event in self.watches.read_events() {
            match event {
                WatchEvent::Gone(watch) => {
                    let identity = self.files.remove(&watch);
                    let is_it = |it: &Identity| self.pinned.get(it) == Some(&watch);
                    if let Some(identity) = identity.filter(is_it) {
                        self.pinned.remove(&identity);
                        gone.push(identity);
                    }
                }
                WatchEvent::Changed(_) => {}
                // It is unknown which pins are gone: remove all; the next scan pins the files
                // again.
                WatchEvent::Overflow => self.clear(),
            }
        }
        gone
    }

    fn clear(&mut self) {
        for (watch, _) in self.files.drain() {
            self.watches.remove(watch);
        }
        self.pinned.clear();
    }
}

impl AsFd for Pins {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watches.as_fd()
    }
}

/// Returns the limit of pins: half of the kernel's limit of watches.
pub(crate) fn limit(root: &Path) -> usize {
    let path = root.join("proc/sys/fs/inotify/max_user_watches");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse::<usize>().unwrap_or(8192) / 2
}

impl WatchEvent {
    /// Whether the event is about `watch`, or may be.
    pub(crate) fn concerns(self, watch: i32) -> bool {
        match self {
            WatchEvent::Gone(own) | WatchEvent::Changed(own) => own == watch,
            WatchEvent::Overflow => true,
        }
    }

    /// Whether the event ended its watch, or may have.
    pub(crate) fn is_end(self) -> bool {
        match self {
            WatchEvent::Gone(_) | WatchEvent::Overflow => true,
            WatchEvent::Changed(_) => false,
        }
    }
}
