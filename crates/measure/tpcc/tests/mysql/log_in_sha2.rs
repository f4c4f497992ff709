//! Tests of log-ins with caching_sha2_password, MySQL's default: the first is a full
//! authentication, the next uses the server's cache.

use saiga_tpcc::db::ConnectError;

use crate::mariadb::{Server, open, run_sql};

#[test]
fn passwords_are_accepted_in_full_and_from_the_cache() {
    let server = Server::shared();
    let mut admin = server.admin();
    run_sql(
        &mut *admin,
        "create user full@'%' identified by 'p \u{e4}w'",
    );
    run_sql(&mut *admin, "create user none@'%'");
    let url = server.url(
        "information_schema",
        "useSSL=false&allowPublicKeyRetrieval=true",
    );
    for (user, password) in [("full", "p \u{e4}w"), ("full", "p \u{e4}w"), ("none", "")] {
        let mut session = open(&url, user, password).unwrap();
        let user_host = run_sql(&mut *session, "select user()");
        assert_eq!(user_host, [[format!("{user}@127.0.0.1")]]);
    }
    let plugin = "select plugin from mysql.user where user = 'full'";
    assert_eq!(run_sql(&mut *admin, plugin), [["caching_sha2_password"]]);
    // This empties the cache, so that the next log-in is a full authentication again.
    run_sql(&mut *admin, "flush privileges");
    assert!(open(&url, "full", "p \u{e4}w").is_ok());
}

#[test]
fn a_wrong_password_is_refused_in_full_and_from_the_cache() {
    let server = Server::shared();
    let mut admin = server.admin();
    run_sql(&mut *admin, "create user wrong@'%' identified by 'right'");
    let url = server.url("information_schema", "allowPublicKeyRetrieval=true");
    for password in ["other", ""] {
        for is_cached in [false, true] {
            if is_cached {
                open(&url, "wrong", "right").unwrap();
            }
            let error = open(&url, "wrong", password)
                .err()
                .expect("the log-in must fail");
            assert!(matches!(error, ConnectError::Login { .. }), "{error:?}");
            let said = error.to_string();
            assert!(said.contains("ERROR 1045"), "{said}");
            assert!(said.ends_with("check user= and password="), "{said}");
        }
        run_sql(&mut *admin, "flush privileges");
    }
}
