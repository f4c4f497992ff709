//! The record of changes: a file of root below `/run`, one line for each event.
//!
//! A change is recorded before it is made. The file is locked: exclusively while changes are made
//! or undone, and shared by each gateway that uses them. It is trusted as far as its rights go: it
//! must be a regular file of root with mode 0600 in a directory of root, and it holds only
//! addresses, numbers and names, never paths. It ends with a reboot, like the changes.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, lstat};
use saiga_process::lock::{FlockOperation, try_lock};
use serde::{Deserialize, Serialize};

use crate::change::Change;

/// The usual place. The directory of the control socket is not used: it belongs to the user of the
/// gateway.
pub const RECORD: &str = "/run/saiga-gateway.prepared";
/// Bytes of the largest record. `up` adds some hundred at most.
const MOST_BYTES: u64 = 64 << 10;
/// Bytes up to which changes are recorded. The lines that end a change are shorter than the line
/// that begins it, so there is always room to undo all changes.
const MOST_BYTES_TO_BEGIN: u64 = MOST_BYTES / 2;
/// Attempts to open a record that `down` removes at the same time.
const TRIES: usize = 8;

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another process has locked the record.
    #[error(
        "a gateway uses what `up --prepare` has changed, or another process is changing it: end it \
         first ({} is locked)",
        path.display()
    )]
    InUse {
        /// Path of the record.
        path: PathBuf,
    },
    /// Other users may have written the record.
    #[error(
        "{} is not a file that only root can write, with mode 0600 and one name, in a directory of \
         root: its contents are ignored: remove it",
        path.display()
    )]
    Unsafe {
        /// Path of the record.
        path: PathBuf,
    },
    /// The record has contents that no version of Saiga wrote.
    #[error(
        "line {line} of {} is damaged: undo the changes by hand, or restart the machine, and remove \
         the file",
        path.display()
    )]
    Damaged {
        /// Path of the record.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A system call failed.
    #[error("{}: {source}", path.display())]
    System {
        /// Path of the record.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
}

/// Prevents `undo` while this process uses the changes.
#[derive(Debug)]
pub struct Hold {
    /// Not writable: a process that is taken over must not write what root reads later.
    _locked: File,
}

/// A line of the record: one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    /// This change is about to be made.
    Begin(Change),
    /// The change with this number was made completely.
    Made(usize),
    /// The change with this number was undone.
    Undone(usize),
}

/// A recorded change and how far it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) change: Change,
    pub(crate) is_made: bool,
    pub(crate) is_undone: bool,
}

/// The record, locked exclusively.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

/// Whether a missing record is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    Leave,
}

/// Holds what an earlier `up --prepare` has changed, for a gateway that may use it; `None` if
/// nothing was changed.
///
/// # Errors
/// Each [`RecordError`] says when.
pub fn hold(path: &Path) -> Result<Option<Hold>, RecordError> {
    let locked = open(path, OFlags::RDONLY, FlockOperation::NonBlockingLockShared)?;
    Ok(locked.map(|file| Hold { _locked: file }))
}

/// Opens and locks the record; `None` if there is none.
fn open(path: &Path, flags: OFlags, lock: FlockOperation) -> Result<Option<File>, RecordError> {
    let system = |source| RecordError::System {
        path: path.to_owned(),
        source,
    };
    for _ in 0..TRIES {
        // A FIFO is opened without waiting, and refused.
        let always = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match rustix::fs::open(path, flags | always, mode) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => {
                let path = path.to_owned();
                return Err(RecordError::Unsafe { path });
            }
            Err(error) => return Err(system(error.into())),
        };
        let own = fstat(&file).map_err(|error| system(error.into()))?;
        if !is_safe(&own) || !is_in_safe_folder(path) {
            let path = path.to_owned();
            return Err(RecordError::Unsafe { path });
        }
        if !try_lock(&file, lock).map_err(system)? {
            let path = path.to_owned();
            return Err(RecordError::InUse { path });
        }
        // The file may have been removed before it was locked.
        if lstat(path).is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)) {
            return Ok(Some(file));
        }
    }
    let path = path.to_owned();
    Err(RecordError::InUse { path })
}

fn is_safe(file: &Stat) -> bool {
    FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
        && file.st_uid == 0
        && Mode::from_raw_mode(file.st_mode) == Mode::RUSR | Mode::WUSR
        && file.st_nlink == 1
}

