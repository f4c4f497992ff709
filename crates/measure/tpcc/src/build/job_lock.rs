//! One lock in the database server per job, held by the session that loads the job.
//!
//! The owner mark in `bmsql_config` names the process that began a job, but a process of another
//! host cannot check whether that process is alive. It can check the lock, because the server
//! releases a lock when its session ends. Deliberately absent: clocks and heartbeats. On a server
//! without such locks, only the mark protects a job.

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;
use crate::state::{Job, LoadProgress};

use super::BuildError;

/// Seconds to wait for a lock: the server takes time to notice that a client has died.
const WAIT_S: u32 = 10;
/// First key of PostgreSQL's two-key advisory locks: "SAIG". These locks are per database.
const LOCK_CLASS: u32 = 0x5341_4947;

/// Tries to lock a job before its mark is written, so that a process that reads the mark finds the
/// lock held. Returns whether the lock was acquired.
pub(super) fn try_lock(session: &mut dyn Session, job: u32) -> bool {
    // If the server has no such locks, other processes see only the mark.
    acquire(session, job, 0).unwrap_or(false)
}

/// Waits for the lock of a job that this process has taken. Another process may be testing the
/// lock, or the server may not have noticed the end of the job's previous session.
pub(super) fn lock_waiting(session: &mut dyn Session, job: u32) {
    let _ = acquire(session, job, WAIT_S);
}

/// Releases the lock of a job.
pub(super) fn unlock(session: &mut dyn Session, job: u32) {
    let sql = match session.server().engine {
        Engine::MySql => format!("select release_lock({})", name(job)),
        Engine::Postgres | Engine::OpenGauss => {
            format!("select case when pg_advisory_unlock({LOCK_CLASS}, {job}) then 1 else 0 end")
        }
        Engine::Sqlite => return,
    };
    // An error is harmless: the end of the session releases the lock, too.
    let _ = session.run(&sql, &mut Rows::new());
}

/// Fails if another session holds the lock of one of `jobs`. Jobs that are not begun, or that
/// carry the mark `owner` of this process, are not checked.
pub(crate) fn check_not_locked(
    session: &mut dyn Session,
    progress: &LoadProgress,
    jobs: &[u32],
    owner: &str,
) -> Result<(), BuildError> {
    for job in jobs {
        let Some(Job::Taken(by)) = progress.jobs.get(job) else {
            continue;
        };
        if by != owner && is_locked(session, *job) {
            let (job, by) = (*job, by.clone());
            return Err(BuildError::LockHeld { job, by });
        }
    }
    Ok(())
}

fn is_locked(session: &mut dyn Session, job: u32) -> bool {
    match acquire(session, job, WAIT_S) {
        Ok(true) => {
            unlock(session, job);
            false
        }
        Ok(false) => true,
        // The server has no such locks. If the session is lost, its next statement fails.
        Err(_) => false,
    }
}

/// Tries to acquire the lock, for at most `wait_s` seconds.
fn acquire(session: &mut dyn Session, job: u32, wait_s: u32) -> Result<bool, SqlError> {
    match session.server().engine {
        Engine::MySql => {
            let sql = format!("select get_lock({}, {wait_s})", name(job));
            is_one(session, &sql)
        }
        Engine::Postgres | Engine::OpenGauss => {
            let sql = format!(
                "select case when pg_try_advisory_lock({LOCK_CLASS}, {job}) then 1 else 0 end"
            );
            for _ in 0..10 * wait_s {
                if is_one(session, &sql)? {
                    return Ok(true);
                }
                session.run("select pg_sleep(0.1)", &mut Rows::new())?;
            }
            is_one(session, &sql)
        }
        // SQLite has a single writer, and all processes are on this host.
        Engine::Sqlite => Ok(true),
    }
}

/// An SQL expression for the lock's name in MySQL. The name contains the database, because the
/// locks are global to the server.
fn name(job: u32) -> String {
    format!("concat('saiga_job_', crc32(database()), '_', {job})")
}

fn is_one(session: &mut dyn Session, sql: &str) -> Result<bool, SqlError> {
    let mut rows = Rows::new();
    session.run(sql, &mut rows)?;
    Ok(rows.shown(0, 0).is_ok_and(|said| said == "1"))
}
