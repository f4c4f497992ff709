//! The directories that a snapshot is made of: which may be named together, and which never.

use std::io;
use std::path::{Path, PathBuf};

use crate::name::shown;

/// The rest of the system lies here; a restore of what holds them would replace it.
const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run",
    "/sbin", "/sys", "/tmp", "/usr",
];
const VARIABLE: [&str; 6] = [
    "/var/lib",
    "/var/log",
    "/var/tmp",
    "/var/cache",
    "/var/run",
    "/var/spool",
];
/// Users of people begin here; those of servers have their data as home (RHEL's /var/lib/mysql).
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65534;

/// Why directories cannot be a snapshot's.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// None was named.
    #[error("no directory is named")]
    None,
    /// It cannot be found.
    #[error("cannot use {}: {error}", shown(path))]
    Missing {
        /// As it was named.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It is a file.
    #[error("{} is not a directory", shown(.0))]
    NoDirectory(PathBuf),
    /// A restore would replace parts of the system, or all that a person has.
    #[error(
        "{} holds {}, which is not a server's data; name the data directory itself",
        shown(path),
        shown(holds)
    )]
    TooMuch {
        /// The directory.
        path: PathBuf,
        /// The system's or a person's directory that it is or holds.
        holds: PathBuf,
    },
    /// It stands twice.
    #[error("{} is named twice", shown(.0))]
    Twice(PathBuf),
    /// One lies in the other.
    #[error(
        "{} lies in {}; name the outer directory only, it takes the inner one along",
        shown(inner),
        shown(outer)
    )]
    Nested {
        /// The inner one.
        inner: PathBuf,
        /// The outer one.
        outer: PathBuf,
    },
    /// Snapshot and part lie in each other.
    #[error(
        "the snapshot {} and the directory {} lie in each other; put the snapshot elsewhere",
        shown(snapshot),
        shown(part)
    )]
    Snapshot {
        /// The snapshot's directory.
        snapshot: PathBuf,
        /// The part.
        part: PathBuf,
    },
}

/// The named directories without links, checked against each other and against `snapshot`, a
/// path without links that need not exist.
pub(crate) fn resolve(named: &[PathBuf], snapshot: &Path) -> Result<Vec<PathBuf>, PartError> {
    let mut parts = Vec::new();
    for path in named {
        let real = path.canonicalize().map_err(|error| PartError::Missing {
            path: path.clone(),
            error,
        })?;
        if !real.is_dir() {
            return Err(PartError::NoDirectory(real));
        }
        parts.push(real);
    }
    check(&parts, snapshot)?;
    Ok(parts)
}

/// Checks paths without links.
pub(crate) fn check(parts: &[PathBuf], snapshot: &Path) -> Result<(), PartError> {
    if parts.is_empty() {
        return Err(PartError::None);
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = homes(&passwd);
    for (index, part) in parts.iter().enumerate() {
        if let Some(holds) = kept_apart(part, &homes) {
            let path = part.clone();
            return Err(PartError::TooMuch { path, holds });
        }
        if part.starts_with(snapshot) || snapshot.starts_with(part) {
            return Err(PartError::Snapshot {
                snapshot: snapshot.to_owned(),
                part: part.clone(),
            });
        }
        for other in parts.iter().take(index) {
            check_pair(part, other)?;
        }
    }
    Ok(())
}

fn check_pair(a: &Path, b: &Path) -> Result<(), PartError> {
    if a == b {
        return Err(PartError::Twice(a.to_owned()));
    }
    let (inner, outer) = if a.starts_with(b) { (a, b) } else { (b, a) };
    if inner.starts_with(outer) {
        let (inner, outer) = (inner.to_owned(), outer.to_owned());
        return Err(PartError::Nested { inner, outer });
    }
    Ok(())
}

/// The directory of the system or of a person that `part` is or holds.
fn kept_apart(part: &Path, homes: &[PathBuf]) -> Option<PathBuf> {
    let fixed = SYSTEM.iter().chain(&VARIABLE).map(PathBuf::from);
    let mut kept = fixed.chain(homes.iter().cloned());
    // Kernel file systems hold no data at all.
    let kernel = ["/proc", "/sys"].iter().find(|root| part.starts_with(root));
    kernel
        .map(PathBuf::from)
        .or_else(|| kept.find(|kept| kept.starts_with(part)))
}

/// The homes of root and of people.
fn homes(passwd: &str) -> Vec<PathBuf> {
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let home = PathBuf::from(fields.get(5)?);
        let is_person = uid == 0 || (FIRST_PERSON..NOBODY).contains(&uid);
        (is_person && home.is_absolute() && home.parent().is_some()).then_some(home)
    };
    passwd.lines().filter_map(home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(parts: &[&str]) -> String {
        let parts: Vec<PathBuf> = parts.iter().map(PathBuf::from).collect();
        match check(&parts, Path::new("/bak/mysql")) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn only_data_directories_may_be_named() {
        for (parts, expected) in [
            (&["/data/mysql", "/data/mysql-2", "/ssd2/ts"][..], ""),
            (&["/var/lib/mysql"], ""),
            (&["/tmp/x/data"], ""),
            (&[], "no directory is named"),
            (
                &["/"],
                "/ holds /bin, which is not a server's data; name the data directory itself",
            ),
            (
                &["/var"],
                "/var holds /var/lib, which is not a server's data; name the data directory itself",
            ),
            (
                &["/root"],
                "/root holds /root, which is not a server's data; name the data directory itself",
            ),
            (
                &["/proc/1"],
                "/proc/1 holds /proc, which is not a server's data; name the data directory itself",
            ),
            (&["/d", "/d"], "/d is named twice"),
            (
                &["/d/a", "/d"],
                "/d/a lies in /d; name the outer directory only, it takes the inner one along",
            ),
            (
                &["/bak"],
                "the snapshot /bak/mysql and the directory /bak lie in each other; put the snapshot elsewhere",
            ),
            (
                &["/bak/mysql/files"],
                "the snapshot /bak/mysql and the directory /bak/mysql/files lie in each other; put the snapshot \
                 elsewhere",
            ),
        ] {
            assert_eq!(refusal(parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn homes_of_people_are_kept_apart_and_those_of_servers_not() {
        let homes = homes(
            "root:x:0:0:root:/root:/bin/bash\nmysql:x:27:27::/var/lib/mysql:/sbin/nologin\n\
             ann:x:1000:1000::/people/ann:/bin/sh\nnobody:x:65534:65534::/data:/bin/false\nodd:x:1001:1001::/:/x\n",
        );
        let expected = ["/root", "/people/ann"].map(PathBuf::from);
        assert_eq!(homes, expected);
        let kept = |part: &str| kept_apart(Path::new(part), &homes);
        assert_eq!(kept("/people/ann"), Some("/people/ann".into()));
        assert_eq!(kept("/people"), Some("/people/ann".into()));
        assert_eq!(kept("/people/ann/data"), None);
        assert_eq!(kept("/var/lib/mysql"), None);
    }
}
