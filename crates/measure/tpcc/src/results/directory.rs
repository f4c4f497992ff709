//! The result directory of a run, and the result file of a worker.
//!
//! Only the owner can read the results. A run never overwrites the results of another run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use saiga_process::replace;

use crate::db::value::Stamp;

/// A directory that this run has created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    path: PathBuf,
}

/// Why a directory or a file of results could not be created or written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// An earlier or a concurrent run created the directory.
    #[error(
        "the result directory {} exists already, from an earlier run or one in progress; use another \
         name, or a name with the time in it (resultDirectory=result_%tY-%tm-%td_%tH%tM%tS)",
        path.display()
    )]
    Taken { path: PathBuf },
    /// Another worker with the same number has written its file, or has claimed it.
    #[error(
        "{} exists already: another worker with this number has run, or runs, with this --out; remove \
         it if it is left from an earlier run",
        path.display()
    )]
    WorkerTaken { path: PathBuf },
    #[error(
        "resultDirectory={pattern} has %t{letter}; known are %tY %ty %tm %td %tH %tM %tS %tj %ts"
    )]
    Pattern {
        pattern: String,
        /// The character after `%t`.
        letter: String,
    },
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The directory or file.
        path: PathBuf,
        error: io::Error,
    },
}

/// Replaces `%tY` and similar codes in `pattern` with parts of a date, as BenchmarkSQL does.
/// `local_s` is the local time in seconds since 1970. Fails with [`DirectoryError::Pattern`].
pub fn expand(pattern: &str, local_s: i64) -> Result<PathBuf, DirectoryError> {
    let Stamp {
        date: (year, month, day),
        time: (hour, minute, second),
    } = Stamp::of(local_s);
    let (mut path, mut rest) = (String::new(), pattern);
    while let Some((before, after)) = rest.split_once("%t") {
        path.push_str(before);
        let letter = after.chars().next();
        path.push_str(&match letter {
            Some('Y') => format!("{year:04}"),
            Some('y') => format!("{:02}", year.rem_euclid(100)),
            Some('m') => format!("{month:02}"),
            Some('d') => format!("{day:02}"),
            Some('H') => format!("{hour:02}"),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{second:02}"),
            Some('j') => format!("{:03}", day_of_year(local_s, year)),
            Some('s') => local_s.to_string(),
            other => {
                return Err(DirectoryError::Pattern {
                    pattern: pattern.to_owned(),
                    letter: other.map(String::from).unwrap_or_default(),
                });
            }
        });
        rest = &after[1..];
    }
    path.push_str(rest);
    Ok(PathBuf::from(path))
}

fn day_of_year(local_s: i64, year: i64) -> i64 {
    let day = local_s.div_euclid(86_400);
    let earlier = (0..366).take_while(|back| Stamp::of((day - back) * 86_400).date.0 == year);
    i64::try_from(earlier.count()).unwrap_or(0)
}

impl Directory {
    /// Creates the directory `path` and its subdirectory `data`. Fails with
    /// [`DirectoryError::Taken`] if `path` exists.
    pub fn create(path: PathBuf) -> Result<Self, DirectoryError> {
        let fail = |path: &Path, error| DirectoryError::File {
            path: path.to_owned(),
            error,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| fail(parent, error))?;
        }
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        // If two runs use the same path at the same time, only one creates the directory.
        match builder.create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(DirectoryError::Taken { path });
            }
            Err(error) => return Err(DirectoryError::File { path, error }),
        }
        let data = path.join("data");
        builder.create(&data).map_err(|error| fail(&data, error))?;
        Ok(Self { path })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory if it contains only what [`create`](Self::create) made.
    pub fn remove_if_empty(&self) {
        for path in [&self.path.join("data"), &self.path] {
            // The removal fails if there are other files: these belong to the user.
            let _ = fs::remove_dir(path);
        }
    }

    /// Creates a file in the directory. Fails if the file exists.
    pub fn file(&self, name: &str) -> Result<File, DirectoryError> {
        let path = self.path.join(name);
        own_file(&path).map_err(|error| DirectoryError::File { path, error })
    }

    /// Writes a new file, which others see only when it is complete. Fails if the file exists.
    pub fn write(&self, name: &str, text: &str) -> Result<(), DirectoryError> {
        let path = self.path.join(name);
        replace::create(&path, text.as_bytes(), 0o600)
            .map_err(|error| DirectoryError::File { path, error })
    }
}

