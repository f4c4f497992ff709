//! The file `environment` of a PostgreSQL cluster: the variables of its server, and one line of ours.
//!
//! Spec: its own header, and `read_conf_file` of postgresql-common's PgCommon.pm: `NAME = 'value'`,
//! the last one counts, `#` begins a comment. Every other line stays as it is, byte for byte.

use std::fs::{self, Metadata};
use std::path::Path;

use anyhow::{Context, bail};

use super::file::{self, Like, Rights};

/// The end of our line.
const MARK: &str = "# written by `saiga enable`; `saiga disable` removes it";

/// The file as it is, and what it is like.
#[derive(Debug)]
pub(super) struct Environment {
    bytes: Vec<u8>,
    facts: Metadata,
    rights: Rights,
}

impl Environment {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it is missing (another file counts then), no plain file, or closed to us.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let folder = path.parent().context("it is in a cluster's folder")?;
        let rights = Rights::of_owner(folder).with_context(cannot)?;
        let facts = rights
            .with(|| fs::symlink_metadata(path))
            .with_context(cannot)?;
        if !facts.is_file() {
            bail!(
                "{} is not a plain file; Saiga edits no other",
                path.display()
            );
        }
        let bytes = rights.with(|| fs::read(path)).with_context(cannot)?;
        Ok(Self {
            bytes,
            facts,
            rights,
        })
    }

    /// A variable's value without our line.
    pub(super) fn value(&self, variable: &str) -> Option<String> {
        value(&String::from_utf8_lossy(&without(&self.bytes)), variable)
    }

    /// Whether a line of ours is in it.
    pub(super) fn has_line(&self) -> bool {
        has_line(&self.bytes)
    }

    /// Its content with our line at the end, where it counts.
    pub(super) fn with(&self, preload: &str) -> Vec<u8> {
        let mut text = without(&self.bytes);
        let quoted = preload.replace('\\', r"\\").replace('\'', "''");
        let line = format!("LD_PRELOAD = '{quoted}' {MARK}");
        // Where the last line has no end, ours has none, so that removing it restores the file.
        let ends = text.last().is_none_or(|byte| *byte == b'\n');
        let line = if ends {
            line + "\n"
        } else {
            format!("\n{line}")
        };
        text.extend(line.into_bytes());
        text
    }

    /// Its content without our line.
    pub(super) fn without(&self) -> Vec<u8> {
        without(&self.bytes)
    }

    /// Whether it holds these bytes.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes
    }

    /// Puts `bytes` in its place, its owner and permissions unchanged.
    ///
    /// # Errors
    /// What the system says, and what to do.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        file::replace(path, bytes, Like::file(&self.facts), self.rights)
            .with_context(|| format!("cannot write {}; are you root?", path.display()))
    }
}

/// The value of `key` in a file of settings of PostgreSQL's kind.
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
        None => return None, // Another key that begins like this one.
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

fn is_ours(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(MARK.as_bytes())
}

fn has_line(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(is_ours)
}

/// Takes our line out.
fn without(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !is_ours(line) {
            kept.extend_from_slice(line);
        } else if !line.ends_with(b"\n") && kept.last() == Some(&b'\n') {
            kept.pop();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> Environment {
        Environment {
            bytes: text.to_vec(),
            facts: fs::metadata("/").unwrap(),
            rights: Rights::Caller,
        }
    }

    #[test]
    fn our_line_goes_as_it_came() {
        for text in [
            &b""[..],
            b"A = b\n",
            b"A = b",
            b"# \xff not UTF-8\nA = b\n\n",
            b"\n",
        ] {
            let enabled = file(&file(text).with("/l/libsaiga.so"));
            assert!(enabled.has_line() && !file(text).has_line());
            assert_eq!(enabled.without(), text);
            assert!(
                enabled.is(&enabled.with("/l/libsaiga.so")),
                "there is one line of ours"
            );
        }
    }

    #[test]
    fn lines_that_came_later_stay() {
        let mut text = file(b"A = b").with("/l/libsaiga.so");
        text.extend(b"\nC = d\n");
        assert_eq!(file(&text).without(), b"A = b\nC = d\n");
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
        let odd = file(b"").with("/it's/b\\c.so");
        assert_eq!(
            value(&String::from_utf8(odd).unwrap(), "LD_PRELOAD").as_deref(),
            Some("/it's/b\\c.so")
        );
    }
}
