//! Looks at directories, one after the other: each file gets its hint, each directory its gate, and links are taken up.

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
    /// Has a directory looked at by [`Self::scan_queued`], which says `news` then.
    pub(super) fn queue(&mut self, number: usize, news: Option<String>) {
        let root = self.roots.get(number);
        let waiting = root.map(|root| (root.path.clone(), news));
        self.unscanned.extend(waiting);
    }

    /// Looks at everything in the directories that wait for it, and in what is found by links there: one after the other,
    /// for each takes descriptors.
    pub(super) fn scan_queued(&mut self, seen: &mut HashSet<Identity>) {
        while let Some((path, news)) = self.unscanned.pop_front() {
            if self.control.shall_end() {
                return self.unscanned.clear();
            }
            let root = self.roots.iter().find(|root| root.path == path);
            let Some(armed) = root.and_then(Root::armed) else {
                continue;
            };
            let dir = armed.dir.clone();
            // What stands under its name by now may be something else.
            let open = tree::open_dir(&dir).ok();
            if let Some(open) = open.filter(|open| armed.is(open.as_fd())) {
                let links = self.scan_below(open.as_fd(), &dir, seen);
                drop(open);
                links.iter().for_each(|path| self.link(path));
            }
            if let Some(news) = news {
                self.say(Level::Info, &news);
            }
        }
    }

    /// Labels everything below the open directory at `path`; what leads elsewhere.
    pub(super) fn scan_below(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &Path,
        seen: &mut HashSet<Identity>,
    ) -> Vec<PathBuf> {
        let mut elsewhere = Vec::new();
        let unseen = tree::walk(dir, path, &mut |path, found| {
            match found {
                Found::Directory(dir) => self.shut(dir, path),
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes: _,
                } => {
                    // Of several names of one file, the first decides.
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

    /// Something has files, maybe, that get no hint.
    pub(super) fn on_unseen(&mut self, path: &Path, error: Errno) {
        let text = format!("cannot look at {}: {error}", path.display());
        if self.warn_once(path, &text) {
            count(&self.counters.refused);
        }
    }

    /// Lets opens in a directory wait, where there is a gate.
    fn shut(&mut self, dir: BorrowedFd<'_>, path: &Path) {
        if let Some(Err(error)) = self.gate.as_ref().map(|gate: &Gate| gate.close(dir)) {
            if error == Errno::INVAL {
                // fanotify_mark(2): the kernel was made without permission events.
                self.no_gate = Some(error);
            }
            let text = format!(
                "no gate for {}: {error}; files there are labelled once they are there",
                path.display()
            );
            self.warn_once(path, &text);
        }
    }
}
