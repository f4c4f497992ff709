//! One file: which hint it should have, and whether it has it.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::io::Errno;

use super::{Labeller, Level};
use crate::counters::count;
use crate::hint::Hint;
use crate::labels::Label;
use crate::pins::Pinned;
use crate::setter::{ApplyError, Outcome, Wish, apply};
use crate::tree::{self, Identity};

impl Labeller<'_> {
    /// Gives the file `name` in `dir`, whose path is `path`, its hint.
    pub(super) fn label(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path, seen: Identity) {
        let view = std::sync::Arc::clone(&self.view);
        let Some(rule) = view.decide(path) else {
            return;
        };
        if rule.hint == Hint::NotSet {
            return;
        }
        // The end of a file is told before its number is given to the next one.
        if !seen.is_certain() {
            self.sweep();
        }
        // Its inode has not left memory since it got its hint.
        let known = self.labels.get(&seen);
        if self.pins.holds(&seen) && known.is_some_and(|label| label.hint == rule.hint) {
            return;
        }
        let (file, identity, _) = match tree::open_file(dir, name) {
            Ok(opened) => opened,
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::NXIO | Errno::LOOP | Errno::STALE) => return,
            Err(error) => return self.refuse(path, seen, &ApplyError::Refused(error)),
        };
        self.hear_of_gate();
        let before = self.labels.get(&identity).copied();
        let wish = Wish {
            hint: rule.hint,
            force: rule.force,
            ours: before.filter(|label| label.is_ours).map(|label| label.hint),
        };
        let mut is_ours = true;
        match apply(&*self.setter, file.as_fd(), wish) {
            Ok(Outcome::Left) => return,
            // Set by another program, perhaps.
            Ok(Outcome::Had) => is_ours = wish.ours == Some(rule.hint),
            Ok(Outcome::Kept(other)) => {
                self.labels.remove(&identity);
                if self.told.insert(identity) {
                    count(&self.counters.kept);
                    let text = format!(
                        "{} keeps the hint `{other}`, which is not ours; {} wants `{}` ({})",
                        path.display(),
                        rule.origin,
                        rule.hint,
                        "force = true overwrites it"
                    );
                    self.say(Level::Detail, &text);
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
            self.tell_full();
        }
    }

    fn on_set(&self, path: &Path, hint: Hint, before: Option<Hint>, origin: &str) {
        let path = path.display();
        if before == Some(hint) {
            count(&self.counters.lost);
            count(&self.counters.reapplied);
            self.say(
                Level::Detail,
                &format!("{path} had lost its hint, {hint} again ({origin})"),
            );
        } else {
            count(&self.counters.set);
            self.say(Level::Detail, &format!("{path} {hint} ({origin})"));
        }
    }

    fn refuse(&mut self, path: &Path, identity: Identity, error: &ApplyError) {
        self.labels.remove(&identity);
        if self.told.insert(identity) {
            count(&self.counters.refused);
            self.say(
                Level::Warn,
                &format!("{} gets no hint: {error}", path.display()),
            );
        }
    }

    fn tell_full(&mut self) {
        if !std::mem::replace(&mut self.is_full_told, true) {
            let text = format!(
                "{} files are pinned, which is what fs.inotify.max_user_watches leaves us; the others get lost hints \
                 back at the next look, every {:?}",
                self.pins.len(),
                self.options.look
            );
            self.say(Level::Warn, &text);
        }
    }
}
