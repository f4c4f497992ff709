//! The mark of a restore that is not finished: a file in each part, there before the first change
//! and gone after the last check.
//!
//! It lies in the part and not beside it: so it needs no rights on the parent, goes where the part
//! goes, and ends with it. The first part is marked first and released last, for a server is
//! started on it. The running restore holds a lock on each mark, which ends with its process.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Fault};
use crate::handle::Handle;
use crate::hash::Hash;
use crate::name;
use crate::name::shown;
use crate::tree::{Access, Tree};

/// Its name in a part.
pub(crate) const NAME: &str = ".saiga-restore";
/// Far more than a mark is long.
const LONGEST: u64 = 1 << 20;

/// Why directories are not ready for a server.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A restore was interrupted: the data are neither the old nor the new ones.
    #[error(
        "{} holds an unfinished restore of the snapshot {}; finish it with `saiga snapshot restore {}` (should \
         that snapshot be lost, remove {} and restore another one before a server is started)",
        shown(dir), shown(snapshot), shown(snapshot), shown(&dir.join(NAME))
    )]
    Unfinished {
        /// The directory.
        dir: PathBuf,
        /// The snapshot that was being restored.
        snapshot: PathBuf,
    },
    /// A restore was interrupted as it began.
    #[error("a restore into {} ended as it began; restore the snapshot again", shown(.0))]
    Begun(PathBuf),
    /// A restore is at work.
    #[error("{} is being restored by another process; wait for its end", shown(.0))]
    AtWork(PathBuf),
    /// The mark cannot be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    format_version: u64,
    /// What was being restored.
    id: String,
    /// Where it lay.
    snapshot: String,
}

/// The marks of a running restore; dropped, they stay.
pub(crate) struct Journal<'d> {
    marks: Vec<Marked<'d>>,
}

/// One mark.
struct Marked<'d> {
    #[expect(dead_code, reason = "our lock on it ends with it")]
    file: Handle<'d>,
    /// It was not there before: what it marks was whole.
    is_new: bool,
}

/// Whether a server may be started on `dirs`.
///
/// # Errors
/// A restore into one of them is at work or unfinished; the text names the way out.
pub fn check_ready(dirs: &[PathBuf]) -> Result<(), NotReady> {
    dirs.iter().try_for_each(|dir| match look(dir)? {
        None => Ok(()),
        Some(mark) => Err(refusal(dir, mark)),
    })
}

/// Those of `dirs` whose restore was broken off; one whose mark cannot be read is not known to be.
pub(crate) fn unfinished(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let is_marked = |dir: &&PathBuf| matches!(look(dir), Ok(Some(Seen::Mark(_))));
    dirs.iter().filter(is_marked).cloned().collect()
}

/// What people must know of `dirs`.
pub(crate) fn half_restored(dirs: &[PathBuf]) -> String {
    let names: Vec<String> = dirs.iter().map(|dir| shown(dir)).collect();
    let (are, them) = match dirs {
        [_] => ("is", "it"),
        _ => ("are", "them"),
    };
    let names = names.join(", ");
    format!("{names} {are} half restored: start no server on {them}, run the same restore again")
}

/// Whether `snapshot` with this id may be restored into `dir`.
pub(crate) fn check_mine(dir: &Path, id: &Hash) -> Result<(), NotReady> {
    match look(dir)? {
        Some(Seen::Mark(mark)) if mark.id != id.to_string() => Err(refusal(dir, Seen::Mark(mark))),
        Some(Seen::AtWork) => Err(NotReady::AtWork(dir.to_owned())),
        Some(Seen::Mark(_) | Seen::Torn) | None => Ok(()),
    }
}

enum Seen {
    Mark(Mark),
    /// Written in part: nothing had been changed.
    Torn,
    /// Locked by the restore that wrote it.
    AtWork,
}

fn refusal(dir: &Path, seen: Seen) -> NotReady {
    let dir = dir.to_owned();
    match seen {
        Seen::Torn => NotReady::Begun(dir),
        Seen::AtWork => NotReady::AtWork(dir),
        Seen::Mark(mark) => NotReady::Unfinished {
            dir,
            snapshot: name::path(&mark.snapshot).unwrap_or_default(),
        },
    }
}

