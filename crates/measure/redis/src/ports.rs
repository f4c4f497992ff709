//! Chooses ports on 127.0.0.1 for the servers of one run.

use std::io;

use saiga_process::port::{self, PortError};

use crate::topology::Topology;

/// Difference between the port of a node's cluster bus and the port of the node.
const BUS: u16 = 10_000;
/// Maximum number of ports to try.
const MAX_TRIES: u32 = 400;

/// Why no ports were chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortsError {
    /// A port is in use, or no port is free.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The range exceeds the highest port number.
    #[error(
        "--port {first} is too high: the {topology} topology needs {count} ports from there{bus}"
    )]
    TooHigh {
        first: u16,
        count: u16,
        topology: Topology,
        /// The text about the ports of the cluster bus.
        bus: &'static str,
    },
}

/// Chooses a port for each process: a range that begins at `wanted`, the user's port, or any free
/// ports.
pub(crate) fn choose(topology: Topology, wanted: Option<u16>) -> Result<Vec<u16>, PortsError> {
    let count = count(topology);
    match wanted {
        Some(first) => range(topology, first, count),
        None => Ok(any(topology, count)?),
    }
}

/// Returns the error for a range of the user in which another process has taken a port.
pub(crate) fn taken(topology: Topology, first: u16) -> PortsError {
    let (port, count) = (first, count(topology));
    PortsError::Port(PortError::Taken { port, first, count })
}

fn count(topology: Topology) -> u16 {
    u16::try_from(topology.roles().len()).unwrap_or(u16::MAX)
}

fn range(topology: Topology, first: u16, count: u16) -> Result<Vec<u16>, PortsError> {
    let cluster = topology == Topology::Cluster;
    let reach = if cluster { BUS + count } else { count };
    if first.checked_add(reach - 1).is_none() {
        let bus = if cluster {
            ", and the same plus 10000 for its bus"
        } else {
            ""
        };
        return Err(PortsError::TooHigh {
            first,
            count,
            topology,
            bus,
        });
    }
    let ports: Vec<u16> = (first..first + count).collect();
    let all = ports
        .iter()
        .flat_map(|&port| [Some(port), cluster.then(|| port + BUS)]);
    for port in all.flatten() {
        port::hold(Some(port)).map_err(|error| match error {
            PortError::Taken { port, .. } => PortError::Taken { port, first, count },
            PortError::Io(error) => PortError::Io(error),
        })?;
    }
    Ok(ports)
}

fn any(topology: Topology, count: u16) -> Result<Vec<u16>, PortError> {
    // The listeners are kept until all ports are found, so that all ports differ.
    let (mut held, mut ports) = (Vec::new(), Vec::new());
    for _ in 0..MAX_TRIES {
        let listener = port::hold(None)?;
        let port = listener.local_addr().map_err(PortError::Io)?.port();
        held.push(listener);
        if topology == Topology::Cluster {
            match port.checked_add(BUS).map(|bus| port::hold(Some(bus))) {
                Some(Ok(bus)) => held.push(bus),
                Some(Err(_)) | None => continue,
            }
        }
        ports.push(port);
        if ports.len() == usize::from(count) {
            return Ok(ports);
        }
    }
    Err(PortError::Io(io::ErrorKind::AddrNotAvailable.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own_port() {
        for topology in Topology::ALL {
            let mut ports = choose(topology, None).unwrap();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), topology.roles().len(), "{topology}");
        }
    }

    #[test]
    fn a_range_with_a_port_in_use_is_refused() {
        let (taken, port) = loop {
            let taken = port::hold(None).unwrap();
            let port = taken.local_addr().unwrap().port();
            if port::hold(Some(port - 1)).is_ok() {
                break (taken, port);
            }
        };
        let error = choose(Topology::Replica, Some(port - 1)).unwrap_err();
        let message = error.to_string();
        let first = port - 1;
        let wanted = format!("port {port} on 127.0.0.1 is in use (3 are needed from {first});");
        assert!(message.starts_with(&wanted), "{message}");
        drop(taken);
    }

    #[test]
    fn a_range_beyond_the_last_port_is_refused() {
        let message = |topology, first| choose(topology, Some(first)).unwrap_err().to_string();
        assert_eq!(
            message(Topology::Sentinel, 65_531),
            "--port 65531 is too high: the sentinel topology needs 6 ports from there"
        );
        assert_eq!(
            message(Topology::Cluster, 55_531),
            "--port 55531 is too high: the cluster topology needs 6 ports from there, and the \
             same plus 10000 for its bus"
        );
    }
}
