//! Labels one file: finds its rule, sets the hint unless another program has set one, and pins the
//! file.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;

use super::known_files::Change;
use super::{Labeller, Level};
use crate::counters::count;
use crate::hint::Hint;
use crate::rules::Rule;
use crate::setter::{ApplyError, apply};
use crate::tree::{self, Identity};

impl Labeller<'_> {
    /// Labels the file `name` in `dir`. `path` is its full path, `seen` its identity at the scan.
    pub(super) fn label(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path, seen: Identity) {
        let view = std::sync::Arc::clone(&self.view);
        let Some(rule) = view.decide(path) else {
            return;
        };
        if rule.hint == Hint::NotSet {
            return;
        }
        // The deletion of a file is reported before its inode number is used again.
        if !seen.is_certain() {
            self.known.sweep();
        }
        if self.known.is_settled(&seen, rule.hint) {
            return;
        }
        let (file, identity, _) = match tree::open_file(dir, name) {
            Ok(opened) => opened,
            // Deleted or replaced.
            Err(Errno::NOENT | Errno::NXIO | Errno::LOOP | Errno::STALE) => return,
            Err(error) => {
                let change = self.known.refuse(seen, ApplyError::Refused(error));
                return self.report(path, rule, change);
            }
        };
        self.collect_gate_labels();
        let request = self.known.request(&identity, rule.hint, rule.force);
        let result = apply(&*self.setter, file.as_fd(), request);
        let change = self.known.record(identity, request, result);
        self.report(path, rule, change);
        let has_hint = matches!(change, Change::Labelled | Change::Restored | Change::None);
        if has_hint && !self.options.once && self.known.pin(file.as_fd(), identity) {
            self.report_pin_limit();
        }
    }

    /// Counts and logs what was done with a file.
    fn report(&self, path: &Path, rule: &Rule, change: Change) {
        let (path, hint, origin) = (path.display(), rule.hint, &rule.origin);
        match change {
            Change::Labelled => {
                count(&self.counters.set);
                self.log(Level::Detail, &format!("{path} {hint} ({origin})"));
            }
            Change::Restored => {
                count(&self.counters.lost);
                count(&self.counters.reapplied);
                let text = format!("{path} had lost its hint; {hint} set again ({origin})");
                self.log(Level::Detail, &text);
            }
            Change::Kept {
                other,
                is_news: true,
            } => {
                count(&self.counters.kept);
                let text = format!(
                    "{path} keeps the hint `{other}`, which another program has set; {origin} has \
                     `{hint}` (force = true overwrites it)"
                );
                self.log(Level::Detail, &text);
            }
            Change::Refused {
                error,
                is_news: true,
            } => {
                count(&self.counters.refused);
                self.log(Level::Warn, &format!("{path} gets no hint: {error}"));
            }
            Change::None | Change::Kept { .. } | Change::Refused { .. } => {}
        }
    }

    fn report_pin_limit(&self) {
        let text = format!(
            "{} files are pinned, the most that fs.inotify.max_user_watches allows; lost hints of \
             other files are set again by the next scan, every {:?}",
            self.known.pinned(),
            self.options.scan_interval
        );
        self.log(Level::Warn, &text);
    }
}
