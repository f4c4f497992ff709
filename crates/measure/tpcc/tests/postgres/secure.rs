//! Tests of TLS and Unix sockets.

use std::path::Path;

use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::population::Population;
use saiga_tpcc::props::Url;
use saiga_tpcc::script::Step;
use saiga_tpcc::table::Table;

use crate::certificates;
use crate::server::{ADMIN, Server, TRUST, log_in, own, secret};
use crate::tables::{self, number, run};

fn is_encrypted(session: &mut dyn Session) -> bool {
    number(
        session,
        "select ssl::int from pg_stat_ssl where pid = pg_backend_pid()",
    ) == 1
}

fn enter(host: &str, server: &Server, params: &str) -> Result<Box<dyn Session>, ConnectError> {
    let url = format!("jdbc:postgresql://{host}:{}/{ADMIN}?{params}", server.port);
    log_in(&Url::parse(&url).unwrap(), ADMIN, "")
}

fn refused(host: &str, server: &Server, params: &str) -> String {
    match enter(host, server, params) {
        Err(error @ ConnectError::Tls { .. }) => error.to_string(),
        Err(error) => panic!("{params}: {error}"),
        Ok(_) => panic!("{params}: the log-in succeeded"),
    }
}

/// A server with a certificate from this folder.
fn server(folder: &Path, hba: &str) -> Server {
    certificates::make(folder);
    own(folder);
    own(&folder.join("server.key"));
    let setting = |name: &str, file: &str| format!("{name}={}", certificates::path(folder, file));
    let cert = setting("ssl_cert_file", "server.pem");
    let key = setting("ssl_key_file", "server.key");
    Server::start(hba, &["ssl=on", &cert, &key])
}

#[test]
fn tls_is_used_exactly_as_requested() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), TRUST);
    let [ca, other] = ["ca.pem", "other.pem"]
        .map(|name| format!("sslrootcert={}", certificates::path(folder.path(), name)));
    for (host, params) in [
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&{ca}")),
        ("localhost", format!("sslmode=verify-full&{ca}")),
        ("localhost", format!("ssl=true&{ca}")),
    ] {
        let mut session = enter(host, &server, &params).unwrap();
        assert!(is_encrypted(session.as_mut()), "{params}");
    }
    for params in ["", "ssl=false", "sslmode=prefer"] {
        let mut session = enter("127.0.0.1", &server, params).unwrap();
        assert!(!is_encrypted(session.as_mut()), "{params}");
    }
    let unknown = refused("localhost", &server, &format!("sslmode=verify-ca&{other}"));
    assert!(unknown.contains("UnknownIssuer; name the CA"), "{unknown}");
    let misnamed = refused("127.0.0.1", &server, &format!("sslmode=verify-full&{ca}"));
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}

/// A run that lost its connections can log in again even if the CA file is gone.
#[test]
fn a_ca_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), TRUST);
    let ca = folder.path().join("ca.pem");
    let params = format!("sslmode=verify-ca&sslrootcert={}", ca.display());
    let url = format!(
        "jdbc:postgresql://127.0.0.1:{}/{ADMIN}?{params}",
        server.port
    );
    let url = Url::parse(&url).unwrap();
    let options = Options::of(&url).unwrap();
    let again = |options: &Options| connect(&url, ADMIN, &secret(""), options).map(drop);
    again(&options).unwrap();
    std::fs::remove_file(&ca).unwrap();
    again(&options).unwrap();
    again(&options.for_another_try()).unwrap();
    let fresh = again(&Options::of(&url).unwrap()).unwrap_err().to_string();
    assert!(fresh.contains("ca.pem: No such file"), "{fresh}");
}

#[test]
fn a_server_without_tls_is_refused_if_tls_is_required() {
    let server = Server::start(TRUST, &[]);
    let said = refused("127.0.0.1", &server, "sslmode=require");
    assert!(said.contains("the server does not offer it"), "{said}");
}

/// COPY reads from the server while it sends. Long answers need many TLS records.
#[test]
fn a_session_works_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), "hostssl all all 127.0.0.1/32 trust\n");
    let mut session = enter("127.0.0.1", &server, "sslmode=require").unwrap();
    let answer = run(session.as_mut(), "select repeat('y', 400000)");
    assert_eq!(answer.text(0, 0).unwrap().len(), 400_000);
    tables::steps(session.as_mut(), &[Step::TableCreates]);
    let population = Population::new(7, 1, tables::NOW);
    let mut load = || {
        session.load(Table::Item, &mut |sink| {
            population.write_common(Table::Item, sink)
        })
    };
    load().unwrap();
    // The server refuses a row long before the last one is sent.
    let few = "alter table bmsql_item add constraint few check (i_id < 20000) not valid";
    let mut other = enter("127.0.0.1", &server, "sslmode=require").unwrap();
    run(other.as_mut(), few);
    let said = load().unwrap_err().to_string();
    assert!(said.contains("few"), "{said}");
    let count = "select count(*) from bmsql_item";
    assert_eq!(number(session.as_mut(), count), 100_000);
    let plain = enter("127.0.0.1", &server, "").err().unwrap().to_string();
    assert!(plain.contains("hostssl lines count only with"), "{plain}");
}

#[test]
fn a_unix_socket_is_used_if_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    own(folder.path());
    let directory = certificates::path(folder.path(), "");
    let directory = directory.trim_end_matches('/');
    let setting = format!("unix_socket_directories={directory}");
    let server = Server::start("local all all trust\n", &[&setting]);
    for path in [
        directory.to_owned(),
        format!("{directory}/.s.PGSQL.{}", server.port),
    ] {
        let params = format!("localSocket={path}");
        let mut session = enter("127.0.0.1", &server, &params).unwrap();
        let by_tcp = "select (inet_client_port() is not null)::int";
        assert_eq!(number(session.as_mut(), by_tcp), 0, "{path}");
    }
}
