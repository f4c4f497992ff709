//! Tests of log-ins that succeed, and of the messages of log-ins that fail.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::props::{Engine, Url};

use crate::dribble::dribbling;
use crate::server::{ADMIN, Server, TRUST, log_in};
use crate::tables::{number, run};

/// Authentication methods, each with a user of the same name.
const WAYS: [&str; 3] = ["password", "md5", "scram-sha-256"];
const SECRET: &str = "sesame \u{fc}";

fn refused(result: Result<Box<dyn Session>, ConnectError>) -> ConnectError {
    result.map(|session| session.server().clone()).unwrap_err()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn every_password_method_accepts_only_the_right_password() {
    let ways = WAYS.map(|way| format!("host all \"{way}\" 127.0.0.1/32 {way}\n"));
    let server = Server::start(&(ways.concat() + TRUST), &[]);
    let mut admin = server.session("");
    for way in WAYS {
        let kept = if way == "md5" { "md5" } else { "scram-sha-256" };
        let role = format!(
            "set password_encryption = '{kept}'; create role \"{way}\" login password '{SECRET}'"
        );
        run(admin.as_mut(), &role);
        // A URL of openGauss works, too, because the protocol version is negotiated.
        for system in ["postgresql", "opengauss"] {
            let url = url(&format!(
                "jdbc:{system}://127.0.0.1:{}/{ADMIN}",
                server.port
            ));
            let mut session = log_in(&url, way, SECRET).unwrap();
            assert_eq!(session.server().engine, Engine::Postgres);
            assert_eq!(number(session.as_mut(), "select 1"), 1);
            for wrong in ["open", ""] {
                let error = refused(log_in(&url, way, wrong));
                assert!(matches!(error, ConnectError::Login { .. }), "{error}");
                let said = error.to_string();
                assert!(said.contains(&format!("rejects user {way:?}")), "{said}");
                assert!(
                    said.ends_with("(SQLSTATE 28P01); check user= and password="),
                    "{said}"
                );
                assert!(!said.contains(SECRET), "{said}");
            }
        }
    }
}

#[test]
fn all_kinds_of_names_and_addresses_are_reached_by_tcp() {
    let server = Server::start(TRUST, &[]);
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let url = url(&format!("jdbc:postgresql://{host}:{}/{ADMIN}", server.port));
        let mut session = log_in(&url, ADMIN, "").unwrap();
        let over_tcp = "select (inet_client_port() is not null)::int";
        assert_eq!(number(session.as_mut(), over_tcp), 1, "{host}");
    }
}

#[test]
fn a_refused_log_in_names_the_cause() {
    let hba = "hostssl all safe 127.0.0.1/32 trust\nhost all barred 127.0.0.1/32 reject\n\
               host all postgres,poor,nobody 127.0.0.1/32 trust\n";
    let server = Server::start(hba, &[]);
    let mut admin = server.session("");
    let roles = "create role safe login; create role barred login; create role poor login; \
                 create database closed; revoke connect on database closed from public";
    for sql in roles.split("; ") {
        run(admin.as_mut(), sql);
    }
    let enter = |database: &str, user: &str| {
        let url = url(&format!(
            "jdbc:postgresql://127.0.0.1:{}/{database}",
            server.port
        ));
        refused(log_in(&url, user, ""))
    };
    let address = format!("postgres at 127.0.0.1:{}", server.port);
    for (database, user, known) in [
        (
            ADMIN,
            "nobody",
            "role \"nobody\" does not exist (SQLSTATE 28000); check user= and password=",
        ),
        (
            "none",
            ADMIN,
            "database \"none\" does not exist (SQLSTATE 3D000); create it, or correct conn=",
        ),
        (
            "closed",
            "poor",
            "(SQLSTATE 42501); create it, or correct conn=",
        ),
        (ADMIN, "safe", "hostssl lines count only with --tls"),
        (ADMIN, "stranger", "let it in by a host line in pg_hba.conf"),
        (ADMIN, "barred", "pg_hba.conf rejects connection"),
    ] {
        let error = enter(database, user);
        let said = error.to_string();
        assert!(said.contains(known) && said.starts_with(&address), "{said}");
        let kind = match user {
            "nobody" => matches!(error, ConnectError::Login { .. }),
            "postgres" | "poor" => matches!(error, ConnectError::Database { .. }),
            _ => matches!(error, ConnectError::Refused { for_now: false, .. }),
        };
        assert!(kind, "{error:?}");
    }
}

#[test]
fn a_full_server_is_a_temporary_refusal() {
    let few = [
        "max_connections=3",
        "superuser_reserved_connections=0",
        "max_wal_senders=0",
    ];
    let server = Server::start(TRUST, &few);
    let mut inside = Vec::new();
    let error = loop {
        match log_in(&server.url(""), ADMIN, "") {
            Ok(session) => inside.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!(inside.len(), 3);
    assert!(
        matches!(error, ConnectError::Refused { for_now: true, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("SQLSTATE 53300"), "{error}");
}

#[test]
fn a_server_of_another_protocol_is_unreachable() {
    for words in [
        &b""[..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"J\0\0\0\n5.5.5-10.11.6-MariaDB\0",
        b"-ERR\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || listener.accept().unwrap().0.write_all(words).unwrap());
        let url = url(&format!("jdbc:postgresql://127.0.0.1:{port}/t"));
        let error = refused(log_in(&url, ADMIN, ""));
        server.join().unwrap();
        assert!(
            matches!(error, ConnectError::Unreachable { .. }),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .ends_with("is the server running, and on this port?")
        );
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = refused(log_in(
        &url(&format!(
            "jdbc:postgresql://127.0.0.1:{port}/t?connectTimeout=1"
        )),
        ADMIN,
        "",
    ));
    let said = "accepts connections, but does not complete the log-in within 1.0 s";
    assert!(error.to_string().contains(said), "{error}");
    drop(silent);
    let error = refused(log_in(
        &url(&format!("jdbc:postgresql://127.0.0.1:{port}/t")),
        ADMIN,
        "",
    ));
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

/// The timeout limits the whole log-in, including the TLS handshake. No single byte and no single
/// message is late.
#[test]
fn a_server_that_dribbles_does_not_keep_us_for_ever() {
    // An incomplete notice, complete notices, and a TLS record of 4096 bytes.
    let notice = b"N\0\0\x0f\xff";
    let record = b"S\x16\x03\x03\x10\0";
    for (first, piece, params, step) in [
        (&notice[..], &b"S"[..], "", "the log-in"),
        (b"", b"N\0\0\0\x05\0", "", "the log-in"),
        (record, b"\x02", "&sslmode=require", "the TLS handshake"),
    ] {
        let (port, server) = dribbling(first, piece);
        let text = format!("jdbc:postgresql://127.0.0.1:{port}/t?connectTimeout=1{params}");
        let error = refused(log_in(&url(&text), ADMIN, ""));
        server.join().unwrap();
        assert!(matches!(error, ConnectError::Stuck { .. }), "{error:?}");
        let said = format!("accepts connections, but does not complete {step} within 1.0 s");
        assert!(error.to_string().contains(&said), "{error}");
    }
}
