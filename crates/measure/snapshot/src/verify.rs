//! Read-only checks: of a snapshot against its manifest, and of directories against a snapshot.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::compare::{self, Difference};
use crate::content::{self, chunks};
use crate::disk::{Disk, Fault};
use crate::journal::{self, NotReady};
use crate::manifest::{Contents, Entry, Manifest};
use crate::name::shown;
use crate::options::{Check, Options};
use crate::pool;
use crate::progress::{Cancelled, Meter, Phase, Report};
use crate::scan::scan;
use crate::snapshot::Snapshot;
use crate::store;
use crate::tree::{Access, Tree};

/// A damaged file of a snapshot, which cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The original file.
    pub path: PathBuf,
    /// Its copy in the snapshot.
    pub stored: PathBuf,
    /// The damage in words: `size differs`, `content differs`, or an error of the system.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, stored) = (shown(&self.path), shown(&self.stored));
        write!(f, "{path} (stored as {stored}): {}", self.what)
    }
}

/// A check could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A restore into the directories is running or unfinished.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The listener returned `Break`.
    #[error("interrupted")]
    Cancelled,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Cancelled> for VerifyError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Returns the damaged files of a snapshot, sorted by path. [`Check::Quick`] compares sizes and
/// times; the other checks read all bytes.
///
/// # Errors
/// Only if the snapshot's directory cannot be opened, or if the listener returns `Break`. A file
/// that cannot be read counts as damaged.
pub fn verify(
    snapshot: &Snapshot,
    options: &Options,
    report: Report<'_>,
) -> Result<Vec<Damage>, VerifyError> {
    let disk = Disk::real();
    let store = Tree::open(&disk, snapshot.dir())?;
    let files: Vec<_> = stored_files(snapshot.manifest());
    let damages = Mutex::new(Vec::new());
    let add = |file: &File<'_>, what: String| {
        let damage = Damage {
            path: file.full_path(),
            stored: store.full_path(&store::file_name(file.number())),
            what,
        };
        damages
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .push(damage);
    };
    for file in &files {
        match file.quick(&store, options.check) {
            Ok(None) => {}
            Ok(Some(what)) => add(file, what.to_owned()),
            Err(fault) => add(file, fault.to_string()),
        }
    }
    if options.check != Check::Quick {
        let sizes = || files.iter().map(|file| file.contents.size);
        let meter = Meter::new(Phase::Check, sizes().sum(), report);
        pool::each(options.workers(), &chunks(sizes()), |chunk| {
            let Some(file) = files.get(chunk.file) else {
                return Ok(());
            };
            let name = store::file_name(file.number());
            match differing(&store, &name, file.contents, chunk, &meter) {
                Ok(false) => {}
                Ok(true) => add(file, "content differs".to_owned()),
                Err(VerifyError::Fault(fault)) => add(file, fault.to_string()),
                Err(error) => return Err(error),
            }
            Ok::<(), VerifyError>(())
        })?;
    }
    let mut damages = damages
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    damages.sort_by(|a, b| a.path.cmp(&b.path));
    // A file with several damaged pieces is reported once.
    damages.dedup_by(|a, b| a.path == b.path);
    Ok(damages)
}

/// Returns the differences between the directories of `snapshot` and the snapshot, sorted by path.
pub fn compare_parts(
    snapshot: &Snapshot,
    options: &Options,
    report: Report<'_>,
) -> Result<Vec<Difference>, VerifyError> {
    journal::check_ready(&snapshot.parts())?;
    let disk = Disk::real();
    let manifest = snapshot.manifest();
    let mut trees = Vec::new();
    let mut differences = Vec::new();
    let mut identities = HashMap::new();
    for (index, part) in manifest.parts.iter().enumerate() {
        let tree = Tree::open(&disk, &part.path)?;
        let found = scan(&tree)?;
        let own = compare::part(index, part, &tree, &found, &mut identities)?;
        differences.extend(own);
        trees.push(tree);
    }
    if options.check == Check::Quick {
        return Ok(differences);
    }
    let files = stored_files(manifest);
    let sizes = || files.iter().map(|file| file.contents.size);
    let meter = Meter::new(Phase::Compare, sizes().sum(), report);
    let all = Mutex::new(differences);
    pool::each(options.workers(), &chunks(sizes()), |chunk| {
        let file = files.get(chunk.file);
        let Some((file, tree)) = file.and_then(|file| Some((file, trees.get(file.part)?))) else {
            return Ok(());
        };
        let path = file.full_path();
        let all = || all.lock().unwrap_or_else(|poison| poison.into_inner());
        // A missing file and a file of another size have been reported already.
        if all().iter().any(|difference| difference.path == path) {
            return Ok(());
        }
        if differing(tree, &file.entry.path, file.contents, chunk, &meter)? {
            let what = "content differs";
            all().push(Difference { path, what });
        }
        Ok::<(), VerifyError>(())
    })?;
    let mut differences = all
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    differences.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(differences)
}

/// Whether a piece in `chunk` of the file `path` in `tree` differs from the manifest.
fn differing(
    tree: &Tree<'_>,
    path: &Path,
    contents: &Contents,
    chunk: &content::Chunk,
    meter: &Meter<'_>,
) -> Result<bool, VerifyError> {
    let file = tree.file(path, Access::Read)?;
    let size = contents.size;
    let data = file.data(size)?;
    let mut buffer = content::buffer();
    let mut differs = false;
    for index in chunk.pieces.clone() {
        let piece = content::read(&file, &data, index, size, &mut buffer)?;
        let wanted = usize::try_from(index).ok();
        let wanted = wanted.and_then(|index| contents.pieces.get(index));
        differs |= piece.hash().as_ref() != wanted;
        meter.add(content::window(index, size).len())?;
    }
    Ok(differs)
}

/// A file of the snapshot with content.
struct File<'m> {
    part: usize,
    root: &'m Path,
    entry: &'m Entry,
    contents: &'m Contents,
}

fn stored_files(manifest: &Manifest) -> Vec<File<'_>> {
    let files = manifest
        .files()
        .filter(|(_, _, contents)| contents.size > 0);
    let files = files.map(|(part, entry, contents)| File {
        part,
        root: manifest
            .parts
            .get(part)
            .map_or(Path::new(""), |part| &part.path),
        entry,
        contents,
    });
    files.collect()
}

impl File<'_> {
    fn full_path(&self) -> PathBuf {
        self.root.join(&self.entry.path)
    }

    fn number(&self) -> u64 {
        self.contents.stored.unwrap_or(u64::MAX)
    }

    fn quick(&self, store: &Tree<'_>, check: Check) -> Result<Option<&'static str>, Fault> {
        let stat = store
            .file(&store::file_name(self.number()), Access::Read)?
            .stat()?;
        Ok(if stat.size != self.contents.size {
            Some("size differs")
        } else if check == Check::Quick && stat.mtime != self.entry.metadata.mtime {
            Some("modification time differs (a full check compares the content)")
        } else {
            None
        })
    }
}
