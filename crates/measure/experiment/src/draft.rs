//! Files that are written to `--out` before a campaign starts, and removed if none starts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::campaign;
use crate::output::{self, OutputError};

/// The result directory and the files that this process has created in it. On drop, removes these
/// files, and the directory if it is new, unless the directory has a campaign.
#[derive(Debug)]
pub struct Draft {
    dir: PathBuf,
    is_new: bool,
    files: Vec<PathBuf>,
}

impl Draft {
    /// Creates the directory if necessary.
    ///
    /// # Errors
    /// Fails if no file can be created in it.
    pub fn in_folder(dir: &Path) -> Result<Self, OutputError> {
        let is_new = !dir.exists();
        output::claim_folder(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            is_new,
            files: Vec::new(),
        })
    }

    /// Writes a file; one that existed before is replaced, and is not removed on drop.
    ///
    /// # Errors
    /// Returns [`OutputError::File`].
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), OutputError> {
        let is_new = !self.dir.join(name).exists();
        let path = output::write_file(&self.dir, name, text)?;
        self.files.extend(is_new.then_some(path));
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.dir.join(campaign::FILE).exists() {
            return;
        }
        for file in &self.files {
            // Errors are ignored: the error that led here names the directory.
            let _ = fs::remove_file(file);
        }
        if self.is_new {
            // Fails, as intended, if another process has put a file there.
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_are_removed_unless_a_campaign_has_begun() {
        let root = tempfile::tempdir().unwrap();
        let drafted = |name: &str| {
            let dir = root.path().join(name);
            let mut draft = Draft::in_folder(&dir).unwrap();
            draft.write("experiment.toml", "new").unwrap();
            (dir, draft)
        };
        let (dir, draft) = drafted("none");
        drop(draft);
        assert!(!dir.exists());

        let (dir, draft) = drafted("shared");
        fs::write(dir.join("other"), "").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);

        let (dir, draft) = drafted("begun");
        fs::write(dir.join(campaign::FILE), "").unwrap();
        drop(draft);
        drop(drafted("begun"));
        fs::remove_file(dir.join(campaign::FILE)).unwrap();
        drop(drafted("begun"));
        // The last draft did not create this file.
        assert!(dir.join("experiment.toml").exists());
    }
}
