//! Connections as terminals use them: each performs whole transactions on a database session.

use std::fmt;

use crate::db::connect::connect;
use crate::db::options::Options;
use crate::db::{ConnectError, Session, SqlError};
use crate::props::{Password, Url};
use crate::spec::inputs::Input;
use crate::transactions::{Outcome, Performer};

/// Opens connections to the database; called from many threads.
pub trait Connector: Send + Sync + fmt::Debug {
    /// Opens a connection and logs in.
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError>;

    /// Opens a connection again after a loss. Each attempt has a short timeout, so that several
    /// attempts fit into a fail-over.
    fn open_again(&self) -> Result<Box<dyn Connection>, ConnectError> {
        self.open()
    }
}

/// A connection that performs transactions.
pub trait Connection: Send {
    /// Performs a transaction; `now` is its date, in seconds since 1970. Errors are those of
    /// [`Performer::perform`].
    fn perform(&mut self, input: &Input, now: i64) -> Result<Outcome, SqlError>;
}

/// Connects to the database of a URL.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub url: Url,
    pub user: String,
    pub password: Password,
    pub options: Options,
}

impl Sessions {
    /// Opens a session.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn session(&self) -> Result<Box<dyn Session>, ConnectError> {
        self.session_with(&self.options)
    }

    fn session_with(&self, options: &Options) -> Result<Box<dyn Session>, ConnectError> {
        connect(&self.url, &self.user, &self.password, options)
    }

    fn log_in(&self, options: &Options) -> Result<Box<dyn Connection>, ConnectError> {
        Ok(Box::new(SessionConnection {
            session: self.session_with(options)?,
            performer: Performer::default(),
        }))
    }
}

impl Connector for Sessions {
    fn open(&self) -> Result<Box<dyn Connection>, ConnectError> {
        self.log_in(&self.options)
    }

    fn open_again(&self) -> Result<Box<dyn Connection>, ConnectError> {
        self.log_in(&self.options.for_another_try())
    }
}

struct SessionConnection {
    session: Box<dyn Session>,
    performer: Performer,
}

impl Connection for SessionConnection {
    fn perform(&mut self, input: &Input, now: i64) -> Result<Outcome, SqlError> {
        self.performer.perform(self.session.as_mut(), input, now)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::path::PathBuf;
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::props::Props;

    /// A host that neither accepts nor refuses connections, because the backlog of its listening
    /// socket is full.
    #[test]
    fn another_try_ends_by_itself_when_the_host_does_not_answer() {
        let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        silent
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        silent.listen(0).unwrap();
        let address = silent.local_addr().unwrap().as_socket().unwrap();
        let brief = Duration::from_millis(100);
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, brief) {
            waiting.push(stream);
        }
        for system in ["mysql", "postgresql"] {
            let text = format!("conn=jdbc:{system}://{address}/t\nwarehouses=1\n");
            let props = Props::parse(PathBuf::from("test"), &text).unwrap();
            let sessions = Sessions {
                options: Options::of(&props.url).unwrap(),
                url: props.url,
                user: props.user,
                password: props.password,
            };
            let Err(ConnectError::Unreachable { error, .. }) = sessions.open_again() else {
                panic!("{system}: connected to a full backlog")
            };
            // The system's timeout would have an error number. The timeout of `open_again` has
            // none.
            assert_eq!(error.raw_os_error(), None, "{system}: {error}");
        }
    }
}
