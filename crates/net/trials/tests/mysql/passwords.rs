//! caching_sha2_password, each way a password can take: encrypted with the server's key where
//! the connection is not, as a hash once the server remembers it, and in the clear inside TLS.

use saiga_trials::{
    mariadb::{Server, Session},
    parity::Arm,
};

use crate::{
    KIND, cells,
    channels::{through_channels, warm},
};

/// A user with a password, whom the server has never seen.
fn with_owner(server: &Server) {
    server.must(
        Arm::Kernel,
        "CREATE USER owner@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'open-sesame'; \
         GRANT ALL ON trial.* TO owner@'127.0.0.1'",
    );
}

/// Logs in and works; the client's complaint about passwords on command lines comes first.
fn work(session: &mut Session, is_encrypted: bool) {
    let who = session.ask("SELECT CURRENT_USER()");
    assert!(who.ends_with("owner@127.0.0.1"), "{who}");
    let cipher = session.ask("SHOW STATUS LIKE 'Ssl_cipher'");
    assert_eq!(cipher != "Ssl_cipher\t", is_encrypted, "{cipher}");
    warm(session);
}

#[test]
fn passwords_open_sessions_that_are_upgraded() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        with_owner(&server);
        let ca = server.data().join("ca.pem");
        let verified = format!("--ssl-mode=VERIFY_CA --ssl-ca={}", ca.display());
        let open = |options: &str| {
            server.session_with(pair.1, &format!("-uowner -popen-sesame {options}"))
        };
        // The first one without TLS is a stranger, the second one is remembered; then the other
        // way round, for the server forgets.
        through_channels(&server, pair, 6, || {
            work(&mut open(""), false);
            work(&mut open(""), false);
            work(&mut open(&verified), true);
            server.must(Arm::Kernel, "FLUSH PRIVILEGES");
            work(&mut open(&verified), true);
            work(&mut open(&verified), true);
            work(&mut open(""), false);
        });
    }
}

#[test]
fn wrong_passwords_are_refused() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        with_owner(&server);
        for options in ["", "--ssl-mode=REQUIRED"] {
            let words = format!("-uowner -popen-barley {options}");
            let refused = server.session_with(pair.1, &words).error();
            assert!(refused.starts_with("ERROR 1045"), "{refused}");
        }
        // Nor does a stranger get in whose client does not want to send it in the clear.
        let words = "-uowner -popen-sesame --skip-get-server-public-key";
        let refused = server.session_with(pair.1, words).error();
        assert!(refused.starts_with("ERROR 2061"), "{refused}");
    }
}
