//! Labels one file: finds its rule, sets the hint unless another program has set one, and pins the
//! file.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;

use super::{Labeller, Level};
use crate::counters::count;
use crate::hint::Hint;
use crate::labels::Label;
use crate::pins::Pinned;
use crate::setter::{ApplyError, Outcome, Request, apply};
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
            self.sweep();
        }
        // A pinned inode has not been evicted, so it still has its hint.
        let known = self.labels.get(&seen);
        if self.pins.holds(&seen) && known.is_some_and(|label| label.hint == rule.hint) {
            return;
        }
        let (file, identity, _) = match tree::open_file(dir, name) {
            Ok(opened) => opened,
            // Deleted or replaced.
            Err(Errno::NOENT | Errno::NXIO | Errno::LOOP | Errno::STALE) => return,
            Err(error) => return self.refuse(path, seen, &ApplyError::Refused(error)),
        };
        self.collect_gate_labels();
        let before = self.labels.get(&identity).copied();
        let request = Request {
            hint: rule.hint,
            force: rule.force,
            ours: before.filter(|label| label.is_ours).map(|label| label.hint),
        };
        let mut is_ours = true;
        match apply(&*self.setter, file.as_fd(), request) {
            Ok(Outcome::Left) => return,
            // Another program may have set it.
            Ok(Outcome::Had) => is_ours = request.ours == Some(rule.hint),
            Ok(Outcome::Kept(other)) => {
                self.labels.remove(&identity);
                if self.reported.insert(identity) {
                    count(&self.counters.kept);
                    let text = format!(
                        "{} keeps the hint `{other}`, which another program has set; {} has `{}` ({})",
                        path.display(),
                        rule.origin,
                        rule.hint,
                        "force = true overwrites it"
                    );
                    self.log(Level::Detail, &text);
                }
                return;
            }
            Ok(Outcome::Set) => {
                let before = before.map(|label| label.hint);
                self.on_set(path, rule.hint, before, &rule.origin.to_string());
            }
            Err(error) => return self.refuse(path, identity, &error),
        }
        let hint = rule.hint;
        self.labels.insert(identity, Label { hint, is_ours });
        if !self.options.once && self.pins.pin(file.as_fd(), identity) == Pinned::Full {
            self.report_pin_limit();
        }
    }

    fn on_set(&self, path: &Path, hint: Hint, before: Option<Hint>, origin: &str) {
        let path = path.display();
        if before == Some(hint) {
            count(&self.counters.lost);
            count(&self.counters.reapplied);
            self.log(
                Level::Detail,
                &format!("{path} had lost its hint; {hint} set again ({origin})"),
            );
        } else {
            count(&self.counters.set);
            self.log(Level::Detail, &format!("{path} {hint} ({origin})"));
        }
    }

    fn refuse(&mut self, path: &Path, identity: Identity, error: &ApplyError) {
        self.labels.remove(&identity);
        if self.reported.insert(identity) {
            count(&self.counters.refused);
            self.log(
                Level::Warn,
                &format!("{} gets no hint: {error}", path.display()),
            );
        }
    }

    fn report_pin_limit(&mut self) {
        if !std::mem::replace(&mut self.is_pin_limit_reported, true) {
            let text = format!(
                "{} files are pinned, the most that fs.inotify.max_user_watches allows; lost hints \
                 of other files are set again by the next scan, every {:?}",
                self.pins.len(),
                self.options.scan_interval
            );
            self.log(Level::Warn, &text);
        }
    }
}
