//! A fake `/proc` and `/sys` for tests.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::config::Roots;
use crate::table::Table;

use super::text::Files;

/// A temporary directory with the directories `proc` and `sys`.
pub(crate) struct Host {
    directory: TempDir,
}

impl Host {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["proc", "sys"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots {
            proc: self.directory.path().join("proc"),
            sys: self.directory.path().join("sys"),
        }
    }

    pub(crate) fn files(&self) -> Files {
        Files::new(self.roots())
    }

    /// Writes a file of `/proc`.
    pub(crate) fn proc(&self, name: &str, text: &str) {
        write(&self.roots().proc.join(name), text);
    }

    /// Writes a file of `/sys`.
    pub(crate) fn sys(&self, name: &str, text: &str) {
        write(&self.roots().sys.join(name), text);
    }

    /// Removes a file or directory of `/proc`.
    pub(crate) fn remove(&self, name: &str) {
        let path = self.roots().proc.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// Copies a captured tree over this one.
    pub(crate) fn copy(&self, tree: &Path) {
        copy(tree, self.directory.path());
    }

    /// A cell of the row. Panics if there is no column `name`.
    pub(crate) fn cell(&self, table: &Table, name: &str) -> Option<f64> {
        let index = table.names().iter().position(|known| known == name);
        table.cells()[index.unwrap_or_else(|| panic!("no column {name}: {:?}", table.names()))]
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
