//! The unprivileged user account for servers when this process runs as root.
//!
//! PostgreSQL and MariaDB refuse to run as root. Their packages create accounts for them; if these
//! are missing, `nobody` is used. Source: `man 5 passwd`. Deliberately absent: accounts from
//! directory services (NSS).

use std::fs;

/// An entry of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
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
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut wanted = names.iter().copied().chain(["nobody"]);
        wanted.find_map(|name| Self::among(&users, name))
    }

    /// Finds an account by name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::among(&fs::read_to_string("/etc/passwd").unwrap_or_default(), name)
    }

    /// Finds an account by UID.
    #[must_use]
    pub fn of_uid(uid: u32) -> Option<Self> {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let number = uid.to_string();
        let mut users_of = users.lines();
        let line = users_of.find(|line| line.split(':').nth(2) == Some(&number))?;
        Self::among(line, line.split(':').next()?)
    }

    /// Finds `name` in lines of the form `name:password:uid:gid:...`.
    fn among(users: &str, name: &str) -> Option<Self> {
        let mut users = users.lines().map(|line| line.split(':'));
        let mut fields =
            users.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
        let (_password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            name: name.to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nmysqlx:x:7:8::/:\nmysql:x:104:112:My:/:/bin/false\n";
        let found = Account::among(users, "mysql").unwrap();
        assert_eq!((found.uid, found.gid), (104, 112));
        assert_eq!(Account::among(users, "postgres"), None);
    }
}
