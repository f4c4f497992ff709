//! Paths as words in the text of a unit (`man 5 systemd.syntax`, `man 5 systemd.unit`).

use std::path::{Path, PathBuf};

/// A path that cannot be written in a unit.
#[derive(Debug, thiserror::Error)]
pub enum WordError {
    #[error("{} is not an absolute path, which a unit needs", .0.display())]
    NotAbsolute(PathBuf),
    #[error(
        "{} cannot be written in a unit: it is not UTF-8 or has a control character",
        .0.display()
    )]
    NotText(PathBuf),
}

/// Checks that `path` is absolute and returns it.
pub fn absolute(path: &Path) -> Result<&Path, WordError> {
    if !path.is_absolute() {
        return Err(WordError::NotAbsolute(path.to_owned()));
    }
    Ok(path)
}

/// A path as a word of a command line, in which systemd also replaces variables.
pub fn command_word(path: &Path) -> Result<String, WordError> {
    Ok(word(path)?.replace('$', "$$"))
}

/// A path as a word of a setting, quoted if necessary; specifiers (`%`) are escaped.
pub fn word(path: &Path) -> Result<String, WordError> {
    let text = path
        .to_str()
        .filter(|text| !text.chars().any(char::is_control))
        .ok_or_else(|| WordError::NotText(path.to_owned()))?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@,=".contains(letter);
    if text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    let mut word = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => word.extend(['\\', letter]),
            '%' => word.push_str("%%"),
            _ => word.push(letter),
        }
    }
    word.push('"');
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn paths_are_quoted_and_escaped() {
        for (path, setting, command) in [
            ("/srv/data-1", "/srv/data-1", "/srv/data-1"),
            ("/srv/my data", "\"/srv/my data\"", "\"/srv/my data\""),
            ("/srv/50%$x", "\"/srv/50%%$x\"", "\"/srv/50%%$$x\""),
            ("/a\"b\\c", "\"/a\\\"b\\\\c\"", "\"/a\\\"b\\\\c\""),
        ] {
            assert_eq!(word(Path::new(path)).unwrap(), setting);
            assert_eq!(command_word(Path::new(path)).unwrap(), command);
        }
        for path in [&b"/a\nb"[..], b"/\xff"] {
            assert!(word(Path::new(OsStr::from_bytes(path))).is_err());
        }
        assert!(absolute(Path::new("a")).is_err());
    }
}
