//! Whole units of Saiga's, such as that of `saiga streams unit`. A unit is replaced or removed only
//! if its first line marks it as Saiga's.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::name::UnitName;
use crate::replace::{self, FileError};
use crate::root::Root;
use crate::unit::{self, ADMIN_FOLDER};

/// A unit in /etc/systemd/system that Saiga writes as a whole.
#[derive(Debug)]
pub struct OwnUnit<'a> {
    pub root: &'a Root,
    pub name: &'a UnitName,
    /// The first line of the unit.
    pub mark: &'a str,
}

/// A unit of Saiga's that cannot be written or removed.
#[derive(Debug, thiserror::Error)]
pub enum OwnUnitError {
    #[error("{} is not Saiga's: its first line is not `{mark}`; choose another name", file.display())]
    Foreign { file: PathBuf, mark: String },
    #[error("there is a unit {0} already, which this one would hide; choose another name")]
    Hides(UnitName),
    #[error(transparent)]
    File(#[from] FileError),
}

impl OwnUnit<'_> {
    /// Writes the unit with `text`, which begins with the mark, and returns its path. It is neither
    /// enabled nor started.
    pub fn install(&self, text: &str) -> Result<PathBuf, OwnUnitError> {
        if !self.is_installed()? && unit::exists(self.root, self.name) {
            return Err(OwnUnitError::Hides(self.name.clone()));
        }
        replace::write(&self.file(), text)?;
        Ok(self.file())
    }

    /// Removes the unit and the links that enable it, and returns their paths. Without such a unit,
    /// nothing is removed.
    pub fn remove(&self) -> Result<Vec<PathBuf>, OwnUnitError> {
        if !self.is_installed()? {
            return Ok(Vec::new());
        }
        let mut files = self.links();
        files.push(self.file());
        for file in &files {
            fs::remove_file(file).map_err(FileError::remove(file))?;
        }
        Ok(files)
    }

    pub fn file(&self) -> PathBuf {
        self.folder().join(self.name.as_str())
    }

    fn folder(&self) -> PathBuf {
        self.root.file(ADMIN_FOLDER)
    }

    fn is_installed(&self) -> Result<bool, OwnUnitError> {
        let file = self.file();
        match fs::read_to_string(&file) {
            Ok(text) if text.lines().next() == Some(self.mark) => Ok(true),
            Ok(_) => Err(OwnUnitError::Foreign {
                file,
                mark: self.mark.to_owned(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FileError::Read { file, error }.into()),
        }
    }

    /// The links by which targets want the unit.
    fn links(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let folders = entries.map(|entry| entry.path());
        let wants = folders.filter(|path| path.extension().is_some_and(|it| it == "wants"));
        let links = wants.map(|folder| folder.join(self.name.as_str()));
        links.filter(|link| link.is_symlink()).collect()
    }
}
