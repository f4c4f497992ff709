//! A prepared data directory: making one takes seconds, copying it does not.
//!
//! It is in the crate's own build folder and is made again for another server version. Clients of
//! this host are root there, without a password.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::mariadb::{Kind, as_user};

/// MySQL has only root@localhost, which no client is without a resolver.
const ACCOUNTS: &str = "\
    CREATE USER root@'127.0.0.1', root@'::1';\n\
    GRANT ALL ON *.* TO root@'127.0.0.1', root@'::1' WITH GRANT OPTION;\n";

/// Copies the directory of `kind` to `target`, which must not exist.
///
/// # Panics
/// If the directory cannot be prepared or copied.
pub(super) fn copy_to(kind: Kind, target: &Path) {
    let prepared = prepared(kind);
    run(Command::new("cp").arg("-a").arg(prepared).arg(target));
}

/// The prepared directory of `kind`, made on first use.
fn prepared(kind: Kind) -> &'static Path {
    static PREPARED: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    let (name, prepared) = match kind {
        Kind::MariaDb => ("mariadb", &PREPARED[0]),
        Kind::MySql => ("mysql", &PREPARED[1]),
    };
    prepared.get_or_init(|| {
        let folder = Path::new(env!("OUT_DIR")).join(format!("{name}-{}", version(kind)));
        if !folder.is_dir() {
            install(kind, &folder);
        }
        folder
    })
}

/// Makes the directory. Another test process may do the same: the first rename wins.
fn install(kind: Kind, folder: &Path) {
    let fresh = folder.with_extension(std::process::id().to_string());
    match kind {
        Kind::MariaDb => install_mariadb(&fresh),
        Kind::MySql => install_mysql(&fresh),
    }
    if fs::rename(&fresh, folder).is_err() {
        assert!(folder.is_dir(), "the build folder is not writable");
        fs::remove_dir_all(&fresh).expect("our own folder can be removed");
    }
}

fn install_mariadb(folder: &Path) {
    let mut command = Command::new("mariadb-install-db");
    command
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .args(Kind::MariaDb.storage())
        .args(as_user())
        .arg(format!("--datadir={}", folder.display()));
    run(&mut command);
}

fn install_mysql(folder: &Path) {
    let accounts = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(&accounts, ACCOUNTS).expect("room on the disk");
    let mut command = Command::new(Kind::MySql.server());
    command
        .args(["--no-defaults", "--initialize-insecure"])
        .arg(format!("--init-file={}", accounts.path().display()))
        .args(Kind::MySql.storage())
        .args(as_user())
        .arg(format!("--datadir={}", folder.display()));
    run(&mut command);
    // The identity of a replicating server, which each start without the file makes new.
    fs::remove_file(folder.join("auto.cnf")).expect("every server has one");
}

fn version(kind: Kind) -> String {
    let output = Command::new(kind.server())
        .args(["--no-defaults", "--version"])
        .output()
        .expect("the server can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().skip_while(|&word| word != "Ver");
    let version = words.nth(1).expect("a version in the server's answer");
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
