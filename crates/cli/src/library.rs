//! Finds the library that `saiga run` and `saiga compare` preload.
//!
//! It is looked for beside the binary (a build tree), then in `../lib/saiga`
//! (an installation). Deliberately absent: any search path from the environment;
//! what is preloaded into a database follows from which `saiga` was started.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The accelerating library's file name.
pub(crate) const LIBSAIGA: &str = "libsaiga.so";

/// The absolute path of `libsaiga.so` that belongs to this binary.
///
/// # Errors
/// Names both places when the library is in neither.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    let binary = std::env::current_exe().context("cannot tell where the saiga binary is")?;
    find_for(&binary)
}

fn find_for(binary: &Path) -> anyhow::Result<PathBuf> {
    let folder = binary.parent().unwrap_or(Path::new("/"));
    let beside = folder.join(LIBSAIGA);
    if beside.is_file() {
        return Ok(beside);
    }
    let prefix = folder.parent().unwrap_or(Path::new("/"));
    let installed = prefix.join("lib/saiga").join(LIBSAIGA);
    if installed.is_file() {
        return Ok(installed);
    }
    bail!(
        "{LIBSAIGA} is neither at {} nor at {}; run `make install` or `cargo build --release`",
        beside.display(),
        installed.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_the_binary_wins_over_the_installation() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        let lib = root.path().join("lib/saiga");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        let binary = bin.join("saiga");

        let error = find_for(&binary).unwrap_err().to_string();
        assert!(error.contains("bin/libsaiga.so") && error.contains("lib/saiga/libsaiga.so"));

        std::fs::write(lib.join(LIBSAIGA), "").unwrap();
        assert_eq!(find_for(&binary).unwrap(), lib.join(LIBSAIGA));

        std::fs::write(bin.join(LIBSAIGA), "").unwrap();
        assert_eq!(find_for(&binary).unwrap(), bin.join(LIBSAIGA));
    }
}
