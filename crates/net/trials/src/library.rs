//! Paths of two builds of `libsaiga.so`: the normal one, and one with fault injection for
//! [`Arm::Random`](crate::parity::Arm).
//!
//! `SAIGA_LIBRARY` and `SAIGA_CHAOS_LIBRARY` name existing files. If a variable is unset, a release
//! build is made on first use.
//!
//! Deliberately absent: running without the library. A test fails with cargo's message if the build
//! fails.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The path of the library, which is built once per test process if `SAIGA_LIBRARY` is unset.
///
/// # Panics
/// If the named file does not exist or the build fails.
pub fn path() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| named("SAIGA_LIBRARY").unwrap_or_else(|| build(&[])))
}

/// The path of the library that reads `SAIGA_CHAOS` (`socket/src/chaos.rs`). It is built once per
/// test process if `SAIGA_CHAOS_LIBRARY` is unset.
///
/// # Panics
/// As [`path`].
pub fn with_chaos() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        named("SAIGA_CHAOS_LIBRARY").unwrap_or_else(|| {
            let target = env::var("CARGO_TARGET_DIR");
            let target = target.unwrap_or_else(|_| {
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target").to_owned()
            });
            build(&["--features=chaos", &format!("--target-dir={target}/chaos")])
        })
    })
}

fn named(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os(variable)?);
    assert!(
        path.is_file(),
        "{variable}={} is not a file",
        path.display()
    );
    // Children preload it from other directories.
    Some(path.canonicalize().unwrap_or(path))
}

/// Builds the library. Cargo's lock on the target directory serialises concurrent test processes.
fn build(options: &[&str]) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "-p", "saiga-preload"])
        .args(options)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("LD_PRELOAD")
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("cannot start cargo to build libsaiga.so: {error}"));
    assert!(
        output.status.success(),
        "building saiga-preload failed: {}",
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(artifact)
        .next_back()
        .unwrap_or_else(|| {
            panic!("cargo built saiga-preload but reported no libsaiga.so; is it a cdylib?")
        })
}

fn artifact(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let names = message.get("filenames")?.as_array()?;
    names
        .iter()
        .filter_map(|name| name.as_str())
        .find(|name| name.ends_with("/libsaiga.so"))
        .map(PathBuf::from)
}
