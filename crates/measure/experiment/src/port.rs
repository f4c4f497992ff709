//! Ports of private servers.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The one that the user chose.
    #[error(
        "port {port} on 127.0.0.1 is taken; choose another with --port, or leave it out for a free one"
    )]
    Taken {
        /// The port.
        port: u16,
    },
    /// The system refuses.
    #[error("cannot find a free port: {0}")]
    Io(#[from] io::Error),
}

/// The user's port when it is free, else any that is free now.
///
/// # Errors
/// [`PortError`].
pub fn choose(wanted: Option<u16>) -> Result<u16, PortError> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0))) {
        Ok(listener) => Ok(listener.local_addr()?.port()),
        Err(error) => match (wanted, error.kind()) {
            (Some(port), io::ErrorKind::AddrInUse) => Err(PortError::Taken { port }),
            _ => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_refused_by_its_number() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(
            matches!(choose(Some(port)), Err(PortError::Taken { port: named }) if named == port)
        );
        assert_ne!(choose(None).unwrap(), port);
    }
}
