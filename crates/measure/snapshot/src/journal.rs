//! The mark of an unfinished restore: a file in each part, written before the first change and
//! removed after the last check.
//!
//! The mark is in the part and not beside it, so that it needs no permissions on the parent
//! directory and is moved and deleted together with the part. The first part is marked first and
//! released last, because a server is started on it. A running restore holds a lock on each mark;
//! the lock ends with its process.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use saiga_process::lock::{FlockOperation, try_lock};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Fault};
use crate::handle::Handle;
use crate::hash::Hash;
use crate::name;
use crate::name::shown;
use crate::tree::{Access, Tree};

/// Name of the mark in a part.
pub(crate) const NAME: &str = ".saiga-restore";
/// Limit for reading a mark; real ones are much shorter.
const MAX_MARK_BYTES: u64 = 1 << 20;

/// A directory must not be used by a server.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A restore was interrupted, so the data are a mixture of old and restored files.
    #[error(
        "a restore of the snapshot {} into {} was interrupted; finish it with `saiga snapshot \
         restore {}` (if that snapshot is lost, remove {} and restore another snapshot before you \
         start a server)",
        shown(snapshot), shown(dir), shown(snapshot), shown(&dir.join(NAME))
    )]
    Unfinished {
        dir: PathBuf,
        /// The snapshot whose restore was interrupted.
        snapshot: PathBuf,
    },
    /// A restore was interrupted before it changed any data.
    #[error(
        "a restore into {} was interrupted before it changed data; restore the snapshot again",
        shown(.0)
    )]
    Begun(PathBuf),
    /// Another process is restoring the directory.
    #[error("another process is restoring {}; wait until it ends", shown(.0))]
    InProgress(PathBuf),
    /// The mark cannot be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    format_version: u64,
    /// Id of the snapshot's manifest.
    id: String,
    /// Path of the snapshot.
    snapshot: String,
}

/// The marks of a running restore. Dropping the journal releases the locks and keeps the marks.
pub(crate) struct Journal<'d> {
    marks: Vec<HeldMark<'d>>,
}

struct HeldMark<'d> {
    #[expect(dead_code, reason = "holds the lock on the mark")]
    file: Handle<'d>,
    /// The part had no mark before, so its data were complete.
    is_new: bool,
}

/// Checks that a server may be started on `dirs`: no restore into them is running or unfinished.
pub fn check_ready(dirs: &[PathBuf]) -> Result<(), NotReady> {
    dirs.iter().try_for_each(|dir| match find_mark(dir)? {
        None => Ok(()),
        Some(mark) => Err(refusal(dir, mark)),
    })
}

/// The directories with the mark of an unfinished restore. Unreadable marks are not reported.
pub(crate) fn unfinished(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let is_marked = |dir: &&PathBuf| matches!(find_mark(dir), Ok(Some(MarkState::Complete(_))));
    dirs.iter().filter(is_marked).cloned().collect()
}

/// Advice to the user about partly restored directories.
pub(crate) fn partly_restored(dirs: &[PathBuf]) -> String {
    let names: Vec<String> = dirs.iter().map(|dir| shown(dir)).collect();
    let (are, them) = match dirs {
        [_] => ("is", "it"),
        _ => ("are", "them"),
    };
    let names = names.join(", ");
    format!("{names} {are} partly restored: start no server on {them}, run the same restore again")
}

/// Checks that the snapshot with this id may be restored into `dir`: a mark must be its own.
pub(crate) fn check_own_mark(dir: &Path, id: &Hash) -> Result<(), NotReady> {
    match find_mark(dir)? {
        Some(MarkState::Complete(mark)) if mark.id != id.to_string() => {
            Err(refusal(dir, MarkState::Complete(mark)))
        }
        Some(MarkState::Locked) => Err(NotReady::InProgress(dir.to_owned())),
        Some(MarkState::Complete(_) | MarkState::Torn) | None => Ok(()),
    }
}

enum MarkState {
    Complete(Mark),
    /// Written incompletely, so the restore ended before it changed any data.
    Torn,
    /// Locked by a running restore.
    Locked,
}

fn refusal(dir: &Path, mark: MarkState) -> NotReady {
    let dir = dir.to_owned();
    match mark {
        MarkState::Torn => NotReady::Begun(dir),
        MarkState::Locked => NotReady::InProgress(dir),
        MarkState::Complete(mark) => NotReady::Unfinished {
            dir,
            snapshot: name::path(&mark.snapshot).unwrap_or_default(),
        },
    }
}

fn find_mark(dir: &Path) -> Result<Option<MarkState>, NotReady> {
    let path = dir.join(NAME);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(&path) {
        Ok(file) => file,
        // A path that is not a directory has no mark; other checks report it.
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
        Ok(Some(MarkState::Locked))
    }
}

fn read(file: &File) -> io::Result<MarkState> {
    let mut text = Vec::new();
    file.take(MAX_MARK_BYTES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).map_or(MarkState::Torn, MarkState::Complete))
}

impl<'d> Journal<'d> {
    /// Marks the parts `trees`, the first part first. All marks are on disk when this returns.
    pub(crate) fn begin(trees: &[Tree<'d>], snapshot: &Path, id: &Hash) -> Result<Self, NotReady> {
        let mut marks = Vec::new();
        for tree in trees {
            marks.push(mark(tree, snapshot, id)?);
        }
        Ok(Self { marks })
    }

    /// Removes the marks that this restore has made. Marks of an earlier restore remain, because
    /// that restore may have changed data.
    pub(crate) fn withdraw(self, trees: &[Tree<'d>]) -> Result<(), Fault> {
        for (tree, marked) in trees.iter().zip(&self.marks).rev() {
            if marked.is_new {
                tree.remove(Path::new(NAME))?;
                tree.folder_handle(Path::new(""))?.flush()?;
            }
        }
        Ok(())
    }

    /// Removes all marks, the mark of the first part last.
    pub(crate) fn finish(self, trees: &[Tree<'d>]) -> Result<(), Fault> {
        for tree in trees.iter().rev() {
            tree.remove(Path::new(NAME))?;
            tree.folder_handle(Path::new(""))?.flush()?;
        }
        drop(self.marks);
        Ok(())
    }
}

/// Marks one part, or takes over the mark of an earlier restore of the same snapshot.
fn mark<'d>(tree: &Tree<'d>, snapshot: &Path, id: &Hash) -> Result<HeldMark<'d>, NotReady> {
    let file = tree.file(Path::new(NAME), Access::Write)?;
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let locked = try_lock(file.file(), exclusive).map_err(Fault::at("lock", file.path()))?;
    if !locked {
        return Err(NotReady::InProgress(tree.path().to_owned()));
    }
    let is_new = match read(file.file()).map_err(Fault::at("read", file.path()))? {
        MarkState::Complete(mark) if mark.id == id.to_string() => false,
        other @ MarkState::Complete(_) => return Err(refusal(tree.path(), other)),
        MarkState::Torn | MarkState::Locked => {
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
    Ok(HeldMark { file, is_new })
}

/// Makes a missing part under a temporary name, marks it and renames it, so that the part never
/// exists without its mark.
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
    let tree = Tree::open(disk, &parent.full_path(fresh))?;
    drop(mark(&tree, snapshot, id)?);
    parent.rename(fresh, name)?;
    Ok(parent.folder_handle(Path::new(""))?.flush()?)
}
