//! Files that a verb writes beside its main output: checked before the work starts, and replaced
//! atomically after it.

use std::path::Path;

use anyhow::{Context as _, bail};
use saiga_experiment::output;

/// Checks that `path` can be written. Called before long work, so that its result is not lost.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let (folder, _) = parts(path)?;
    if path.is_dir() {
        bail!("{} is a directory; give a file in it", path.display());
    }
    if !folder.is_dir() {
        bail!(
            "cannot write {}: {} is not a directory",
            path.display(),
            folder.display()
        );
    }
    tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Replaces the contents of the file atomically, and prints its path to stderr.
pub(crate) fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    let (folder, name) = parts(path)?;
    output::write_file(folder, name, content)?;
    crate::exit::say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Splits a path into its folder and its file name.
fn parts(path: &Path) -> anyhow::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not a file name", path.display()))?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    Ok((folder, name))
}
