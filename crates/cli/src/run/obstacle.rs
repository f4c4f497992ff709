//! Why a program would run on kernel TCP: the list, and the checks that need no ELF.
#![expect(unsafe_code, reason = "access and statvfs")]

use std::ffi::{CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use saiga_settings::Settings;

use super::shown;

/// Why a program would run on kernel TCP.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    /// No interpreter in the program's headers.
    #[error("{0} is statically linked, so no library can be loaded into it")]
    Static(String),
    /// ELF class or byte order.
    #[error("{0} is not a program of the library's kind (64-bit, little-endian)")]
    OtherClass(String),
    /// ELF machine.
    #[error(
        "{program} is built for another processor (ELF machine {machine}, the library's is {ours})"
    )]
    OtherMachine {
        /// The program.
        program: String,
        /// Its ELF machine number.
        machine: u16,
        /// The library's ELF machine number.
        ours: u16,
    },
    /// An interpreter that is not glibc's.
    #[error("{program} is not built for glibc (its loader is {loader})")]
    OtherLoader {
        /// The program.
        program: String,
        /// Its loader.
        loader: String,
    },
    /// The set-user-ID bit counts.
    #[error("{0} is setuid, and the loader preloads nothing into such a program")]
    SetUser(String),
    /// The set-group-ID bit counts.
    #[error("{0} is setgid, and the loader preloads nothing into such a program")]
    SetGroup(String),
    /// File capabilities count.
    #[error("{0} has file capabilities, and the loader preloads nothing into such a program")]
    Capabilities(String),
    /// The library is not where it belongs.
    #[error("{0}")]
    NoLibrary(String),
    /// The library, or a folder above it, is closed to this user.
    #[error("this user cannot read {library} ({source}); install Saiga where everybody can")]
    LibraryUnreadable {
        /// The library.
        library: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Nothing can be executed from the library's file system.
    #[error("{0} is on a file system mounted noexec; install Saiga elsewhere")]
    LibraryNoexec(String),
    /// The library is not what its name says.
    #[error("{0} is not a shared library that this machine can load; install Saiga again")]
    LibraryDamaged(String),
    /// `LD_PRELOAD` cannot name the library.
    #[error(
        "LD_PRELOAD cannot hold the path {0} (space, colon or dollar); install Saiga elsewhere"
    )]
    LibraryName(String),
    /// The settings say so.
    #[error("{0}")]
    Settings(String),
}

/// Checks what a loader needs of the library's file.
pub(crate) fn in_library(library: &Path) -> Result<(), Obstacle> {
    let bytes = library.as_os_str().as_bytes();
    if bytes.iter().any(|byte| b" :$\t\n;".contains(byte)) {
        return Err(Obstacle::LibraryName(shown(library)));
    }
    let unreadable = |source| Obstacle::LibraryUnreadable {
        library: shown(library),
        source,
    };
    let path = CString::new(bytes).map_err(|_| Obstacle::LibraryName(shown(library)))?;
    // SAFETY: `path` is a C string.
    if unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::R_OK, libc::AT_EACCESS) } != 0
    {
        return Err(unreadable(io::Error::last_os_error()));
    }
    if mount_flags(&path).map_err(unreadable)? & libc::ST_NOEXEC != 0 {
        return Err(Obstacle::LibraryNoexec(shown(library)));
    }
    Ok(())
}

/// Checks whether the settings keep this program off.
pub(crate) fn in_settings(settings: &Settings, file_name: &OsStr) -> Result<(), Obstacle> {
    if !settings.enabled.value {
        let origin = &settings.enabled.origin;
        return Err(Obstacle::Settings(format!(
            "Saiga is switched off (enabled, {origin})"
        )));
    }
    if settings.is_program_off(file_name.as_bytes()) {
        let name = file_name.to_string_lossy();
        let origin = &settings.programs_off.origin;
        return Err(Obstacle::Settings(format!(
            "{name} is in programs_off ({origin})"
        )));
    }
    Ok(())
}

/// The mount flags of the file system that holds `path`.
pub(super) fn mount_flags(path: &std::ffi::CStr) -> io::Result<u64> {
    let mut info = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` is a C string and `info` is room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), info.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs succeeded, so it filled the structure.
    Ok(unsafe { info.assume_init() }.f_flag)
}
