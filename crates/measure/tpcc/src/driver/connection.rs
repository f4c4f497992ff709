//! What terminals need of a database: connections that perform whole transactions.

use std::fmt;

use crate::db::connect::connect;
use crate::db::options::Options;
use crate::db::{ConnectError, Session, SqlError};
use crate::props::{Password, Url};
use crate::spec::inputs::Input;
use crate::transactions::{Outcome, Performer};

/// Opens connections, from any thread.
pub trait Connector: Send + Sync + fmt::Debug {
    /// Logs in.
    ///
    /// # Errors
    /// [`ConnectError`].
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError>;
}

/// One connection.
pub trait Connection: Send {
    /// Performs a transaction with the date `now`, as [`Performer::perform`] does.
    ///
    /// # Errors
    /// [`SqlError`].
    fn perform(&mut self, input: &Input, now: i64) -> Result<Outcome, SqlError>;
}

/// Sessions with the database of a URL.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// Where it is.
    pub url: Url,
    /// Whom to log in as.
    pub user: String,
    /// And with what.
    pub password: Password,
    /// How it is spoken to.
    pub options: Options,
}

impl Connector for Sessions {
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError> {
        let session = connect(&self.url, &self.user, &self.password, &self.options)?;
        Ok(Box::new(Performing {
            session,
            performer: Performer::default(),
        }))
    }
}

struct Performing {
    session: Box<dyn Session>,
    performer: Performer,
}

impl Connection for Performing {
    fn perform(&mut self, input: &Input, now: i64) -> Result<Outcome, SqlError> {
        self.performer.perform(self.session.as_mut(), input, now)
    }
}
