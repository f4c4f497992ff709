//! The files that a process maps.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use saiga_process::root;

use super::{MoveError, What};

/// A file that a process maps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MappedFile {
    /// As the process sees it.
    pub(super) path: PathBuf,
    /// Device and inode as in `/proc/PID/maps`, to tell files of the same name apart.
    device: (u32, u32),
    inode: u64,
    /// The entry of one of its mappings in `/proc/PID/map_files`.
    entry: PathBuf,
    pid: u32,
}

/// The files of a process, each once, in the order of their paths.
pub(super) fn of(pid: u32, what: What) -> Result<Vec<MappedFile>, MoveError> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| {
        let is_gone =
            error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH);
        if is_gone {
            MoveError::NoProcess { pid }
        } else {
            MoveError::Maps { pid, error }
        }
    })?;
    // A kernel thread and a zombie have no mappings.
    if maps.is_empty() {
        return Err(MoveError::NoProcess { pid });
    }
    let exe =
        fs::metadata(format!("/proc/{pid}/exe")).map_err(|error| MoveError::Maps { pid, error })?;
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for (file, is_executable) in maps.lines().filter_map(|line| parse(pid, line)) {
        let is_text = file.inode == exe.ino();
        let is_wanted = match what {
            What::Text => is_text,
            What::Libraries => is_text || is_executable,
            What::All => true,
        };
        // A library's data are mapped before or behind its text: the whole file counts.
        if is_wanted && seen.insert((file.device, file.inode)) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Parses a line of `/proc/PID/maps` (`man 5 proc_pid_maps`): the file and whether the mapping is
/// executable; `None` for anonymous memory.
fn parse(pid: u32, line: &str) -> Option<(MappedFile, bool)> {
    let mut fields = line.splitn(6, ' ');
    let range = fields.next()?;
    let permissions = fields.next()?;
    let _offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let path = fields.next()?.trim_start();
    if inode == 0 || !path.starts_with('/') {
        return None;
    }
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let file = MappedFile {
        path: PathBuf::from(path),
        device: (number(major)?, number(minor)?),
        inode,
        entry: Path::new("/proc")
            .join(pid.to_string())
            .join("map_files")
            .join(range),
        pid,
    };
    Some((file, permissions.contains('x')))
}

impl MappedFile {
    /// Opens the file: by its mapping, which also works in another mount namespace and for a file
    /// that was deleted or replaced; without the right to do that, by its path. Device nodes and
    /// FIFOs are not opened.
    pub(super) fn open(&self) -> io::Result<File> {
        let by_path = || {
            let path = self.path.strip_prefix("/").unwrap_or(&self.path);
            let root = Path::new("/proc").join(self.pid.to_string()).join("root");
            place(&root.join(path))
        };
        let place = place(&self.entry).or_else(|_| by_path())?;
        let file = root::open_regular(place)?;
        let metadata = file.metadata()?;
        if metadata.ino() != self.inode {
            return Err(io::Error::other(
                "it was replaced by another file of that name",
            ));
        }
        Ok(file)
    }
}

fn place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType};

    use super::*;

    #[test]
    fn files_that_are_not_regular_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let regular = dir.path().join("regular");
        fs::write(&regular, "x").unwrap();
        let mapped = |path: &Path| MappedFile {
            path: path.to_owned(),
            device: (0, 0),
            inode: fs::metadata(path).unwrap().ino(),
            entry: dir.path().join("none"),
            pid: std::process::id(),
        };
        assert!(mapped(&regular).open().is_ok());
        let error = mapped(&fifo).open().unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
    }

    #[test]
    fn mappings_of_files_are_parsed() {
        let line = "7f1c00200000-7f1c00400000 r-xp 00026000 fe:00 131103                     \
                    /usr/lib/x86_64-linux-gnu/libc.so.6";
        let (file, is_executable) = parse(7, line).unwrap();
        assert_eq!(file.path, Path::new("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert_eq!((file.device, file.inode), ((0xfe, 0), 131_103));
        assert_eq!(
            file.entry,
            Path::new("/proc/7/map_files/7f1c00200000-7f1c00400000")
        );
        assert!(is_executable);
        for line in [
            "7ffd1000-7ffd2000 rw-p 00000000 00:00 0                          [stack]",
            "7ffd1000-7ffd2000 rw-p 00000000 00:00 0",
            "",
            "7ffd1000-7ffd2000 rw-s 00000000 00:01 55 anon_inode:[perf]",
        ] {
            assert_eq!(parse(7, line), None, "{line}");
        }
    }
}
