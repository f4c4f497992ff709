//! Saiga's drop-in of a unit (`man 5 systemd.unit`): its path, its text, and its removal.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::name::UnitName;
use crate::obstacle::Obstacle;
use crate::replace::FileError;
use crate::root::Root;
use crate::unit::ADMIN_FOLDER;

pub(crate) const FILE: &str = "saiga.conf";

pub(crate) fn path(root: &Root, name: &UnitName) -> PathBuf {
    root.file(ADMIN_FOLDER).join(format!("{name}.d")).join(FILE)
}

/// The text of a drop-in that sets LD_PRELOAD to `preload` and relaxes `obstacles`, with the reason
/// above each line.
pub(crate) fn text(preload: Option<&str>, obstacles: &[Obstacle]) -> String {
    let mut text =
        "# Written by `saiga enable`; removed by `saiga disable`.\n[Service]\n".to_owned();
    if let Some(preload) = preload {
        // A single percent sign would begin a specifier.
        let preload = preload.replace('%', "%%");
        text.push_str(&format!("Environment=\"LD_PRELOAD={preload}\"\n"));
    }
    for obstacle in obstacles {
        if let Some(line) = obstacle.relaxation() {
            text.push_str(&format!("# {obstacle}\n{line}\n"));
        }
    }
    text
}

/// Removes the drop-in, and its folder if that is empty then. False if there was none.
pub(crate) fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        result => result.map_err(FileError::remove(path))?,
    }
    if let Some(folder) = path.parent() {
        // Fails as long as the folder has other drop-ins.
        let _ = fs::remove_dir(folder);
    }
    Ok(true)
}

/// The names of the units that have a drop-in of Saiga's.
pub(crate) fn enabled(root: &Root) -> Vec<UnitName> {
    let Ok(entries) = fs::read_dir(root.file(ADMIN_FOLDER)) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.path().join(FILE).is_file())
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".d")?.parse().ok())
        .collect()
}
