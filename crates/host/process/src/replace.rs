//! Writes files so that a reader finds all of the old or all of the new content, also after a
//! power failure.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;

/// A file without its final name, which is removed unless it gets that name.
#[derive(Debug)]
pub struct NewFile<'a> {
    path: &'a Path,
    file: NamedTempFile<File>,
}

impl<'a> NewFile<'a> {
    /// Creates an empty file in the folder of `path`. Its mode is `mode` less the umask.
    ///
    /// # Errors
    /// The folder is missing or not writable.
    pub fn beside(path: &'a Path, mode: u32) -> io::Result<Self> {
        // A random name that does not exist, so that a link at a known name cannot lead elsewhere.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        // Opened here: an error of `tempfile_in` would name the temporary file.
        let file = tempfile::Builder::new()
            .prefix(".saiga-")
            .make_in(folder(path), |temporary| options.open(temporary))?;
        Ok(Self { path, file })
    }

    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, which may be that of an older file, and waits until both are on the
    /// disk.
    ///
    /// # Errors
    /// No other file is left behind. If the folder cannot be synced, the file has its name already.
    pub fn replace(self) -> io::Result<()> {
        self.file().sync_all()?;
        self.file.persist(self.path)?;
        sync_folder(self.path)
    }
}

/// Replaces or creates the file `path`. An older file passes its permissions on, without setuid,
/// setgid and sticky bits; a new one has `mode` less the umask. On success, it is on the disk.
///
/// # Errors
/// As [`NewFile::replace`].
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = NewFile::beside(path, mode)?;
    // Before the content, which the older file may have kept from other users.
    if let Ok(old) = fs::metadata(path) {
        let mode = old.permissions().mode() & 0o777;
        new.file().set_permissions(Permissions::from_mode(mode))?;
    }
    new.file().write_all(bytes)?;
    new.replace()
}

/// Creates the file `path`, with `mode` less the umask; fails with `AlreadyExists` if it exists. On
/// success, it is on the disk.
///
/// # Errors
/// As [`NewFile::replace`].
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = NewFile::beside(path, mode)?;
    new.file().write_all(bytes)?;
    new.file().sync_all()?;
    new.file.persist_noclobber(path)?;
    sync_folder(path)
}

/// Replaces or creates the file `path`, with `mode` less the umask in both cases. Does not wait for
/// the disk: for figures that nobody needs after a power failure.
///
/// # Errors
/// The file is then unchanged, and no other file is left behind.
pub fn replace_in_cache(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = NewFile::beside(path, mode)?;
    new.file().write_all(bytes)?;
    new.file.persist(path)?;
    Ok(())
}

/// Renames the complete file `part` to `path`, and waits until both are on the disk.
///
/// # Errors
/// An error of the file system; the file may then have either name.
pub fn publish(part: &Path, path: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    fs::rename(part, path)?;
    sync_folder(path)
}

/// Waits until the directory entry of `path` is on the disk.
///
/// # Errors
/// The folder cannot be opened.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        // The mode of the older file, if there is one; that of the new one.
        for (text, old, expected) in [
            ("one", None, 0o600),
            ("two", Some(0o604), 0o604),
            // No umask applies, and no user gets the rights of another one.
            ("three", Some(0o4662), 0o662),
        ] {
            if let Some(old) = old {
                fs::set_permissions(&path, Permissions::from_mode(old)).unwrap();
            }
            replace(&path, text.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(mode(&path), expected, "{text}");
        }
        replace_in_cache(&path, b"four", 0o700).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "four");
        assert_eq!(mode(&path), 0o700);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_is_not_created_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        create(&path, b"first", 0o600).unwrap();
        let error = create(&path, b"second", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_no_file_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("kept"), "").unwrap();
        for write in [replace, create, replace_in_cache] {
            write(&path, b"text", 0o600).unwrap_err();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        publish(&dir.path().join("none"), &path).unwrap_err();
        let error = replace(&dir.path().join("no/file"), b"text", 0o600).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        drop(NewFile::beside(&path, 0o600).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_part_gets_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let (part, path) = (dir.path().join("a.part"), dir.path().join("a"));
        fs::write(&part, "text").unwrap();
        publish(&part, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        assert!(!part.exists());
    }
}
