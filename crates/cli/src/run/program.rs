//! Whether the dynamic loader would take the library into a program.
//!
//! Reads the program's first bytes: a script leads to its interpreter, an ELF
//! file to its header and loader. A program that may be executed but not read
//! passes: only the loader can tell.
#![expect(unsafe_code, reason = "getxattr, prctl and user numbers")]

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::obstacle::{Obstacle, mount_flags};
use super::shown;

/// As the kernel: a script may be run by a script, four times over.
const SCRIPT_DEPTH_MAX: u32 = 5;
const PT_INTERP: u32 = 3;

/// Finds what stands against loading `library` into `program`; the answer is the file that
/// the kernel will execute in the end (a script's interpreter).
pub(crate) fn check(program: &Path, library: &Path) -> Result<PathBuf, Obstacle> {
    check_as(program, library, &As::caller())
}

/// Who will run the program.
pub(crate) struct As {
    /// `None`: a user that owns nothing.
    pub(crate) user: Option<u32>,
    /// `None`: likewise.
    pub(crate) group: Option<u32>,
    /// No bit of a file gives it more rights (`PR_SET_NO_NEW_PRIVS`).
    pub(crate) gains_nothing: bool,
    /// Where its paths begin.
    pub(crate) root: PathBuf,
}

impl As {
    fn caller() -> Self {
        // SAFETY: getuid has no preconditions.
        let user = unsafe { libc::getuid() };
        // SAFETY: getgid has no preconditions.
        let group = unsafe { libc::getgid() };
        Self {
            user: Some(user),
            group: Some(group),
            gains_nothing: has_no_new_privileges(),
            root: PathBuf::from("/"),
        }
    }
}

/// As [`check`], for a program that somebody else will start.
pub(crate) fn check_as(program: &Path, library: &Path, who: &As) -> Result<PathBuf, Obstacle> {
    let ours = machine_of(library)?;
    let mut program = program.to_owned();
    for _ in 0..SCRIPT_DEPTH_MAX {
        let Some(interpreter) = script_interpreter(&program) else {
            break;
        };
        program = match interpreter.strip_prefix("/") {
            Ok(below) => who.root.join(below),
            Err(_) => interpreter,
        };
    }
    check_privileges(&program, who)?;
    let Ok(Some(elf)) = Elf::read(&program) else {
        return Ok(program);
    };
    let Some(machine) = elf.machine else {
        return Err(Obstacle::OtherClass(shown(&program)));
    };
    if machine != ours {
        return Err(Obstacle::OtherMachine {
            program: shown(&program),
            machine,
            ours,
        });
    }
    let Some(loader) = elf.loader else {
        return Err(Obstacle::Static(shown(&program)));
    };
    let name = loader.file_name().unwrap_or_default().as_bytes();
    if !name.starts_with(b"ld-linux") {
        return Err(Obstacle::OtherLoader {
            program: shown(&program),
            loader: shown(&loader),
        });
    }
    Ok(program)
}

/// The ELF machine of a library; an error for a file that is not one.
pub(crate) fn machine_of(library: &Path) -> Result<u16, Obstacle> {
    Elf::read(library)
        .map_err(|source| Obstacle::LibraryUnreadable {
            library: shown(library),
            source,
        })?
        .and_then(|elf| elf.machine)
        .ok_or_else(|| Obstacle::LibraryDamaged(shown(library)))
}

/// The program behind `#!`, as the kernel reads it: up to the first blank.
fn script_interpreter(program: &Path) -> Option<PathBuf> {
    let mut head = [0; 256];
    let read = File::open(program)
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

/// Finds bits that make the loader ignore `LD_PRELOAD` (`AT_SECURE`, `man 8 ld.so`).
fn check_privileges(program: &Path, who: &As) -> Result<(), Obstacle> {
    let (Ok(path), Ok(metadata)) = (
        CString::new(program.as_os_str().as_bytes()),
        program.metadata(),
    ) else {
        return Ok(());
    };
    let is_ignored = mount_flags(&path).is_ok_and(|flags| flags & libc::ST_NOSUID != 0);
    if is_ignored || who.gains_nothing {
        return Ok(());
    }
    if has_mode(&metadata, libc::S_ISUID) && Some(metadata.uid()) != who.user {
        return Err(Obstacle::SetUser(shown(program)));
    }
    if has_mode(&metadata, libc::S_ISGID | libc::S_IXGRP) && Some(metadata.gid()) != who.group {
        return Err(Obstacle::SetGroup(shown(program)));
    }
    if who.user != Some(0) && has_capabilities(&path) {
        return Err(Obstacle::Capabilities(shown(program)));
    }
    Ok(())
}

fn has_mode(metadata: &Metadata, bits: libc::mode_t) -> bool {
    metadata.mode() & bits == bits
}

fn has_no_new_privileges() -> bool {
    // SAFETY: this option takes zeros and answers a number.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 }
}

fn has_capabilities(path: &CStr) -> bool {
    let name = c"security.capability";
    // SAFETY: both are C strings; with length 0 nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// What an ELF file says of itself.
struct Elf {
    /// `None` when it is not 64-bit little-endian.
    machine: Option<u16>,
    loader: Option<PathBuf>,
}

impl Elf {
    /// Reads the headers; `None` when the file is not an ELF file.
    fn read(path: &Path) -> std::io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut header = [0; 64];
        let read = file.read_at(&mut header, 0)?;
        if !header.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        let [_, _, _, _, class, order, ..] = header;
        if read < header.len() || (class, order) != (2, 1) {
            return Ok(Some(Self {
                machine: None,
                loader: None,
            }));
        }
        let loader = (0..u64::from(u16_at(&header, 56)))
            .map(|index| u64_at(&header, 32).wrapping_add(index * u64::from(u16_at(&header, 54))))
            .find_map(|at| loader_of(&file, at));
        Ok(Some(Self {
            machine: Some(u16_at(&header, 18)),
            loader,
        }))
    }
}

/// The loader's path, when the program header at `at` is the one that names it.
fn loader_of(file: &File, at: u64) -> Option<PathBuf> {
    let mut header = [0; 56];
    file.read_exact_at(&mut header, at).ok()?;
    let kind = u32::from_le_bytes(header.first_chunk().copied()?);
    if kind != PT_INTERP {
        return None;
    }
    let length = usize::try_from(u64_at(&header, 32))
        .ok()
        .filter(|length| *length <= 4096)?;
    let mut path = vec![0; length];
    file.read_exact_at(&mut path, u64_at(&header, 8)).ok()?;
    let path = path.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let field = bytes
        .get(at..at + 2)
        .and_then(|field| field.try_into().ok());
    field.map_or(0, u16::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes
        .get(at..at + 8)
        .and_then(|field| field.try_into().ok());
    field.map_or(0, u64::from_le_bytes)
}
