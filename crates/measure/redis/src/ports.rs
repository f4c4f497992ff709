//! Ports on 127.0.0.1 for the servers of one run.

use std::io;

use saiga_experiment::port::{self, PortError};

use crate::topology::Topology;

/// What redis adds to a node's port for the cluster bus.
const BUS: u16 = 10_000;
/// Ports that are looked at before we say that there is none.
const MAX_LOOKS: u32 = 400;

/// Why there are no ports.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortsError {
    /// One of them is not free, or none is.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The range does not fit.
    #[error(
        "--port {first} is too high: the {topology} topology needs {count} ports from there{bus}"
    )]
    TooHigh {
        /// The first of the range.
        first: u16,
        /// Ports in the range.
        count: u16,
        /// What needs them.
        topology: Topology,
        /// What else a cluster needs.
        bus: &'static str,
    },
}

/// One port for each process: from the user's on, or any that are free now.
pub(crate) fn choose(topology: Topology, wanted: Option<u16>) -> Result<Vec<u16>, PortsError> {
    let count = count(topology);
    match wanted {
        Some(first) => range(topology, first, count),
        None => Ok(any(topology, count)?),
    }
}

/// A stranger came before our servers to a port that the user chose.
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
    // Held until all are found, so that no two are the same.
    let (mut held, mut ports) = (Vec::new(), Vec::new());
    for _ in 0..MAX_LOOKS {
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
    fn each_process_gets_a_port_of_its_own() {
        for topology in Topology::ALL {
            let mut ports = choose(topology, None).unwrap();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), topology.roles().len(), "{topology}");
        }
    }

    #[test]
    fn a_range_with_a_stranger_in_it_is_refused_by_name() {
        let (taken, port) = loop {
            let taken = port::hold(None).unwrap();
            let port = taken.local_addr().unwrap().port();
            if port::hold(Some(port - 1)).is_ok() {
                break (taken, port);
            }
        };
        let error = choose(Topology::Replica, Some(port - 1)).unwrap_err();
        let said = error.to_string();
        let first = port - 1;
        let wanted = format!("port {port} on 127.0.0.1 is taken (3 are needed from {first});");
        assert!(said.starts_with(&wanted), "{said}");
        drop(taken);
    }

    #[test]
    fn a_range_beyond_the_last_port_is_refused() {
        let said = |topology, first| choose(topology, Some(first)).unwrap_err().to_string();
        assert_eq!(
            said(Topology::Sentinel, 65_531),
            "--port 65531 is too high: the sentinel topology needs 6 ports from there"
        );
        assert_eq!(
            said(Topology::Cluster, 55_531),
            "--port 55531 is too high: the cluster topology needs 6 ports from there, and the \
             same plus 10000 for its bus"
        );
    }
}
