//! The files of a capture: one of bounded length, or the newest of several.
//!
//! Files are created with mode 0600 in a directory that not all users may write to. A file that
//! exists is never opened, and a symbolic link never followed. Only whole blocks are written: a
//! block that did not fit on the disk is cut off again.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, open, openat, unlinkat};
use rustix::io::Errno;

/// Least bytes of a file behind its head: several of the largest frames.
const LEAST_BYTES: u64 = 256 << 10;

/// How much a capture may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// One file of at most `bytes`. The capture ends at the first frame that does not fit.
    Stop {
        /// Bytes, at least 256 KiB and the descriptions of the interfaces.
        bytes: u64,
    },
    /// Files of at most `bytes`, whose names get a number: `x_00001.pcapng`. The oldest is removed
    /// when there are more than `files`.
    Ring {
        /// Bytes of each file, at least as above.
        bytes: u64,
        /// Files that are kept.
        files: NonZeroU32,
    },
}

impl Bound {
    const fn file_bytes(self) -> u64 {
        match self {
            Self::Stop { bytes } | Self::Ring { bytes, .. } => bytes,
        }
    }
}

/// Why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The path does not end in the name of a file.
    #[error("{} does not name a file", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// The directory cannot be opened.
    #[error("{} cannot be opened as a directory", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// All users may create files in the directory.
    #[error(
        "{} is writable by all users: choose another directory for the capture",
        path.display()
    )]
    WorldWritable {
        /// Path of the directory.
        path: PathBuf,
    },
    /// There is a file or a symbolic link of this name.
    #[error("{} exists already: choose another name, or remove it", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// The bound leaves no room for frames.
    #[error("a capture file needs at least {least} bytes, not {bytes}")]
    TooSmall {
        /// Bytes of the bound.
        bytes: u64,
        /// The least bound.
        least: u64,
    },
    /// The first file cannot be created or written.
    #[error("{} cannot be created", path.display())]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// Why a capture has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The file has reached its bound.
    Bound,
    /// A file could not be created or written.
    Failed(io::ErrorKind),
}

/// What a capture has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Frames in all files, those of removed files included.
    pub frames: u64,
    /// Bytes of all files, those of removed files included.
    pub bytes: u64,
    /// The files that are there, from the oldest.
    pub files: Vec<PathBuf>,
    /// `None` while the capture goes on.
    pub end: Option<End>,
}

/// The files of a capture.
#[derive(Debug)]
pub(super) struct Files {
    /// The directory as it was opened: a path could lead to another one later.
    directory: OwnedFd,
    directory_path: PathBuf,
    name: OsString,
    bound: Bound,
    /// The blocks with which each file begins.
    head: Vec<u8>,
    file: File,
    /// Bytes of whole blocks in `file`.
    length: u64,
    /// Files that were created.
    count: u32,
    /// Names of the files that are there, from the oldest.
    names: VecDeque<OsString>,
    frames: u64,
    bytes: u64,
    end: Option<End>,
}

impl Files {
    /// Creates the first file, which begins with `head`.
    pub(super) fn create(path: &Path, bound: Bound, head: Vec<u8>) -> Result<Self, StartError> {
        let bytes = bound.file_bytes();
        let least = LEAST_BYTES + head.len() as u64;
        if bytes < least {
            return Err(StartError::TooSmall { bytes, least });
        }
        let name = path.file_name().ok_or_else(|| StartError::NoName {
            path: path.to_owned(),
        })?;
        let (directory, directory_path) = directory_of(path)?;
        let first = numbered(name, bound, 1);
        let file = create_with(&directory, &first, &head);
        let file = file.map_err(|source| {
            let path = directory_path.join(&first);
            if source.kind() == io::ErrorKind::AlreadyExists {
                StartError::Exists { path }
            } else {
                StartError::Create { path, source }
            }
        })?;
        let length = head.len() as u64;
        Ok(Self {
            directory,
            directory_path,
            name: name.to_owned(),
            bound,
            head,
            file,
            length,
            count: 1,
            names: VecDeque::from([first]),
            frames: 0,
            bytes: length,
            end: None,
        })
    }

