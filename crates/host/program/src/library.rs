//! `libsaiga.so`: where it is installed, what the loader requires of its file, and the value of
//! LD_PRELOAD that loads it.
//!
//! The library is searched beside the binary (a build tree), then in `../lib/saiga` (an
//! installation). Deliberately absent: a search path from the environment; the `saiga` that was
//! started determines which library is preloaded into a database.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, accessat, statvfs};
use rustix::io::Errno;

use crate::elf::Elf;
use crate::obstacle::Obstacle;

pub const LIBSAIGA: &str = "libsaiga.so";

/// The library of this binary cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("cannot find the path of the saiga binary: {0}")]
    Binary(io::Error),
    #[error(
        "{LIBSAIGA} is neither at {} nor at {}; run `make install` or `cargo build --release`",
        beside.display(), installed.display()
    )]
    Missing { beside: PathBuf, installed: PathBuf },
}

/// The absolute path of the library that belongs to this binary.
pub fn find() -> Result<PathBuf, LibraryError> {
    find_for(&std::env::current_exe().map_err(LibraryError::Binary)?)
}

fn find_for(binary: &Path) -> Result<PathBuf, LibraryError> {
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
    Err(LibraryError::Missing { beside, installed })
}

/// The value of LD_PRELOAD that loads `library` before the libraries in `existing`.
pub fn ld_preload(library: &Path, existing: Option<&OsStr>) -> OsString {
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

/// Checks what the loader requires of the library's file: a path that LD_PRELOAD can hold, read
/// permission for the caller, and a file system from which code can be mapped.
pub fn check(library: &Path) -> Result<(), Obstacle> {
    let bytes = library.as_os_str().as_bytes();
    if bytes.iter().any(|byte| b" :$\t\n;".contains(byte)) {
        return Err(Obstacle::LibraryName(library.to_owned()));
    }
    let unreadable = |errno| Obstacle::LibraryUnreadable {
        library: library.to_owned(),
        errno,
    };
    accessat(CWD, library, Access::READ_OK, AtFlags::EACCESS).map_err(unreadable)?;
    let mount = statvfs(library).map_err(unreadable)?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(Obstacle::LibraryNoexec(library.to_owned()));
    }
    Ok(())
}

/// The ELF machine of `library`; an error for a file that is not a library of this machine's kind.
pub fn machine(library: &Path) -> Result<u16, Obstacle> {
    let elf = Elf::read(library).map_err(|error| Obstacle::LibraryUnreadable {
        library: library.to_owned(),
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })?;
    elf.and_then(|elf| elf.machine)
        .ok_or_else(|| Obstacle::LibraryDamaged(library.to_owned()))
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
    fn the_library_beside_the_binary_precedes_the_installed_one() {
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

    #[test]
    fn a_path_that_ld_preload_would_split_is_refused() {
        for path in ["/a b/l.so", "/a:b/l.so", "/a$b/l.so", "/a;b/l.so", "/a\tb"] {
            let obstacle = Obstacle::LibraryName(path.into());
            assert_eq!(check(Path::new(path)), Err(obstacle));
        }
    }
}
