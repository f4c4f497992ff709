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

    /// Logs in again after a loss: one try of many, which must not take as long as a fail-over.
    ///
    /// # Errors
    /// [`ConnectError`].
    fn open_again(&self) -> Result<Box<dyn Connection>, ConnectError> {
        self.open()
    }
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

impl Sessions {
    fn log_in(&self, options: &Options) -> Result<Box<dyn Connection>, ConnectError> {
        let session = connect(&self.url, &self.user, &self.password, options)?;
        Ok(Box::new(Performing {
            session,
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

struct Performing {
    session: Box<dyn Session>,
    performer: Performer,
}

impl Connection for Performing {
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

    /// A host that does not even refuse: nobody accepts, and there is no room for one more that waits.
    #[test]
    fn another_try_ends_by_itself_when_nobody_answers() {
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
                panic!("{system}: nobody was there")
            };
            // The system's own patience has a number, ours has none.
            assert_eq!(error.raw_os_error(), None, "{system}: {error}");
        }
    }
}
