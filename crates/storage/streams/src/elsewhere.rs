//! Finds files of a MySQL or MariaDB server outside the labelled directories: logs, undo
//! tablespaces, doublewrite files.
//!
//! Sources are the index files of binary and relay logs in the data directory, and the options of
//! the running server: its command line and option files. If no server is running, the default
//! option files are read; their options count only if the data directory in these files is the
//! same. Settings made by SET PERSIST are not read.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::links;
use crate::route::System;
use crate::tree::{self, Found};

/// Maximum number of bytes that are read from an index file.
const INDEX_BYTES: u64 = 1 << 20;
/// The default data directory of the servers of Linux distributions.
const DEFAULT_DIR: &str = "/var/lib/mysql";
const BINARY_LOGS: &str = "binary logs";
const RELAY_LOGS: &str = "relay logs";

/// Each option, the kind of files that it places, and whether its value is a path of files. The
/// values of the other options are directories.
const OPTIONS: [(&str, &str, bool); 5] = [
    ("log-bin", BINARY_LOGS, true),
    ("relay-log", RELAY_LOGS, true),
    ("innodb-undo-directory", "undo tablespaces", false),
    ("innodb-log-group-home-dir", "redo logs", false),
    ("innodb-doublewrite-dir", "doublewrite files", false),
];
/// Names of server programs. Others begin with the same letters: mysqld_safe, mysqld_exporter.
const SERVERS: [&str; 3] = ["mysqld", "mysqld-debug", "mariadbd"];
/// Prefixes of options that select the option files, and the sections in them. Relative paths are
/// left out: they are not valid in this process.
const SELECTORS: [&str; 3] = [
    "--defaults-file=/",
    "--defaults-extra-file=/",
    "--defaults-group-suffix=",
];

/// A directory outside the labelled ones with files of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The kind of files, in the plural.
    pub what: &'static str,
    pub dir: PathBuf,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, dir } = self;
        let dir = dir.display();
        write!(
            f,
            "{what} are in {dir}, which is not labelled; give this directory, too"
        )
    }
}

/// Returns the directories outside `dirs` with files of the servers whose data directories are in
/// `dirs`. Each pair of directory and kind of files occurs once.
///
/// `defaults` takes the options that select option files, and returns the options in these files,
/// one per string.
pub fn find(
    dirs: &[PathBuf],
    system: &System,
    defaults: &dyn Fn(&[String]) -> Vec<String>,
) -> Vec<Elsewhere> {
    let mut seen: Vec<Elsewhere> = Vec::new();
    let mut all = Vec::new();
    for dir in dirs.iter().filter(|dir| is_data(dir)) {
        let options = options(dir, system, defaults);
        let configured = OPTIONS.iter().filter_map(|(option, what, is_file)| {
            let value = value(&options, option).filter(|value| !value.is_empty())?;
            let path = dir.join(value);
            let dir = if *is_file {
                path.parent()?.to_owned()
            } else {
                path
            };
            Some(Elsewhere { what, dir })
        });
        for mut found in indexed(dir).into_iter().chain(configured) {
            found.dir = real(&found.dir);
            // Once for all logs of a directory: the check may walk a whole tree.
            if seen.contains(&found) {
                continue;
            }
            seen.push(found.clone());
            if !is_labelled(&found.dir, dirs) {
                all.push(found);
            }
        }
    }
    all
}

/// Whether a directory has the system tablespace or the system schema of MySQL or MariaDB.
fn is_data(dir: &Path) -> bool {
    dir.join("ibdata1").exists() || dir.join("mysql").is_dir()
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the directory of each log that an index file in `dir` lists.
fn indexed(dir: &Path) -> Vec<Elsewhere> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let indexes = entries.map(|entry| entry.path());
    let indexes = indexes.filter(|path| path.extension().is_some_and(|ending| ending == "index"));
    let mut found = Vec::new();
    for index in indexes.filter(|path| path.is_file()) {
        let mut text = String::new();
        let file = File::open(&index);
        let read = file.and_then(|file| file.take(INDEX_BYTES).read_to_string(&mut text));
        if read.is_err() {
            continue;
        }
        for log in text.lines().map(Path::new) {
            let is_numbered = log.extension().is_some_and(|ending| {
                ending.len() >= 6 && ending.as_encoded_bytes().iter().all(u8::is_ascii_digit)
            });
            let name = log.file_name().unwrap_or_default().to_string_lossy();
            if let Some(parent) = log.parent().filter(|_| is_numbered) {
                found.push(Elsewhere {
                    what: if name.contains("relay") {
                        RELAY_LOGS
                    } else {
                        BINARY_LOGS
                    },
                    dir: dir.join(parent),
                });
            }
        }
    }
    found
}

/// Returns the options of the server with the data directory `dir`. If an option occurs more than
/// once, its last value counts.
fn options(
    dir: &Path,
    system: &System,
    defaults: &dyn Fn(&[String]) -> Vec<String>,
) -> Vec<String> {
    if let Some(own) = command_line(dir, system) {
        let selectors = own.iter().filter(|option| {
            let mut all = SELECTORS.iter();
            all.any(|start| option.starts_with(start))
        });
        let selectors: Vec<String> = selectors.cloned().collect();
        let has_files = !own.iter().any(|option| option == "--no-defaults");
        let mut all = if has_files {
            defaults(&selectors)
        } else {
            Vec::new()
        };
        all.extend(own);
        return all;
    }
    let all = defaults(&[]);
    let data = value(&all, "datadir").unwrap_or(DEFAULT_DIR);
    if real(Path::new(data)) == real(dir) {
        all
    } else {
        Vec::new()
    }
}

/// Returns the last value of the option `name`: `None` if the option is not given, an empty string
/// if it is given without a value.
fn value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    options.iter().rev().find_map(|option| {
        let option = option.strip_prefix("--")?;
        let option = option.strip_prefix("loose-").unwrap_or(option);
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        (key.replace('_', "-") == name).then_some(value)
    })
}

/// Returns the command line of the server whose working directory is `dir`.
fn command_line(dir: &Path, system: &System) -> Option<Vec<String>> {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let own = dir.metadata().map(identity).ok()?;
    let entries = fs::read_dir(system.root().join("proc")).ok()?.flatten();
    let mut lines = entries.filter_map(|process| {
        let process = process.path();
        let cwd = process.join("cwd").metadata().map(identity).ok()?;
        let line = (cwd == own).then(|| fs::read(process.join("cmdline")).ok())??;
        let line = String::from_utf8_lossy(&line);
        let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
        let program = Path::new(words.first()?).file_name()?.to_string_lossy();
        SERVERS.contains(&program.as_ref()).then_some(words)
    });
    lines.next()
}

/// Whether `place` is in a labelled directory, or in a directory to which a link in a labelled
/// directory leads.
fn is_labelled(place: &Path, dirs: &[PathBuf]) -> bool {
    dirs.iter().any(|dir| {
        let dir = real(dir);
        place.starts_with(&dir) || leads_to(&dir, place)
    })
}

/// Whether a link or mount point in `dir` leads to `place` or to a directory above it.
fn leads_to(dir: &Path, place: &Path) -> bool {
    let Ok(open) = tree::open_dir(dir) else {
        return false;
    };
    let mut is_found = false;
    tree::walk(open.as_fd(), Path::new(""), &mut |below, found| {
        if matches!(found, Found::Elsewhere) {
            let end = links::follow(&dir.join(below));
            is_found = end.is_ok_and(|end| place.starts_with(end.path));
        }
        if is_found {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    is_found
}

#[cfg(test)]
mod tests;
