//! What a snapshot says that it holds: the parts, each name in them, and two hashes over it all.
//!
//! The *fingerprint* is of the data: names, kinds, modes, owners, attributes and bytes, but no
//! times and not where the parts lie, so that the same data have the same fingerprint wherever
//! and whenever they were put away. The *id* is of everything.

mod check;
mod text;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub use check::ManifestError;

use crate::handle::Attributes;
use crate::hash::{Digest, Hash};
use crate::stat::Time;

/// All that is known of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// When it was taken, RFC 3339.
    pub(crate) taken: String,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// One directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it was and will be: absolute and without links.
    pub(crate) path: PathBuf,
    /// A file system was mounted on it.
    pub(crate) is_mount_point: bool,
    /// The directory itself, whose path is empty, and everything below it, in order of paths.
    pub(crate) entries: Vec<Entry>,
}

/// One name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the part.
    pub(crate) path: PathBuf,
    pub(crate) dress: Dress,
    pub(crate) kind: Kind,
}

/// Owner, mode, time and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dress {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) attributes: Attributes,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// Leads to the path as it is written.
    Symlink(PathBuf),
    File(Contents),
    /// A further name of a file that stands before it.
    HardLink {
        part: usize,
        path: PathBuf,
    },
}

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) size: u64,
    /// Bytes that it took on the disk.
    pub(crate) allocated: u64,
    /// The number of its copy in the snapshot; an empty file has none.
    pub(crate) stored: Option<u64>,
    /// The hash of each piece.
    pub(crate) pieces: Vec<Hash>,
}

/// What a hash is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Data,
    Everything,
}

impl Manifest {
    /// The hash of the data.
    pub(crate) fn fingerprint(&self) -> Hash {
        self.digest(Scope::Data)
    }

    /// The hash of everything.
    pub(crate) fn id(&self) -> Hash {
        self.digest(Scope::Everything)
    }

    /// Bytes of all files, holes included.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|(_, _, contents)| contents.size).sum()
    }

    /// Each file once: part, entry, bytes.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Entry, &Contents)> {
        let parts = self.parts.iter().enumerate();
        parts.flat_map(|(index, part)| {
            part.entries
                .iter()
                .filter_map(move |entry| match &entry.kind {
                    Kind::File(contents) => Some((index, entry, contents)),
                    Kind::Directory | Kind::Symlink(_) | Kind::HardLink { .. } => None,
                })
        })
    }

    fn digest(&self, scope: Scope) -> Hash {
        let Self {
            taken,
            notes,
            parts,
        } = self;
        let mut digest = Digest::new();
        if scope == Scope::Everything {
            digest.bytes(taken.as_bytes()).number(notes.len() as u64);
            for note in notes {
                digest.bytes(note.as_bytes());
            }
        }
        digest.number(parts.len() as u64);
        for part in parts {
            part.digest(scope, &mut digest);
        }
        digest.finish()
    }
}

impl Part {
    fn digest(&self, scope: Scope, digest: &mut Digest) {
        let Self {
            path,
            is_mount_point,
            entries,
        } = self;
        if scope == Scope::Everything {
            push(digest, path).number(u64::from(*is_mount_point));
        }
        digest.number(entries.len() as u64);
        for Entry { path, dress, kind } in entries {
            push(digest, path);
            dress.digest(scope, digest);
            kind.digest(scope, digest);
        }
    }
}

impl Dress {
    fn digest(&self, scope: Scope, digest: &mut Digest) {
        let Self {
            mode,
            uid,
            gid,
            mtime,
            attributes,
        } = self;
        digest.number((*mode).into());
        digest.number((*uid).into()).number((*gid).into());
        if scope == Scope::Everything {
            digest.number(mtime.seconds.cast_unsigned());
            digest.number(mtime.nanos.into());
        }
        digest.number(attributes.len() as u64);
        for (name, value) in attributes {
            digest.bytes(name).bytes(value);
        }
    }
}

impl Kind {
    fn digest(&self, scope: Scope, digest: &mut Digest) {
        match self {
            Self::Directory => {
                digest.number(0);
            }
            Self::Symlink(target) => {
                push(digest.number(1), target);
            }
            Self::File(Contents {
                size,
                allocated,
                stored,
                pieces,
            }) => {
                digest.number(2).number(*size);
                if scope == Scope::Everything {
                    // How much the disk gave is the file system's affair.
                    digest.number(*allocated);
                    digest.number(stored.map_or(0, |number| number + 1));
                }
                digest.number(pieces.len() as u64);
                for piece in pieces {
                    digest.bytes(piece.as_bytes());
                }
            }
            Self::HardLink { part, path } => {
                push(digest.number(3).number(*part as u64), path);
            }
        }
    }
}

fn push<'a>(digest: &'a mut Digest, path: &Path) -> &'a mut Digest {
    digest.bytes(path.as_os_str().as_bytes())
}
