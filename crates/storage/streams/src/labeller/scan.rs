//! Scans directories, one after the other: labels each file, closes the gate of each directory, and
//! follows links.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::roots::Root;
use super::{Labeller, Level};
use crate::counters::count;
use crate::gate::Gate;
use crate::tree::{self, Found, Identity};

impl Labeller<'_> {
    /// Queues a root for [`Self::scan_queued`], which then logs `message`.
    pub(super) fn queue(&mut self, number: usize, message: Option<String>) {
        let root = self.roots.get(number);
        let waiting = root.map(|root| (root.path.clone(), message));
        self.unscanned.extend(waiting);
    }

    /// Scans the queued roots and those that their links add, one after the other, because each
    /// scan holds descriptors.
    pub(super) fn scan_queued(&mut self, seen: &mut HashSet<Identity>) {
        while let Some((path, message)) = self.unscanned.pop_front() {
            if self.control.shall_end() {
                return self.unscanned.clear();
            }
            let root = self.roots.iter().find(|root| root.path == path);
            let Some(watched) = root.and_then(Root::watched) else {
                continue;
            };
            let dir = watched.dir.clone();
            // Another directory may have this path now.
            let open = tree::open_dir(&dir).ok();
            if let Some(open) = open.filter(|open| watched.is(open.as_fd())) {
                let links = self.scan_below(open.as_fd(), &dir, seen);
                drop(open);
                links.iter().for_each(|path| self.follow_link(path));
            }
            if let Some(message) = message {
                self.log(Level::Info, &message);
            }
        }
    }

    /// Labels all files below the open directory at `path`. Returns links and mounts that lead
    /// elsewhere.
    pub(super) fn scan_below(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &Path,
        seen: &mut HashSet<Identity>,
    ) -> Vec<PathBuf> {
        let mut elsewhere = Vec::new();
        let unseen = tree::walk(dir, path, &mut |path, found| {
            match found {
                Found::Directory(dir) => self.close_gate(dir, path),
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes: _,
                } => {
                    // A file with several names is labelled by the first.
                    if seen.insert(identity) {
                        self.label(dir, name, path, identity);
                    }
                }
                Found::Elsewhere => elsewhere.push(path.to_owned()),
            }
            if self.control.shall_end() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        for tree::Unseen { path, error } in unseen {
            self.on_unseen(&path, error);
        }
        elsewhere
    }

    /// Reports a path that cannot be read, whose files therefore get no hint.
    pub(super) fn on_unseen(&mut self, path: &Path, error: Errno) {
        let text = format!("cannot read {}: {error}", path.display());
        if self.warn_once(path, &text) {
            count(&self.counters.refused);
        }
    }

    /// Makes opens in a directory wait for their label, if there is a gate.
    fn close_gate(&mut self, dir: BorrowedFd<'_>, path: &Path) {
        if let Some(Err(error)) = self.gate.as_ref().map(|gate: &Gate| gate.close(dir)) {
            if error == Errno::INVAL {
                // fanotify_mark(2): the kernel was built without permission events.
                self.no_gate = Some(error);
            }
            let text = format!(
                "no gate for {}: {error}; files there are labelled after their creation",
                path.display()
            );
            self.warn_once(path, &text);
        }
    }
}
