//! Whether the library is mapped in a running process, and if not, the likely reason.
//!
//! Spec: `man 5 proc`, `man 3 getauxval`, `man 8 ld.so` (secure-execution mode). Reads /proc only.

use std::fs;
use std::io;
use std::path::Path;

use saiga_program::Obstacle as ProgramObstacle;

use crate::root::Root;
use crate::selinux;

/// In `linux/auxvec.h`.
const AT_SECURE: usize = 23;

/// Why a process runs without the library.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unloaded {
    #[error(
        "LD_PRELOAD is not in its environment: it was not restarted since `saiga enable`, or its \
         start script clears the environment"
    )]
    NoPreload,
    #[error("its LD_PRELOAD is {0:?}, which an EnvironmentFile= or its start script sets")]
    OtherPreload(String),
    #[error(transparent)]
    Program(ProgramObstacle),
    #[error(
        "SELinux started it in the domain {domain}, and the loader ignores LD_PRELOAD then; \
         allow it: echo '(allow init_t {domain} (process (noatsecure)))' >saiga.cil && \
         semodule -i saiga.cil"
    )]
    Domain { domain: String },
    #[error(
        "it started in secure-execution mode, in which the loader ignores LD_PRELOAD: it is \
         setuid, has file capabilities or changed its AppArmor profile"
    )]
    Secure,
    #[error("AppArmor's profile {0} confines it; `saiga enable` prints the rules that are missing")]
    Profile(String),
    #[error(
        "it was not restarted since `saiga enable`, or the loader could not load the library, \
         which the journal of the service says"
    )]
    Unknown,
}

/// Whether `maps` (`/proc/PID/maps`) has the library.
pub fn is_loaded(maps: &str) -> bool {
    let is_library = |line: &str| {
        let line = line.trim_end_matches(" (deleted)");
        line.ends_with("/libsaiga.so") || line.ends_with("/liblstack.so")
    };
    maps.lines().any(is_library)
}

/// Why `library` is not mapped in process `pid`; `None` if it is.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn why_unloaded(root: &Root, pid: u32, library: &Path) -> io::Result<Option<Unloaded>> {
    let folder = root.file(format!("/proc/{pid}"));
    if is_loaded(&fs::read_to_string(folder.join("maps"))?) {
        return Ok(None);
    }
    let environment = fs::read(folder.join("environ"))?;
    let environment = String::from_utf8_lossy(&environment);
    let preload = environment
        .split('\0')
        .find_map(|it| it.strip_prefix("LD_PRELOAD="));
    let label = fs::read_to_string(folder.join("attr/current")).unwrap_or_default();
    let label = label.trim_end_matches(['\0', '\n']);
    let names_library = |preload: &str| {
        let mut paths = preload.split([':', ' ']);
        paths.any(|path| Path::new(path) == library)
    };
    Ok(Some(match preload {
        // A program that shows its state as its title has overwritten its environment.
        None if environment.contains('=') => Unloaded::NoPreload,
        Some(other) if !names_library(other) => Unloaded::OtherPreload(other.to_owned()),
        _ => refused(&folder, library, label),
    }))
}

/// Why the loader did not load what LD_PRELOAD names.
fn refused(folder: &Path, library: &Path, label: &str) -> Unloaded {
    let program = fs::read_link(folder.join("exe")).unwrap_or_default();
    if let Err(obstacle) = saiga_program::check(&program, library)
        && program.exists()
    {
        return Unloaded::Program(obstacle);
    }
    match (is_secure(folder), selinux::kind(label)) {
        (true, Some(domain)) => Unloaded::Domain {
            domain: domain.to_owned(),
        },
        (true, None) => Unloaded::Secure,
        (false, _) => match label.strip_suffix(" (enforce)") {
            Some(profile) => Unloaded::Profile(profile.to_owned()),
            None => Unloaded::Unknown,
        },
    }
}

/// Whether AT_SECURE is set in the auxiliary vector, which consists of pairs of words.
fn is_secure(folder: &Path) -> bool {
    let words = fs::read(folder.join("auxv")).unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
    let mut pairs = words.chunks_exact(2 * size_of::<usize>());
    pairs.any(|pair| {
        let (key, value) = pair.split_at(size_of::<usize>());
        word(key) == AT_SECURE && word(value) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers for a process with these files in /proc.
    fn why(maps: &str, environ: &str, secure: usize, label: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        let process = root.file("/proc/7");
        fs::create_dir_all(process.join("attr")).unwrap();
        fs::write(process.join("maps"), maps).unwrap();
        fs::write(process.join("environ"), environ).unwrap();
        fs::write(process.join("attr/current"), label).unwrap();
        let auxv = [6, 4096, AT_SECURE, secure, 0, 0].map(usize::to_ne_bytes);
        fs::write(process.join("auxv"), auxv.concat()).unwrap();
        let why = why_unloaded(&root, 7, Path::new("/l/libsaiga.so")).unwrap();
        why.map(|why| why.to_string())
    }

    #[test]
    fn the_likely_reason_is_named() {
        const ENVIRON: &str = "A=1\0LD_PRELOAD=/l/a.so:/l/libsaiga.so\0";
        const LABEL: &str = "system_u:system_r:db_t:s0\0";
        let maps = "7f00-7f10 r-xp 00000000 fe:00 12 /l/libsaiga.so";
        for maps in [maps, &format!("{maps} (deleted)\n7f20-7f30 rw-p 0 0 0")] {
            assert_eq!(why(maps, ENVIRON, 0, ""), None, "{maps}");
        }
        for (environ, secure, label, words) in [
            ("A=1\0", 0, "", "it was not restarted"),
            ("LD_PRELOAD=/x.so\0", 0, "", "its LD_PRELOAD is \"/x.so\""),
            (
                ENVIRON,
                1,
                LABEL,
                "'(allow init_t db_t (process (noatsecure)))'",
            ),
            (ENVIRON, 1, "unconfined\n", "secure-execution mode"),
            (
                ENVIRON,
                0,
                "db (enforce)\n",
                "AppArmor's profile db confines it",
            ),
            (
                "\0\0",
                0,
                "db (enforce)\n",
                "AppArmor's profile db confines it",
            ),
            (
                ENVIRON,
                0,
                "db (complain)\n",
                "the loader could not load the library",
            ),
            (ENVIRON, 0, LABEL, "the loader could not load the library"),
        ] {
            let found = why("/l/not-libsaiga.so", environ, secure, label).unwrap();
            assert!(found.contains(words), "{words}: {found}");
        }
    }
}
