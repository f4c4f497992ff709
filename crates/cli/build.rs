//! Compiles the release and the commit into the program. The commit comes from `SAIGA_COMMIT`,
//! which `make` sets from git; without the variable it is "unknown".

use std::env;

fn main() {
    println!("cargo::rerun-if-env-changed=SAIGA_COMMIT");
    let release = env!("CARGO_PKG_VERSION");
    let commit = env::var("SAIGA_COMMIT").unwrap_or_default();
    let (version, commit) = match commit.trim() {
        "" => (release.to_owned(), "unknown"),
        commit => (format!("{release} ({commit})"), commit),
    };
    println!("cargo::rustc-env=SAIGA_VERSION={version}");
    println!("cargo::rustc-env=SAIGA_COMMIT={commit}");
}
