//! The check: every file, the rule that matches it, the hint it should have and the hint it has. Changes nothing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::hint::Hint;
use crate::links;
use crate::rules::{Place, Rules};
use crate::setter::Setter;
use crate::tree::{self, Found, Identity};

/// How a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has the hint it should have.
    Right,
    /// It has a hint of somebody else's, which a rule without `force` leaves.
    Kept,
    /// No rule wants anything of it.
    Free,
    /// It has no hint, and should.
    Missing,
    /// It has a hint that the labeller has set, and the rules want another one by now.
    Stale,
    /// It has another hint, and a rule with `force` wants one.
    Wrong,
    /// It could not be looked at.
    Unseen(Errno),
}

impl Standing {
    /// Whether it is as it should be.
    #[must_use]
    pub fn is_well(self) -> bool {
        match self {
            Self::Right | Self::Kept | Self::Free => true,
            Self::Missing | Self::Stale | Self::Wrong | Self::Unseen(_) => false,
        }
    }

    /// A word for tables and JSON.
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

/// One file, or a directory that cannot be looked at.
#[derive(Debug, Clone)]
pub struct Row {
    /// Where it is.
    pub path: PathBuf,
    /// The number of the rule that matches.
    pub rule: Option<usize>,
    /// The hint it should have.
    pub wanted: Hint,
    /// The hint it has.
    pub found: Option<Hint>,
    /// Its size.
    pub bytes: u64,
    /// The outcome.
    pub standing: Standing,
}

/// Looks at every file below `dir` and below what links and mounts in it lead to, in the order of their paths. `ours`
/// has the hints that a labeller has set ([`crate::labels::of`]).
///
/// # Errors
/// When the directory cannot be opened.
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
                    // Links may lead in circles, or back up.
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
                    // Found a second time by another link, or a hard link.
                    if seen.insert(identity) {
                        let place = Place {
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
    place: &Place<'_>,
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
