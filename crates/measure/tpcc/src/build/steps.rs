//! Executes the SQL scripts of a build.

use std::time::Instant;

use super::error::FailedStep;
use super::{Build, BuildError, Event};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;
use crate::script::{self, Script, Step};
use crate::state::{self, Stage};

/// Advice after a failed statement of a step that can be resumed.
const RESUME: &str = "correct it, then continue with --resume, or destroy and build again";
/// Advice after a failed statement of any other step.
const DESTROY: &str = "correct it, destroy the tables, and build again";

/// The first statement of a script to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    First,
    /// Continue after this many statements, which an earlier process recorded as executed. That
    /// process may have executed the next statement, too; the object of that statement then exists.
    InDoubt(usize),
}

impl StartAt {
    fn done(self) -> usize {
        match self {
            Self::First => 0,
            Self::InDoubt(done) => done,
        }
    }
}

/// A statement of a script that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStatement {
    /// Number of the statement, from 1.
    pub number: usize,
    pub statement: String,
    pub error: SqlError,
}

/// Executes the statements of a script from `begin` on. After each statement, `after` is called
/// with the number of executed statements. Stops at the first error.
pub fn run_script(
    session: &mut dyn Session,
    script: &Script,
    begin: StartAt,
    after: &mut dyn FnMut(&mut dyn Session, usize) -> Result<(), SqlError>,
) -> Result<(), FailedStatement> {
    let mut rows = Rows::new();
    for (at, statement) in script.statements.iter().enumerate().skip(begin.done()) {
        let ran = match session.run(statement, &mut rows) {
            Err(error) if begin == StartAt::InDoubt(at) && exists_already(session, &error) => {
                Ok(())
            }
            ran => ran.map(|_| ()),
        };
        ran.and_then(|()| after(session, at + 1))
            .map_err(|error| FailedStatement {
                number: at + 1,
                statement: statement.clone(),
                error,
            })?;
    }
    Ok(())
}

/// Whether a statement failed because the object that it creates exists.
fn exists_already(session: &dyn Session, error: &SqlError) -> bool {
    let SqlError::Refused { code, said, .. } = error else {
        return false;
    };
    match session.server().engine {
        // Duplicate index, primary key, foreign key. MariaDB reports a duplicate foreign key as an
        // InnoDB error (1005).
        Engine::MySql => match code.as_str() {
            "1061" | "1068" | "1826" => true,
            "1005" => said.contains("errno: 121"),
            _ => false,
        },
        // Duplicate index, primary key, other constraint. The server reports 23505 for an index
        // that it has just created for a killed process.
        Engine::Postgres | Engine::OpenGauss => match code.as_str() {
            "42P07" | "42P16" | "42710" => true,
            "23505" => said.contains("pg_class_relname_nsp_index"),
            _ => false,
        },
        Engine::Sqlite => said.contains("already exists"),
    }
}

/// The file of a step's script.
pub(super) fn source(build: &Build<'_>, step: Step) -> Result<String, BuildError> {
    Ok(script::find(build.own_sql, build.db, step)?.source)
}

impl Build<'_> {
    /// Executes the script of a step from `begin` on, and records the progress.
    pub(super) fn step(
        &self,
        session: &mut dyn Session,
        step: Step,
        begin: StartAt,
    ) -> Result<(), BuildError> {
        let script = script::find(self.own_sql, self.db, step)?;
        (self.on_event)(Event::Step {
            step,
            source: &script.source,
        });
        let before = Instant::now();
        let resumable = Step::AFTER_LOAD.contains(&step);
        if resumable {
            state::advance(session, Stage::Step(step, begin.done()))?;
        }
        let mut interrupted = false;
        let ran = run_script(session, &script, begin, &mut |session, done| {
            if resumable {
                state::advance(session, Stage::Step(step, done))?;
            }
            interrupted = self.check_stop().is_err();
            if interrupted {
                Err(super::stopped())
            } else {
                Ok(())
            }
        });
        if interrupted {
            return Err(BuildError::Stopped);
        }
        ran.map_err(|failed| {
            BuildError::Step(Box::new(FailedStep {
                file: script.source.clone(),
                failed,
                of: script.statements.len(),
                advice: if resumable { RESUME } else { DESTROY },
            }))
        })?;
        let statements = script.statements.len().saturating_sub(begin.done());
        (self.on_event)(Event::StepDone {
            step,
            statements,
            took: before.elapsed(),
        });
        Ok(())
    }
}
