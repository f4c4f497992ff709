//! Where `libsaiga.so` is: `SAIGA_LIBRARY`, or a release build made on first use.
//!
//! Deliberately absent: running without the library. A test that cannot get it
//! fails with the build's own message.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The library's file, built once per test process when `SAIGA_LIBRARY` is unset.
///
/// # Panics
/// When the named file does not exist or the build fails.
pub fn path() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| match env::var_os("SAIGA_LIBRARY") {
        Some(named) => {
            let path = PathBuf::from(named);
            assert!(
                path.is_file(),
                "SAIGA_LIBRARY={} is not a file",
                path.display()
            );
            path
        }
        None => build(),
    })
}

/// Cargo's own lock on the target directory serialises concurrent test processes.
fn build() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "-p", "saiga-preload"])
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
