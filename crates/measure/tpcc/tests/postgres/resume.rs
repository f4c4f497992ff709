//! Tests that a build can be resumed after its loader was killed, while the server still processes
//! the loader's rows.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use saiga_tpcc::build::{Build, BuildError, BuildPart, BuildRequest};
use saiga_tpcc::db::Session;
use saiga_tpcc::state;
use saiga_tpcc::table::Table;

use crate::server::{Server, TRUST};
use crate::tables::{NOW, number};

const TABLES: BuildRequest = BuildRequest {
    part: BuildPart::Tables,
    warehouses: 1,
    range: None,
    seed: None,
    resume: false,
    by_files: false,
};

/// Runs a build. It stops after `limit` polls of its stop callback.
fn build(server: &Server, request: BuildRequest, limit: u32) -> Result<(), BuildError> {
    let polls = AtomicU32::new(0);
    let build = Build {
        open: &|| Ok(server.session("")),
        db: "postgres",
        own_sql: None,
        request,
        workers: 1,
        fresh_seed: 1,
        now: NOW,
        owner: "here:999999999",
        stop: &|| polls.fetch_add(1, Ordering::Relaxed) >= limit,
        on_event: &|_| (),
    };
    build.run().map(|_| ())
}

/// Whether a session waits for a table lock.
fn is_waiting(looker: &mut dyn Session) -> bool {
    let sql = "select count(*) from pg_locks where not granted and locktype = 'relation'";
    number(looker, sql) > 0
}

#[test]
fn uncommitted_rows_of_a_dead_loader_are_deleted() {
    let server = Server::start(TRUST, &[]);
    build(&server, TABLES, u32::MAX).unwrap();
    let (mut dead, mut looker) = (server.session(""), server.session(""));
    assert_eq!(state::take(dead.as_mut(), 1, "there:1"), Ok(true));
    let resume = BuildRequest {
        part: BuildPart::Load,
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
            // The resumed build stops after it has reset the jobs, before it loads.
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
