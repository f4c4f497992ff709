//! Tests of TLS and Unix sockets.

use std::path::Path;

use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::population::Population;
use saiga_tpcc::table::Table;

use crate::mariadb::{Server, open, run_sql};
use crate::{certificates, tables};

/// The cipher of a session. Empty without TLS.
fn cipher(session: &mut dyn Session) -> String {
    run_sql(session, "show session status like 'Ssl_cipher'")[0][1].clone()
}

fn refused(url: &str) -> String {
    match open(url, "root", "") {
        Err(error @ ConnectError::Tls { .. }) => error.to_string(),
        Err(error) => panic!("{url}: {error}"),
        Ok(_) => panic!("{url}: the log-in succeeded"),
    }
}

/// A server with a certificate from this folder.
fn server(folder: &Path, certificate: &str) -> Server {
    let option =
        |name: &str, file: &str| format!("--ssl-{name}={}", certificates::path(folder, file));
    let (cert, key) = (option("cert", certificate), option("key", "server.key"));
    Server::start(&[&cert, &key])
}

#[test]
fn tls_is_used_exactly_as_requested() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates::make(folder.path());
    let server = server(folder.path(), "server.pem");
    let port = server.port;
    let [ca, other] = ["ca.pem", "other.pem"]
        .map(|name| format!("serverSslCert={}", certificates::path(folder.path(), name)));
    let url = |host: &str, params: &str| format!("jdbc:mysql://{host}:{port}/mysql?{params}");
    for (host, params) in [
        ("127.0.0.1", "sslMode=REQUIRED".to_owned()),
        ("127.0.0.1", "useSSL=true".to_owned()),
        ("127.0.0.1", format!("sslMode=VERIFY_CA&{ca}")),
        ("localhost", format!("sslMode=VERIFY_IDENTITY&{ca}")),
    ] {
        let mut session = open(&url(host, &params), "root", "").expect("the log-in succeeds");
        assert!(cipher(&mut *session).starts_with("TLS_"), "{params}");
    }
    for params in ["", "useSSL=false", "sslMode=PREFERRED"] {
        let mut session = open(&url("127.0.0.1", params), "root", "").expect("the log-in succeeds");
        assert_eq!(cipher(&mut *session), "", "{params}");
    }
    let unknown = refused(&url("localhost", &format!("sslMode=VERIFY_CA&{other}")));
    assert!(unknown.contains("UnknownIssuer; name the CA"), "{unknown}");
    let misnamed = refused(&url("127.0.0.1", &format!("sslMode=VERIFY_IDENTITY&{ca}")));
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
    let missing = refused(&url("localhost", "sslMode=VERIFY_CA&serverSslCert=/none"));
    assert!(missing.contains("/none: No such file"), "{missing}");
    let no_pem = format!(
        "sslMode=VERIFY_CA&serverSslCert={}",
        certificates::path(folder.path(), "names")
    );
    let no_pem = refused(&url("localhost", &no_pem));
    assert!(no_pem.contains("no certificate in PEM form"), "{no_pem}");
}

#[test]
fn a_server_without_tls_is_refused_if_tls_is_required() {
    let said = refused(&Server::shared().url("mysql", "sslMode=REQUIRED"));
    assert!(said.contains("the server does not offer it"), "{said}");
}

/// MariaDB sends the same error to a user who must use TLS but does not, and to a user with a wrong
/// password.
#[test]
fn a_user_who_must_use_tls_is_told_how() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates::make(folder.path());
    let server = server(folder.path(), "server.pem");
    let sql = "create user guarded@'%' identified by 'p' require ssl";
    run_sql(&mut *server.admin(), sql);
    let said = |params: &str, password: &str| {
        let session = open(
            &server.url("information_schema", params),
            "guarded",
            password,
        );
        session.map(drop).map_err(|error| error.to_string())
    };
    let plain = said("", "p").unwrap_err();
    let way_out = "must use TLS is refused in the same way: ask for it with --tls require, or \
                   sslMode=REQUIRED in conn=; check user= and password=";
    assert!(
        plain.contains("ERROR 1045") && plain.contains(way_out),
        "{plain}"
    );
    assert_eq!(said("sslMode=REQUIRED", "p"), Ok(()));
    let wrong = said("sslMode=REQUIRED", "q").unwrap_err();
    assert!(
        wrong.contains("ERROR 1045") && !wrong.contains("TLS"),
        "{wrong}"
    );
    // The message does not mention TLS if the server has no TLS either.
    let shared = Server::shared();
    let error = open(&shared.url("information_schema", ""), "nobody", "q");
    let wrong = error.err().expect("it is not let in").to_string();
    assert!(
        wrong.contains("ERROR 1045") && !wrong.contains("TLS"),
        "{wrong}"
    );
}

/// Loads, long answers and long statements need many TLS records. The certificate has version 1,
/// which rustls alone would reject.
#[test]
fn a_session_works_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates::make(folder.path());
    let server = server(folder.path(), "old.pem");
    let tls = "useServerPrepStmts=true&rewriteBatchedStatements=true&sslMode=REQUIRED";
    let mut session = tables::made(&server, "secure", tls);
    assert!(cipher(&mut *session).starts_with("TLS_"));
    let long = "x".repeat(300_000);
    let sql = format!("select length('{long}'), repeat('y', 400000)");
    let answer = &run_sql(&mut *session, &sql)[0];
    assert_eq!((answer[0].as_str(), answer[1].len()), ("300000", 400_000));
    run_sql(&mut *session, "delete from bmsql_item");
    let population = Population::new(7, 1, tables::NOW);
    let load = session.load(Table::Item, &mut |sink| {
        population.write_common(Table::Item, sink)
    });
    load.expect("the load succeeds");
    assert_eq!(session.slow_load(), None);
    let count = run_sql(&mut *session, "select count(*) from bmsql_item");
    assert_eq!(count, [["100000"]]);
}

#[test]
fn a_unix_socket_is_used_if_it_is_named() {
    let server = Server::start(&[]);
    let params = format!("localSocket={}", server.socket().display());
    // No server listens on this port.
    let url = format!("jdbc:mysql://127.0.0.1:1/mysql?{params}");
    let mut session = open(&url, "root", "").expect("the log-in succeeds");
    let found = "select host from information_schema.processlist where id = connection_id()";
    assert_eq!(run_sql(&mut *session, found), [["localhost"]]);
    server.kill();
    let gone = open(&url, "root", "")
        .err()
        .expect("the server is gone")
        .to_string();
    let wanted = format!("cannot reach mysql at {}", server.socket().display());
    assert!(gone.starts_with(&wanted), "{gone}");
}
