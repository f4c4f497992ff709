//! Tests of sessions on files, and of conflicts between sessions.

use super::*;
use crate::script::{self, Step};

fn open(path: &std::path::Path) -> Result<Sqlite, ConnectError> {
    Sqlite::open(&Url::parse(&format!("jdbc:sqlite:{}", path.display())).unwrap())
}

fn with_tables(path: &std::path::Path) -> Sqlite {
    let mut session = open(path).unwrap();
    for sql in script::find(None, "sqlite", Step::TableCreates)
        .unwrap()
        .statements
    {
        session.run(&sql, &mut Rows::new()).unwrap();
    }
    session
}

/// Selects price and name of an item.
fn item(session: &mut Sqlite, i_id: i64) -> Result<(i64, String), SqlError> {
    let mut rows = Rows::new();
    let found = session.execute(Statement::OrderItem, &[Value::Int(i_id)], &mut rows)?;
    assert_eq!((found, rows.len()), (1, 1));
    Ok((rows.decimal(0, 0, 2)?, rows.text(0, 1)?.to_owned()))
}

#[test]
fn a_load_stays_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = with_tables(&dir.path().join("t"));
    let row = |sink: &mut dyn Sink<Error = SqlError>, i_id| {
        sink.int(i_id);
        sink.text("it's");
        sink.decimal(1234, 2);
        sink.text("data");
        sink.null();
        sink.end_row()
    };
    session.load(Table::Item, &mut |sink| row(sink, 1)).unwrap();
    assert_eq!(item(&mut session, 1).unwrap(), (1234, "it's".to_owned()));
    session.commit().unwrap();
    let twice = session.load(Table::Item, &mut |sink| {
        row(sink, 2).and_then(|()| row(sink, 1))
    });
    let said = twice.unwrap_err().to_string();
    assert!(
        said.contains("UNIQUE constraint failed: bmsql_item.i_id"),
        "{said}"
    );
    assert!(said.ends_with("(in: insert into bmsql_item)"), "{said}");
    let mut rows = Rows::new();
    session
        .run("select count(*) from bmsql_item", &mut rows)
        .unwrap();
    assert_eq!(rows.int(0, 0), Ok(1));
}

#[test]
fn a_transaction_is_undone_or_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = with_tables(&dir.path().join("t"));
    let queue = [1, 2, 3].map(Value::Int);
    let both = [1, 2, 3, 1, 2, 4].map(Value::Int);
    assert_eq!(session.batch(Statement::OrderQueue, &both), Ok(2));
    session.rollback().unwrap();
    assert_eq!(
        session.execute(Statement::OrderQueue, &queue, &mut Rows::new()),
        Ok(1)
    );
    session.commit().unwrap();
    let mut other = open(&dir.path().join("t")).unwrap();
    let mut rows = Rows::new();
    let oldest = [1, 2].map(Value::Int);
    assert_eq!(
        other.execute(Statement::DeliverOldest, &oldest, &mut rows),
        Ok(1)
    );
    assert_eq!(rows.int(0, 0), Ok(3));
    assert_eq!(
        other.execute(Statement::DeliverTake, &queue, &mut rows),
        Ok(1)
    );
    assert_eq!(
        other.execute(Statement::DeliverTake, &queue, &mut rows),
        Ok(0)
    );
}

#[test]
fn the_second_writer_meets_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = with_tables(&dir.path().join("t"));
    let mut second = open(&dir.path().join("t")).unwrap();
    second.patience = Duration::ZERO;
    let queue = [1, 2, 3].map(Value::Int);
    first
        .execute(Statement::OrderQueue, &queue, &mut Rows::new())
        .unwrap();
    let met = second.execute(Statement::OrderQueue, &queue, &mut Rows::new());
    assert!(matches!(met, Err(SqlError::Conflict { .. })), "{met:?}");
    second.rollback().unwrap();
    first.commit().unwrap();
    // SQLite itself reports a writer in another process.
    let holder = rusqlite::Connection::open(dir.path().join("t")).unwrap();
    holder.execute_batch("begin immediate").unwrap();
    second.connection.busy_timeout(Duration::ZERO).unwrap();
    let met = second.execute(Statement::OrderQueue, &queue, &mut Rows::new());
    assert!(matches!(met, Err(SqlError::Conflict { .. })), "{met:?}");
    second.rollback().unwrap();
    holder.execute_batch("rollback").unwrap();
    let met = second.execute(Statement::OrderQueue, &queue, &mut Rows::new());
    assert!(matches!(met, Err(SqlError::Refused { .. })), "{met:?}");
}

#[test]
fn what_is_no_database_is_named_and_a_look_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(
        &path,
        "this is not a database at all, however long it is; it has no header",
    )
    .unwrap();
    let said = open(&path).unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("cannot reach sqlite at {}", path.display())),
        "{said}"
    );
    assert!(said.contains("file is not a database"), "{said}");
    let missing = dir.path().join("missing");
    let mut session = open(&missing).unwrap();
    let looked = session.run("select 1 from bmsql_config", &mut Rows::new());
    assert!(looked.unwrap_err().to_string().contains("no such table"));
    drop(session);
    assert_eq!(std::fs::read(&missing).map_or(0, |bytes| bytes.len()), 0);
}

/// A journal that stayed would be replayed over a copy that is restored in place.
#[test]
fn sessions_that_close_at_once_leave_no_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    drop(with_tables(&path));
    for _ in 0..50 {
        let together = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for queue in 0..4 {
                let (path, together) = (&path, &together);
                scope.spawn(move || {
                    let mut session = open(path).unwrap();
                    let queue = [1, queue, 3].map(Value::Int);
                    let rows = &mut Rows::new();
                    session
                        .execute(Statement::OrderQueue, &queue, rows)
                        .unwrap();
                    session.rollback().unwrap();
                    together.wait();
                });
            }
        });
        let left: Vec<_> = dir.path().read_dir().unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
