//! The directory of journals: `/var/lib/saiga/tune` unless told otherwise.
//!
//! A journal is a file of lines that only grows. Each line is on the disk before the next change.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use saiga_process::lock::{self, FlockOperation};
use saiga_process::replace::sync_folder;

/// Where journals are unless another directory is given.
pub const DIRECTORY: &str = "/var/lib/saiga/tune";

const SUFFIX: &str = ".jsonl";

/// Journals by id. Ids sort by age.
pub trait Store: fmt::Debug {
    /// The ids of all journals, the oldest first.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn ids(&self) -> io::Result<Vec<String>>;

    /// The text of a journal. Its last line may be torn.
    ///
    /// # Errors
    /// There is no such journal, or it cannot be read.
    fn read(&self, id: &str) -> io::Result<String>;

    /// Creates an empty journal with room for `bytes`, so that undo can write on a full disk.
    ///
    /// # Errors
    /// The journal exists, or the disk is full.
    fn create(&mut self, id: &str, bytes: u64) -> io::Result<()>;

    /// Appends a line and waits until it is on the disk. A torn line is replaced.
    ///
    /// # Errors
    /// The line is not, or only in part, on the disk.
    fn append(&mut self, id: &str, line: &str) -> io::Result<()>;
}

/// Why the journals cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another saiga tune is at work (it holds {})", .0.display())]
    Busy(PathBuf),
    #[error("other users may write to {}: change its owner to root and its mode to 0700", .0.display())]
    Writable(PathBuf),
    #[error("cannot use {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Journals in a directory that this process has locked.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Holds the lock.
    _lock: Option<File>,
}

impl Directory {
    /// Creates the directory if needed and takes its lock, which is held until the value is
    /// dropped.
    ///
    /// # Errors
    /// Another process holds the lock, other users may write there, or the file system refuses.
    pub fn lock(path: &Path) -> Result<Self, OpenError> {
        let io = |error| OpenError::Io {
            path: path.to_owned(),
            error,
        };
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(io)?;
        let metadata = fs::metadata(path).map_err(io)?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_own || metadata.mode() & 0o022 != 0 {
            return Err(OpenError::Writable(path.to_owned()));
        }
        let lock = path.join("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&lock).map_err(io)?;
        let operation = FlockOperation::NonBlockingLockExclusive;
        if !lock::try_lock(&file, operation).map_err(io)? {
            return Err(OpenError::Busy(lock));
        }
        // A journal that a power failure takes would leave files that nothing removes.
        for folder in path.ancestors().take(3) {
            sync_folder(folder).map_err(io)?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: Some(file),
        })
    }

    /// For reading only, without the lock.
    #[must_use]
    pub fn unlocked(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            _lock: None,
        }
    }

    fn file(&self, id: &str) -> io::Result<PathBuf> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if id.is_empty() || !id.chars().all(is_id) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.path.join(format!("{id}{SUFFIX}")))
    }
}

impl Store for Directory {
    fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            ids.extend(name.strip_suffix(SUFFIX).map(str::to_owned));
        }
        ids.sort();
        Ok(ids)
    }

    fn read(&self, id: &str) -> io::Result<String> {
        let bytes = fs::read(self.file(id)?)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn create(&mut self, id: &str, bytes: u64) -> io::Result<()> {
        let path = self.file(id)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        // A file system without reservations is used without.
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        let reserved = rustix::fs::fallocate(&file, flags, 0, bytes);
        if let Err(error @ rustix::io::Errno::NOSPC) = reserved {
            fs::remove_file(&path)?;
            return Err(error.into());
        }
        file.sync_all()?;
        sync_folder(&path)
    }

    fn append(&mut self, id: &str, line: &str) -> io::Result<()> {
        let path = self.file(id)?;
        let mut file = OpenOptions::new().read(true).write(true).open(&path)?;
        let end = complete(&mut file)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }
}

/// The length of a file up to its last complete line; what follows is cut off.
fn complete(file: &mut File) -> io::Result<u64> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let length = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    if length < bytes.len() {
        // Not `set_len` alone when nothing is torn: it would free the reserved blocks.
        file.set_len(length as u64)?;
    }
    Ok(length as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn lines_are_kept_and_a_torn_line_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/tune");
        let mut store = Directory::lock(&path).unwrap();
        assert!(store.ids().unwrap().is_empty());
        store.create("0001-ab", 4096).unwrap();
        assert_eq!(store.read("0001-ab").unwrap(), "");
        store.append("0001-ab", "one").unwrap();
        let file = path.join("0001-ab.jsonl");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        fs::write(&file, "one\ntw").unwrap();
        store.append("0001-ab", "three").unwrap();
        assert_eq!(store.read("0001-ab").unwrap(), "one\nthree\n");
        assert_eq!(store.ids().unwrap(), ["0001-ab"]);
        assert!(store.create("0001-ab", 1).is_err());
        for id in ["", "../lock", "0002-ab"] {
            assert!(store.read(id).is_err(), "{id}");
        }
    }

    #[test]
    fn one_process_at_a_time_uses_a_directory_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tune");
        let first = Directory::lock(&path).unwrap();
        assert!(matches!(Directory::lock(&path), Err(OpenError::Busy(_))));
        drop(first);
        drop(Directory::lock(&path).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            Directory::lock(&path),
            Err(OpenError::Writable(_))
        ));
        assert!(
            Directory::unlocked(&dir.path().join("none"))
                .ids()
                .unwrap()
                .is_empty()
        );
    }
}
