//! A self-signed certificate for servers that use TLS.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::bounded::{self, Ending};

/// Makes a certificate for 127.0.0.1 and its key, `cert.pem` and `key.pem` in `folder`.
///
/// # Panics
/// If openssl is missing or fails.
pub fn make(folder: &Path) -> [PathBuf; 2] {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    let mut openssl = Command::new("openssl");
    openssl
        .args(["req", "-x509", "-nodes", "-days", "2", "-batch"])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-subj", "/CN=127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert);
    let outcome = bounded::run(openssl, Duration::from_secs(30));
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    [cert, key]
}
