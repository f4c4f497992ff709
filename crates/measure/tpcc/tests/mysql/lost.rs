//! Tests of connections that are lost.

use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::Value;
use saiga_tpcc::db::{Session, SqlError};

use crate::mariadb::{Server, open, run_sql};
use crate::tables;

fn read(session: &mut dyn Session) -> Result<u64, SqlError> {
    let place = [1, 1].map(Value::Int);
    session.execute(Statement::OrderDistrict, &place, &mut Rows::new())
}

fn is_lost(done: Result<u64, SqlError>) -> String {
    match done {
        Err(SqlError::Lost { said }) => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_killed_session_stays_lost() {
    let server = Server::shared();
    for (name, params) in [("killed_a", "useServerPrepStmts=true"), ("killed_b", "")] {
        let mut session = tables::made(server, name, params);
        assert_eq!(read(&mut *session), Ok(1));
        let id = &run_sql(&mut *session, "select connection_id()")[0][0];
        run_sql(&mut *server.admin(), &format!("kill {id}"));
        let said = is_lost(read(&mut *session));
        assert_eq!(is_lost(read(&mut *session)), said);
        assert_eq!(session.commit(), Err(SqlError::Lost { said: said.clone() }));
        assert_eq!(session.rollback(), Err(SqlError::Lost { said }));
        let mut again = open(&server.url(name, params), "root", "").unwrap();
        assert_eq!(read(&mut *again), Ok(1));
    }
}

#[test]
fn a_killed_server_is_noticed_and_named() {
    let server = Server::start(&[]);
    let mut idle = tables::made(&server, "dies", "useServerPrepStmts=true");
    let mut loading = open(&server.url("dies", ""), "root", "").unwrap();
    assert_eq!(read(&mut *idle), Ok(1));
    let mut sent = 0;
    let loaded = loading.load(saiga_tpcc::table::Table::Item, &mut |sink| {
        for id in 10.. {
            sink.int(id);
            sink.text("item");
            sink.decimal(1, 2);
            sink.text("data");
            sink.int(1);
            sink.end_row()?;
            sent = id;
            if id == 5000 {
                server.kill();
            }
        }
        Ok(())
    });
    let said = is_lost(loaded.map(|()| 0));
    assert!(
        said.starts_with(&format!("127.0.0.1:{}: ", server.port)),
        "{said}"
    );
    assert!(sent >= 5000, "{sent}");
    let said = is_lost(read(&mut *idle));
    assert!(
        said.starts_with(&format!("127.0.0.1:{}: ", server.port)),
        "{said}"
    );
    let error = open(&server.url("dies", ""), "root", "").err().unwrap();
    let said = error.to_string();
    assert!(
        said.contains(&format!("cannot reach mysql at 127.0.0.1:{}", server.port)),
        "{said}"
    );
}

#[test]
fn an_answer_after_the_socket_timeout_loses_the_session() {
    let server = Server::shared();
    server.database("late");
    let mut session = open(&server.url("late", "socketTimeout=100"), "root", "").unwrap();
    run_sql(&mut *session, "select 1");
    let error = session
        .run("select sleep(30)", &mut Rows::new())
        .unwrap_err();
    assert!(
        matches!(&error, SqlError::Lost { said } if said.contains("no answer in time")),
        "{error}"
    );
    assert!(error.to_string().contains("socketTimeout"), "{error}");
}
