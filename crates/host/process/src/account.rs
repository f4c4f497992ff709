//! User accounts of this host, and the account for servers when this process runs as root.
//!
//! PostgreSQL and MariaDB refuse to run as root. Their packages create accounts for them; if these
//! are missing, `nobody` is used. Source: `man 5 passwd`. Deliberately absent: accounts from
//! directory services (NSS).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An entry of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
}

impl Account {
    /// Whether this process runs as root.
    #[must_use]
    pub fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    /// The first account of `names` that exists, else `nobody`; `None` if this process does not run
    /// as root.
    #[must_use]
    pub fn instead_of_root(names: &[&str]) -> Option<Self> {
        if !Self::is_root() {
            return None;
        }
        let mut wanted = names.iter().copied().chain(["nobody"]);
        wanted.find_map(Self::named)
    }

    /// Finds an account by name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::find(|account| account.name == name)
    }

    /// Finds an account by UID.
    #[must_use]
    pub fn of_uid(uid: u32) -> Option<Self> {
        Self::find(|account| account.uid == uid)
    }

    fn find(is_wanted: impl Fn(&Self) -> bool) -> Option<Self> {
        all(Path::new("/etc/passwd"))
            .unwrap_or_default()
            .into_iter()
            .find(is_wanted)
    }
}

/// The accounts in a file such as `/etc/passwd`.
///
/// # Errors
/// The file cannot be read.
pub fn all(passwd: &Path) -> io::Result<Vec<Account>> {
    // Comments may have any encoding.
    Ok(in_text(&String::from_utf8_lossy(&fs::read(passwd)?)))
}

/// The accounts in the content of a file `passwd`. Lines that are not valid are skipped.
#[must_use]
pub fn in_text(passwd: &str) -> Vec<Account> {
    let account = |line: &str| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        Some(Account {
            name: name.to_owned(),
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
            home: fields.nth(1).unwrap_or_default().into(),
        })
    };
    passwd.lines().filter_map(account).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_valid_lines() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n+::::::\nbroken\nbad:x:-1:8::/:\n\
                      mysql:x:104:112:My,SQL:/var/lib/mysql:/bin/false\nshort:x:7:8\n";
        let account = |name: &str, uid, gid, home: &str| Account {
            name: name.to_owned(),
            uid,
            gid,
            home: home.into(),
        };
        let expected = [
            account("root", 0, 0, "/root"),
            account("mysql", 104, 112, "/var/lib/mysql"),
            account("short", 7, 8, ""),
        ];
        assert_eq!(in_text(passwd), expected);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("passwd");
        fs::write(&file, b"ann:x:1000:1000:\xc4nn:/people/ann:\n").unwrap();
        assert_eq!(
            all(&file).unwrap(),
            [account("ann", 1000, 1000, "/people/ann")]
        );
    }

    #[test]
    fn a_user_is_found_by_its_whole_name_and_by_its_number() {
        let root = Account::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::of_uid(0), Some(root));
        assert_eq!(Account::named("roo"), None);
        assert_eq!(Account::of_uid(u32::MAX), None);
    }
}