fn is_in_safe_folder(path: &Path) -> bool {
    let folder = rustix::fs::stat(path.parent().unwrap_or(Path::new("/")));
    folder.is_ok_and(|folder| {
        let mode = Mode::from_raw_mode(folder.st_mode);
        folder.st_uid == 0 && !mode.intersects(Mode::WGRP | Mode::WOTH)
    })
}

impl Record {
    /// Opens the record, and locks it for changes; `None` if there is none and none is made.
    pub(crate) fn open(path: &Path, missing: Missing) -> Result<Option<Self>, RecordError> {
        let flags = match missing {
            Missing::Make => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
            Missing::Leave => OFlags::RDWR | OFlags::APPEND,
        };
        let lock = FlockOperation::NonBlockingLockExclusive;
        let Some(file) = open(path, flags, lock)? else {
            return Ok(None);
        };
        let mut record = Self {
            path: path.to_owned(),
            file,
            entries: Vec::new(),
        };
        record.load()?;
        Ok(Some(record))
    }

    fn load(&mut self) -> Result<(), RecordError> {
        let mut text = String::new();
        let limited = &mut (&self.file).take(MOST_BYTES + 1);
        let read = limited.read_to_string(&mut text);
        if matches!(&read, Err(error) if error.kind() == io::ErrorKind::InvalidData)
            || text.len() as u64 > MOST_BYTES
        {
            return Err(self.damaged(1));
        }
        read.map_err(|source| self.system(source))?;
        // A killed process can leave a part of a line, and has not begun with its change.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            self.cut(whole as u64)?;
        }
        for (number, line) in (1..).zip(text[..whole].lines()) {
            let line = serde_json::from_str(line).ok();
            let taken = line.and_then(|line| self.take(line));
            taken.ok_or_else(|| self.damaged(number))?;
        }
        Ok(())
    }

    /// Applies an event to the entries; `None` if it does not fit.
    fn take(&mut self, line: Line) -> Option<()> {
        match line {
            Line::Begin(change) => self.entries.push(Entry {
                change: Some(change).filter(Change::is_valid)?,
                is_made: false,
                is_undone: false,
            }),
            Line::Made(number) => self.entries.get_mut(number)?.is_made = true,
            Line::Undone(number) => self.entries.get_mut(number)?.is_undone = true,
        }
        Some(())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Records a change that is about to be made; returns its number.
    pub(crate) fn begin(&mut self, change: Change) -> Result<usize, RecordError> {
        self.append(Line::Begin(change))?;
        Ok(self.entries.len() - 1)
    }

    pub(crate) fn made(&mut self, number: usize) -> Result<(), RecordError> {
        self.append(Line::Made(number))
    }

    pub(crate) fn undone(&mut self, number: usize) -> Result<(), RecordError> {
        self.append(Line::Undone(number))
    }

    fn append(&mut self, line: Line) -> Result<(), RecordError> {
        let text = serde_json::to_string(&line).map_err(|error| self.system(error.into()))? + "\n";
        let length = self.file.seek(io::SeekFrom::End(0));
        let length = length.map_err(|source| self.system(source))?;
        let is_begin = matches!(line, Line::Begin(_));
        if is_begin && length + text.len() as u64 > MOST_BYTES_TO_BEGIN {
            return Err(self.system(io::ErrorKind::FileTooLarge.into()));
        }
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            self.cut(length)?;
            return Err(self.system(source));
        }
        self.take(line).ok_or_else(|| self.damaged(0))
    }

    fn cut(&self, length: u64) -> Result<(), RecordError> {
        let cut = self.file.set_len(length);
        cut.map_err(|source| self.system(source))
    }

    /// Shares the record with other gateways for as long as this one uses the changes.
    pub(crate) fn share(self) -> Result<Hold, RecordError> {
        let in_use = || RecordError::InUse {
            path: self.path.clone(),
        };
        let shared = try_lock(&self.file, FlockOperation::NonBlockingLockShared);
        // The kernel gives a lock up before it takes the other one, and `down` can come between.
        if !shared.map_err(|source| self.system(source))? {
            return Err(in_use());
        }
        hold(&self.path)?.ok_or_else(in_use)
    }

    /// Removes the record, with its lock.
    pub(crate) fn remove(self) -> Result<(), RecordError> {
        let removed = std::fs::remove_file(&self.path);
        removed.map_err(|source| self.system(source))
    }

    fn system(&self, source: io::Error) -> RecordError {
        RecordError::System {
            path: self.path.clone(),
            source,
        }
    }

    fn damaged(&self, line: usize) -> RecordError {
        RecordError::Damaged {
            path: self.path.clone(),
            line,
        }
    }
}
