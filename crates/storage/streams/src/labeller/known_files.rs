//! What the labeller knows of each file: its hint, who set it, whether it is pinned, and whether a
//! problem with it was reported.
//!
//! [`KnownFiles`] makes no system call on a file except for the pin. The result of setting a hint
//! goes in, and what it means comes out as a [`Change`].

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};

use crate::hint::Hint;
use crate::labels::Label;
use crate::pins::{Pinned, Pins};
use crate::setter::{ApplyError, Outcome, Request};
use crate::tree::Identity;

pub(super) struct KnownFiles {
    /// Files with the hint of their rule.
    labels: HashMap<Identity, Label>,
    /// Files whose refusal or foreign hint was reported already.
    reported: HashSet<Identity>,
    pins: Pins,
    is_pin_limit_reported: bool,
}

/// The meaning of an attempt to label a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The file has another hint than before, or its first one.
    Labelled,
    /// The file had lost its hint and has it again.
    Restored,
    /// The file had the hint already.
    None,
    /// The file keeps the hint of another program.
    Kept {
        other: Hint,
        /// This was not reported before.
        is_news: bool,
    },
    /// The hint cannot be set.
    Refused {
        error: ApplyError,
        /// This was not reported before.
        is_news: bool,
    },
}

impl KnownFiles {
    /// `earlier` has the hints that earlier runs of a labeller have set.
    pub(super) fn new(pins: Pins, earlier: impl Iterator<Item = (Identity, Hint)>) -> Self {
        let mut known = Self {
            labels: HashMap::new(),
            reported: HashSet::new(),
            pins,
            is_pin_limit_reported: false,
        };
        known.add_ours(earlier);
        known
    }

    /// Adds hints that another thread or an earlier run of the labeller has set.
    pub(super) fn add_ours(&mut self, set: impl Iterator<Item = (Identity, Hint)>) {
        self.labels
            .extend(set.map(|(identity, hint)| (identity, Label::ours(hint))));
    }

    pub(super) fn labels(&self) -> &HashMap<Identity, Label> {
        &self.labels
    }

    pub(super) fn pinned(&self) -> usize {
        self.pins.len()
    }

    /// Whether the file certainly has this hint: it had it, and its inode was not evicted since.
    pub(super) fn is_settled(&self, file: &Identity, hint: Hint) -> bool {
        let known = self.labels.get(file);
        self.pins.holds(file) && known.is_some_and(|label| label.hint == hint)
    }

    /// The request to give `file` this hint.
    pub(super) fn request(&self, file: &Identity, hint: Hint, force: bool) -> Request {
        let label = self.labels.get(file).filter(|label| label.is_ours);
        Request {
            hint,
            force,
            ours: label.map(|label| label.hint),
        }
    }

    /// Stores the result of a request.
    pub(super) fn record(
        &mut self,
        file: Identity,
        request: Request,
        result: Result<Outcome, ApplyError>,
    ) -> Change {
        let hint = request.hint;
        let (is_ours, change) = match result {
            Ok(Outcome::Left) => return Change::None,
            // Another program may have set it.
            Ok(Outcome::Had) => (request.ours == Some(hint), Change::None),
            Ok(Outcome::Set) => {
                let had = self.labels.get(&file).map(|label| label.hint);
                let change = if had == Some(hint) {
                    Change::Restored
                } else {
                    Change::Labelled
                };
                (true, change)
            }
            Ok(Outcome::Kept(other)) => {
                let is_news = self.report(file);
                return Change::Kept { other, is_news };
            }
            Err(error) => return self.refuse(file, error),
        };
        self.labels.insert(file, Label { hint, is_ours });
        change
    }

    /// Stores that the hint of a file cannot be set.
    pub(super) fn refuse(&mut self, file: Identity, error: ApplyError) -> Change {
        let is_news = self.report(file);
        Change::Refused { error, is_news }
    }

    /// Forgets the label of a file with a problem. Returns whether the problem is news.
    fn report(&mut self, file: Identity) -> bool {
        self.labels.remove(&file);
        self.reported.insert(file)
    }

    /// Pins an open file. Returns whether the limit of pins is reached for the first time.
    pub(super) fn pin(&mut self, open: BorrowedFd<'_>, file: Identity) -> bool {
        self.pins.pin(open, file) == Pinned::Full
            && !std::mem::replace(&mut self.is_pin_limit_reported, true)
    }

    /// Forgets deleted files. Without times of birth, a new file with the same inode number would
    /// be taken for the deleted one.
    pub(super) fn sweep(&mut self) {
        for identity in self.pins.sweep() {
            if !identity.is_certain() {
                self.labels.remove(&identity);
            }
        }
    }

