//! The log of the labeller: to stderr, which is the journal under systemd, or to a file that may be
//! rotated.

use std::cell::{Cell, RefCell};
use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use saiga_streams::labeller::Level;

use super::stderr::Stderr;
use crate::printable::printable;

#[derive(Debug)]
pub(super) struct Log {
    file: Option<Rotated>,
    stderr: Stderr,
    is_verbose: bool,
}

/// A log file that is opened again under its name after it was renamed.
#[derive(Debug)]
struct Rotated {
    path: PathBuf,
    file: RefCell<File>,
    is_failing: Cell<bool>,
}

impl Log {
    /// Opens the log: stderr, or the file at `path`.
    ///
    /// # Errors
    /// The file cannot be opened.
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
            stderr: Stderr::default(),
            is_verbose,
        })
    }

    pub(super) fn say(&self, level: Level, text: &str) {
        let text = printable(text);
        let text = match level {
            Level::Detail if !self.is_verbose => return,
            Level::Warn => format!("warning: {text}"),
            Level::Info | Level::Begun | Level::Detail => text,
        };
        match &self.file {
            None => self.stderr.write(&text),
            Some(file) => {
                if let Some(complaint) = file.write(&text) {
                    self.stderr.write(&complaint);
                }
            }
        }
    }
}

/// Follows a symbolic link only if no other user could have made it: root appends text that other
/// users choose, such as file names.
fn open(path: &Path) -> io::Result<File> {
    // O_NONBLOCK: do not wait for the reader of a pipe.
    let flags = libc::O_NONBLOCK;
    let mut options = File::options();
    options.append(true).create(true).mode(0o640);
    match options.custom_flags(flags | libc::O_NOFOLLOW).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            if is_open_to_others(path)? {
                let text = "it is a symbolic link in a directory that other users can write to";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            options.custom_flags(flags).open(path)
        }
        opened => opened,
    }
}

/// Whether other users can write to the directory of `path`.
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    let stat = std::fs::metadata(folder)?;
    let is_trusted = [0, rustix::process::geteuid().as_raw()].contains(&stat.uid());
    Ok(!is_trusted || stat.mode() & 0o022 != 0)
}

impl Rotated {
    /// Writes a line with a timestamp. An error does not stop the labeller: the first one is
    /// returned as a message.
    fn write(&self, text: &str) -> Option<String> {
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        let written = self
            .follow()
            .and_then(|()| writeln!(self.file.borrow_mut(), "{now} {text}"));
        let error = match written {
            Ok(()) => {
                self.is_failing.set(false);
                return None;
            }
            Err(error) => error,
        };
        let path = self.path.display();
        let is_news = !self.is_failing.replace(true);
        is_news.then(|| format!("cannot write the log to {path}: {error}; lines are lost"))
    }

    /// Opens the file again if its name now leads to another file.
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
    fn a_renamed_log_is_reopened_and_details_need_verbose() {
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
    fn a_file_name_cannot_start_a_log_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::new(Some(&path), false).unwrap();
        log.say(Level::Info, "a\n* * * * * root evil\u{1b}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.ends_with("Z a\\n* * * * * root evil\\u{1b}\n"),
            "{text}"
        );
    }

    #[test]
    fn a_link_in_a_shared_directory_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (dir, other) = (folder.path().join("dir"), folder.path().join("other"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&other, "").unwrap();
        let path = dir.join("log");
        symlink(&other, &path).unwrap();
        let mode = |mode| std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o777);
        let error = Log::new(Some(&path), false).unwrap_err().to_string();
        assert!(
            error.contains("it is a symbolic link in a directory"),
            "{error}"
        );
        mode(0o755);
        Log::new(Some(&path), false)
            .unwrap()
            .say(Level::Info, "ours");
        assert!(
            std::fs::read_to_string(&other)
                .unwrap()
                .ends_with("Z ours\n")
        );
    }

    #[test]
    fn a_full_disk_does_not_stop_the_labeller() {
        let log = Log::new(Some(Path::new("/dev/full")), true).unwrap();
        log.say(Level::Detail, "lost");
        assert!(log.file.unwrap().is_failing.get());
    }
}
