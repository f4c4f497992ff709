//! Checks every file: the rule that matches, the hint of the rule and the hint of the file. Changes
//! nothing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::hint::Hint;
use crate::links;
use crate::rules::{FilePaths, Rules};
use crate::setter::Setter;
use crate::tree::{self, Found, Identity};

/// The comparison of a file's hint with its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The file has the hint of its rule.
    Right,
    /// The file has another program's hint, and the rule has no `force`.
    Kept,
    /// No rule has a hint for the file.
    Free,
    /// The file has no hint, but the rule has one.
    Missing,
    /// The file has a hint that the labeller has set, but the rules have changed.
    Stale,
    /// The file has another program's hint, and the rule has `force`.
    Wrong,
    /// The hint of the file could not be read.
    Unseen(Errno),
}

impl Standing {
    /// Whether the file agrees with the rules.
    #[must_use]
    pub fn is_well(self) -> bool {
        match self {
            Self::Right | Self::Kept | Self::Free => true,
            Self::Missing | Self::Stale | Self::Wrong | Self::Unseen(_) => false,
        }
    }

    /// Returns its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "ok",
            Self::Kept => "kept",
            Self::Free => "no rule",
            Self::Missing => "missing",
            Self::Stale => "stale",
            Self::Wrong => "wrong",
            Self::Unseen(_) => "unseen",
        }
    }
}

/// One file, or a directory that cannot be read.
#[derive(Debug, Clone)]
pub struct Row {
    pub path: PathBuf,
    /// The index of the rule that matches.
    pub rule: Option<usize>,
    /// The hint of the rule; `NotSet` without a rule.
    pub wanted: Hint,
    /// The hint of the file; `None` if it cannot be read.
    pub found: Option<Hint>,
    /// Size of the file.
    pub bytes: u64,
    pub standing: Standing,
}

/// Checks every file in `dir` and in the directories to which links and mounts in it lead, sorted
/// by path. `ours` has the hints that a labeller has set ([`crate::labels::of`]).
///
/// # Errors
/// `dir` cannot be opened.
pub fn check(
    dir: &Path,
    rules: &Arc<Rules>,
    ours: &HashMap<Identity, Hint>,
    setter: &dyn Setter,
) -> Result<Vec<Row>, Errno> {
    let mut rows = Vec::new();
    let mut seen: HashSet<Identity> = HashSet::new();
    let start = (dir.canonicalize()).map_err(|error| tree::errno(&error))?;
    let mut entered = HashSet::from([start.clone()]);
    let mut waiting = VecDeque::from([(start, PathBuf::new())]);
    while let Some((dir, prefix)) = waiting.pop_front() {
        let is_first = prefix.as_os_str().is_empty();
        let open = match tree::open_dir(&dir) {
            Ok(open) => open,
            Err(error) if is_first => return Err(error),
            Err(error) => {
                rows.push(unseen(dir, error));
                continue;
            }
        };
        let unseen_there = tree::walk(open.as_fd(), Path::new(""), &mut |below, found| {
            let (path, relative) = (dir.join(below), prefix.join(below));
            match found {
                Found::Directory(_) => {}
                Found::Elsewhere => {
                    // Links may lead in circles, or to a directory above.
                    let target = links::follow(&path).ok().map(|end| end.path);
                    let target = target.filter(|target| !dir.starts_with(target));
                    if let Some(target) = target.filter(|target| entered.insert(target.clone())) {
                        waiting.push_back((target, relative));
                    }
                }
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes,
                } => {
                    // A file may be found again by another link or a hard link.
                    if seen.insert(identity) {
                        let place = FilePaths {
                            relative: &relative,
                            absolute: &path,
                        };
                        let read = || {
                            let (file, ..) = tree::open_file(dir, name)?;
                            setter.read(file.as_fd())
                        };
                        let ours = ours.get(&identity).copied();
                        rows.push(row(&place, rules, ours, bytes, read));
                    }
                }
            }
            ControlFlow::Continue(())
        });
        rows.extend(
            unseen_there
                .into_iter()
                .map(|it| unseen(dir.join(it.path), it.error)),
        );
    }
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(rows)
}

fn unseen(path: PathBuf, error: Errno) -> Row {
    Row {
        path,
        rule: None,
        wanted: Hint::NotSet,
        found: None,
        bytes: 0,
        standing: Standing::Unseen(error),
    }
}

fn row(
    place: &FilePaths<'_>,
    rules: &Rules,
    ours: Option<Hint>,
    bytes: u64,
    read: impl FnOnce() -> Result<Hint, Errno>,
) -> Row {
    let matching = rules.find(place);
    let wanted = matching.map_or(Hint::NotSet, |(_, rule)| rule.hint);
    let force = matching.is_some_and(|(_, rule)| rule.force);
    let read = read();
    let standing = match read {
        Err(error) => Standing::Unseen(error),
        Ok(_) if wanted == Hint::NotSet => Standing::Free,
        Ok(found) if found == wanted => Standing::Right,
        Ok(Hint::NotSet) => Standing::Missing,
        Ok(found) if ours == Some(found) => Standing::Stale,
        Ok(_) if force => Standing::Wrong,
        Ok(_) => Standing::Kept,
    };
    Row {
        path: place.absolute.to_owned(),
        rule: matching.map(|(number, _)| number),
        wanted,
        found: read.ok(),
        bytes,
        standing,
    }
}
