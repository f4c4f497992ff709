//! The directory of a snapshot: `manifest.json`, and the files' bytes under numbers in `files`.
//!
//! Numbers and not names: so a snapshot has no odd names, no links and no attributes, and lies on
//! any file system. While it is being taken there is a file `unfinished`; the manifest appears
//! last, under its name, after everything else is on the disk. Without it there is no snapshot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::disk::{Disk, Fault};
use crate::handle::Handle;
use crate::name::shown;
use crate::tree::{Access, Tree};

/// What a snapshot says that it holds.
pub(crate) const MANIFEST: &str = "manifest.json";
const FRESH_MANIFEST: &str = "manifest.json.new";
const UNFINISHED: &str = "unfinished";
const FILES: &str = "files";

/// Why a snapshot cannot be put into a directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is one already.
    #[error("{} is a snapshot already; name another directory", shown(.0))]
    Exists(PathBuf),
    /// Something else is there.
    #[error("{} is not empty; name a directory that does not exist yet", shown(.0))]
    NotEmpty(PathBuf),
    /// Another process is filling it.
    #[error("another process takes a snapshot into {}", shown(.0))]
    AtWork(PathBuf),
    /// It cannot be made or read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A snapshot in the making.
pub(crate) struct Store<'d> {
    tree: Tree<'d>,
    /// Locked while it is open, which is as long as this.
    _mark: Handle<'d>,
}

/// The absolute path of `dir` without links; its last name need not exist.
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

/// The file that holds the bytes with this number.
pub(crate) fn file_name(number: u64) -> PathBuf {
    Path::new(FILES).join(format!("{number:07}"))
}

/// Whether an interrupted take left `dir`.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(UNFINISHED).exists()
}

impl<'d> Store<'d> {
    /// Makes the directory `path`, or takes an empty one, or one that an interrupted take left.
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
        let is_ours = |name: &_| {
            [UNFINISHED, FILES, FRESH_MANIFEST]
                .iter()
                .any(|own| name == own)
        };
        let was_begun = names.iter().any(|name| name == UNFINISHED);
        let is_free = names.is_empty() || was_begun && names.iter().all(is_ours);
        if !is_free {
            return Err(StoreError::NotEmpty(path.to_owned()));
        }
        let mark = tree.file(Path::new(UNFINISHED), Access::Write)?;
        match rustix::fs::flock(mark.file(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(StoreError::AtWork(path.to_owned())),
            locked => locked.map_err(Fault::at("lock", mark.path()))?,
        }
        let store = Self { tree, _mark: mark };
        store.empty()?;
        store.close_to_others()?;
        store.tree.make_folder(Path::new(FILES))?;
        Ok(store)
    }

    /// Removes what an interrupted take left, all but the mark.
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

    /// The data of a database are not for everybody: 0700, also for a directory that was there.
    fn close_to_others(&self) -> Result<(), Fault> {
        let root = self.tree.folder_handle(Path::new(""))?;
        let attributes = root.attributes()?;
        root.dress(None, 0o700, &attributes)
    }

    pub(crate) fn tree(&self) -> &Tree<'d> {
        &self.tree
    }

    /// The file for the bytes with this number.
    pub(crate) fn file(&self, number: u64) -> Result<Handle<'d>, Fault> {
        self.tree.file(&file_name(number), Access::Write)
    }

    /// Makes it a snapshot: everything to the disk, then the manifest under its name.
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
        // From here on it is a snapshot, whether the mark goes or stays.
        let _ = self.tree.remove(Path::new(UNFINISHED));
        Ok(())
    }

    /// Removes all of it as far as it can be; a rest is marked as unfinished.
    pub(crate) fn discard(self) {
        let Self { tree, _mark } = &self;
        // The error that led here is the one to tell. A manifest goes before what it names.
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
