//! [`Target`]: the database of a props file, and how to connect to it.

use std::path::{Path, PathBuf};

use crate::db::options::{OptionError, Options, Protocol};
use crate::db::rows::Rows;
use crate::db::{ConnectError, Session, SqlError};
use crate::driver::connection::Sessions;
use crate::props::{Engine, Props, PropsError};

/// Number of prepared statements of a terminal on MySQL: 29, and 12 that insert 4 to 15 rows into
/// ORDER-LINE.
const STATEMENTS: u32 = 41;

/// A database and how to connect to it.
#[derive(Debug)]
pub struct Target {
    pub props: Props,
    pub sessions: Sessions,
}

/// Why an existing database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The SQLite file is missing.
    #[error("the file does not exist; create it with `saiga bench tpcc build`")]
    Missing,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl Target {
    /// # Errors
    /// Fails if a parameter of the URL has a wrong value.
    pub fn new(props: Props) -> Result<Self, OptionError> {
        let sessions = Sessions {
            url: props.url.clone(),
            user: props.user.clone(),
            password: props.password.clone(),
            options: Options::of(&props.url)?,
        };
        Ok(Self { props, sessions })
    }

    /// The props of an SQLite file, which needs no server.
    ///
    /// # Errors
    /// Fails if the path has characters with a meaning in props files.
    pub fn sqlite(path: &Path, warehouses: u32) -> Result<Props, PropsError> {
        let path = path.display();
        let text =
            format!("conn=jdbc:sqlite:{path}\nwarehouses={warehouses}\nterminals=4\nrunMins=1\n");
        Props::parse(PathBuf::from("(no props file)"), &text)
    }

    /// Logs in. An SQLite file is created if it does not exist.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(&self) -> Result<Box<dyn Session>, ConnectError> {
        self.sessions.session()
    }

    /// Logs in to an existing database.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_existing(&self) -> Result<Box<dyn Session>, OpenError> {
        self.must_exist()?;
        Ok(self.open()?)
    }

    /// Whether the database exists, if that is known without a connection: SQLite would create the
    /// file.
    #[must_use]
    pub fn exists(&self) -> bool {
        let url = &self.props.url;
        url.engine != Engine::Sqlite || Path::new(&url.database).exists()
    }

    /// # Errors
    /// [`OpenError::Missing`].
    pub fn must_exist(&self) -> Result<(), OpenError> {
        match self.exists() {
            true => Ok(()),
            false => Err(OpenError::Missing),
        }
    }

    /// Returns advice if the server's limit is too low for the prepared statements of all
    /// terminals.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn room_for_statements(&self, terminals: u32) -> Result<Option<String>, OpenError> {
        let is_prepared = self.sessions.options.protocol == Protocol::Prepared;
        if self.props.url.engine != Engine::MySql || !is_prepared {
            return Ok(None);
        }
        let mut rows = Rows::new();
        let mut session = self.open_existing()?;
        session.run("select @@max_prepared_stmt_count", &mut rows)?;
        let (room, wanted) = (rows.int(0, 0)?, i64::from(STATEMENTS * terminals));
        Ok((room < wanted).then(|| {
            format!(
                "max_prepared_stmt_count is {room}, but {terminals} terminals need {wanted}: \
             statements over the limit are sent as text, which costs the server more; raise the \
             limit with `set global max_prepared_stmt_count = {wanted}`"
            )
        }))
    }

    /// The database in words: system, address, name.
    #[must_use]
    pub fn name(&self) -> String {
        let url = &self.props.url;
        match url.engine {
            Engine::Sqlite => format!("sqlite file {}", url.database),
            Engine::MySql | Engine::Postgres | Engine::OpenGauss => {
                format!(
                    "{} at {}, database {}",
                    url.engine,
                    self.sessions.options.address(url),
                    url.database
                )
            }
        }
    }
}
