//! A lock in the server for each job: the session that loads it holds it, on whatever host that is, and
//! it ends with the session.
//!
//! A mark in `bmsql_config` says who began a job, and nothing of whether he is still there: on
//! another host nobody can look. Deliberately absent: clocks and heartbeats. A server without such
//! locks holds none; then the mark is all there is.

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;
use crate::state::{Job, Ledger};

use super::BuildError;

/// How long a session may stay that its process has left: the server must see that it is gone.
const PATIENCE_S: u32 = 10;
/// PostgreSQL's locks have two numbers, and are of one database; this one is "SAIG".
const CLASS: u32 = 0x5341_4947;

/// Takes the lock of a job that this session is about to begin, if it is free: who sees the mark finds the lock.
pub(super) fn hold(session: &mut dyn Session, job: u32) -> bool {
    // Without it the others know no more than the mark says.
    take(session, job, 0).unwrap_or(false)
}

/// Takes it once the job is ours: somebody may be looking whether it is held, or a session that is gone still has it.
pub(super) fn hold_at_last(session: &mut dyn Session, job: u32) {
    let _ = take(session, job, PATIENCE_S);
}

/// Gives it back.
pub(super) fn release(session: &mut dyn Session, job: u32) {
    let sql = match session.server().engine {
        Engine::MySql => format!("select release_lock({})", name(job)),
        Engine::Postgres | Engine::OpenGauss => {
            format!("select case when pg_advisory_unlock({CLASS}, {job}) then 1 else 0 end")
        }
        Engine::Sqlite => return,
    };
    // The end of the session does it as well.
    let _ = session.run(&sql, &mut Rows::new());
}

/// Of `jobs` those that somebody has begun are loaded by nobody but ourselves, of whom `who` is the mark.
pub(crate) fn check_nobody_holds(
    session: &mut dyn Session,
    ledger: &Ledger,
    jobs: &[u32],
    who: &str,
) -> Result<(), BuildError> {
    for job in jobs {
        let Some(Job::Taken(by)) = ledger.jobs.get(job) else {
            continue;
        };
        if by != who && is_held(session, *job) {
            let (job, by) = (*job, by.clone());
            return Err(BuildError::Held { job, by });
        }
    }
    Ok(())
}

fn is_held(session: &mut dyn Session, job: u32) -> bool {
    match take(session, job, PATIENCE_S) {
        Ok(true) => {
            release(session, job);
            false
        }
        Ok(false) => true,
        // Not a server with such locks. One that is gone is met by the next statement.
        Err(_) => false,
    }
}

/// Whether the lock could be had, after `patience_s` at most.
fn take(session: &mut dyn Session, job: u32, patience_s: u32) -> Result<bool, SqlError> {
    match session.server().engine {
        Engine::MySql => {
            let sql = format!("select get_lock({}, {patience_s})", name(job));
            says_one(session, &sql)
        }
        Engine::Postgres | Engine::OpenGauss => {
            let sql =
                format!("select case when pg_try_advisory_lock({CLASS}, {job}) then 1 else 0 end");
            for _ in 0..10 * patience_s {
                if says_one(session, &sql)? {
                    return Ok(true);
                }
                session.run("select pg_sleep(0.1)", &mut Rows::new())?;
            }
            says_one(session, &sql)
        }
        // One process writes at a time, and they are all of this host.
        Engine::Sqlite => Ok(true),
    }
}

/// MySQL's locks are of the whole server.
fn name(job: u32) -> String {
    format!("concat('saiga_job_', crc32(database()), '_', {job})")
}

fn says_one(session: &mut dyn Session, sql: &str) -> Result<bool, SqlError> {
    let mut rows = Rows::new();
    session.run(sql, &mut rows)?;
    Ok(rows.shown(0, 0).is_ok_and(|said| said == "1"))
}
