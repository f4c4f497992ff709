//! The same over TLS: the channel carries ciphertext.

use saiga_trials::mariadb::Server;

use crate::{
    KIND, cells,
    channels::{through_channels, warm},
    encrypting,
};

#[test]
fn encrypted_connections_are_upgraded_too() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (own, encrypted) = encrypting(folder.path());
    for (handling, pair) in cells() {
        let mut options = handling.to_vec();
        options.extend(own.iter().map(String::as_str));
        let server = Server::start(KIND, pair.0, &options);
        through_channels(&server, pair, 1, || {
            let mut session = server.session_with(pair.1, &encrypted);
            warm(&mut session);
            let cipher = session.ask("SHOW STATUS LIKE 'Ssl_cipher'");
            assert!(cipher.len() > "Ssl_cipher\t".len(), "{cipher}");
            let large = session.ask("SELECT REPEAT('0123456789abcdef', 300000)");
            assert_eq!(large, "0123456789abcdef".repeat(300_000));
            warm(&mut session);
        });
    }
}
