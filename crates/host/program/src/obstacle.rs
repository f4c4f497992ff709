//! The reasons for which a program runs without the library, as sentences for the user.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why the dynamic loader would not preload the library into a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("{} is statically linked, so no library can be loaded into it", .0.display())]
    Static(PathBuf),
    #[error("{} is not a 64-bit little-endian program, as the library requires", .0.display())]
    OtherClass(PathBuf),
    /// The two numbers are values of `e_machine` in the ELF header.
    #[error(
        "{} is built for another processor (ELF machine {machine}, the library's is {library})",
        program.display()
    )]
    OtherMachine {
        program: PathBuf,
        machine: u16,
        library: u16,
    },
    #[error("{} is not built for glibc (its loader is {})", program.display(), loader.display())]
    OtherLoader { program: PathBuf, loader: PathBuf },
    /// The runtime ends the program if another library precedes it.
    #[error(
        "{} is built with AddressSanitizer; to accelerate it, start it without saiga run and with \
         LD_PRELOAD={runtime}:{}",
        program.display(), library.display()
    )]
    Sanitizer {
        program: PathBuf,
        runtime: String,
        library: PathBuf,
    },
    #[error("{} is setuid, and the loader preloads nothing into such a program", .0.display())]
    SetUser(PathBuf),
    #[error("{} is setgid, and the loader preloads nothing into such a program", .0.display())]
    SetGroup(PathBuf),
    #[error(
        "{} has file capabilities, and the loader preloads nothing into such a program",
        .0.display()
    )]
    Capabilities(PathBuf),
    #[error(
        "this user cannot read {} ({errno}); install Saiga where every user can read it",
        library.display()
    )]
    LibraryUnreadable { library: PathBuf, errno: Errno },
    #[error("{} is on a file system mounted noexec; install Saiga elsewhere", .0.display())]
    LibraryNoexec(PathBuf),
    #[error(
        "{} is not a shared library that this machine can load; install Saiga again",
        .0.display()
    )]
    LibraryDamaged(PathBuf),
    #[error(
        "LD_PRELOAD cannot hold the path {} (space, colon, semicolon or dollar); \
         install Saiga elsewhere",
        .0.display()
    )]
    LibraryName(PathBuf),
}
