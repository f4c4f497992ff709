//! The parts of an ELF file that decide whether a library can be preloaded: machine, loader,
//! sanitizer.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{DT_NEEDED, ELFMAG, FileHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Elf {
    /// `e_machine`; `None` for a file that is not 64-bit little-endian.
    pub(crate) machine: Option<u16>,
    /// The path in PT_INTERP; `None` for a static program and for most libraries.
    pub(crate) loader: Option<PathBuf>,
    /// The runtime library of AddressSanitizer that the program is linked with.
    pub(crate) sanitizer: Option<String>,
}

/// How the names of such libraries begin: gcc's, and clang's with `-shared-libasan`. Those of the
/// other sanitizers may be loaded behind other libraries.
const SANITIZERS: [&[u8]; 2] = [b"libasan.so", b"libclang_rt.asan"];

impl Elf {
    /// Reads the headers of the file at `path`; `None` for a file of another format.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut magic = [0; ELFMAG.len()];
        file.read_at(&mut magic, 0)?;
        if magic != ELFMAG {
            return Ok(None);
        }
        Ok(Some(headers(&ReadCache::new(file)).unwrap_or_default()))
    }
}

fn headers(file: &ReadCache<File>) -> object::Result<Elf> {
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, file).unwrap_or_default();
    let loader = segments
        .iter()
        .find_map(|segment| segment.interpreter(endian, file).ok().flatten());
    // A program may have no section headers.
    let sections = header.sections(endian, file).unwrap_or_default();
    let dynamic = sections.dynamic_table(endian, file).unwrap_or_default();
    let needed = dynamic.iter().filter(|entry| entry.tag == DT_NEEDED);
    let sanitizer = needed
        .filter_map(|entry| dynamic.string(entry).ok())
        .find(|name| SANITIZERS.iter().any(|known| name.starts_with(known)));
    Ok(Elf {
        machine: Some(header.e_machine(endian).0),
        loader: loader.map(|path| PathBuf::from(OsStr::from_bytes(path))),
        sanitizer: sanitizer.map(|name| String::from_utf8_lossy(name).into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Elf> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Elf::read(file.path()).unwrap()
    }

    #[test]
    fn headers_of_this_program_name_its_machine_and_loader() {
        let this = std::fs::read("/proc/self/exe").unwrap();
        let elf = read(&this).unwrap();
        let machine = if cfg!(target_arch = "x86_64") {
            62
        } else {
            183
        };
        assert_eq!(elf.machine, Some(machine));
        let loader = elf.loader.unwrap();
        let name = loader.file_name().unwrap().as_bytes();
        assert!(name.starts_with(b"ld-linux"), "{loader:?}");

        let changed = |at: usize, byte: u8| {
            let mut bytes = this.clone();
            bytes[at] = byte;
            read(&bytes).unwrap()
        };
        assert_eq!(changed(4, 1), Elf::default(), "EI_CLASS of 32 bits");
        assert_eq!(changed(5, 2), Elf::default(), "EI_DATA of big-endian");
        // The section headers of a program that is cut off are missing, its segments are not.
        assert_eq!(read(&this[..4096]).unwrap().machine, Some(machine));
    }

    #[test]
    fn files_that_are_too_short_have_no_headers() {
        for bytes in [&b""[..], b"\x7fEL", b"#!/bin/sh\n"] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
        assert_eq!(read(b"\x7fELF\x02\x01"), Some(Elf::default()));
    }
}
