//! Tests of session errors on a running server, each with a real cause.

use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::Value;
use saiga_tpcc::db::{ConnectError, Session, SqlError};
use saiga_tpcc::table::Table;

use crate::server::{ADMIN, Server, TRUST, log_in};
use crate::tables::{make, number, run};

/// Updates the row of a district, which locks the row.
fn take(session: &mut dyn Session, district: i64) -> Result<u64, SqlError> {
    let params = [1, district].map(Value::Int);
    session.execute(Statement::OrderNextId, &params, &mut Rows::new())
}

/// The message of a conflict.
fn conflict(result: Result<u64, SqlError>) -> String {
    match result {
        Err(SqlError::Conflict { said }) => said,
        other => panic!("{other:?}"),
    }
}

/// The message of a lost session.
fn loss<T: std::fmt::Debug>(result: Result<T, SqlError>) -> String {
    match result {
        Err(SqlError::Lost { said }) => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deadlock_is_a_conflict_and_the_transaction_can_be_retried() {
    let server = Server::start(TRUST, &["deadlock_timeout=10ms"]);
    make(server.session("").as_mut());
    let mut both = [1, 2].map(|own| (server.session(""), own));
    for (session, own) in &mut both {
        take(session.as_mut(), *own).unwrap();
    }
    let cross = |(session, own): &mut (Box<dyn Session>, i64)| {
        let taken = take(session.as_mut(), 3 - *own);
        if taken.is_ok() {
            session.commit().unwrap();
        } else {
            session.rollback().unwrap();
        }
        taken
    };
    let [first, second] = &mut both;
    let results = thread::scope(|scope| {
        let other = scope.spawn(|| cross(first));
        [cross(second), other.join().unwrap()]
    });
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let said = conflict(lost.into_iter().next().unwrap());
    assert!(said.contains("(SQLSTATE 40P01)"), "{said}");
    for (session, own) in &mut both {
        assert_eq!(take(session.as_mut(), *own), Ok(1));
        session.commit().unwrap();
    }
}

#[test]
fn timeouts_and_outdated_snapshots_are_conflicts() {
    let server = Server::start(TRUST, &[]);
    let (mut holder, mut other) = (server.session(""), server.session("?prepareThreshold=0"));
    make(holder.as_mut());
    for (setting, code) in [
        ("set lock_timeout = '20ms'", "55P03"),
        (
            "set lock_timeout = 0; set statement_timeout = '500ms'",
            "57014",
        ),
    ] {
        run(other.as_mut(), setting);
        take(holder.as_mut(), 1).unwrap();
        let said = conflict(take(other.as_mut(), 1));
        assert!(said.contains(code), "{said}");
        other.rollback().unwrap();
        holder.commit().unwrap();
        assert_eq!(take(other.as_mut(), 1), Ok(1));
        other.commit().unwrap();
    }
    run(
        other.as_mut(),
        "set statement_timeout = 0; set default_transaction_isolation = 'repeatable read'",
    );
    let district = [1, 2].map(Value::Int);
    let mut rows = Rows::new();
    other
        .execute(Statement::PayDistrictRead, &district, &mut rows)
        .unwrap();
    take(holder.as_mut(), 1).unwrap();
    holder.commit().unwrap();
    let said = conflict(take(other.as_mut(), 1));
    assert!(said.contains("SQLSTATE 40001"), "{said}");
    other.rollback().unwrap();
    assert_eq!(take(other.as_mut(), 1), Ok(1));
}

fn pid(session: &mut dyn Session) -> i64 {
    number(session, "select pg_backend_pid()")
}

/// A call on a session.
type Way = dyn Fn(&mut dyn Session) -> Result<(), SqlError>;

#[test]
fn a_terminated_session_names_the_cause() {
    let server = Server::start(TRUST, &[]);
    let mut admin = server.session("");
    make(admin.as_mut());
    let mut rows = Rows::new();
    let ask = |session: &mut dyn Session| take(session, 1).map(|_| ());
    let ways: [&Way; 5] = [
        &ask,
        &|session| {
            session
                .batch(Statement::OrderQueue, &[1, 1, 1].map(Value::Int))
                .map(|_| ())
        },
        &|session| session.run("select 1", &mut Rows::new()).map(|_| ()),
        &|session| session.load(Table::NewOrder, &mut |_| Ok(())),
        &|session| session.status().map(|_| ()),
    ];
    for way in ways {
        let mut session = server.session("");
        let end = format!(
            "select pg_terminate_backend({}, 10000)",
            pid(session.as_mut())
        );
        assert_eq!(run(admin.as_mut(), &end).text(0, 0), Ok("t"));
        let said = loss(way(session.as_mut()));
        assert_eq!(
            said,
            "terminating connection due to administrator command (SQLSTATE 57P01)"
        );
        for _again in 0..2 {
            loss(way(session.as_mut()));
        }
    }
    // In a transaction, at its end, and during a load.
    for end in [Session::commit, Session::rollback] {
        let mut session = server.session("");
        let kill = format!(
            "select pg_terminate_backend({}, 10000)",
            pid(session.as_mut())
        );
        take(session.as_mut(), 1).unwrap();
        run(admin.as_mut(), &kill);
        loss(end(session.as_mut()));
    }
    let mut session = server.session("");
    let kill = format!(
        "select pg_terminate_backend({}, 10000)",
        pid(session.as_mut())
    );
    let loaded = session.load(Table::NewOrder, &mut |sink| {
        admin.run(&kill, &mut rows)?;
        loop {
            [2, 2, 2].into_iter().for_each(|value| sink.int(value));
            sink.end_row()?;
        }
    });
    let said = loss(loaded);
    assert!(said.contains("57P01"), "{said}");
    assert_eq!(
        number(admin.as_mut(), "select count(*) from bmsql_new_order"),
        1
    );
}

#[test]
fn sessions_of_a_killed_server_are_lost_and_it_is_unreachable() {
    let mut server = Server::start(TRUST, &[]);
    let mut sessions = [(); 3].map(|()| server.session(""));
    make(sessions[0].as_mut());
    // The backend of the first session is killed and sends no message. The postmaster then
    // terminates all other backends, which do send a message.
    let victim = i32::try_from(pid(sessions[0].as_mut())).unwrap();
    take(sessions[0].as_mut(), 1).unwrap();
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let said = loss(sessions[0].commit());
    assert!(
        said.contains("closed the connection") || said.contains("reset"),
        "{said}"
    );
    server.quit();
    for session in &mut sessions {
        loss(session.run("select 1", &mut Rows::new()));
    }
    let error = log_in(&server.url(""), ADMIN, "").map(|_| ()).unwrap_err();
    let address = format!("cannot reach postgres at 127.0.0.1:{}: ", server.port);
    assert!(error.to_string().starts_with(&address), "{error}");
    assert!(matches!(error, ConnectError::Unreachable { .. }));
}

#[test]
fn the_socket_timeout_loses_the_session() {
    let server = Server::start(TRUST, &[]);
    let mut session = server.session("?socketTimeout=2");
    let said = loss(session.run("select pg_sleep(3600)", &mut Rows::new()));
    assert_eq!(said, "no answer within 2000 ms");
    loss(session.run("select 1", &mut Rows::new()));
}
