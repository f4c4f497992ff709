//! Writes files atomically: a reader sees the old file or the new file, never a part of either.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use saiga_process::replace::replace;

/// A folder or file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder cannot be created, or no file can be created in it.
    #[error("cannot write into {}: {error}; choose another folder with --out", dir.display())]
    Folder { dir: PathBuf, error: io::Error },
    /// A file could not be written although the folder was writable before.
    #[error("cannot write {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
}

/// Creates the folder if it does not exist, and checks that a file can be created in it.
pub fn claim_folder(dir: &Path) -> Result<(), OutputError> {
    let folder = |error| OutputError::Folder {
        dir: dir.to_owned(),
        error,
    };
    fs::create_dir_all(dir).map_err(folder)?;
    tempfile::NamedTempFile::new_in(dir).map_err(folder)?;
    Ok(())
}

/// Replaces the contents of `dir/name` by `text` atomically, and returns the path. An older file
/// passes its permissions on.
///
/// # Errors
/// Returns [`OutputError::File`]; the old file is then unchanged.
pub fn write_file(dir: &Path, name: &str, text: &str) -> Result<PathBuf, OutputError> {
    let path = dir.join(name);
    match replace(&path, text.as_bytes(), 0o644) {
        Ok(()) => Ok(path),
        Err(error) => Err(OutputError::File { path, error }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_atomically_and_readable_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let nested = dir.path().join("a/b");
        claim_folder(&nested).unwrap();
        write_file(&nested, "result.json", "old").unwrap();
        let path = write_file(&nested, "result.json", "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o044,
            0o044
        );
        assert_eq!(
            fs::read_dir(&nested).unwrap().count(),
            1,
            "no temporary file stays"
        );
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = claim_folder(&file.join("out")).unwrap_err().to_string();
        assert!(
            error.contains("file/out") && error.contains("--out"),
            "{error}"
        );
    }
}