fn look(dir: &Path) -> Result<Option<Seen>, NotReady> {
    let path = dir.join(NAME);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(&path) {
        Ok(file) => file,
        // What is not a directory holds no restore; it is told apart elsewhere.
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(Fault::at("open", &path)(error).into()),
    };
    if try_lock(&file, FlockOperation::NonBlockingLockShared).map_err(Fault::at("lock", &path))? {
        Ok(Some(read(&file).map_err(Fault::at("read", &path))?))
    } else {
        Ok(Some(Seen::AtWork))
    }
}

fn read(file: &File) -> io::Result<Seen> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).map_or(Seen::Torn, Seen::Mark))
}

fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl<'d> Journal<'d> {
    /// Marks the parts `trees`, the first one first; each mark is on its disk when this returns.
    pub(crate) fn begin(trees: &[Tree<'d>], snapshot: &Path, id: &Hash) -> Result<Self, NotReady> {
        let mut marks = Vec::new();
        for tree in trees {
            marks.push(mark(tree, snapshot, id)?);
        }
        Ok(Self { marks })
    }

    /// Releases the parts that nothing was done to: those that no earlier restore had marked.
    pub(crate) fn withdraw(self, trees: &[Tree<'d>]) -> Result<(), Fault> {
        for (tree, marked) in trees.iter().zip(&self.marks).rev() {
            if marked.is_new {
                tree.remove(Path::new(NAME))?;
                tree.folder_handle(Path::new(""))?.flush()?;
            }
        }
        Ok(())
    }

    /// Releases the parts, the first one last.
    pub(crate) fn finish(self, trees: &[Tree<'d>]) -> Result<(), Fault> {
        for tree in trees.iter().rev() {
            tree.remove(Path::new(NAME))?;
            tree.folder_handle(Path::new(""))?.flush()?;
        }
        drop(self.marks);
        Ok(())
    }
}

/// Marks one part, or takes the mark of an earlier restore of the same snapshot over.
fn mark<'d>(tree: &Tree<'d>, snapshot: &Path, id: &Hash) -> Result<Marked<'d>, NotReady> {
    let file = tree.file(Path::new(NAME), Access::Write)?;
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let locked = try_lock(file.file(), exclusive).map_err(Fault::at("lock", file.path()))?;
    if !locked {
        return Err(NotReady::AtWork(tree.path().to_owned()));
    }
    let is_new = match read(file.file()).map_err(Fault::at("read", file.path()))? {
        Seen::Mark(mark) if mark.id == id.to_string() => false,
        other @ Seen::Mark(_) => return Err(refusal(tree.path(), other)),
        Seen::Torn | Seen::AtWork => {
            let mark = Mark {
                format_version: 1,
                id: id.to_string(),
                snapshot: shown(snapshot),
            };
            let text = serde_json::to_vec(&mark).map_err(io::Error::other);
            file.set_len(0)?;
            file.write_at(&text.map_err(Fault::at("write", file.path()))?, 0)?;
            true
        }
    };
    file.flush()?;
    tree.folder_handle(Path::new(""))?.flush()?;
    Ok(Marked { file, is_new })
}

/// Makes a part that is missing, with the mark in it: it appears marked or not at all.
pub(crate) fn make_marked(
    disk: &Disk,
    part: &Path,
    snapshot: &Path,
    id: &Hash,
) -> Result<(), NotReady> {
    let parent = Tree::open(disk, part.parent().unwrap_or(Path::new("/")))?;
    let name = Path::new(part.file_name().unwrap_or_default());
    let mut fresh = std::ffi::OsString::from(".saiga-new-");
    fresh.push(name);
    let fresh = Path::new(&fresh);
    if parent.stat(fresh)?.is_none() {
        parent.make_folder(fresh)?;
    }
    let tree = Tree::open(disk, &parent.whole(fresh))?;
    drop(mark(&tree, snapshot, id)?);
    parent.rename(fresh, name)?;
    Ok(parent.folder_handle(Path::new(""))?.flush()?)
}
