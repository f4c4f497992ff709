//! Tests of log-ins that succeed, and of log-ins that fail for a real cause.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use saiga_tpcc::db::ConnectError;

use crate::dribble::dribbling;
use crate::mariadb::{Server, open, run_sql};

fn refused(url: &str, user: &str, password: &str) -> ConnectError {
    open(url, user, password)
        .err()
        .expect("the log-in must fail")
}

/// Asserts that the message of an error contains all parts: address, user or database, cause, and
/// advice.
fn says(error: &ConnectError, parts: &[&str]) {
    let said = error.to_string();
    for part in parts {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
}

#[test]
fn native_passwords_are_accepted_and_empty_ones_too() {
    let server = Server::shared();
    let mut admin = server.admin();
    run_sql(
        &mut *admin,
        "create user native@'%' identified via mysql_native_password using password('p w')",
    );
    run_sql(&mut *admin, "create user none@'%'");
    for (user, password) in [("native", "p w"), ("none", "")] {
        let url = server.url(
            "information_schema",
            "useSSL=false&allowPublicKeyRetrieval=true",
        );
        let mut session = open(&url, user, password).unwrap();
        let user_host = run_sql(&mut *session, "select user()");
        assert_eq!(user_host, [[format!("{user}@127.0.0.1")]]);
    }
}

/// `localhost` must not be replaced by the Unix socket, which would bypass the measured path.
#[test]
fn localhost_is_tcp() {
    let server = Server::shared();
    let url = format!("jdbc:mysql://localhost:{}/mysql", server.port);
    let mut session = open(&url, "root", "").unwrap();
    let found = "select host from information_schema.processlist where id = connection_id()";
    let host = &run_sql(&mut *session, found)[0][0];
    assert!(host.starts_with("127.0.0.1:"), "{host}");
}

#[test]
fn a_refused_log_in_names_the_cause() {
    let server = Server::shared();
    let mut admin = server.admin();
    for sql in [
        "create user known@'%' identified by 'right'",
        "create user locked@'%' identified by 'p' account lock",
        "create user expired@'%' identified by 'p' password expire",
        "create user once@'%' identified by 'p' with max_user_connections 1",
        "create user socket@'%' identified via unix_socket",
        "create database own",
        "grant all on own.* to known@'%'",
    ] {
        run_sql(&mut *admin, sql);
    }
    let here = format!("mysql at 127.0.0.1:{}", server.port);
    let (known, none) = (server.url("own", ""), server.url("none", ""));
    let any = server.url("information_schema", "");

    let wrong = refused(&known, "known", "wrong");
    assert!(matches!(wrong, ConnectError::Login { .. }), "{wrong:?}");
    says(
        &wrong,
        &[
            &here,
            "\"known\"",
            "ERROR 1045",
            "check user= and password=",
        ],
    );
    assert!(!wrong.to_string().contains("wrong\""), "{wrong}");
    let unknown = refused(&known, "nobody", "");
    says(&unknown, &[&here, "\"nobody\"", "ERROR 1045"]);

    let locked = refused(&any, "locked", "p");
    assert!(matches!(locked, ConnectError::Login { .. }), "{locked:?}");
    says(&locked, &[&here, "\"locked\"", "ERROR 4151"]);
    let expired = refused(&any, "expired", "p");
    assert!(matches!(expired, ConnectError::Login { .. }), "{expired:?}");
    says(&expired, &["\"expired\"", "ERROR 1820", "ALTER USER"]);

    let missing = refused(&none, "root", "");
    assert!(
        matches!(missing, ConnectError::Database { .. }),
        "{missing:?}"
    );
    says(
        &missing,
        &[&here, "\"none\"", "ERROR 1049", "correct conn="],
    );
    let forbidden = refused(&server.url("mysql", ""), "known", "right");
    assert!(
        matches!(forbidden, ConnectError::Database { .. }),
        "{forbidden:?}"
    );
    says(&forbidden, &["\"mysql\"", "ERROR 1044"]);

    let _first = open(&any, "once", "p").unwrap();
    let second = refused(&any, "once", "p");
    assert!(
        matches!(second, ConnectError::Refused { for_now: true, .. }),
        "{second:?}"
    );
    says(&second, &[&here, "ERROR 1226", "lower terminals="]);

    let socket = refused(&any, "socket", "p");
    assert!(
        matches!(socket, ConnectError::Unsupported { .. }),
        "{socket:?}"
    );
    says(
        &socket,
        &[&here, "\"socket\"", "without a password", "IDENTIFIED BY"],
    );
}

#[test]
fn a_full_server_is_reported() {
    let server = Server::start(&["--max-connections=10"]);
    let url = server.url("mysql", "");
    let opened: Vec<_> = (0..20).map(|_| open(&url, "root", "")).collect();
    let full: Vec<&ConnectError> = opened.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(full.len() >= 9, "{}", full.len());
    assert!(
        matches!(full[0], ConnectError::Refused { for_now: true, .. }),
        "{full:?}"
    );
    says(
        full[0],
        &["ERROR 1040", "raise max_connections", "lower terminals="],
    );
}

#[test]
fn other_authentication_plugins_are_refused_by_name() {
    let server = Server::start(&["--plugin-load-add=auth_ed25519"]);
    let mut admin = server.admin();
    run_sql(
        &mut *admin,
        "create user curve@'%' identified via ed25519 using password('p')",
    );
    let error = refused(&server.url("information_schema", ""), "curve", "p");
    assert!(
        matches!(error, ConnectError::Unsupported { .. }),
        "{error:?}"
    );
    says(
        &error,
        &["\"curve\"", "client_ed25519", "mysql_native_password"],
    );
}

#[test]
fn a_host_without_access_is_refused_permanently() {
    let server = Server::start(&[]);
    let mut admin = server.admin();
    run_sql(
        &mut *admin,
        "delete from mysql.global_priv where host <> 'localhost'",
    );
    run_sql(&mut *admin, "flush privileges");
    let error = refused(&server.url("mysql", ""), "root", "");
    assert!(
        matches!(error, ConnectError::Refused { for_now: false, .. }),
        "{error:?}"
    );
    says(&error, &["ERROR 1130", "CREATE USER"]);
}

#[test]
fn a_closed_port_and_a_port_of_another_service_are_named() {
    let port = saiga_trials::port::free();
    let closed = refused(&format!("jdbc:mysql://127.0.0.1:{port}/t"), "u", "p");
    assert!(
        matches!(closed, ConnectError::Unreachable { .. }),
        "{closed:?}"
    );
    says(
        &closed,
        &[
            &format!("mysql at 127.0.0.1:{port}"),
            "refused",
            "is the server running",
        ],
    );

    let unknown = refused("jdbc:mysql://no-such-host.invalid/t", "u", "p");
    assert!(
        matches!(unknown, ConnectError::Unreachable { .. }),
        "{unknown:?}"
    );
    says(&unknown, &["no-such-host.invalid:3306"]);

    for (greeting, expected) in [
        (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], "packets"),
        (
            b"\x05\0\0\0\x09none",
            "does not speak the protocol of MariaDB or of MySQL 5.7 and later",
        ),
        (b"", "closed the connection"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting).unwrap();
        });
        let error = refused(&format!("jdbc:mysql://127.0.0.1:{port}/t"), "u", "p");
        other.join().unwrap();
        assert!(
            matches!(error, ConnectError::Unreachable { .. }),
            "{error:?}"
        );
        says(&error, &[&format!("127.0.0.1:{port}"), expected]);
    }
}

/// A PostgreSQL server, for example, is silent until the client sends a message.
#[test]
fn a_silent_port_is_given_up_after_the_connect_timeout() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("jdbc:mysql://127.0.0.1:{port}/t?connectTimeout=100");
    let error = refused(&url, "u", "p");
    assert!(matches!(error, ConnectError::Stuck { .. }), "{error:?}");
    let said =
        "accepts connections, but does not complete the log-in within 100 ms; is the server frozen";
    says(&error, &[&format!("mysql at 127.0.0.1:{port} {said}")]);
}

/// The timeout limits the whole log-in; no single byte is late. The first packet has 2000 bytes.
#[test]
fn a_server_that_dribbles_does_not_keep_us_for_ever() {
    let (port, server) = dribbling(&[0xd0, 7, 0, 0, 10], b"8");
    let url = format!("jdbc:mysql://127.0.0.1:{port}/t?connectTimeout=200");
    let error = refused(&url, "u", "p");
    server.join().unwrap();
    says(&error, &["does not complete the log-in within 200 ms"]);
}
