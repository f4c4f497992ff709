//! The program with its maps: which frames go to the sockets.
//!
//! Hosts whose connections are older than the program are left to the kernel as a whole, until they
//! have none left. A map of connections instead would cost a bpf(2) call for each connection's
//! start and end, and would not help: the gateway sends the server's replies to its own side by
//! host, too. Start in this order, so that no connection falls between: serve the endpoint (from
//! now on, the kernel gets no new connection), list the kernel's connections, pass their hosts,
//! receive and drop what the queues hold, and only then give frames to a stack, which would answer
//! segments of older connections with resets. The hosts send again what was dropped.
//! Connections that the gateway opens itself are known one by one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use saiga_bpf::{Map, MapKind, Program, ProgramKind};

use super::error::{OpenError, SteerError};
use super::options::Options;
use super::program::{self, ADDRESS_BYTES, ENDPOINT_BYTES, FLOW_BYTES, Maps};

/// Most endpoints: as many as a stack has listeners.
pub const MAX_ENDPOINTS: u32 = 4096;
/// Most hosts that are left to the kernel.
pub const MAX_HOSTS: u32 = 16_384;
/// The value of each key of a map that is a set.
const PRESENT: [u8; 1] = [1];

/// The program, loaded, and its maps.
#[derive(Debug)]
pub(super) struct Steering {
    pub(super) program: Program,
    endpoints: Map<ENDPOINT_BYTES, 1>,
    hosts: Map<ADDRESS_BYTES, 1>,
    sockets: Map<4, 4>,
    flows: Option<Flows>,
}

/// Connections whose frames are redirected although they go to no endpoint.
#[derive(Debug, Clone)]
pub struct Flows(Arc<Map<FLOW_BYTES, 1>>);

impl Flows {
    /// From now on, redirects the frames of a connection of this host, `own`, with another one.
    ///
    /// # Errors
    /// E2BIG if there are as many as [`Options::flows`](super::Options::flows) already.
    pub fn add(&self, own: SocketAddr, other: SocketAddr) -> io::Result<()> {
        Ok(self.0.insert(&program::flow_key(own, other), &PRESENT)?)
    }

    /// From now on, leaves the frames of a connection to the kernel.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn remove(&self, own: SocketAddr, other: SocketAddr) -> io::Result<()> {
        Ok(self.0.remove(&program::flow_key(own, other)).map(drop)?)
    }
}

impl Steering {
    /// Loads the program, which passes everything, for the interface `name` with `queues` queues.
    pub(super) fn load(name: &str, queues: u32, options: &Options) -> Result<Self, OpenError> {
        let failed = |error| map_error(name, error);
        let endpoints = Map::new(MapKind::Hash, MAX_ENDPOINTS).map_err(failed)?;
        let hosts = Map::new(MapKind::Hash, MAX_HOSTS).map_err(failed)?;
        let sockets = Map::new(MapKind::Sockets, queues).map_err(failed)?;
        let flows = match options.flows {
            0 => None,
            flows => Some(Map::new(MapKind::Hash, flows).map_err(failed)?),
        };
        let maps = Maps {
            flows: flows.as_ref().map(Map::number),
            endpoints: endpoints.number(),
            hosts: hosts.number(),
            sockets: sockets.number(),
        };
        let code = program::program(maps, options.vlan).unwrap_or_default();
        let program = Program::load(ProgramKind::Xdp, "saiga_xdp", &code);
        Ok(Self {
            program: program.map_err(load_error)?,
            endpoints,
            hosts,
            sockets,
            flows: flows.map(|map| Flows(Arc::new(map))),
        })
    }

    pub(super) fn flows(&self) -> Option<Flows> {
        self.flows.clone()
    }

    /// Gives a queue its socket. The kernel removes a socket that is closed.
    pub(super) fn connect(&self, queue: u16, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let queue = u32::from(queue).to_ne_bytes();
        self.sockets
            .insert(&queue, &socket.as_raw_fd().to_ne_bytes())
    }

    pub(super) fn serve(&self, endpoint: SocketAddr) -> Result<(), SteerError> {
        let added = self
            .endpoints
            .insert(&program::endpoint_key(endpoint), &PRESENT);
        added.map_err(|error| match error {
            Errno::TOOBIG => SteerError::TooManyEndpoints {
                endpoint,
                limit: MAX_ENDPOINTS,
            },
            other => SteerError::Map(other.into()),
        })
    }

    pub(super) fn stop(&self, endpoint: SocketAddr) -> Result<(), SteerError> {
        let removed = self.endpoints.remove(&program::endpoint_key(endpoint));
        removed.map(drop).map_err(other)
    }

    pub(super) fn pass(&self, host: IpAddr) -> Result<(), SteerError> {
        let added = self.hosts.insert(&program::address_key(host), &PRESENT);
        added.map_err(|error| match error {
            Errno::TOOBIG => SteerError::TooManyHosts {
                host,
                limit: MAX_HOSTS,
            },
            other => SteerError::Map(other.into()),
        })
    }

    pub(super) fn take(&self, host: IpAddr) -> Result<(), SteerError> {
        let removed = self.hosts.remove(&program::address_key(host));
        removed.map(drop).map_err(other)
    }
}

fn other(error: Errno) -> SteerError {
    SteerError::Map(error.into())
}

fn map_error(name: &str, error: Errno) -> OpenError {
    let action = "create BPF maps";
    match error {
        Errno::PERM => OpenError::NotPermitted { action },
        // All sizes are valid, so the kernel does not know maps of sockets.
        Errno::INVAL | Errno::NOSYS => OpenError::NotSupported { action },
        other => OpenError::System {
            name: name.to_owned(),
            action,
            source: other.into(),
        },
    }
}

fn load_error(error: saiga_bpf::LoadError) -> OpenError {
    if error.error == Errno::PERM {
        let action = "load an XDP program";
        return OpenError::NotPermitted { action };
    }
    OpenError::Program(error)
}

#[cfg(test)]
mod tests;
