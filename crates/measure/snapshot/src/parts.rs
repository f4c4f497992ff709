//! Checks the directories of a snapshot: none may belong to the system, and none may overlap.

use std::io;
use std::path::{Path, PathBuf};

use saiga_process::account::{self, Account};

use crate::name::shown;

/// Directories of the system. A restore of one of them, or of a parent, would replace the system.
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
/// First UID of people. The home of a server's user may be its data directory (/var/lib/mysql on
/// RHEL), so homes of smaller UIDs are allowed.
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65534;

/// Directories that cannot be the parts of a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("no directory was named")]
    None,
    #[error("cannot use {}: {error}", shown(path))]
    Missing {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{} is not a directory", shown(.0))]
    NoDirectory(PathBuf),
    /// A restore would replace a directory of the system or the home of a person.
    #[error(
        "{} holds {}, which is not a server's data; name the data directory itself",
        shown(path),
        shown(holds)
    )]
    TooMuch {
        path: PathBuf,
        /// The directory of the system or of a person; equal to `path` or below it.
        holds: PathBuf,
    },
    #[error("{} is named twice", shown(.0))]
    Twice(PathBuf),
    #[error(
        "{} is inside {}; name only the outer directory, which includes the inner one",
        shown(inner),
        shown(outer)
    )]
    Nested { inner: PathBuf, outer: PathBuf },
    #[error(
        "the snapshot {} and the directory {} overlap; name another directory for the snapshot",
        shown(snapshot),
        shown(part)
    )]
    Snapshot { snapshot: PathBuf, part: PathBuf },
}

/// Resolves the symbolic links of the named directories and checks the results. `snapshot` is a
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

/// Checks resolved paths against the system's directories, each other and the snapshot.
pub(crate) fn check(parts: &[PathBuf], snapshot: &Path) -> Result<(), PartError> {
    if parts.is_empty() {
        return Err(PartError::None);
    }
    let homes = homes(account::all(Path::new("/etc/passwd")).unwrap_or_default());
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

/// The directory of the system or of a person that is equal to `part` or below it.
fn kept_apart(part: &Path, homes: &[PathBuf]) -> Option<PathBuf> {
    let fixed = SYSTEM.iter().chain(&VARIABLE).map(PathBuf::from);
    let mut kept = fixed.chain(homes.iter().cloned());
    // The kernel's file systems contain no data, at any depth.
    let kernel = ["/proc", "/sys"].iter().find(|root| part.starts_with(root));
    kernel
        .map(PathBuf::from)
        .or_else(|| kept.find(|kept| kept.starts_with(part)))
}

/// The home directories of root and of people.
fn homes(users: Vec<Account>) -> Vec<PathBuf> {
    let home = |Account { uid, home, .. }: Account| {
        let is_person = uid == 0 || (FIRST_PERSON..NOBODY).contains(&uid);
        (is_person && home.is_absolute() && home.parent().is_some()).then_some(home)
    };
    users.into_iter().filter_map(home).collect()
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
            (&[], "no directory was named"),
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
                "/d/a is inside /d; name only the outer directory, which includes the inner one",
            ),
            (
                &["/bak"],
                "the snapshot /bak/mysql and the directory /bak overlap; name another directory \
                 for the snapshot",
            ),
            (
                &["/bak/mysql/files"],
                "the snapshot /bak/mysql and the directory /bak/mysql/files overlap; name another \
                 directory for the snapshot",
            ),
        ] {
            assert_eq!(refusal(parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn homes_of_people_are_refused_and_homes_of_servers_are_allowed() {
        let homes = homes(account::in_text(
            "root:x:0:0:root:/root:/bin/bash\nmysql:x:27:27::/var/lib/mysql:/sbin/nologin\n\
             ann:x:1000:1000::/people/ann:/bin/sh\nnobody:x:65534:65534::/data:/bin/false\nodd:x:1001:1001::/:/x\n",
        ));
        let expected = ["/root", "/people/ann"].map(PathBuf::from);
        assert_eq!(homes, expected);
        let kept = |part: &str| kept_apart(Path::new(part), &homes);
        assert_eq!(kept("/people/ann"), Some("/people/ann".into()));
        assert_eq!(kept("/people"), Some("/people/ann".into()));
        assert_eq!(kept("/people/ann/data"), None);
        assert_eq!(kept("/var/lib/mysql"), None);
    }
}
