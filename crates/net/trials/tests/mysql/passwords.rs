//! caching_sha2_password, in each way that a password is sent: encrypted with the server's key on a
//! connection without TLS, as a hash once the server has cached it, and in clear text inside TLS.

use saiga_trials::{
    mariadb::{Server, Session},
    parity::Arm,
};

use crate::{
    KIND, cells,
    channels::{through_channels, warm},
};

/// Creates a user with a password that the server has not cached.
fn with_owner(server: &Server) {
    server.must(
        Arm::Kernel,
        "CREATE USER owner@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'open-sesame'; \
         GRANT ALL ON trial.* TO owner@'127.0.0.1'",
    );
}

/// Logs in and runs a query; first comes the client's warning about passwords on command lines.
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
        // The first session without TLS is not cached, the second is; then in the other order,
        // after the server has dropped its cache.
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
        // A user who is not cached is refused, too, if the client will not send clear text.
        let words = "-uowner -popen-sesame --skip-get-server-public-key";
        let refused = server.session_with(pair.1, words).error();
        assert!(refused.starts_with("ERROR 2061"), "{refused}");
    }
}
