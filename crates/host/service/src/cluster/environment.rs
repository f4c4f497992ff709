//! The file `environment` of a PostgreSQL cluster: the variables of its server, and a line of
//! Saiga's at the end, where it overrides earlier lines.
//!
//! Spec: the header of that file, and `read_conf_file` in PgCommon.pm of postgresql-common:
//! `NAME = 'value'`, the last assignment counts, `#` begins a comment. All other lines are kept
//! byte for byte.

use std::fs::{self, Metadata};
use std::path::Path;

use super::ClusterError;
use crate::replace::{self, FileError, Rights};

/// The end of Saiga's line.
const MARK: &str = "# written by `saiga enable`; `saiga disable` removes it";

/// The content of the file, and what a new version of the file needs.
#[derive(Debug)]
pub(super) struct Environment {
    bytes: Vec<u8>,
    metadata: Metadata,
    rights: Rights,
}

impl Environment {
    /// Reads the file at `path`. A missing file is an error: `pg_ctlcluster` reads a file for all
    /// clusters then.
    pub(super) fn read(path: &Path) -> Result<Self, ClusterError> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let rights = Rights::of_owner(folder).map_err(FileError::read(path))?;
        let metadata = rights.with(|| fs::symlink_metadata(path));
        let metadata = metadata.map_err(FileError::read(path))?;
        if !metadata.is_file() {
            return Err(ClusterError::NotPlain(path.to_owned()));
        }
        let bytes = rights.with(|| fs::read(path));
        Ok(Self {
            bytes: bytes.map_err(FileError::read(path))?,
            metadata,
            rights,
        })
    }

    /// A variable's value without Saiga's line.
    pub(super) fn value(&self, variable: &str) -> Option<String> {
        value(&String::from_utf8_lossy(&self.disabled()), variable)
    }

    /// Whether the file has a line of Saiga's.
    pub(super) fn is_enabled(&self) -> bool {
        self.bytes.split(|byte| *byte == b'\n').any(is_ours)
    }

    /// Whether the file has the line of Saiga's that [`Self::enabled_with`] would add.
    pub(super) fn is_enabled_with(&self, preload: &str) -> bool {
        self.bytes == self.enabled_with(preload)
    }

    /// The content with Saiga's line at the end.
    pub(super) fn enabled_with(&self, preload: &str) -> Vec<u8> {
        let mut text = self.disabled();
        let quoted = preload.replace('\\', r"\\").replace('\'', "''");
        let line = format!("LD_PRELOAD = '{quoted}' {MARK}");
        // After a last line without a line feed, Saiga's has none either, so that its removal
        // restores the file.
        let is_complete = text.last().is_none_or(|byte| *byte == b'\n');
        let line = if is_complete {
            line + "\n"
        } else {
            format!("\n{line}")
        };
        text.extend(line.into_bytes());
        text
    }

    /// The content without Saiga's line.
    pub(super) fn disabled(&self) -> Vec<u8> {
        let mut kept = Vec::with_capacity(self.bytes.len());
        for line in self.bytes.split_inclusive(|byte| *byte == b'\n') {
            if !is_ours(line) {
                kept.extend_from_slice(line);
            } else if !line.ends_with(b"\n") && kept.last() == Some(&b'\n') {
                kept.pop();
            }
        }
        kept
    }

    /// Replaces the file at `path`; owner and permissions are kept.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        replace::replace(path, bytes, &self.metadata, self.rights).map_err(FileError::write(path))
    }
}

fn is_ours(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(MARK.as_bytes())
}

/// The value of `key` in a file of PostgreSQL's syntax.
pub(super) fn value(text: &str, key: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| assigned(line.trim_start(), key))
        .next_back()
}

fn assigned(line: &str, key: &str) -> Option<String> {
    let rest = line.strip_prefix(key)?;
    let value = rest.trim_start();
    let value = match value.strip_prefix('=') {
        Some(value) => value.trim_start(),
        None if value.len() < rest.len() => value,
        None => return None, // `key` is only the beginning of another key.
    };
    let Some(quoted) = value.strip_prefix('\'') else {
        let end = value.find(|c: char| c.is_whitespace() || c == '#');
        return Some(value[..end.unwrap_or(value.len())].to_owned());
    };
    let mut unquoted = String::new();
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => unquoted.extend(chars.next()),
            '\'' if chars.peek() == Some(&'\'') => unquoted.extend(chars.next()),
            '\'' => break,
            _ => unquoted.push(c),
        }
    }
    Some(unquoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> Environment {
        Environment {
            bytes: text.to_vec(),
            metadata: fs::metadata("/").unwrap(),
            rights: Rights::Caller,
        }
    }

    #[test]
    fn removing_our_line_restores_the_file() {
        for text in [
            &b""[..],
            b"A = b\n",
            b"A = b",
            b"# \xff not UTF-8\nA = b\n\n",
            b"\n",
        ] {
            let enabled = file(&file(text).enabled_with("/l/libsaiga.so"));
            assert!(enabled.is_enabled() && !file(text).is_enabled());
            assert_eq!(enabled.disabled(), text);
            assert!(
                enabled.is_enabled_with("/l/libsaiga.so"),
                "a second line is not added"
            );
            assert!(!enabled.is_enabled_with("/other/libsaiga.so"));
        }
    }

    #[test]
    fn lines_that_were_added_later_stay() {
        let mut text = file(b"A = b").enabled_with("/l/libsaiga.so");
        text.extend(b"\nC = d\n");
        assert_eq!(file(&text).disabled(), b"A = b\nC = d\n");
    }

    #[test]
    fn values_are_read_as_pg_ctlcluster_does() {
        let text = "# A = 0\nA = 1\n A 'x y' # z\nAB = 2\nB='it''s \\\\' # c\nC = /l/a.so\nD\n";
        for (key, expected) in [
            ("A", Some("x y")),
            ("B", Some("it's \\")),
            ("C", Some("/l/a.so")),
            ("AB", Some("2")),
            ("E", None),
        ] {
            assert_eq!(value(text, key).as_deref(), expected, "{key}");
        }
        let odd = file(b"").enabled_with("/it's/b\\c.so");
        assert_eq!(
            value(&String::from_utf8(odd).unwrap(), "LD_PRELOAD").as_deref(),
            Some("/it's/b\\c.so")
        );
    }
}