    /// Writes blocks of frames; returns whether the capture goes on.
    pub(super) fn append(&mut self, blocks: &[u8]) -> bool {
        let mut rest = blocks;
        while !rest.is_empty() && self.end.is_none() {
            let room = self.bound.file_bytes().saturating_sub(self.length);
            let (frames, length) = whole_blocks(rest, room);
            let (fitting, later) = rest.split_at(length);
            if frames == 0 {
                self.next_file();
                continue;
            }
            self.write(fitting, frames);
            rest = later;
        }
        self.end.is_none()
    }

    pub(super) fn summary(&self) -> Summary {
        let path = |name| self.directory_path.join(name);
        Summary {
            frames: self.frames,
            bytes: self.bytes,
            files: self.names.iter().map(path).collect(),
            end: self.end,
        }
    }

    fn write(&mut self, blocks: &[u8], frames: u64) {
        if let Err(error) = self.file.write_all(blocks) {
            // If this fails as well, readers report a cut block at the end.
            let _cut = self.file.set_len(self.length);
            self.end = Some(End::Failed(error.kind()));
            return;
        }
        self.length += blocks.len() as u64;
        self.bytes += blocks.len() as u64;
        self.frames += frames;
    }

    /// Goes on with the next file of a ring. A frame that does not fit into an empty file ends the
    /// capture.
    fn next_file(&mut self) {
        let is_empty = self.length == self.head.len() as u64;
        match self.bound {
            Bound::Ring { files, .. } if !is_empty => {
                if let Err(error) = self.open_next(files) {
                    self.end = Some(End::Failed(error.kind()));
                }
            }
            Bound::Ring { .. } | Bound::Stop { .. } => self.end = Some(End::Bound),
        }
    }

