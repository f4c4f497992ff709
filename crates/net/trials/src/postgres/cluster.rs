//! A fresh database cluster, made once per test process and copied for every server.
//!
//! The copy is kept in memory as an archive, so no file outlives the process.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

use saiga_database::{Engine, Installation};
use saiga_process::interrupt::Interrupt;

use super::install::Account;

/// Puts a copy of the cluster at `folder`/data, owned by the server's account.
///
/// # Panics
/// If initdb or tar fails.
pub(super) fn copy_to(folder: &Path) {
    static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();
    let archive = ARCHIVE.get_or_init(make);
    let mut command = tar(folder, "-x");
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start tar: {error}"));
    let mut input = child.stdin.take().expect("stdin was asked for");
    input.write_all(archive).expect("tar reads the archive");
    drop(input);
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "tar -x: {status}");
}

fn make() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    Account::Server.own(folder.path());
    let dir = folder.path().join("server");
    let programs = saiga_database::find(Engine::Postgres, &[]).expect("PostgreSQL is installed");
    Installation::new(Engine::Postgres, dir.display().to_string(), programs)
        .create("postgres", &Interrupt::never())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut command = tar(&dir, "-c");
    let output = command.arg("data").output().expect("tar can be started");
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

fn tar(folder: &Path, mode: &str) -> Command {
    let mut command = Command::new("tar");
    Account::Server.take_on(&mut command);
    command.arg("-C").arg(folder).args([mode, "-f", "-"]);
    command
}
