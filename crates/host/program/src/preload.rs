//! Whether the dynamic loader will load the library into a program (`man 8 ld.so`, LD_PRELOAD).
//!
//! A script leads to its interpreter, an ELF file to its headers. A program that may be executed
//! but not read passes: only the loader can tell.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, getxattr_query, statvfs};

use crate::elf::Elf;
use crate::library;
use crate::obstacle::Obstacle;

/// Interpreters of interpreters that Linux follows (`exec_binprm` in fs/exec.c).
const SCRIPT_DEPTH_MAX: u32 = 5;
const S_ISUID: u32 = 0o4000;
const S_ISGID: u32 = 0o2000;
const S_IXGRP: u32 = 0o0010;

/// Credentials of the process that executes a program (`man 7 credentials`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `None` for a user that owns no file.
    pub user: Option<u32>,
    /// `None` for a group that owns no file.
    pub group: Option<u32>,
    /// PR_SET_NO_NEW_PRIVS: setuid bits, setgid bits and file capabilities are ignored.
    pub no_new_privs: bool,
}

impl Credentials {
    fn of_caller() -> Self {
        Self {
            user: Some(rustix::process::getuid().as_raw()),
            group: Some(rustix::process::getgid().as_raw()),
            no_new_privs: rustix::thread::no_new_privs().unwrap_or(false),
        }
    }
}

/// Checks whether the caller can execute `program` with `library` loaded. Returns the file that
/// the kernel executes in the end: `program`, or the interpreter of a script.
pub fn check(program: &Path, library: &Path) -> Result<PathBuf, Obstacle> {
    check_for(program, library, &Credentials::of_caller(), Path::new("/"))
}

/// As [`check`], for a process with `credentials` and the root folder `root`. `program` and
/// `library` are paths of the caller, the interpreters of scripts are paths below `root`.
pub fn check_for(
    program: &Path,
    library: &Path,
    credentials: &Credentials,
    root: &Path,
) -> Result<PathBuf, Obstacle> {
    let library_machine = library::machine(library)?;
    let program = executed(program, root);
    check_privileges(&program, credentials)?;
    let Ok(Some(elf)) = Elf::read(&program) else {
        return Ok(program);
    };
    let Some(machine) = elf.machine else {
        return Err(Obstacle::OtherClass(program));
    };
    if machine != library_machine {
        return Err(Obstacle::OtherMachine {
            program,
            machine,
            library: library_machine,
        });
    }
    let Some(loader) = elf.loader else {
        return Err(Obstacle::Static(program));
    };
    let name = loader.file_name().unwrap_or_default().as_bytes();
    if !name.starts_with(b"ld-linux") {
        return Err(Obstacle::OtherLoader { program, loader });
    }
    if let Some(runtime) = elf.sanitizer {
        return Err(Obstacle::Sanitizer {
            program,
            runtime,
            library: library.to_owned(),
        });
    }
    Ok(program)
}

/// The last interpreter of a script, or the program itself.
fn executed(program: &Path, root: &Path) -> PathBuf {
    let mut program = program.to_owned();
    for _ in 0..SCRIPT_DEPTH_MAX {
        let Some(interpreter) = interpreter(&program) else {
            break;
        };
        program = match interpreter.strip_prefix("/") {
            Ok(below) => root.join(below),
            Err(_) => interpreter,
        };
    }
    program
}

/// The path behind `#!`, as the kernel reads it: up to the first blank.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = [0; 256];
    let read = File::open(script)
        .and_then(|file| file.read_at(&mut head, 0))
        .ok()?;
    let line = head
        .get(..read)?
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let path = line
        .split(|byte| b" \t\0".contains(byte))
        .find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Finds the bits for which the loader ignores LD_PRELOAD (AT_SECURE, `man 8 ld.so`).
fn check_privileges(program: &Path, credentials: &Credentials) -> Result<(), Obstacle> {
    let Ok(metadata) = program.metadata() else {
        return Ok(());
    };
    let is_nosuid =
        statvfs(program).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOSUID));
    if is_nosuid || credentials.no_new_privs {
        return Ok(());
    }
    if has_mode(&metadata, S_ISUID) && Some(metadata.uid()) != credentials.user {
        return Err(Obstacle::SetUser(program.to_owned()));
    }
    if has_mode(&metadata, S_ISGID | S_IXGRP) && Some(metadata.gid()) != credentials.group {
        return Err(Obstacle::SetGroup(program.to_owned()));
    }
    let has_capabilities =
        || getxattr_query(program, "security.capability").is_ok_and(|length| length > 0);
    if credentials.user != Some(0) && has_capabilities() {
        return Err(Obstacle::Capabilities(program.to_owned()));
    }
    Ok(())
}

fn has_mode(metadata: &Metadata, bits: u32) -> bool {
    metadata.mode() & bits == bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn write(root: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        file
    }

    fn credentials(user: Option<u32>, group: Option<u32>) -> Credentials {
        Credentials {
            user,
            group,
            no_new_privs: false,
        }
    }

    #[test]
    fn interpreters_of_scripts_are_files_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let library = Path::new("/proc/self/exe"); // Any ELF file of this machine.
        write(root, "bin/inner", b"#! /bin/outer -x\n", 0o755);
        let script = write(root, "script", b"#!/bin/inner\n", 0o755);
        let outer = root.join("bin/outer");
        let found = check_for(&script, library, &credentials(None, None), root);
        assert_eq!(found, Ok(outer.clone()), "a missing file has no obstacle");

        let mut foreign = std::fs::read("/proc/self/exe").unwrap();
        foreign.truncate(4096);
        foreign[18..20].copy_from_slice(&[42, 0]);
        write(root, "bin/outer", &foreign, 0o755);
        let found = check_for(&script, library, &credentials(None, None), root);
        let Err(Obstacle::OtherMachine {
            program, machine, ..
        }) = found
        else {
            panic!("{found:?}");
        };
        assert_eq!((program, machine), (outer, 42));
    }

    #[test]
    fn setuid_and_setgid_programs_are_obstacles_for_other_users_only() {
        let folder = tempfile::tempdir().unwrap();
        let (own_user, own_group) = (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        let owner = credentials(Some(own_user), Some(own_group));
        let other = credentials(Some(own_user + 1), Some(own_group + 1));
        let confined = Credentials {
            no_new_privs: true,
            ..other.clone()
        };
        for (mode, is_obstacle) in [
            (0o4755, true),
            (0o2755, true),
            (0o2745, false),
            (0o755, false),
        ] {
            let program = write(folder.path(), "program", b"text", mode);
            let is_found =
                |credentials: &Credentials| check_privileges(&program, credentials).is_err();
            assert_eq!(is_found(&other), is_obstacle, "{mode:o}");
            assert!(!is_found(&owner) && !is_found(&confined), "{mode:o}");
        }
    }
}
