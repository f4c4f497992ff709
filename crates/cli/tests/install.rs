//! `make install` into an empty directory installs the right files, which work there.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A target directory with the binary and the library that these tests use, as `make build` leaves
/// one: a release build of the binary would take minutes.
fn target() -> TempDir {
    let target = tempfile::tempdir().unwrap();
    let release = target.path().join("release");
    fs::create_dir(&release).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_saiga"), release.join("saiga")).unwrap();
    fs::copy(saiga_trials::library::path(), release.join("libsaiga.so")).unwrap();
    target
}

/// Runs make in the repository as on a machine without cargo, and without the variables of a make
/// that runs this test.
fn make(target: &Path, arguments: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("make");
    command.arg("-C").arg(root).args(arguments);
    command.arg("CARGO=no-cargo-here");
    command.env("CARGO_TARGET_DIR", target);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                files.push(
                    path.strip_prefix(folder)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    files.sort();
    files
}

const PREFIX: &str = "PREFIX=/opt/saiga";

#[test]
fn what_is_installed_works_and_can_be_uninstalled() {
    let root = tempfile::tempdir().unwrap();
    let destination = format!("DESTDIR={}", root.path().display());
    let target = target();
    make(target.path(), &["plugin"]);
    make(target.path(), &["install", &destination, PREFIX]);

    let prefix = root.path().join("opt/saiga");
    let files = files_below(&prefix);
    for expected in [
        "bin/saiga",
        "lib/saiga/libsaiga.so",
        "lib/saiga/liblstack.so",
        "lib/saiga/libsaiga_dpdk.so",
        "share/man/man1/saiga.1",
        "share/man/man1/saiga-run.1",
        "share/man/man1/saiga-compare.1",
        "share/bash-completion/completions/saiga",
        "share/zsh/site-functions/_saiga",
        "share/fish/vendor_completions.d/saiga.fish",
        "lib/systemd/system/saiga-gateway.service",
        "lib/sysusers.d/saiga.conf",
        "lib/systemd/network/00-saiga-gateway.network",
    ] {
        assert!(
            files.iter().any(|file| file == expected),
            "{expected} is not in {files:?}"
        );
        assert_ne!(
            fs::metadata(prefix.join(expected)).unwrap().len(),
            0,
            "{expected}"
        );
    }
    let unit = prefix.join("lib/systemd/system/saiga-gateway.service");
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("\nExecStart=/opt/saiga/bin/saiga gateway up\n"));
    assert!(!unit.contains("/usr/local"), "{unit}");
    let library = |name: &str| fs::read(prefix.join("lib/saiga").join(name)).unwrap();
    assert!(
        library("libsaiga.so") == library("liblstack.so"),
        "one library under two names"
    );

    let mut command = Command::new(prefix.join("bin/saiga"));
    command.args([
        "run",
        "--require",
        "--",
        "grep",
        "-c",
        "libsaiga.so",
        "/proc/self/maps",
    ]);
    let output = command.env("SAIGA_CONFIG", "/dev/null").output().unwrap();
    assert!(!output.status.success(), "/dev/null is not a settings file");
    let output = command
        .env_remove("SAIGA_CONFIG")
        .env("HOME", root.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    make(target.path(), &["uninstall", &destination, PREFIX]);
    assert_eq!(files_below(&prefix), [""; 0]);
}
