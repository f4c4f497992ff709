//! Finds files that a plan would delete or hide: beside the data directory, at the mount points of
//! the plan, and behind links of the data directory.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::Data;
use crate::route::{RouteError, System};

/// Returns the first entry on the data directory's mount that is neither in the data directory nor
/// one of its ancestors. `lost+found` at the top does not count.
///
/// # Errors
/// The directory that cannot be read, and why.
pub(super) fn beside(
    system: &System,
    data: &Data<'_>,
) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    let point = &data.mount.point;
    let mut folder = point.clone();
    for name in data.dir.strip_prefix(point).into_iter().flatten() {
        let is_other = |entry: &OsStr| entry != name && (entry != "lost+found" || folder != *point);
        let entries = fs::read_dir(below(system, &folder)).and_then(Iterator::collect);
        let entries: Vec<fs::DirEntry> = entries.map_err(|error| (folder.clone(), error))?;
        let names = entries.iter().map(fs::DirEntry::file_name);
        if let Some(other) = names.filter(|entry| is_other(entry)).min() {
            return Ok(Some(folder.join(other)));
        }
        folder.push(name);
    }
    Ok(None)
}

/// Returns why a plan for `dir` cannot mount a file system at `place`; `None` if it can.
pub(super) fn taken(system: &System, dir: &Path, place: &Path) -> Option<String> {
    if dir.starts_with(place) || place.starts_with(dir) {
        return Some("overlaps the data directory".to_owned());
    }
    let mounts = system.mounts().unwrap_or_default();
    if mounts.iter().any(|mount| mount.point == place) {
        return Some("is already a mount point".to_owned());
    }
    let is_line_for = |line: &str| {
        let mut words = line.split_whitespace();
        let source = words.next().filter(|word| !word.starts_with('#'));
        source.is_some() && words.next().is_some_and(|point| Path::new(point) == place)
    };
    match system.read("etc/fstab") {
        Ok(text) if text.lines().any(is_line_for) => {
            return Some("is already in /etc/fstab".to_owned());
        }
        Err(RouteError::Read { error, .. }) if error.kind() != ErrorKind::NotFound => {
            return Some(format!(
                "may be in /etc/fstab, which cannot be read: {error}"
            ));
        }
        _ => {}
    }
    match fs::read_dir(below(system, place)) {
        Ok(mut entries) => {
            (entries.next().is_some()).then(|| "is a directory that is not empty".to_owned())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// Maps an absolute path into the root of `system`.
pub(super) fn below(system: &System, path: &Path) -> PathBuf {
    system.root().join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the files and directories outside `dir`, a path without links, to which links in `dir`
/// lead, sorted.
///
/// A dangling link holds no data and is left out.
///
/// # Errors
/// The directory that cannot be read, or the link that cannot be followed, and why.
pub fn outside(dir: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut targets = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder).and_then(Iterator::collect) {
            // A running server may have removed the directory.
            Err(error) if error.kind() == ErrorKind::NotFound && folder != dir => continue,
            entries => entries.map_err(|error| (folder, error))?,
        };
        let entries: Vec<fs::DirEntry> = entries;
        for entry in entries {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_symlink() => match path.canonicalize() {
                    Ok(target) if target.starts_with(dir) => {}
                    Ok(target) => targets.push(target),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err((path, error)),
                },
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err((path, error)),
            }
        }
    }
    targets.sort();
    Ok(targets)
}