/// Creates a new file that only its owner can read.
fn own_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The result file of one worker. A file `worker-N.json.part` claims it while the worker runs.
#[derive(Debug)]
pub struct WorkerFile {
    part: PathBuf,
    path: PathBuf,
}

impl WorkerFile {
    /// Claims `worker-N.json` in a directory that several hosts may share. Fails with
    /// [`DirectoryError::WorkerTaken`] if the file exists or is claimed.
    pub fn claim(dir: &Path, index: u32) -> Result<Self, DirectoryError> {
        let fail = |path: &Path, error| DirectoryError::File {
            path: path.to_owned(),
            error,
        };
        fs::create_dir_all(dir).map_err(|error| fail(dir, error))?;
        let path = dir.join(format!("worker-{index}.json"));
        let part = dir.join(format!("worker-{index}.json.part"));
        if path.exists() {
            return Err(DirectoryError::WorkerTaken { path });
        }
        match own_file(&part) {
            Ok(_) => Ok(Self { part, path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DirectoryError::WorkerTaken { path: part })
            }
            Err(error) => Err(fail(&part, error)),
        }
    }

    /// Writes the file atomically.
    pub fn write(&self, text: &str) -> Result<&Path, DirectoryError> {
        let Self { part, path } = self;
        match fs::write(part, text).and_then(|()| replace::publish(part, path)) {
            Ok(()) => Ok(path),
            Err(error) => Err(DirectoryError::File {
                path: path.clone(),
                error,
            }),
        }
    }
}

impl Drop for WorkerFile {
    fn drop(&mut self) {
        // After `write`, this file no longer exists.
        let _ = fs::remove_file(&self.part);
    }
}

/// Returns `path`, or a name such as `path_2` if a previous database of this experiment has the
/// same directory. This happens if props files differ only in the port.
#[must_use]
pub fn beside(path: PathBuf, taken: &[PathBuf]) -> PathBuf {
    let numbered = (2..).map(|number| {
        let mut name = path.clone().into_os_string();
        name.push(format!("_{number}"));
        PathBuf::from(name)
    });
    let mut all = std::iter::once(path.clone()).chain(numbered);
    all.find(|path| !taken.contains(path)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_contain_the_time() {
        let text = |pattern| expand(pattern, 1_763_690_459).map(|path| path.display().to_string());
        let usual = "my_result_%tY-%tm-%td_%tH%tM%tS";
        assert_eq!(text(usual).unwrap(), "my_result_2025-11-21_020059");
        assert_eq!(text("%ty_%tj").unwrap(), "25_325");
        assert_eq!(text("plain 100%").unwrap(), "plain 100%");
        let said = text("x%tQ").unwrap_err().to_string();
        assert!(said.starts_with("resultDirectory=x%tQ has %tQ"), "{said}");
    }

    #[test]
    fn a_directory_belongs_to_one_run_and_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/result");
        let first = Directory::create(path.clone()).unwrap();
        first.write("run.properties", "x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&path.join("run.properties"))),
            (0o700, 0o600)
        );
        let said = Directory::create(path.clone()).unwrap_err().to_string();
        assert!(said.contains("a/result exists already"), "{said}");
        first.remove_if_empty();
        assert!(path.join("run.properties").exists());
        fs::remove_file(path.join("run.properties")).unwrap();
        first.remove_if_empty();
        assert!(!path.exists());
    }

    #[test]
    fn a_number_belongs_to_one_worker() {
        let dir = tempfile::tempdir().unwrap();
        let first = WorkerFile::claim(dir.path(), 2).unwrap();
        assert!(WorkerFile::claim(dir.path(), 2).is_err());
        assert!(WorkerFile::claim(dir.path(), 1).is_ok());
        first.write("{}").unwrap();
        drop(first);
        let said = WorkerFile::claim(dir.path(), 2).unwrap_err().to_string();
        assert!(said.contains("worker-2.json exists already"), "{said}");
        drop(WorkerFile::claim(dir.path(), 3).unwrap());
        assert!(
            WorkerFile::claim(dir.path(), 3).is_ok(),
            "a worker that failed leaves no claim"
        );
    }
}