    /// Forgets all files that do not satisfy `stays`.
    pub(super) fn retain(&mut self, stays: impl Fn(&Identity) -> bool) {
        self.labels.retain(|identity, _| stays(identity));
        self.reported.retain(stays);
    }
}

/// Readable when a pin was lost.
impl AsFd for KnownFiles {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pins.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::io::Errno;

    use super::*;
    use crate::tree;

    fn file(inode: u64) -> Identity {
        Identity::new((8, 1), inode, (1_700_000_000, 42))
    }

    fn none() -> KnownFiles {
        KnownFiles::new(Pins::new(1).unwrap(), std::iter::empty())
    }

    /// Requests `hint` for the file, with this result.
    fn attempt(
        known: &mut KnownFiles,
        hint: Hint,
        result: Result<Outcome, ApplyError>,
    ) -> (Request, Change) {
        let request = known.request(&file(1), hint, false);
        (request, known.record(file(1), request, result))
    }

    #[test]
    fn a_hint_is_new_then_kept_then_lost_and_restored() {
        let mut known = none();
        let steps = [
            (Hint::Short, Outcome::Set, None, Change::Labelled),
            (Hint::Short, Outcome::Had, Some(Hint::Short), Change::None),
            (
                Hint::Short,
                Outcome::Set,
                Some(Hint::Short),
                Change::Restored,
            ),
            // The rules have changed.
            (
                Hint::Long,
                Outcome::Set,
                Some(Hint::Short),
                Change::Labelled,
            ),
        ];
        for (hint, outcome, ours, expected) in steps {
            let (request, change) = attempt(&mut known, hint, Ok(outcome));
            assert_eq!((request.ours, change), (ours, expected), "{outcome:?}");
        }
        assert_eq!(known.labels()[&file(1)], Label::ours(Hint::Long));
    }

    #[test]
    fn a_hint_that_was_there_before_us_is_not_ours_to_change() {
        let mut known = none();
        let (_, change) = attempt(&mut known, Hint::Short, Ok(Outcome::Had));
        assert_eq!(change, Change::None);
        assert!(!known.labels()[&file(1)].is_ours);
        assert_eq!(known.request(&file(1), Hint::Long, false).ours, None);
    }

    #[test]
    fn hints_of_an_earlier_run_are_ours() {
        let earlier = [(file(1), Hint::Medium)];
        let mut known = KnownFiles::new(Pins::new(1).unwrap(), earlier.into_iter());
        let (request, change) = attempt(&mut known, Hint::Medium, Ok(Outcome::Had));
        assert_eq!((request.ours, change), (Some(Hint::Medium), Change::None));
        assert!(known.labels()[&file(1)].is_ours);
    }

    #[test]
    fn a_problem_is_news_once_and_ends_the_label() {
        let refused = ApplyError::Refused(Errno::PERM);
        let problems = [
            Ok(Outcome::Kept(Hint::Extreme)),
            Err(refused),
            Err(ApplyError::NotTaken(Hint::None)),
        ];
        for problem in problems {
            let mut known = none();
            attempt(&mut known, Hint::Short, Ok(Outcome::Set));
            for expected in [true, false] {
                let (_, change) = attempt(&mut known, Hint::Short, problem);
                let (Change::Kept { is_news, .. } | Change::Refused { is_news, .. }) = change
                else {
                    panic!("{change:?}");
                };
                assert_eq!(is_news, expected, "{problem:?}");
                assert!(known.labels().is_empty());
            }
            // After a scan that did not see the file, another file may have its identity.
            known.retain(|_| false);
            assert_eq!(
                known.refuse(file(1), refused),
                Change::Refused {
                    error: refused,
                    is_news: true
                }
            );
        }
    }

    #[test]
    fn only_a_pinned_file_is_settled_and_the_limit_is_news_once() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| File::create(folder.path().join(name)).unwrap();
        let files = ["a", "b", "c"].map(open);
        let identities = files
            .each_ref()
            .map(|file| tree::identity(file.as_fd()).unwrap());
        let mut known = none();
        for identity in identities {
            let request = known.request(&identity, Hint::Short, false);
            known.record(identity, request, Ok(Outcome::Set));
            assert!(!known.is_settled(&identity, Hint::Short));
        }
        let full = [0, 1, 2].map(|at| known.pin(files[at].as_fd(), identities[at]));
        assert_eq!(full, [false, true, false]);
        assert_eq!(known.pinned(), 1);
        assert!(known.is_settled(&identities[0], Hint::Short));
        assert!(!known.is_settled(&identities[0], Hint::Long));
        assert!(!known.is_settled(&identities[1], Hint::Short));
        // The kernel ends the watch of a file that is deleted and closed.
        std::fs::remove_file(folder.path().join("a")).unwrap();
        drop(files);
        known.sweep();
        assert_eq!(known.pinned(), 0);
    }
}
