//! Ports of private servers.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// How often a server is started again when strangers take ports that were free a moment ago.
pub const TRIES: u32 = 3;

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The one that the user chose, or one of a range that begins there.
    #[error(
        "port {port} on 127.0.0.1 is taken{}; choose another with --port, or leave it out for a free one",
        among(*.first, *.count)
    )]
    Taken {
        /// The port.
        port: u16,
        /// The first of the range.
        first: u16,
        /// Ports in the range.
        count: u16,
    },
    /// The system refuses.
    #[error("cannot find a free port: {0}")]
    Io(io::Error),
}

impl PortError {
    /// The user's only port is taken.
    #[must_use]
    pub fn taken(port: u16) -> Self {
        Self::Taken {
            port,
            first: port,
            count: 1,
        }
    }
}

fn among(first: u16, count: u16) -> String {
    if count == 1 {
        String::new()
    } else {
        format!(" ({count} are needed from {first})")
    }
}

/// The user's port when it is free, else any that is free now.
///
/// # Errors
/// [`PortError`].
pub fn choose(wanted: Option<u16>) -> Result<u16, PortError> {
    let listener = hold(wanted)?;
    Ok(listener.local_addr().map_err(PortError::Io)?.port())
}

/// The same, taken as long as the listener lives.
///
/// # Errors
/// [`PortError`].
pub fn hold(wanted: Option<u16>) -> Result<TcpListener, PortError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0))).map_err(|error| {
        match (wanted, error.kind()) {
            (Some(port), io::ErrorKind::AddrInUse) => PortError::taken(port),
            _ => PortError::Io(error),
        }
    })
}

/// Whether a server that said this found its port taken.
#[must_use]
pub fn is_lost(said: &str) -> bool {
    said.contains("Address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_refused_by_its_number() {
        let taken = hold(None).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = choose(Some(port)).unwrap_err();
        assert!(matches!(error, PortError::Taken { port: named, .. } if named == port));
        let wanted = format!("port {port} on 127.0.0.1 is taken; choose another");
        assert!(error.to_string().starts_with(&wanted), "{error}");
        assert_ne!(choose(None).unwrap(), port);
    }
}