    fn open_next(&mut self, most_files: NonZeroU32) -> io::Result<()> {
        let name = numbered(&self.name, self.bound, self.count + 1);
        self.file = create_with(&self.directory, &name, &self.head)?;
        self.count += 1;
        self.names.push_back(name);
        self.length = self.head.len() as u64;
        self.bytes += self.length;
        while self.names.len() > most_files.get() as usize {
            if let Some(oldest) = self.names.pop_front() {
                match unlinkat(&self.directory, &oldest, AtFlags::empty()) {
                    // Somebody else has removed the file.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// A new file that begins with `head`. If that cannot be written, there is no file.
fn create_with(directory: &OwnedFd, name: &OsStr, head: &[u8]) -> io::Result<File> {
    let mut file = create(directory, name)?;
    if let Err(error) = file.write_all(head) {
        // The first error counts.
        let _removed = unlinkat(directory, name, AtFlags::empty());
        return Err(error);
    }
    Ok(file)
}

/// The directory of a file, which not all users may write to, and its path.
fn directory_of(path: &Path) -> Result<(OwnedFd, PathBuf), StartError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    // The parent of a name alone is empty.
    let path = Path::new(".").join(parent);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(&path, flags, Mode::empty());
    let stat = opened.and_then(|directory| Ok((fstat(&directory)?, directory)));
    match stat {
        Ok((stat, _)) if Mode::from_raw_mode(stat.st_mode).contains(Mode::WOTH) => {
            Err(StartError::WorldWritable { path })
        }
        Ok((_, directory)) => Ok((directory, path)),
        Err(error) => {
            let source = error.into();
            Err(StartError::Directory { path, source })
        }
    }
}

fn create(directory: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// The name of the file with this number; a single file has no number.
fn numbered(name: &OsStr, bound: Bound, number: u32) -> OsString {
    if matches!(bound, Bound::Stop { .. }) {
        return name.to_owned();
    }
    let path = Path::new(name);
    let mut numbered = path.file_stem().unwrap_or(name).to_owned();
    numbered.push(format!("_{number:05}"));
    if let Some(extension) = path.extension() {
        numbered.push(".");
        numbered.push(extension);
    }
    numbered
}

/// How many blocks at the front of `blocks` fit into `room` bytes, and their length.
fn whole_blocks(blocks: &[u8], room: u64) -> (u64, usize) {
    let (mut count, mut length) = (0, 0);
    while let Some(next) = blocks.get(length..).and_then(block_length) {
        if (length + next) as u64 > room {
            break;
        }
        count += 1;
        length += next;
    }
    (count, length)
}

/// The length field of the block at the front.
fn block_length(blocks: &[u8]) -> Option<usize> {
    let bytes = blocks.get(4..8)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// For files that begin with a head of 16 bytes, or with none.
    const BYTES: u64 = (256 << 10) + 16;
    const STOP: Bound = Bound::Stop { bytes: BYTES };
    const RING: Bound = Bound::Ring {
        bytes: BYTES,
        files: NonZeroU32::new(2).unwrap(),
    };

    /// A block of so many bytes, all of them `fill` but for the lengths.
    fn block(bytes: u32, fill: u8) -> Vec<u8> {
        let length = bytes.to_le_bytes();
        let content = vec![fill; bytes as usize - 12];
        [&[fill; 4][..], &length, &content[..], &length].concat()
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_capture_ends_at_its_bound_with_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pcapng");
        let head = block(16, 1);
        let mut files = Files::create(&path, STOP, head.clone()).unwrap();
        let half = block((128 << 10) + 4, 2);
        assert!(files.append(&half));
        // The second half is 8 bytes too long. What follows it would fit, and is left out, too.
        assert!(!files.append(&[half.clone(), block(16, 3)].concat()));
        assert!(!files.append(&block(16, 3)));
        assert_eq!(fs::read(&path).unwrap(), [head, half].concat());
        let expected = Summary {
            frames: 1,
            bytes: 20 + (128 << 10),
            files: vec![path],
            end: Some(End::Bound),
        };
        assert_eq!(files.summary(), expected);
    }

    #[test]
    fn a_ring_keeps_the_newest_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.y.pcapng");
        let head = block(16, 1);
        let mut files = Files::create(&path, RING, head.clone()).unwrap();
        let blocks: Vec<Vec<u8>> = (2..5).map(|fill| block(200 << 10, fill)).collect();
        assert!(files.append(&blocks.concat()));
        assert_eq!(
            names(folder.path()),
            ["x.y_00002.pcapng", "x.y_00003.pcapng"]
        );
        let last = fs::read(folder.path().join("x.y_00003.pcapng")).unwrap();
        assert_eq!(last, [head, blocks[2].clone()].concat());
        let summary = files.summary();
        assert_eq!((summary.frames, summary.end), (3, None));
        assert_eq!(summary.bytes, 3 * (16 + (200 << 10)));
        assert_eq!(summary.files.len(), 2);
    }

    #[test]
    fn files_are_for_their_owner_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pcapng");
        Files::create(&path, STOP, Vec::new()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let again = Files::create(&path, STOP, Vec::new()).unwrap_err();
        assert!(matches!(again, StartError::Exists { path: found } if found == path));
        let link = folder.path().join("link");
        symlink(folder.path().join("target"), &link).unwrap();
        let through = Files::create(&link, STOP, Vec::new()).unwrap_err();
        assert!(matches!(through, StartError::Exists { .. }));
        assert_eq!(names(folder.path()), ["link", "x.pcapng"]);
    }

    #[test]
    fn a_ring_ends_at_a_file_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut files = Files::create(&path, RING, Vec::new()).unwrap();
        fs::write(folder.path().join("x_00002"), b"mine").unwrap();
        let blocks = [block(200 << 10, 1), block(200 << 10, 2)].concat();
        assert!(!files.append(&blocks));
        let end = files.summary().end;
        assert_eq!(end, Some(End::Failed(io::ErrorKind::AlreadyExists)));
        assert_eq!(fs::read(folder.path().join("x_00002")).unwrap(), b"mine");
    }

    #[test]
    fn a_directory_of_all_users_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o1777] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = Files::create(&folder.path().join("x"), STOP, Vec::new()).unwrap_err();
            assert!(
                matches!(refused, StartError::WorldWritable { .. }),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn what_cannot_be_a_capture_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path, bound| {
            let error = Files::create(path, bound, Vec::new()).unwrap_err();
            error.to_string()
        };
        let missing = folder.path().join("missing/x");
        assert!(refused(&missing, STOP).ends_with("missing cannot be opened as a directory"));
        assert_eq!(refused(Path::new("/"), STOP), "/ does not name a file");
        let small = Bound::Stop { bytes: 262_143 };
        assert_eq!(
            refused(&folder.path().join("x"), small),
            "a capture file needs at least 262144 bytes, not 262143"
        );
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_failed_write_ends_the_capture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut files = Files::create(&path, STOP, block(16, 1)).unwrap();
        files.file = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        assert!(!files.append(&block(16, 2)));
        let summary = files.summary();
        let full = Some(End::Failed(io::ErrorKind::StorageFull));
        assert_eq!((summary.frames, summary.end), (0, full));
    }
}
