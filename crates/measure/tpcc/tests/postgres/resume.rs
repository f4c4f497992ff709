//! A build that goes on where a loader was killed: the server may still work on what that one had sent.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use saiga_tpcc::build::{Asked, Build, BuildError, Part};
use saiga_tpcc::db::Session;
use saiga_tpcc::state;
use saiga_tpcc::table::Table;

use crate::server::{Server, TRUST};
use crate::tables::{NOW, number};

const TABLES: Asked = Asked {
    part: Part::Tables,
    warehouses: 1,
    range: None,
    seed: None,
    resume: false,
    by_files: false,
};

/// Builds, with so many looks at whether it is to end before it does.
fn build(server: &Server, asked: Asked, looks: u32) -> Result<(), BuildError> {
    let seen = AtomicU32::new(0);
    let build = Build {
        open: &|| Ok(server.session("")),
        db: "postgres",
        own_sql: None,
        asked,
        workers: 1,
        fresh_seed: 1,
        now: NOW,
        who: "here:999999999",
        stop: &|| seen.fetch_add(1, Ordering::Relaxed) >= looks,
        on: &|_| (),
    };
    build.run().map(|_| ())
}

/// Whether somebody waits for the lock of a table.
fn is_waiting(looker: &mut dyn Session) -> bool {
    let sql = "select count(*) from pg_locks where not granted and locktype = 'relation'";
    number(looker, sql) > 0
}

#[test]
fn rows_that_a_dead_loader_has_under_way_are_removed_with_the_rest() {
    let server = Server::start(TRUST, &[]);
    build(&server, TABLES, u32::MAX).unwrap();
    let (mut dead, mut looker) = (server.session(""), server.session(""));
    assert_eq!(state::take(dead.as_mut(), 1, "there:1"), Ok(true));
    let resume = Asked {
        part: Part::Load,
        resume: true,
        ..TABLES
    };
    let server = &server;
    let resumed = thread::scope(|scope| {
        let mut thread = None;
        dead.load(Table::District, &mut |sink| {
            for column in Table::District.columns() {
                match column {
                    name if name.ends_with("_id") => sink.int(1),
                    name if name.ends_with("_ytd") || name.ends_with("_tax") => sink.int(0),
                    _ => sink.text("x"),
                }
            }
            sink.end_row()?;
            // It ends behind the take-back, before it loads.
            let resumed = thread.insert(scope.spawn(move || build(server, resume, 1)));
            while !resumed.is_finished() && !is_waiting(looker.as_mut()) {}
            Ok(())
        })
        .unwrap();
        thread.unwrap().join().unwrap()
    });
    assert!(matches!(resumed, Err(BuildError::Stopped)), "{resumed:?}");
    let left = "select count(*) from bmsql_district";
    assert_eq!(number(dead.as_mut(), left), 0);
    let open = "select count(*) from bmsql_config \
                where cfg_name = 'saiga_job_1' and cfg_value = 'open'";
    assert_eq!(number(dead.as_mut(), open), 1);
}
