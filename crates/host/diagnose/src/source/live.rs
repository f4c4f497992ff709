//! A live host: sockets, and limits, threads and memory of a server.
//!
//! [`Observer::begin`] reads the counters, [`Observer::sample`] the connections once a second, and
//! [`Observer::finish`] the counters again. The metrics of the host itself come from another
//! source, a sampler. What cannot be read is reported as a gap.

mod busy;
mod cgroup;
mod limits;
pub mod packets;
mod server;
mod sockets;
mod step;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use saiga_process::proc::pids;
use saiga_process::root::Root;
use saiga_process::sockets::{connections_of, sockets_of};
use saiga_topology::machine::Machine;

use crate::observation::network::{Clients, Network, Sockets};
use crate::observation::{Gap, Observation};
use server::Server;
use sockets::{Entry, State};

/// The server cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The process is in another network namespace, whose sockets are invisible here.
    #[error(
        "process {pid} is in another network namespace; run this in it: nsenter -t {pid} -n saiga \
         diagnose --pid {pid}"
    )]
    Namespace { pid: u32 },
}

/// The processes of local clients are looked for in every tenth sample: it reads the descriptors of
/// all processes.
const CLIENT_SAMPLES: u64 = 10;

/// An observation in progress.
#[derive(Debug)]
pub struct Observer {
    server: Option<Server>,
    /// Ports on which the server listens.
    ports: BTreeSet<u16>,
    /// Processes of this host that are connected to the server.
    local_clients: BTreeSet<u32>,
    busy: busy::Processes,
    softnet: limits::Softnet,
    datagrams: limits::Datagrams,
    clock: step::WallClock,
    /// Samples so far.
    samples: u64,
    clients: BTreeMap<(IpAddr, SocketAddr), Samples>,
    /// Connections of the last sample: address of the client and of the server.
    last: BTreeSet<(SocketAddr, SocketAddr)>,
    gaps: Vec<Gap>,
}

/// The connections of one client over the samples.
#[derive(Debug, Default)]
struct Samples {
    /// Number of samples by number of connections.
    counts: BTreeMap<u64, u64>,
    connections: u64,
    active: u64,
    held_back: u64,
    /// Connections that were not in the sample before.
    renewed: u64,
    /// The smallest one.
    segment_bytes: Option<u32>,
}

impl Observer {
    /// Begins to observe the host, and a server if there is one.
    ///
    /// # Errors
    /// The process does not exist, or its sockets are invisible.
    pub fn begin(pid: Option<u32>, machine: &Machine) -> Result<Self, LiveError> {
        let mut gaps = Vec::new();
        let server = match pid {
            Some(pid) => {
                check_namespace(pid)?;
                Some(Server::begin(pid, machine, &mut gaps).ok_or(LiveError::NoProcess(pid))?)
            }
            None => None,
        };
        let ports = pid.map(|pid| listening_ports(pid, &mut gaps));
        Ok(Self {
            server,
            ports: ports.unwrap_or_default(),
            local_clients: BTreeSet::new(),
            busy: busy::Processes::read(),
            softnet: limits::Softnet::read(),
            datagrams: limits::Datagrams::read(),
            clock: step::WallClock::begin(),
            samples: 0,
            clients: BTreeMap::new(),
            last: BTreeSet::new(),
            gaps,
        })
    }

    /// Ports on which the server listens.
    #[must_use]
    pub fn ports(&self) -> &BTreeSet<u16> {
        &self.ports
    }

    /// Looks at the clock, and counts the connections to the server.
    pub fn sample(&mut self) {
        self.clock.look();
        if self.ports.is_empty() {
            return;
        }
        let entries = match sockets::established() {
            Ok(entries) => entries,
            Err(error) => return self.gap("sockets (INET_DIAG)", &error.to_string()),
        };
        if self.samples.is_multiple_of(CLIENT_SAMPLES) {
            self.find_local_clients(&entries);
        }
        self.samples += 1;
        let mut now: BTreeMap<(IpAddr, SocketAddr), u64> = BTreeMap::new();
        let (served, others): (Vec<&Entry>, Vec<&Entry>) = entries
            .iter()
            .partition(|one| self.ports.contains(&one.local.port()));
        let last = std::mem::take(&mut self.last);
        let own = own_addresses(&entries);
        for entry in served
            .into_iter()
            .filter(|entry| !own.contains(&entry.remote))
        {
            let key = (entry.remote.ip(), entry.local);
            *now.entry(key).or_default() += 1;
            let samples = self.clients.entry(key).or_default();
            samples.add(entry);
            let connection = (entry.remote, entry.local);
            // The first sample has none before it.
            let is_new = self.samples > 1 && !last.contains(&connection);
            samples.renewed += u64::from(is_new);
            self.last.insert(connection);
        }
        // The other ends, if they are on this host.
        for entry in others {
            if let Some(samples) = self.clients.get_mut(&(entry.local.ip(), entry.remote)) {
                samples.held_back += u64::from(entry.is_held_back);
            }
        }
        for (key, count) in now {
            let samples = self.clients.entry(key).or_default();
            *samples.counts.entry(count).or_default() += 1;
        }
    }

    /// Processes of this host that were seen with a connection to the server.
    #[must_use]
    pub fn local_clients(&self) -> &BTreeSet<u32> {
        &self.local_clients
    }

