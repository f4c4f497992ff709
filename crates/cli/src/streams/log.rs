//! Where log lines of the labeller go: to stderr, which is the journal under systemd, or to a file that may be rotated.

use std::cell::{Cell, RefCell};
use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use saiga_streams::labeller::Level;

use crate::exit;

/// Takes log lines.
#[derive(Debug)]
pub(super) struct Log {
    file: Option<Rotated>,
    is_verbose: bool,
}

/// A file that goes on under its name when somebody has renamed it.
#[derive(Debug)]
struct Rotated {
    path: PathBuf,
    file: RefCell<File>,
    is_failing: Cell<bool>,
}

impl Log {
    /// A log on stderr, or in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn new(path: Option<&Path>, is_verbose: bool) -> io::Result<Self> {
        let file = path.map(|path| {
            Ok::<_, io::Error>(Rotated {
                path: path.to_owned(),
                file: RefCell::new(open(path)?),
                is_failing: Cell::new(false),
            })
        });
        Ok(Self {
            file: file.transpose()?,
            is_verbose,
        })
    }

    /// Logs one line.
    pub(super) fn say(&self, level: Level, text: &str) {
        let text = match level {
            Level::Detail if !self.is_verbose => return,
            Level::Warn => format!("warning: {text}"),
            Level::Info | Level::Begun | Level::Detail => text.to_owned(),
        };
        match &self.file {
            None => exit::say(&text),
            Some(file) => file.write(&text),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Nobody is waited for at the other end of a pipe.
    let flags = libc::O_NONBLOCK;
    let mut options = File::options();
    options
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(flags);
    options.open(path)
}

impl Rotated {
    /// Writes a line with the time before it. A log that cannot be written holds up no label: it is said once, on stderr.
    fn write(&self, text: &str) {
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        let written = self
            .follow()
            .and_then(|()| writeln!(self.file.borrow_mut(), "{now} {text}"));
        match written {
            Ok(()) => self.is_failing.set(false),
            Err(error) => {
                if !self.is_failing.replace(true) {
                    let path = self.path.display();
                    exit::say(&format!("cannot log into {path}: {error}; lines are lost"));
                }
            }
        }
    }

    /// Opens the file under its name again, where that is another one by now.
    fn follow(&self) -> io::Result<()> {
        let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let open_one = self.file.borrow().metadata()?;
        if !std::fs::metadata(&self.path).is_ok_and(|named| same(&named, &open_one)) {
            self.file.replace(open(&self.path)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_follows_its_name_and_keeps_details_for_those_who_ask() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = Log::new(Some(&path), false).unwrap();
        log.say(Level::Warn, "one");
        log.say(Level::Detail, "two");
        std::fs::rename(&path, &old).unwrap();
        log.say(Level::Info, "three");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&old).ends_with("Z warning: one\n"), "{}", read(&old));
        assert!(read(&path).ends_with("Z three\n"), "{}", read(&path));
        assert_eq!(read(&path).lines().count(), 1);
        assert!(Log::new(Some(folder.path()), false).is_err());
    }

    #[test]
    fn a_full_disk_stops_nothing() {
        let log = Log::new(Some(Path::new("/dev/full")), true).unwrap();
        log.say(Level::Detail, "lost");
        assert!(log.file.unwrap().is_failing.get());
    }
}
