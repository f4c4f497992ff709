//! Records a machine in an archive: exactly the files that reading it reads, scrubbed.
//!
//! The archive is a `.tar.gz` with paths as on the host. Times, owners and modes are not recorded.
//! Unpacked, or given to `--sysroot`, it is read like the host.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use saiga_process::root::Root;
use tar::{Builder, EntryType, Header};

use crate::machine::Machine;
use crate::read::{ReadError, record};
use crate::scrub;
use crate::source::{Entry, Recording};

/// Why a machine cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{path} exists; give another name")]
    Exists { path: PathBuf },
    #[error("cannot write {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
}

/// What an archive contains.
#[derive(Debug)]
pub struct Collected {
    /// The machine as it was read, before scrubbing.
    pub machine: Machine,
    pub files: usize,
    /// Size of the archive.
    pub bytes: usize,
}

/// Writes the machine below `root` to the new file `archive`, readable for its owner only.
///
/// # Errors
/// The machine cannot be read, `archive` exists, or it cannot be written.
pub fn collect(root: &Root, archive: &Path) -> Result<Collected, CollectError> {
    let failed = |error: io::Error| {
        let path = archive.to_owned();
        if error.kind() == io::ErrorKind::AlreadyExists {
            CollectError::Exists { path }
        } else {
            CollectError::Write { path, error }
        }
    };
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    // Opened first, so that a wrong name is reported before the work.
    let mut file = options.open(archive).map_err(failed)?;
    let written = record(root)
        .map_err(CollectError::from)
        .and_then(|(machine, recording)| {
            let host = root.text("/proc/sys/kernel/hostname").ok().flatten();
            let recording = scrub::recording(recording, host.as_deref());
            let is_file = |entry: &&Entry| matches!(entry, Entry::File(_));
            let files = recording.values().filter(is_file).count();
            let bytes = pack(&recording).map_err(failed)?;
            file.write_all(&bytes)
                .and_then(|()| file.sync_all())
                .map_err(failed)?;
            Ok(Collected {
                machine,
                files,
                bytes: bytes.len(),
            })
        });
    if written.is_err() {
        // The error is reported. A half-written archive has no use.
        let _ = std::fs::remove_file(archive);
    }
    written
}

fn pack(recording: &Recording) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, entry) in recording {
        if path.as_os_str().is_empty() {
            continue;
        }
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        match entry {
            Entry::File(bytes) => {
                header.set_entry_type(EntryType::Regular);
                header.set_mode(0o644);
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, bytes.as_slice())?;
            }
            Entry::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                archive.append_link(&mut header, path, target)?;
            }
            Entry::Directory => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                archive.append_data(&mut header, path, io::empty())?;
            }
        }
    }
    archive.into_inner()?.finish()
}
