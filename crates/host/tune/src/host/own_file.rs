//! Writes and removes files that Saiga created, and no others.

use std::fs;
use std::io;
use std::path::Path;

use saiga_process::replace;

use crate::own_text;

/// Creates, replaces or removes a file. What is not a regular file, or does not begin with the
/// mark of Saiga's files, is left alone.
///
/// # Errors
/// The file was not made by Saiga, or the file system refuses.
pub(super) fn write(path: &Path, text: Option<&str>) -> io::Result<()> {
    let is_there = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            let old = fs::read(path)?;
            if !own_text::is_ours(&String::from_utf8_lossy(&old)) {
                return Err(foreign(path));
            }
            true
        }
        Ok(_) => return Err(foreign(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    match text {
        Some(text) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            if is_there {
                replace::replace(path, text.as_bytes(), 0o644)
            } else {
                replace::create(path, text.as_bytes(), 0o644)
            }
        }
        None if is_there => {
            fs::remove_file(path)?;
            replace::sync_folder(path)
        }
        None => Ok(()),
    }
}

fn foreign(path: &Path) -> io::Error {
    let text = format!("{} was not made by Saiga", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etc/sysctl.d/99-zz-saiga.conf");
        let ours = format!("{}\nvm.swappiness = 1\n", own_text::MARK);
        write(&path, Some(&ours)).unwrap();
        write(&path, Some(&format!("{ours}# more\n"))).unwrap();
        write(&path, None).unwrap();
        write(&path, None).unwrap();
        assert!(!path.exists());
        fs::write(&path, "vm.swappiness = 60\n").unwrap();
        for text in [Some(ours.as_str()), None] {
            let error = write(&path, text).unwrap_err().to_string();
            assert!(
                error.ends_with("99-zz-saiga.conf was not made by Saiga"),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "vm.swappiness = 60\n");
        fs::remove_file(&path).unwrap();
        symlink("/nowhere/passwd", &path).unwrap();
        assert!(write(&path, Some(&ours)).is_err(), "a symbolic link");
    }
}
