//! Chooses free TCP ports for servers that an experiment starts.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Number of attempts to start a server if another process takes its port after the port was
/// chosen.
pub const TRIES: u32 = 3;

/// No port is available.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The port that the user chose, or a port of the range that begins there.
    #[error(
        "port {port} on 127.0.0.1 is in use{}; choose another with --port, or leave it out for a free one",
        among(*.first, *.count)
    )]
    Taken {
        port: u16,
        /// First port of the range.
        first: u16,
        /// Number of ports in the range.
        count: u16,
    },
    #[error("cannot find a free port: {0}")]
    Io(io::Error),
}

impl PortError {
    /// The error for a single port.
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

/// Checks that the user's port is free, or chooses a free port. Another process may still take it
/// before the server starts.
pub fn choose(wanted: Option<u16>) -> Result<u16, PortError> {
    let listener = hold(wanted)?;
    Ok(listener.local_addr().map_err(PortError::Io)?.port())
}

/// [`choose`] with a listener that keeps the port until it is dropped.
pub fn hold(wanted: Option<u16>) -> Result<TcpListener, PortError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0))).map_err(|error| {
        match (wanted, error.kind()) {
            (Some(port), io::ErrorKind::AddrInUse) => PortError::taken(port),
            _ => PortError::Io(error),
        }
    })
}

/// Whether the output of a server says that its port was in use.
#[must_use]
pub fn was_taken(output: &str) -> bool {
    output.contains("Address already in use")
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
        let wanted = format!("port {port} on 127.0.0.1 is in use; choose another");
        assert!(error.to_string().starts_with(&wanted), "{error}");
        assert_ne!(choose(None).unwrap(), port);
    }
}
