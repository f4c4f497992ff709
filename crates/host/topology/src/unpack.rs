//! The root of another machine: a directory, or an archive of `saiga topology collect`.
//!
//! An archive is unpacked in a temporary directory of this user. It may come from anywhere:
//! entries other than files, directories and symbolic links, paths with `..`, and archives beyond
//! the limits below are refused. Links are created after everything else, so that no entry is
//! written through one; reading resolves them inside the root.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use saiga_process::root::Root;
use tar::Archive;

/// Limits of an archive, unpacked. A machine of 1024 CPUs has 30 MB and 100,000 entries.
const MAX_BYTES: u64 = 512 << 20;
const MAX_ENTRIES: usize = 1_000_000;

/// A root that may be a temporary directory, which is deleted with this value.
#[derive(Debug)]
pub struct Sysroot {
    root: Root,
    _unpacked: Option<tempfile::TempDir>,
}

/// Why a root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("{path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path} is not an archive of saiga topology collect: {reason}")]
    Refused { path: PathBuf, reason: String },
    #[error("cannot unpack {path} in {}: {error}", std::env::temp_dir().display())]
    Unpack { path: PathBuf, error: io::Error },
}

impl Sysroot {
    /// Opens a directory, or unpacks a `.tar.gz`.
    ///
    /// # Errors
    /// There is no such file, it is not such an archive, or it cannot be unpacked.
    pub fn open(path: &Path) -> Result<Self, UnpackError> {
        let unreadable = |error| UnpackError::Unreadable {
            path: path.to_owned(),
            error,
        };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Ok(Self {
                root: Root::at(path),
                _unpacked: None,
            });
        }
        let file = File::open(path).map_err(unreadable)?;
        let dir = tempfile::tempdir().map_err(|error| UnpackError::Unpack {
            path: path.to_owned(),
            error,
        })?;
        unpack(file, dir.path()).map_err(|failure| match failure {
            Failure::Refused(reason) => UnpackError::Refused {
                path: path.to_owned(),
                reason,
            },
            Failure::Write(error) => UnpackError::Unpack {
                path: path.to_owned(),
                error,
            },
        })?;
        Ok(Self {
            root: Root::at(dir.path()),
            _unpacked: Some(dir),
        })
    }

    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }
}

enum Failure {
    Refused(String),
    Write(io::Error),
}

fn unpack(file: impl Read, dir: &Path) -> Result<(), Failure> {
    let damaged = |error: io::Error| Failure::Refused(error.to_string());
    let mut archive = Archive::new(GzDecoder::new(file).take(MAX_BYTES));
    let mut links: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for (count, entry) in archive.entries().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        let refuse = |reason: &str| Failure::Refused(format!("{}: {reason}", path.display()));
        if count >= MAX_ENTRIES {
            return Err(refuse("too many entries"));
        }
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(refuse("not a path below the root"));
        }
        let place = dir.join(&path);
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            fs::create_dir_all(&place).map_err(Failure::Write)?;
        } else if kind.is_file() {
            create_parent(&place).map_err(Failure::Write)?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(damaged)?;
            let file = OpenOptions::new().write(true).create_new(true).open(&place);
            file.and_then(|mut file| file.write_all(&bytes))
                .map_err(Failure::Write)?;
        } else if kind.is_symlink() {
            let target = entry.link_name().map_err(damaged)?;
            let target = target.ok_or_else(|| refuse("a link without a target"))?;
            links.insert(place, target.into_owned());
        } else {
            return Err(refuse("not a file, directory or symbolic link"));
        }
    }
    for (place, target) in &links {
        if place
            .ancestors()
            .skip(1)
            .any(|parent| links.contains_key(parent))
        {
            let reason = format!("{}: below a link", place.display());
            return Err(Failure::Refused(reason));
        }
        create_parent(place).map_err(Failure::Write)?;
        std::os::unix::fs::symlink(target, place).map_err(Failure::Write)?;
    }
    Ok(())
}

fn create_parent(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}
