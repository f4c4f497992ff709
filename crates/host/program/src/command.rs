//! Finds the file that a command name stands for, as execvp(3) does.
//!
//! A name with a slash is a path; any other name is searched in the folders of PATH. A folder or a
//! file without execute permission is skipped, but is reported when no later folder has the name.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, stat};
use rustix::io::Errno;

/// Search path of execvp(3) when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file to execute for a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub program: PathBuf,
    /// A text file without `#!`, which the kernel refuses; a shell, `program`, reads it instead.
    pub script: Option<PathBuf>,
}

/// A command that cannot be executed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("cannot run a command without a name")]
    NoName,
    #[error("command not found: {name} (searched in {path})")]
    NotFound { name: String, path: String },
    #[error("cannot run {}: {}", file.display(), reason(*errno))]
    NotExecutable { file: PathBuf, errno: Errno },
}

impl Command {
    /// Finds the command `name` in the folders of `path`, the value of PATH.
    pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<Self, CommandError> {
        if name.is_empty() {
            return Err(CommandError::NoName);
        }
        let not_executable = |file, errno| CommandError::NotExecutable { file, errno };
        if name.as_bytes().contains(&b'/') {
            let file = PathBuf::from(name);
            return match executable(&file) {
                Ok(()) => Ok(Self::of(file)),
                Err(errno) => Err(not_executable(file, errno)),
            };
        }
        let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
        let mut denied = None;
        for folder in path.as_bytes().split(|byte| *byte == b':') {
            let folder = if folder.is_empty() { b"." } else { folder };
            let file = Path::new(OsStr::from_bytes(folder)).join(name);
            match executable(&file) {
                Ok(()) => return Ok(Self::of(file)),
                Err(Errno::ACCESS) => denied = denied.or(Some(file)),
                Err(_) => {}
            }
        }
        Err(match denied {
            Some(file) => not_executable(file, Errno::ACCESS),
            None => CommandError::NotFound {
                name: name.to_string_lossy().into_owned(),
                path: path.to_string_lossy().into_owned(),
            },
        })
    }

    fn of(file: PathBuf) -> Self {
        let mut head = [0; 4];
        let read = File::open(&file).and_then(|file| file.read_at(&mut head, 0));
        // A shell could not read a file that may be executed but not read.
        let is_shell_script =
            read.is_ok_and(|n| n > 0) && !head.starts_with(b"#!") && &head != b"\x7fELF";
        if is_shell_script {
            Self {
                program: PathBuf::from("/bin/sh"),
                script: Some(file),
            }
        } else {
            Self {
                program: file,
                script: None,
            }
        }
    }
}

fn reason(errno: Errno) -> String {
    match errno {
        Errno::NOENT | Errno::NOTDIR => "there is no such file".to_owned(),
        Errno::ACCESS => "this user may not execute it".to_owned(),
        Errno::ISDIR => "it is a folder".to_owned(),
        other => other.to_string(),
    }
}

fn executable(file: &Path) -> Result<(), Errno> {
    if FileType::from_raw_mode(stat(file)?.st_mode).is_dir() {
        return Err(Errno::ISDIR);
    }
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn names_are_found_as_execvp_finds_them() {
        let root = tempfile::tempdir().unwrap();
        for (name, text, mode) in [
            ("a/tool", "#!/bin/sh\n", 0o755),
            ("b/tool", "#!/bin/sh\n", 0o755),
            ("a/plain", "#!/bin/sh\n", 0o644),
            ("b/bare", "echo no first line\n", 0o755),
        ] {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(root.path().join("a/bare")).unwrap();
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        let path = std::env::join_paths([&a, &b]).unwrap();
        let find = |name: &str| Command::find(OsStr::new(name), Some(&path));

        assert_eq!(
            find("tool").unwrap().program,
            a.join("tool"),
            "the first in PATH"
        );
        let bare = find("bare").unwrap();
        assert_eq!(
            bare.program,
            Path::new("/bin/sh"),
            "a folder of that name is skipped"
        );
        assert_eq!(bare.script, Some(b.join("bare")));
        for (name, expected) in [
            ("nothing", "command not found: nothing (searched in"),
            ("plain", "a/plain: this user may not execute it"),
            ("./nothing", "cannot run ./nothing: there is no such file"),
            ("/", "cannot run /: it is a folder"),
            ("", "without a name"),
        ] {
            let error = find(name).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