    /// Looks for the processes that have the other ends of the server's connections.
    fn find_local_clients(&mut self, entries: &[Entry]) {
        let servers: BTreeSet<SocketAddr> = entries
            .iter()
            .filter(|one| self.ports.contains(&one.local.port()))
            .map(|one| one.local)
            .collect();
        let inodes: BTreeSet<u64> = entries
            .iter()
            .filter(|one| servers.contains(&one.remote) && one.inode != 0)
            .map(|one| one.inode)
            .collect();
        if inodes.is_empty() {
            return;
        }
        let holds = |pid: &u32| {
            // Our own connection reads the counters of the database.
            if *pid == std::process::id() {
                return false;
            }
            let sockets = sockets_of(*pid).unwrap_or_default();
            sockets.iter().any(|(_, inode)| inodes.contains(inode))
        };
        self.local_clients
            .extend(pids().unwrap_or_default().into_iter().filter(holds));
    }

    /// Ends the observation, which took `seconds`, and adds it to `observation`.
    pub fn finish(mut self, seconds: f64, observation: &mut Observation) {
        let mut known = self.local_clients.clone();
        known.extend(self.server.as_ref().map(Server::pid));
        observation.busy = self.busy.busiest(&known, seconds);
        if let Some(server) = self.server.take() {
            let pid = server.pid();
            observation.process = server.finish(seconds);
            if observation.process.is_none() {
                self.gap(&format!("process {pid}"), "it ended during the observation");
            }
        }
        match self.network() {
            Ok(network) => observation.network = Some(network),
            Err(error) => self.gap("sockets (INET_DIAG)", &error.to_string()),
        }
        observation.clock_step_s = Some(self.clock.largest_step_s());
        let squeezes = self.softnet.squeezes_s(seconds);
        let metrics = &mut observation.metrics;
        metrics.add("softnet_squeezes_s", seconds, squeezes);
        if let Some(datagrams) = self.datagrams.received_s(seconds) {
            metrics.add("udp_in_datagrams_s", seconds, datagrams);
        }
        observation.gaps.append(&mut self.gaps);
    }

    fn network(&self) -> std::io::Result<Network> {
        let mut network = limits::network();
        let all = sockets::all()?;
        // A connection from a port on which this host listens came from the other end.
        let listening: BTreeSet<u16> = all
            .iter()
            .filter(|one| one.state == State::Listen)
            .map(|one| one.local.port())
            .collect();
        for entry in all
            .iter()
            .filter(|one| !listening.contains(&one.local.port()))
        {
            count_outgoing(&mut network, entry);
        }
        network.clients = self
            .clients
            .iter()
            .map(|(key, samples)| (*key, samples.summary(self.samples)))
            .collect();
        Ok(network)
    }

    /// Reports a source once.
    fn gap(&mut self, source: &str, reason: &str) {
        if self.gaps.iter().all(|gap| gap.source != source) {
            self.gaps.push(Gap {
                source: source.to_owned(),
                reason: reason.to_owned(),
            });
        }
    }
}

/// Addresses of this process, which reads the counters of the database over a connection.
fn own_addresses(entries: &[Entry]) -> BTreeSet<SocketAddr> {
    let sockets = sockets_of(std::process::id()).unwrap_or_default();
    let inodes: BTreeSet<u64> = sockets.iter().map(|(_, inode)| *inode).collect();
    let is_own = |entry: &&Entry| inodes.contains(&entry.inode);
    entries
        .iter()
        .filter(is_own)
        .map(|entry| entry.local)
        .collect()
}

impl Samples {
    /// Adds the server's end of a connection.
    fn add(&mut self, entry: &Entry) {
        self.connections += 1;
        self.active += u64::from(entry.is_active);
        self.held_back += u64::from(entry.is_held_back);
        let smallest = self.segment_bytes.unwrap_or(u32::MAX);
        self.segment_bytes = Some(smallest.min(entry.segment_bytes));
    }

    fn summary(&self, samples: u64) -> Clients {
        let (most, times) = self
            .counts
            .last_key_value()
            .map_or((0, 0), |(a, b)| (*a, *b));
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Clients {
            most,
            at_most: share(times, samples),
            active: share(self.active, self.connections),
            mean: share(self.connections, samples),
            renewed: share(self.renewed, self.connections),
            held_back: share(self.held_back, self.connections),
            segment_bytes: self.segment_bytes.unwrap_or(0),
        }
    }
}

/// Adds a connection that this host opened.
fn count_outgoing(network: &mut Network, entry: &Entry) {
    let sockets: &mut Sockets = network.outgoing.entry(entry.remote).or_default();
    match entry.state {
        State::Established => sockets.established += 1,
        State::TimeWait => sockets.time_wait += 1,
        State::Opening => sockets.opening += 1,
        State::Listen | State::Closing => {}
    }
}

fn check_namespace(pid: u32) -> Result<(), LiveError> {
    let namespace = |pid: &str| Root::host().link(format!("/proc/{pid}/ns/net")).ok();
    match (namespace(&pid.to_string()), namespace("self")) {
        (Some(theirs), Some(ours)) if theirs != ours => Err(LiveError::Namespace { pid }),
        _ => Ok(()),
    }
}

/// The ports on which a process listens.
fn listening_ports(pid: u32, gaps: &mut Vec<Gap>) -> BTreeSet<u16> {
    let sockets = match sockets_of(pid) {
        Ok(sockets) => sockets,
        Err(error) => {
            gaps.push(Gap {
                source: format!("/proc/{pid}/fd"),
                reason: format!("{error}; give --port, or run this as root"),
            });
            return BTreeSet::new();
        }
    };
    let connections = connections_of(pid);
    sockets
        .iter()
        .filter_map(|(_, inode)| connections.get(inode))
        .filter(|one| one.is_listening)
        .map(|one| one.local.port())
        .collect()
}
