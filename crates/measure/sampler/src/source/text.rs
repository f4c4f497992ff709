//! Reads whole files of `/proc` and `/sys` into one reused buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::config::Roots;

/// Initial size of the buffer. It grows while less than half of this size is free.
const ROOM: usize = 16 * 1024;

/// Reads files below the roots, one at a time.
#[derive(Debug)]
pub(crate) struct Files {
    roots: Roots,
    buffer: Vec<u8>,
}

impl Files {
    pub(crate) fn new(roots: Roots) -> Self {
        Self {
            roots,
            buffer: vec![0; ROOM],
        }
    }

    /// A file of `/proc` as text; `None` if it cannot be read or is not UTF-8.
    pub(crate) fn proc(&mut self, name: &str) -> Option<&str> {
        let bytes = self.proc_bytes(name)?;
        std::str::from_utf8(bytes).ok()
    }

    /// A file of `/proc`; `None` if it cannot be read.
    pub(crate) fn proc_bytes(&mut self, name: &str) -> Option<&[u8]> {
        let path = self.roots.proc.join(name);
        self.bytes(&path)
    }

    /// A file of `/sys` as text; `None` if it cannot be read or is not UTF-8.
    pub(crate) fn sys(&mut self, name: &str) -> Option<&str> {
        let path = self.roots.sys.join(name);
        std::str::from_utf8(self.bytes(&path)?).ok()
    }

    pub(crate) fn proc_path(&self, name: &str) -> PathBuf {
        self.roots.proc.join(name)
    }

    pub(crate) fn sys_path(&self, name: &str) -> PathBuf {
        self.roots.sys.join(name)
    }

    fn bytes(&mut self, path: &Path) -> Option<&[u8]> {
        let read = read_into(&mut self.buffer, path).ok()?;
        Some(&self.buffer[..read])
    }
}

/// Reads a file to its end. `Read::read_to_end` would call fstat(2) for every file, although files
/// of the kernel have no size.
fn read_into(buffer: &mut Vec<u8>, path: &Path) -> io::Result<usize> {
    let mut file = File::open(path)?;
    let mut used = 0;
    loop {
        if buffer.len() - used < ROOM / 2 {
            buffer.resize(buffer.len() * 2, 0);
        }
        match file.read(&mut buffer[used..]) {
            Ok(0) => return Ok(used),
            Ok(read) => used += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sorted names of the entries of a directory; empty if it cannot be read.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_larger_than_the_buffer_are_read_whole() {
        let root = tempfile::tempdir().unwrap();
        let long = "0123456789".repeat(20_000);
        std::fs::write(root.path().join("long"), &long).unwrap();
        std::fs::write(root.path().join("short"), "7\n").unwrap();
        let mut files = Files::new(Roots {
            proc: root.path().into(),
            sys: root.path().into(),
        });
        assert_eq!(files.proc("long"), Some(long.as_str()));
        assert_eq!(files.sys("short"), Some("7\n"));
        assert_eq!(files.proc("none"), None);
    }
}
