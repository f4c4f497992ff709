//! The drop-in of a unit that `saiga enable` writes and `saiga disable` removes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::file::{self, Like, Rights};

/// Where administrators' units and drop-ins are.
const SYSTEM: &str = "etc/systemd/system";
/// Its name in the unit's folder of drop-ins.
pub(super) const FILE: &str = "saiga.conf";

/// The drop-in of the unit `name`.
pub(super) fn path(root: &Path, name: &str) -> PathBuf {
    root.join(SYSTEM).join(format!("{name}.d")).join(FILE)
}

/// What is in it: the library, unless the service gets that by other means, and what it relaxes,
/// each line below its reason. A percent sign begins a specifier (`man 5 systemd.unit`), so it is
/// doubled.
pub(super) fn text(preload: Option<&str>, reliefs: &[(&str, &str)]) -> String {
    let mut text =
        "# Written by `saiga enable`; removed by `saiga disable`.\n[Service]\n".to_owned();
    if let Some(preload) = preload {
        let preload = preload.replace('%', "%%");
        text.push_str(&format!("Environment=\"LD_PRELOAD={preload}\"\n"));
    }
    for (line, reason) in reliefs {
        text.push_str(&format!("# {reason}\n{line}\n"));
    }
    text
}

/// Writes the drop-in so that a reader sees all of it or none.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}; are you root?", path.display());
    let folder = path.parent().context("a drop-in is in a folder")?;
    fs::create_dir_all(folder).with_context(failed)?;
    let like = Like {
        mode: 0o644,
        owner: None,
    };
    file::replace(path, text.as_bytes(), like, Rights::Caller).with_context(failed)
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

/// The units that have a drop-in of ours below `root`.
pub(super) fn enabled(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(SYSTEM)) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join(FILE).is_file())
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".d")?.to_owned()))
        .collect()
}
