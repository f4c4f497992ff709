//! Runs the statements of a step.

use std::time::Instant;

use super::error::FailedStep;
use super::{Build, BuildError, Event};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;
use crate::script::{self, Script, Step};
use crate::state::{self, Stage};

/// What can be done when a statement failed.
const RESUME: &str = "correct it, then go on with --resume, or destroy and build again";
const DESTROY: &str = "correct it, destroy what is there, and build again";

/// Where the statements of a script begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// At the first one.
    AtFirst,
    /// Behind so many that a process has written down before it ended. It may have run the next one
    /// as well: what that makes may be there.
    InDoubt(usize),
}

impl Begin {
    fn done(self) -> usize {
        match self {
            Self::AtFirst => 0,
            Self::InDoubt(done) => done,
        }
    }
}

/// A statement that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// From one.
    pub number: usize,
    /// Its text.
    pub statement: String,
    /// The server's words.
    pub error: SqlError,
}

/// Runs the statements of a script from `begin` on, one after the other; `after` is told the number
/// of those that are done.
///
/// # Errors
/// [`Failed`]; what comes before stays done.
pub fn run_script(
    session: &mut dyn Session,
    script: &Script,
    begin: Begin,
    after: &mut dyn FnMut(&mut dyn Session, usize) -> Result<(), SqlError>,
) -> Result<(), Failed> {
    let mut rows = Rows::new();
    for (at, statement) in script.statements.iter().enumerate().skip(begin.done()) {
        let ran = match session.run(statement, &mut rows) {
            Err(error) if begin == Begin::InDoubt(at) && is_there(session, &error) => Ok(()),
            ran => ran.map(|_| ()),
        };
        ran.and_then(|()| after(session, at + 1))
            .map_err(|error| Failed {
                number: at + 1,
                statement: statement.clone(),
                error,
            })?;
    }
    Ok(())
}

/// Whether a statement failed because what it makes is there.
fn is_there(session: &dyn Session, error: &SqlError) -> bool {
    let SqlError::Refused { code, said, .. } = error else {
        return false;
    };
    match session.server().engine {
        // An index, a primary key, a foreign key; MariaDB says the last in InnoDB's words.
        Engine::MySql => match code.as_str() {
            "1061" | "1068" | "1826" => true,
            "1005" => said.contains("errno: 121"),
            _ => false,
        },
        // An index, a primary key, another constraint; an index that the server has just made for the
        // process that was killed.
        Engine::Postgres | Engine::OpenGauss => match code.as_str() {
            "42P07" | "42P16" | "42710" => true,
            "23505" => said.contains("pg_class_relname_nsp_index"),
            _ => false,
        },
        Engine::Sqlite => said.contains("already exists"),
    }
}

/// The file of a step.
pub(super) fn source(build: &Build<'_>, step: Step) -> Result<String, BuildError> {
    Ok(script::find(build.own_sql, build.db, step)?.source)
}

impl Build<'_> {
    /// Runs a step from `begin` on, and writes down how far it is.
    pub(super) fn step(
        &self,
        session: &mut dyn Session,
        step: Step,
        begin: Begin,
    ) -> Result<(), BuildError> {
        let script = script::find(self.own_sql, self.db, step)?;
        (self.on)(Event::Step {
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
            interrupted = self.go_on().is_err();
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
                way_out: if resumable { RESUME } else { DESTROY },
            }))
        })?;
        let statements = script.statements.len().saturating_sub(begin.done());
        (self.on)(Event::StepDone {
            step,
            statements,
            took: before.elapsed(),
        });
        Ok(())
    }
}
