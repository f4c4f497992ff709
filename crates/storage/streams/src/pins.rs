//! Pins: what keeps the inode of a labelled file in memory, and so its hint.
//!
//! An inotify watch on the file itself does that without a descriptor: a deleted file gives its space back at once. The
//! kernel has a limit of watches per user, of which half is left to others.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::tree::{self, Identity};

/// Watches of one inotify instance.
#[derive(Debug)]
pub(crate) struct Watches {
    fd: OwnedFd,
}

/// What a watch told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// What is watched is gone: deleted, or unmounted.
    Gone(i32),
    /// Something else happened to it, or in it.
    Changed(i32),
    /// Events were dropped.
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
        // It may be gone already.
        let _ = inotify::remove_watch(&self.fd, watch);
    }

    /// Watches `places` and no others of `watches`. What is watched already stays so without a gap, and without news.
    pub(crate) fn watch(
        &self,
        watches: &mut HashSet<i32>,
        places: &BTreeSet<PathBuf>,
        flags: WatchFlags,
    ) {
        let added = places.iter().map(|place| self.add(place, flags));
        let added: HashSet<i32> = added.filter_map(Result::ok).collect();
        for watch in watches.difference(&added) {
            self.remove(*watch);
        }
        *watches = added;
    }

    /// What has happened since the last call.
    pub(crate) fn news(&self) -> Vec<News> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        let mut news = Vec::new();
        while let Ok(event) = reader.next() {
            let flags = event.events();
            news.push(if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                News::Overflow
            } else if flags.contains(ReadFlags::IGNORED) {
                News::Gone(event.wd())
            } else {
                News::Changed(event.wd())
            });
        }
        news
    }
}

impl AsFd for Watches {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The pins.
#[derive(Debug)]
pub(crate) struct Pins {
    watches: Watches,
    files: HashMap<i32, Identity>,
    /// By which watch; an identity without a birth may come back before its last end was heard of.
    pinned: HashMap<Identity, i32>,
    limit: usize,
}

/// Whether a file is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pinned {
    Yes,
    /// There are as many pins as there may be.
    Full,
    /// This file cannot be watched.
    No,
}

impl Pins {
    /// No pins yet, and never more than `limit`.
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

    /// Pins an open file.
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
                // Others use them up too; what there is now is what we get.
                self.limit = self.files.len();
                Pinned::Full
            }
            Err(_) => Pinned::No,
        }
    }

    /// Forgets files that are gone; which.
    pub(crate) fn sweep(&mut self) -> Vec<Identity> {
        let mut gone = Vec::new();
        for news in self.watches.news() {
            match news {
                News::Gone(watch) => {
                    let identity = self.files.remove(&watch);
                    let is_it = |it: &Identity| self.pinned.get(it) == Some(&watch);
                    if let Some(identity) = identity.filter(is_it) {
                        self.pinned.remove(&identity);
                        gone.push(identity);
                    }
                }
                News::Changed(_) => {}
                // Which pins are gone is not known any more: all are made anew by the next look.
                News::Overflow => self.clear(),
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

/// How many pins there may be: half of the kernel's limit of watches.
pub(crate) fn limit(root: &Path) -> usize {
    let path = root.join("proc/sys/fs/inotify/max_user_watches");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse::<usize>().unwrap_or(8192) / 2
}

/// Whether news are about this watch.
pub(crate) fn concerns(news: News, watch: i32) -> bool {
    match news {
        News::Gone(its) | News::Changed(its) => its == watch,
        News::Overflow => true,
    }
}

/// Whether news end a watch, or may have.
pub(crate) fn is_end(news: News) -> bool {
    match news {
        News::Gone(_) | News::Overflow => true,
        News::Changed(_) => false,
    }
}
