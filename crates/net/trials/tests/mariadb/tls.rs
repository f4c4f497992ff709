//! The same over TLS: what is upgraded carries ciphertext.

use std::process::Command;

use saiga_trials::mariadb::Server;

use crate::{cells, through_channels, warm};

/// A key and a certificate signed by itself, in a folder of their own.
fn certificate() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=127.0.0.1", "-batch"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("no openssl ({error}); apt-get install openssl"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder
}

#[test]
fn encrypted_connections_are_upgraded_too() {
    let folder = certificate();
    let option =
        |name: &str, file: &str| format!("--{name}={}", folder.path().join(file).display());
    let (cert, key) = (option("ssl-cert", "cert.pem"), option("ssl-key", "key.pem"));
    let ca = option("ssl-ca", "cert.pem");
    for (handling, pair) in cells() {
        let mut options = handling.to_vec();
        options.extend([cert.as_str(), &key]);
        let server = Server::start(pair.0, &options);
        through_channels(&server, pair, 1, || {
            let mut session = server.session_with(pair.1, &ca);
            warm(&mut session);
            let cipher = session.ask("SHOW STATUS LIKE 'Ssl_cipher'");
            assert!(cipher.len() > "Ssl_cipher\t".len(), "{cipher}");
            let large = session.ask("SELECT REPEAT('0123456789abcdef', 300000)");
            assert_eq!(large, "0123456789abcdef".repeat(300_000));
            warm(&mut session);
        });
    }
}
