//! Opens a session with the database system that a URL names.

use super::options::Options;
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::{ConnectError, Session};
use crate::props::{Engine, Password, Url};

/// Connects and logs in.
///
/// # Errors
/// [`ConnectError`].
pub fn connect(
    url: &Url,
    user: &str,
    password: &Password,
    options: &Options,
) -> Result<Box<dyn Session>, ConnectError> {
    match url.engine {
        Engine::Sqlite => Ok(Box::new(Sqlite::open(url)?)),
        Engine::Postgres | Engine::OpenGauss => {
            let session = Postgres::open(url, user, password, options)?;
            Ok(Box::new(session))
        }
        Engine::MySql => super::mysql::connect(url, user, password, options),
    }
}
