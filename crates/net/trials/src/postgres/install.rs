//! Where PostgreSQL is installed, and as whom its server may run.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// Under whose name a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// The tests' own.
    Ours,
    /// The server's: another one when the tests run as root, whom postgres refuses to serve.
    Server,
}

/// The newest installed version's file `name`; Debian's `psql` in the path is a script.
///
/// # Panics
/// When there is none.
pub(super) fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .expect("PostgreSQL is installed; apt-get install postgresql");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin/{name}"))
}

/// User and group of the server's account, when it is not ours.
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
    /// When that is not allowed.
    pub fn own(self, path: &Path) {
        if let (Self::Server, Some((user, group))) = (self, ids()) {
            chown(path, Some(user), Some(group))
                .unwrap_or_else(|error| panic!("cannot give {} away: {error}", path.display()));
        }
    }
}
