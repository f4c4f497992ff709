//! The one file that `saiga enable` writes and `saiga disable` removes.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where administrators' units and drop-ins are.
const SYSTEM: &str = "etc/systemd/system";
/// Its name in the unit's folder of drop-ins.
pub(super) const FILE: &str = "saiga.conf";

/// The drop-in of the unit `name`.
pub(super) fn path(root: &Path, name: &str) -> PathBuf {
    root.join(SYSTEM).join(format!("{name}.d")).join(FILE)
}

/// What is in it. A percent sign begins a specifier (`man 5 systemd.unit`), so it is doubled.
pub(super) fn text(preload: &str) -> String {
    let preload = preload.replace('%', "%%");
    format!(
        "# Written by `saiga enable`; removed by `saiga disable`.\n[Service]\nEnvironment=\"LD_PRELOAD={preload}\"\n"
    )
}

/// Writes the drop-in so that a reader sees all of it or none.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a drop-in is in a folder")?;
    let failed = || format!("cannot write {}; are you root?", path.display());
    fs::create_dir_all(folder).with_context(failed)?;
    let fresh = folder.join(format!(".{FILE}.{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&fresh)
        .with_context(failed)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // What matters is the error that stopped us.
        let _ = fs::remove_file(&fresh);
    }
    written.with_context(failed)
}

/// Removes the drop-in, and its folder when nothing else is in it. False when there was none.
pub(super) fn remove(path: &Path) -> anyhow::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        result => {
            result.with_context(|| format!("cannot remove {}; are you root?", path.display()))?
        }
    }
    if let Some(folder) = path.parent() {
        // Other drop-ins keep their folder.
        let _ = fs::remove_dir(folder);
    }
    Ok(true)
}

/// The units that are enabled below `root`, sorted.
pub(crate) fn enabled(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(SYSTEM)) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join(FILE).is_file())
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".d")?.to_owned()))
        .collect();
    names.sort();
    names
}
