//! The three programs with their maps, loaded and attached.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rustix::io::Errno;
use saiga_bpf::{Link, LoadError, Map, MapKind, Program, ProgramKind};

use crate::program::{self, ADMITTED, EXCEPTED, FLOW_BYTES, Maps, NETWORK_BYTES};
use crate::sockets::Sockets;
use crate::{Destinations, OutgoingError, namespace, system};

/// Most networks, and addresses that are excepted from them.
const MOST_NETWORKS: u32 = 4096;
/// Most connections that have been admitted, and not accepted yet.
const MOST_FLOWS: u32 = 65_536;
/// The index of the loopback interface, which is the first one of each namespace
/// (`LOOPBACK_IFINDEX`).
const LOOPBACK: u32 = 1;

/// The programs, which have an effect while this value lives.
#[derive(Debug)]
pub(crate) struct Steering {
    flows: Map<FLOW_BYTES, 1>,
    networks: Map<NETWORK_BYTES, 1>,
    /// The number of the network namespace.
    cookie: u64,
    _listeners: Map<4, 4>,
    programs: Vec<(ProgramKind, Program)>,
    links: Vec<Link>,
}

impl Steering {
    /// Loads the programs. `device`: the index of the TUN device.
    pub(crate) fn load(
        destinations: &Destinations,
        device: u32,
        sockets: &Sockets,
    ) -> Result<Self, OutgoingError> {
        let flows = Map::new(MapKind::Hash, MOST_FLOWS).map_err(map_error)?;
        let networks = Map::new(MapKind::Prefixes, MOST_NETWORKS).map_err(map_error)?;
        let listeners = Map::new(MapKind::Streams, 2).map_err(map_error)?;
        let cookie = namespace::cookie()?;
        let all = program::namespace_key(cookie);
        networks.insert(&all, &[EXCEPTED]).map_err(map_error)?;
        for (network, _) in &destinations.networks {
            let key = program::network_key(cookie, network.addr(), network.prefix_len());
            networks.insert(&key, &[ADMITTED]).map_err(map_error)?;
        }
        for address in &destinations.own {
            let key = program::network_key(cookie, *address, u8::MAX);
            networks.insert(&key, &[EXCEPTED]).map_err(map_error)?;
        }
        for (number, listener) in sockets.numbered() {
            let (key, value) = (number.to_ne_bytes(), listener.as_raw_fd().to_ne_bytes());
            listeners.insert(&key, &value).map_err(map_error)?;
        }
        let maps = Maps {
            flows: flows.number(),
            networks: networks.number(),
            listeners: listeners.number(),
        };
        let user = destinations.user;
        let ports = sockets.ports();
        let codes = [
            (ProgramKind::SocketLookup, program::lookup(maps, ports)),
            (ProgramKind::Packets, program::hold(maps, device)),
            (ProgramKind::Connect4, program::mark(maps, false, user)),
            (ProgramKind::Connect6, program::mark(maps, true, user)),
        ];
        let mut programs = Vec::new();
        for (kind, code) in codes {
            let program = Program::load(kind, "saiga_outgoing", &code.unwrap_or_default());
            programs.push((kind, program.map_err(load_error)?));
        }
        Ok(Self {
            flows,
            networks,
            cookie,
            _listeners: listeners,
            programs,
            links: Vec::new(),
        })
    }

    /// Attaches the programs; that of connect(2) comes last, because it leads packets to the
    /// others.
    pub(crate) fn attach(&mut self) -> Result<(), OutgoingError> {
        let (network, cgroups) = (namespace::network()?, namespace::cgroups()?);
        for (kind, program) in &self.programs {
            let link = if *kind == ProgramKind::Packets {
                Link::received(program, LOOPBACK)
            } else if *kind == ProgramKind::SocketLookup {
                Link::target(program, *kind, network.as_fd())
            } else {
                Link::target(program, *kind, cgroups.as_fd())
            };
            self.links.push(link.map_err(attach_error)?);
        }
        Ok(())
    }

    /// Lets the SYN of a connection reach a listener.
    pub(crate) fn admit(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        let key = program::flow_key(local, remote);
        Ok(self.flows.insert(&key, &[ADMITTED])?)
    }

    /// Lets the SYN of a connection reach a listener of the kernel, and marks no further socket for
    /// its destination.
    pub(crate) fn pass(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        let own = program::network_key(self.cookie, remote.ip(), u8::MAX);
        self.networks.insert(&own, &[EXCEPTED])?;
        let key = program::flow_key(local, remote);
        Ok(self.flows.insert(&key, &[EXCEPTED])?)
    }

    /// Holds the SYNs of such a connection again.
    pub(crate) fn forget(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        let key = program::flow_key(local, remote);
        Ok(self.flows.remove(&key).map(drop)?)
    }
}

fn map_error(error: Errno) -> OutgoingError {
    let action = "make BPF maps";
    match error {
        Errno::INVAL | Errno::NOSYS => OutgoingError::NotSupported { action },
        error => system(action)(error.into()),
    }
}

fn load_error(error: LoadError) -> OutgoingError {
    let action = "load BPF programs";
    match error.error {
        Errno::PERM => OutgoingError::NotPermitted { action },
        Errno::INVAL if error.log.is_empty() => OutgoingError::NotSupported { action },
        _ => OutgoingError::Program(error),
    }
}

fn attach_error(error: Errno) -> OutgoingError {
    let action = "attach BPF programs";
    match error {
        Errno::INVAL | Errno::OPNOTSUPP => OutgoingError::NotSupported { action },
        error => system(action)(error.into()),
    }
}
