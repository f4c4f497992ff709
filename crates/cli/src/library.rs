//! Finds the library that `saiga run` and `saiga compare` preload.
//!
//! It is looked for beside the binary (a build tree), then in `../lib/saiga`
//! (an installation). Deliberately absent: any search path from the environment;
//! what is preloaded into a database follows from which `saiga` was started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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

/// The value of `LD_PRELOAD` that puts `library` before what is preloaded already.
pub(crate) fn ld_preload(library: &Path, existing: Option<&OsStr>) -> OsString {
    let existing = existing.unwrap_or_default();
    let mut others = existing
        .as_bytes()
        .split(|byte| *byte == b':' || byte.is_ascii_whitespace());
    if others.any(|other| other == library.as_os_str().as_bytes()) {
        return existing.to_owned();
    }
    let mut value = library.as_os_str().to_owned();
    if !existing.is_empty() {
        value.push(":");
        value.push(existing);
    }
    value
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
    fn the_library_comes_first_and_once() {
        for (existing, expected) in [
            (None, "/l/libsaiga.so"),
            (Some(""), "/l/libsaiga.so"),
            (Some("/x/a.so b.so"), "/l/libsaiga.so:/x/a.so b.so"),
            (Some("a.so:/l/libsaiga.so"), "a.so:/l/libsaiga.so"),
            (Some("/l/libsaiga.so.1"), "/l/libsaiga.so:/l/libsaiga.so.1"),
        ] {
            let value = ld_preload(Path::new("/l/libsaiga.so"), existing.map(OsStr::new));
            assert_eq!(value, expected, "{existing:?}");
        }
    }

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
