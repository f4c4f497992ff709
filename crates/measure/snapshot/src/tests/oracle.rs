//! Records the state of directories with the standard library, independently of the tested code.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Everything about one name that a restore must bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    /// Zero for the root, whose time a restore changes.
    mtime: (i64, i64),
    /// Length and hash of a file, or the target of a link; short enough for a failure message.
    content: String,
    /// The first name of the same file.
    same_as: PathBuf,
}

/// Records all names below `roots`. One call records all roots, because hard links may connect
/// them.
pub(crate) fn state_of(roots: &[PathBuf]) -> BTreeMap<PathBuf, State> {
    let mut all = BTreeMap::new();
    let mut first_names = HashMap::new();
    for root in roots {
        walk(root, root, &mut all, &mut first_names);
    }
    all
}

fn short(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes, {:x}", bytes.len(), hasher.finish())
}

fn walk(
    root: &Path,
    path: &Path,
    all: &mut BTreeMap<PathBuf, State>,
    first_names: &mut HashMap<(u64, u64), PathBuf>,
) {
    let meta = fs::symlink_metadata(path).unwrap();
    let file_type = meta.file_type();
    let (kind, content) = if file_type.is_dir() {
        ("directory", String::new())
    } else if file_type.is_symlink() {
        let target = fs::read_link(path).unwrap();
        ("link", format!("{target:?}"))
    } else if file_type.is_file() {
        ("file", short(&fs::read(path).unwrap()))
    } else if file_type.is_fifo() {
        ("fifo", String::new())
    } else {
        ("other", String::new())
    };
    // A restore makes two symbolic links from one with two names.
    let identity = (meta.dev(), meta.ino());
    let same_as = if file_type.is_symlink() {
        path
    } else {
        first_names.entry(identity).or_insert(path.to_owned())
    };
    let mtime = if path == root {
        (0, 0)
    } else {
        (meta.mtime(), meta.mtime_nsec())
    };
    let state = State {
        kind,
        mode: meta.permissions().mode(),
        owner: (meta.uid(), meta.gid()),
        mtime,
        content,
        same_as: same_as.to_owned(),
    };
    all.insert(path.to_owned(), state);
    if file_type.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for name in names {
            walk(root, &name, all, first_names);
        }
    }
}
