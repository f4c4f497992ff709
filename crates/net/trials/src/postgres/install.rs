//! Location of the PostgreSQL installation, and the accounts of its programs.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// The account under which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// The account of the tests.
    Ours,
    /// The account of the server: another one if the tests run as root, because postgres refuses
    /// root.
    Server,
}

/// Path of the program `name` in the newest installed version. Debian's `psql` in PATH is a script.
///
/// # Panics
/// If PostgreSQL is not installed.
pub(super) fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .expect("PostgreSQL is installed; apt-get install postgresql");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin/{name}"))
}

/// User and group of the server's account, if it is not ours.
fn ids() -> Option<(u32, u32)> {
    let me = fs::metadata("/proc/self").expect("/proc is mounted").uid();
    if me != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let of = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    Some(
        of("postgres")
            .or_else(|| of("nobody"))
            .expect("an account that is not root"),
    )
}

impl Account {
    /// Makes `command` run under this account.
    pub(super) fn take_on(self, command: &mut Command) {
        if let (Self::Server, Some((user, group))) = (self, ids()) {
            command.uid(user).gid(group);
        }
    }

    /// Gives `path` to this account.
    ///
    /// # Panics
    /// If that is not permitted.
    pub fn own(self, path: &Path) {
        if let (Self::Server, Some((user, group))) = (self, ids()) {
            chown(path, Some(user), Some(group))
                .unwrap_or_else(|error| panic!("cannot give {} away: {error}", path.display()));
        }
    }
}
