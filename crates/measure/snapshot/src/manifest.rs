//! The manifest of a snapshot: its parts, every name in them, and two hashes over all of it.
//!
//! The *fingerprint* is the hash of the data: names, kinds, modes, owners, attributes and content,
//! without times and without the paths of the parts. Equal data therefore have equal fingerprints
//! at any place and time. The *id* is the hash of everything in the manifest.

mod check;
mod json;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub use check::ManifestError;

use crate::handle::Attributes;
use crate::hash::{Digest, Hash};
use crate::stat::Time;

/// The complete description of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Time of the snapshot, as RFC 3339.
    pub(crate) taken: String,
    /// Files that the snapshot does not contain, each with the reason.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// One of the directories of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Path of the original, absolute and without symbolic links.
    pub(crate) path: PathBuf,
    /// Whether a file system was mounted on the directory.
    pub(crate) is_mount_point: bool,
    /// The directory itself, with an empty path, and everything below it, sorted by path.
    pub(crate) entries: Vec<Entry>,
}

/// One name in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Path relative to the part.
    pub(crate) path: PathBuf,
    pub(crate) metadata: Metadata,
    pub(crate) kind: Kind,
}

/// Owner, mode, modification time and extended attributes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) attributes: Attributes,
}

/// The kind of file that a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// A symbolic link with its target, which is not resolved.
    Symlink(PathBuf),
    File(Contents),
    /// A further name of an earlier entry.
    HardLink {
        part: usize,
        path: PathBuf,
    },
}

/// Size, copy and hashes of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) size: u64,
    /// Bytes that the original occupied on its disk.
    pub(crate) allocated: u64,
    /// Number of the copy in the snapshot; `None` for an empty file.
    pub(crate) stored: Option<u64>,
    /// The hash of each piece.
    pub(crate) pieces: Vec<Hash>,
}

/// The fields that a digest covers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Data,
    Everything,
}

impl Manifest {
    /// The hash of the data, without times and paths of the parts.
    pub(crate) fn fingerprint(&self) -> Hash {
        self.digest(Scope::Data)
    }

    /// The hash of all fields.
    pub(crate) fn id(&self) -> Hash {
        self.digest(Scope::Everything)
    }

    /// Sum of the sizes of all files, including holes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|(_, _, contents)| contents.size).sum()
    }

    /// Every file once, with the index of its part; further hard links are skipped.
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
        for Entry {
            path,
            metadata,
            kind,
        } in entries
        {
            push(digest, path);
            metadata.digest(scope, digest);
            kind.digest(scope, digest);
        }
    }
}

impl Metadata {
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
                    // Allocation depends on the file system, not on the data.
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
