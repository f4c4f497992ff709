//! A prepared data directory: `mariadb-install-db` takes seconds, a copy does not.
//!
//! It lies in the crate's own build folder and is made anew for another mariadbd.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::mariadb::{as_user, server_program};

/// What the files depend on; small, so that a copy and a start are fast.
pub(super) const STORAGE: [&str; 3] = [
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--innodb-doublewrite=0",
];

/// Copies it to `target`, which does not exist.
///
/// # Panics
/// When it cannot be prepared or copied.
pub(super) fn copy_to(target: &Path) {
    run(Command::new("cp").arg("-a").arg(prepared()).arg(target));
}

/// Its folder, prepared on first use.
fn prepared() -> &'static Path {
    static PREPARED: OnceLock<PathBuf> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let name = format!("mariadb-{}", version());
        let folder = Path::new(env!("OUT_DIR")).join(name);
        if !folder.is_dir() {
            install(&folder);
        }
        folder
    })
}

/// Another test process may do the same: the first to rename its result wins.
fn install(folder: &Path) {
    let fresh = folder.with_extension(std::process::id().to_string());
    let mut command = Command::new("mariadb-install-db");
    command
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .args(STORAGE)
        .args(as_user())
        .arg(format!("--datadir={}", fresh.display()));
    run(&mut command);
    if std::fs::rename(&fresh, folder).is_err() {
        assert!(folder.is_dir(), "the build folder is not writable");
        std::fs::remove_dir_all(&fresh).expect("our own folder can be removed");
    }
}

fn version() -> String {
    let output = Command::new(server_program())
        .args(["--no-defaults", "--version"])
        .output()
        .unwrap_or_else(|error| panic!("no mariadbd ({error}); apt-get install mariadb-server"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().skip_while(|&word| word != "Ver");
    let version = words.nth(1).expect("mariadbd says its version");
    version.replace('.', "-")
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
