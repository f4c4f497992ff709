//! A fresh database cluster, made once per test process and copied for every server.
//!
//! The copy is kept in memory as an archive, so no file outlives the process.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::install::{self, Account};

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
    let mut command = Command::new(install::program("initdb"));
    Account::Server.take_on(&mut command);
    command
        .args(["--username=postgres", "--auth=trust", "--no-sync"])
        .args(["--encoding=UTF8", "--locale=C", "--wal-segsize=1", "-D"])
        .arg(folder.path().join("data"))
        .current_dir(folder.path());
    output_of(command);
    let mut command = tar(folder.path(), "-c");
    command.arg("data");
    output_of(command)
}

fn tar(folder: &Path, mode: &str) -> Command {
    let mut command = Command::new("tar");
    Account::Server.take_on(&mut command);
    command.arg("-C").arg(folder).args([mode, "-f", "-"]);
    command
}

fn output_of(mut command: Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output.stdout
}
