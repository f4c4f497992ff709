//! The directory of a snapshot: `manifest.json`, and the content of files in `files`.
//!
//! The files in `files` have numbers as names, so that a snapshot needs no unusual names, links or
//! attributes and can be on any file system. A file `unfinished` exists while the snapshot is
//! being taken. The manifest gets its name last, when everything else is on the disk; a directory
//! without a manifest is not a snapshot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use saiga_process::lock::{FlockOperation, try_lock};

use crate::disk::{Disk, Fault};
use crate::handle::Handle;
use crate::name::shown;
use crate::tree::{Access, Tree};

/// Name of the manifest in a snapshot.
pub(crate) const MANIFEST: &str = "manifest.json";
const FRESH_MANIFEST: &str = "manifest.json.new";
const UNFINISHED: &str = "unfinished";
const FILES: &str = "files";

/// A directory cannot be used for a new snapshot.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{} is a snapshot already; name another directory", shown(.0))]
    Exists(PathBuf),
    #[error("{} is not empty; name a directory that does not exist yet", shown(.0))]
    NotEmpty(PathBuf),
    /// Another process holds the lock on the directory.
    #[error("another process is taking a snapshot into {}; wait until it ends", shown(.0))]
    InProgress(PathBuf),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The directory of a snapshot that is being taken.
pub(crate) struct Store<'d> {
    tree: Tree<'d>,
    /// The file `unfinished`, open and locked.
    _mark: Handle<'d>,
}

/// The absolute path of `dir` without symbolic links; its last component need not exist.
pub(crate) fn resolve(dir: &Path) -> Result<PathBuf, Fault> {
    match dir.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        real => return real.map_err(Fault::at("use", dir)),
    }
    let absolute = std::path::absolute(dir).map_err(Fault::at("use", dir))?;
    let (parent, name) = absolute.parent().zip(absolute.file_name()).unzip();
    let parent = parent.unwrap_or(Path::new("/"));
    let real = parent.canonicalize().map_err(Fault::at("use", parent))?;
    Ok(real.join(name.unwrap_or_default()))
}

/// Path of the file with this number, relative to the snapshot.
pub(crate) fn file_name(number: u64) -> PathBuf {
    Path::new(FILES).join(format!("{number:07}"))
}

/// Whether `dir` was left behind by an interrupted take.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(UNFINISHED).exists()
}

impl<'d> Store<'d> {
    /// Makes the directory `path` and locks it. An existing directory must be empty or left behind
    /// by an interrupted take, whose files are removed.
    pub(crate) fn create(disk: &'d Disk, path: &Path) -> Result<Self, StoreError> {
        let parent = Tree::open(disk, path.parent().unwrap_or(Path::new("/")))?;
        let name = Path::new(path.file_name().unwrap_or_default());
        if parent.stat(name)?.is_none() {
            parent.make_folder(name)?;
        }
        let tree = Tree::open(disk, path)?;
        let names = tree.list(Path::new(""))?;
        if names.iter().any(|name| name == MANIFEST) {
            return Err(StoreError::Exists(path.to_owned()));
        }
        let is_known = |name: &_| {
            [UNFINISHED, FILES, FRESH_MANIFEST]
                .iter()
                .any(|own| name == own)
        };
        let was_begun = names.iter().any(|name| name == UNFINISHED);
        let is_free = names.is_empty() || was_begun && names.iter().all(is_known);
        if !is_free {
            return Err(StoreError::NotEmpty(path.to_owned()));
        }
        let mark = tree.file(Path::new(UNFINISHED), Access::Write)?;
        let locked = try_lock(mark.file(), FlockOperation::NonBlockingLockExclusive);
        if !locked.map_err(Fault::at("lock", mark.path()))? {
            return Err(StoreError::InProgress(path.to_owned()));
        }
        let store = Self { tree, _mark: mark };
        store.empty()?;
        store.restrict_access()?;
        store.tree.make_folder(Path::new(FILES))?;
        Ok(store)
    }

    /// Removes all files of an incomplete snapshot except the mark.
    fn empty(&self) -> Result<(), Fault> {
        let files = Path::new(FILES);
        if self.tree.stat(files)?.is_some() {
            for name in self.tree.list(files)? {
                self.tree.remove(&files.join(name))?;
            }
            self.tree.remove_folder(files)?;
        }
        let manifest = Path::new(FRESH_MANIFEST);
        if self.tree.stat(manifest)?.is_some() {
            self.tree.remove(manifest)?;
        }
        Ok(())
    }

    /// Sets the mode 0700, also of an existing directory, because a database may contain secrets.
    fn restrict_access(&self) -> Result<(), Fault> {
        let root = self.tree.folder_handle(Path::new(""))?;
        let attributes = root.attributes()?;
        root.set_metadata(None, 0o700, &attributes)
    }

    pub(crate) fn tree(&self) -> &Tree<'d> {
        &self.tree
    }

    /// Opens or makes the file with this number.
    pub(crate) fn file(&self, number: u64) -> Result<Handle<'d>, Fault> {
        self.tree.file(&file_name(number), Access::Write)
    }

    /// Completes the snapshot: flushes all files, then gives the manifest its name.
    pub(crate) fn finish(&self, manifest: &[u8]) -> Result<(), Fault> {
        let (fresh, name) = (Path::new(FRESH_MANIFEST), Path::new(MANIFEST));
        let root = Path::new("");
        let file = self.tree.file(fresh, Access::Write)?;
        file.set_len(0)?;
        file.write_at(manifest, 0)?;
        file.flush()?;
        self.tree.flush()?;
        self.tree.rename(fresh, name)?;
        self.tree.folder_handle(root)?.flush()?;
        // The snapshot is complete; a remaining mark does not matter.
        let _ = self.tree.remove(Path::new(UNFINISHED));
        Ok(())
    }

    /// Removes the incomplete snapshot. If that fails, the remaining directory keeps its mark.
    pub(crate) fn discard(self) {
        let Self { tree, _mark } = &self;
        // Errors are ignored, because the caller reports the first error. The manifest is removed
        // first, so that a remaining directory is not a snapshot.
        let manifest = Path::new(MANIFEST);
        match tree.stat(manifest) {
            Ok(None) => {}
            Ok(Some(_)) if tree.remove(manifest).is_ok() => {}
            Ok(Some(_)) | Err(_) => return,
        }
        let _ = self.empty();
        let is_empty = tree.list(Path::new("")).is_ok_and(|names| names.len() == 1);
        if is_empty && tree.remove(Path::new(UNFINISHED)).is_ok() {
            let _ = fs::remove_dir(tree.path());
        }
    }
}
