//! What lies where a plan erases, where it mounts, and where links of a data directory lead.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::Data;
use crate::route::{RouteError, System};

/// The first entry on the mount of a data directory that is not on the way to that directory. Of
/// the entries at the top, `lost+found` does not count.
///
/// # Errors
/// A directory that cannot be read, and why.
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

/// Why a plan for `dir` cannot mount a file system at `place`, if it cannot.
pub(super) fn taken(system: &System, dir: &Path, place: &Path) -> Option<String> {
    if dir.starts_with(place) || place.starts_with(dir) {
        return Some("is not apart from the data directory".to_owned());
    }
    let mounts = system.mounts().unwrap_or_default();
    if mounts.iter().any(|mount| mount.point == place) {
        return Some("is a mount point already".to_owned());
    }
    let is_line_for = |line: &str| {
        let mut words = line.split_whitespace();
        let source = words.next().filter(|word| !word.starts_with('#'));
        source.is_some() && words.next().is_some_and(|point| Path::new(point) == place)
    };
    match system.read("etc/fstab") {
        Ok(text) if text.lines().any(is_line_for) => {
            return Some("is in /etc/fstab already".to_owned());
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
        Err(error) => Some(format!("cannot be looked at: {error}")),
    }
}

/// A path of this system below its root.
pub(super) fn below(system: &System, path: &Path) -> PathBuf {
    system.root().join(path.strip_prefix("/").unwrap_or(path))
}

/// The files and directories outside of `dir`, a path without links, to which links below it lead.
///
/// A link to nothing holds no data and is left out.
///
/// # Errors
/// A directory that cannot be read or a link that cannot be followed, and why.
pub fn outside(dir: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut targets = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder).and_then(Iterator::collect) {
            // The server goes on, and removes directories.
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
