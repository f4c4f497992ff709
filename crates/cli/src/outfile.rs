//! Files that a verb writes beside its output: checked before the work, replaced in one step after it.

use std::path::Path;

use anyhow::{Context as _, bail};
use saiga_experiment::output;

/// Whether a file can be there, before what is to be in it costs an hour.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let (folder, _) = parts(path)?;
    if path.is_dir() {
        bail!("{} is a directory; name a file in it", path.display());
    }
    if !folder.is_dir() {
        bail!(
            "cannot write {}: there is no directory {}",
            path.display(),
            folder.display()
        );
    }
    tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Writes it, and says so.
pub(crate) fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    let (folder, name) = parts(path)?;
    output::write_file(folder, name, content)?;
    crate::exit::say(&format!("written: {}", path.display()));
    Ok(())
}

fn parts(path: &Path) -> anyhow::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not a file name", path.display()))?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    Ok((folder, name))
}
