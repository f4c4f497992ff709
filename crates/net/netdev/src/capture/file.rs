//! The file of a capture, with a bounded length.
//!
//! A file is created with mode 0600 in a directory that not all users may write to. A file that
//! exists is never opened, and a symbolic link never followed. Only whole blocks are written: a
//! block that did not fit on the disk is cut off again.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open, openat};

/// Least bytes of a file behind its head: several of the largest frames.
const LEAST_BYTES: u64 = 256 << 10;

/// Why the file of a capture cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
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
    /// The file cannot be created.
    #[error("{} cannot be created", path.display())]
    System {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// Why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The bound leaves no room for frames.
    #[error("a capture file needs at least {least} bytes, not {bytes}")]
    TooSmall {
        /// Bytes of the bound.
        bytes: u64,
        /// The least bound.
        least: u64,
    },
    /// The beginning of the file cannot be written.
    #[error("the capture file cannot be written")]
    Write(#[source] io::Error),
}

/// What a capture has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Frames in the file.
    pub frames: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Why the capture has ended; `None` while it goes on.
    pub end: Option<End>,
}

/// Why a capture has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The file has reached its bound.
    Bound,
    /// The file could not be written, for this reason.
    Failed(String),
}

/// Creates the file of a capture.
///
/// # Errors
/// Each [`CreateError`] says when.
pub fn create(path: &Path) -> Result<File, CreateError> {
    let name = path.file_name().ok_or_else(|| CreateError::NoName {
        path: path.to_owned(),
    })?;
    let directory = directory_of(path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let created = openat(&directory, name, flags, Mode::RUSR | Mode::WUSR);
    let file = created.map_err(|error| {
        let path = path.to_owned();
        let source = io::Error::from(error);
        if source.kind() == io::ErrorKind::AlreadyExists {
            CreateError::Exists { path }
        } else {
            CreateError::System { path, source }
        }
    })?;
    Ok(file.into())
}

/// The directory of a file, which not all users may write to. It is opened: its path could lead to
/// another one later.
fn directory_of(path: &Path) -> Result<OwnedFd, CreateError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    // The parent of a name alone is empty.
    let path = Path::new(".").join(parent);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(&path, flags, Mode::empty());
    let stat = opened.and_then(|directory| Ok((fstat(&directory)?, directory)));
    match stat {
        Ok((stat, _)) if Mode::from_raw_mode(stat.st_mode).contains(Mode::WOTH) => {
            Err(CreateError::WorldWritable { path })
        }
        Ok((_, directory)) => Ok(directory),
        Err(error) => {
            let source = error.into();
            Err(CreateError::Directory { path, source })
        }
    }
}

/// The file of a running capture.
#[derive(Debug)]
pub(super) struct Bounded {
    file: File,
    /// Most bytes.
    bound: u64,
    /// Bytes of whole blocks in `file`.
    length: u64,
    frames: u64,
    end: Option<End>,
}

impl Bounded {
    /// Begins an empty file with `head`. It gets at most `bound` bytes.
    pub(super) fn begin(mut file: File, bound: u64, head: &[u8]) -> Result<Self, StartError> {
        let length = head.len() as u64;
        let least = LEAST_BYTES + length;
        if bound < least {
            return Err(StartError::TooSmall {
                bytes: bound,
                least,
            });
        }
        file.write_all(head).map_err(StartError::Write)?;
        Ok(Self {
            file,
            bound,
            length,
            frames: 0,
            end: None,
        })
    }

    /// Writes blocks of frames; returns whether the capture goes on. It ends at the first frame
    /// that does not fit.
    pub(super) fn append(&mut self, blocks: &[u8]) -> bool {
        if self.end.is_some() {
            return false;
        }
        let (frames, length) = whole_blocks(blocks, self.bound.saturating_sub(self.length));
        self.write(&blocks[..length], frames);
        if length < blocks.len() && self.end.is_none() {
            self.end = Some(End::Bound);
        }
        self.end.is_none()
    }

    pub(super) fn summary(&self) -> Summary {
        Summary {
            frames: self.frames,
            bytes: self.length,
            end: self.end.clone(),
        }
    }

    fn write(&mut self, blocks: &[u8], frames: u64) {
        if let Err(error) = self.file.write_all(blocks) {
            // If this fails as well, readers report a cut block at the end.
            let _cut = self.file.set_len(self.length);
            self.end = Some(End::Failed(error.to_string()));
            return;
        }
        self.length += blocks.len() as u64;
        self.frames += frames;
    }
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

    /// For a file that begins with a head of 16 bytes.
    const BOUND: u64 = (256 << 10) + 16;

    /// A block of so many bytes, all of them `fill` but for the lengths.
    fn block(bytes: u32, fill: u8) -> Vec<u8> {
        let length = bytes.to_le_bytes();
        let content = vec![fill; bytes as usize - 12];
        [&[fill; 4][..], &length, &content[..], &length].concat()
    }

    #[test]
    fn a_capture_ends_at_its_bound_with_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pcapng");
        let head = block(16, 1);
        let mut file = Bounded::begin(create(&path).unwrap(), BOUND, &head).unwrap();
        let half = block((128 << 10) + 4, 2);
        assert!(file.append(&half));
        // The second half is 8 bytes too long. What follows it would fit, and is left out, too.
        assert!(!file.append(&[half.clone(), block(16, 3)].concat()));
        assert!(!file.append(&block(16, 3)));
        assert_eq!(fs::read(&path).unwrap(), [head, half].concat());
        let expected = Summary {
            frames: 1,
            bytes: 20 + (128 << 10),
            end: Some(End::Bound),
        };
        assert_eq!(file.summary(), expected);
    }

    #[test]
    fn files_are_for_their_owner_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pcapng");
        create(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let again = create(&path).unwrap_err();
        assert!(matches!(again, CreateError::Exists { path: found } if found == path));
        let link = folder.path().join("link");
        let target = folder.path().join("target");
        symlink(&target, &link).unwrap();
        let through = create(&link).unwrap_err();
        assert!(matches!(through, CreateError::Exists { .. }));
        assert!(!target.exists());
    }

    #[test]
    fn a_directory_of_all_users_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o1777] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = create(&folder.path().join("x")).unwrap_err();
            assert!(
                matches!(refused, CreateError::WorldWritable { .. }),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn what_cannot_be_a_capture_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let missing = create(&folder.path().join("missing/x")).unwrap_err();
        let missing = missing.to_string();
        assert!(missing.ends_with("missing cannot be opened as a directory"));
        let root = create(Path::new("/")).unwrap_err();
        assert_eq!(root.to_string(), "/ does not name a file");
        let file = create(&folder.path().join("x")).unwrap();
        let small = Bounded::begin(file, 262_143, &[]).unwrap_err();
        assert_eq!(
            small.to_string(),
            "a capture file needs at least 262144 bytes, not 262143"
        );
    }

    #[test]
    fn a_failed_write_ends_the_capture() {
        let full = || fs::OpenOptions::new().write(true).open("/dev/full");
        let refused = Bounded::begin(full().unwrap(), BOUND, &block(16, 1)).unwrap_err();
        assert!(matches!(refused, StartError::Write(_)), "{refused}");
        let mut file = Bounded::begin(full().unwrap(), BOUND, &[]).unwrap();
        assert!(!file.append(&block(16, 2)));
        let summary = file.summary();
        let Some(End::Failed(reason)) = summary.end else {
            panic!("{summary:?}");
        };
        assert!(reason.contains("No space left"), "{reason}");
        assert_eq!(summary.frames, 0);
    }
}
