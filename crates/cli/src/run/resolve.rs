//! Finds the file behind a command's name, as execvp(3) does.
#![expect(unsafe_code, reason = "faccessat")]

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

/// What execvp(3) uses when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What to execute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// The file to execute.
    pub(crate) program: PathBuf,
    /// Set when the kernel would not know the file's format: it is then the shell's script.
    pub(crate) script: Option<PathBuf>,
}

/// Finds the file that `name` stands for.
///
/// # Errors
/// When there is none, or none that this user may execute; the text names it.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> anyhow::Result<Command> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match executable(&file) {
            Ok(()) => Ok(Command::of(file)),
            Err(error) => Err(anyhow!("cannot run {shown}: {}", reason(&error))),
        };
    }
    if name.is_empty() {
        bail!("cannot run a command without a name");
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut denied = None;
    for folder in path.as_bytes().split(|byte| *byte == b':') {
        let folder = if folder.is_empty() { b"." } else { folder };
        let file = Path::new(OsStr::from_bytes(folder)).join(name);
        match executable(&file) {
            Ok(()) => return Ok(Command::of(file)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                denied = denied.or(Some(file));
            }
            Err(_) => {}
        }
    }
    match denied {
        Some(file) => bail!(
            "cannot run {}: this user may not execute it",
            file.display()
        ),
        None => bail!(
            "command not found: {shown} (looked in {})",
            path.to_string_lossy()
        ),
    }
}

impl Command {
    fn of(file: PathBuf) -> Self {
        let mut head = [0; 4];
        let read = File::open(&file).and_then(|file| file.read_at(&mut head, 0));
        // A file that may be executed but not read is not a script: a shell could not read it.
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

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => "there is no such file".to_owned(),
        Some(libc::EACCES) => "this user may not execute it".to_owned(),
        Some(libc::EISDIR) => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

fn executable(file: &Path) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    let path = CString::new(file.as_os_str().as_bytes())?;
    // SAFETY: `path` is a C string.
    if unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) } == 0
    {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
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
        let find = |name: &str| find(OsStr::new(name), Some(&path));

        assert_eq!(
            find("tool").unwrap().program,
            a.join("tool"),
            "the first in PATH"
        );
        let bare = find("bare").unwrap();
        assert_eq!(
            bare.program,
            Path::new("/bin/sh"),
            "a folder of that name is passed over"
        );
        assert_eq!(bare.script, Some(b.join("bare")));
        for (name, expected) in [
            ("nothing", "command not found: nothing"),
            ("plain", "may not execute"),
            ("./nothing", "no such file"),
            ("/", "it is a folder"),
            ("", "without a name"),
        ] {
            let error = find(name).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
