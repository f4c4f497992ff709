//! [`Fleet`]: the servers of one run, a single server or a topology.
//!
//! The servers are started together, joined and verified (`converge`), filled with data (`fill`),
//! and stopped by PID. If a step fails, no process is left running.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use saiga_experiment::plan::Cell;
use saiga_experiment::server::{NotReady, start_with_retries};
use saiga_experiment::workload::Failure;
use saiga_hosts::Hosts;
use saiga_process::interrupt::Interrupt;

use crate::arm::{Endpoint, RedisArm};
use crate::configuration;
use crate::converge;
use crate::fill;
use crate::load::{RedisLoad, Test};
use crate::ports;
use crate::server::{Server, ServerError, private_dir};
use crate::topology::{Role, Topology};

/// Running servers, in the order of [`Topology::roles`].
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) topology: Topology,
    pub(crate) members: Vec<Server>,
    /// The hosts of servers and client; `None` if both are on this host. Dropped after the servers.
    pub(crate) hosts: Option<Hosts>,
}

impl Fleet {
    /// Starts the servers of `cell` for `arm`, joins them and fills them with data. `tool` is the
    /// path of this program.
    pub(crate) fn start(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        port: Option<u16>,
        tool: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let layout = arm.layout(tool, &cell.cpus);
        let hosts = layout.map(|layout| Hosts::start(&layout, interrupt));
        let hosts = hosts.transpose()?;
        let mut fleet = Self::start_members(arm, cell, port, hosts, interrupt)?;
        converge::join(&mut fleet, arm, &cell.cpus[0], interrupt)?;
        fill::fill(&mut fleet, arm, &cell.load, &cell.cpus[1], interrupt)?;
        converge::await_replication(&mut fleet, interrupt)?;
        Ok(fleet)
    }

    /// Starts all processes and waits until each answers.
    fn start_members(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        wanted: Option<u16>,
        hosts: Option<Hosts>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let topology = cell.load.topology;
        let network = hosts.as_ref().map(|hosts| hosts.places().server);
        let attempt = || {
            let ports = match arm.own_port() {
                Some(port) => Ok(vec![port]),
                None => ports::choose(topology, wanted),
            };
            let ports = ports.map_err(|error| Failure::impossible(ServerError::from(error)))?;
            Self::attempt(arm, cell, &ports, network.as_ref(), interrupt)
        };
        let members = start_with_retries(attempt, || {
            wanted.map(|first| Failure::impossible(ports::taken(topology, first)))
        })?;
        Ok(Self {
            topology,
            members,
            hosts,
        })
    }

    fn attempt(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        ports: &[u16],
        network: Option<&PathBuf>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Server>, NotReady> {
        let topology = cell.load.topology;
        let mut members = Vec::new();
        let (watchers, servers): (Vec<_>, Vec<_>) = topology
            .roles()
            .iter()
            .zip(ports)
            .partition(|(role, _)| **role == Role::Sentinel);
        // Sentinels start last, because a sentinel must find its master at its first check.
        for group in [servers, watchers] {
            let first = members.len();
            for (role, port) in group {
                members.push(spawn(arm, cell, *role, [*port, ports[0]], network)?);
            }
            for member in &mut members[first..] {
                member.await_ready(interrupt)?;
            }
        }
        Ok(members)
    }

    /// The first server, which is the master when the run begins.
    pub(crate) fn master(&self) -> &Server {
        &self.members[0]
    }

    /// The server to which redis-benchmark connects: a replica for reads, else the master.
    pub(crate) fn entry(&self, test: Test) -> &Server {
        let reads = test == Test::Get && self.topology == Topology::Replica;
        let found = self.members.iter().find(|one| reads && one.role.follows());
        found.unwrap_or(self.master())
    }

    /// The servers that answer the requests of redis-benchmark.
    ///
    /// # Errors
    /// Fails if a node does not answer INFO.
    pub(crate) fn serving(&self, test: Test) -> io::Result<Vec<&Server>> {
        if self.topology != Topology::Cluster {
            return Ok(vec![self.entry(test)]);
        }
        let mut masters = Vec::new();
        for node in &self.members {
            if node.info("replication")?.field("role") == "master" {
                masters.push(node);
            }
        }
        Ok(masters)
    }

    /// File of the client's network namespace; `None` for that of this process.
    pub(crate) fn client_network(&self) -> Option<PathBuf> {
        self.hosts.as_ref().map(|hosts| hosts.places().client)
    }

    /// PIDs of all servers and of the gateway.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let members = self.members.iter();
        let members = members.map(|server| server.process.child.pid());
        let gateway = self.hosts.as_ref().and_then(Hosts::gateway_pid);
        members.chain(gateway).collect()
    }

    /// CPU time of all servers and of the gateway so far.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        let members: io::Result<Duration> = self.members.iter().map(Server::cpu_time).sum();
        Ok(members? + self.gateway_cpu_time()?)
    }

    /// CPU time of the gateway so far; zero without a gateway.
    pub(crate) fn gateway_cpu_time(&self) -> io::Result<Duration> {
        let hosts = self.hosts.as_ref();
        hosts.map_or(Ok(Duration::ZERO), Hosts::gateway_cpu_time)
    }

    /// CPU time of the gateway on the client's host so far; zero without one.
    pub(crate) fn far_cpu_time(&self) -> io::Result<Duration> {
        let hosts = self.hosts.as_ref();
        hosts.map_or(Ok(Duration::ZERO), Hosts::far_cpu_time)
    }

    /// The exit report of the first server that ended by itself, or of the gateway.
    pub(crate) fn exit_report(&mut self) -> Option<String> {
        let members = self.members.iter_mut().find_map(Server::exit_report);
        members.or_else(|| self.hosts.as_mut()?.exit_report())
    }

    /// Stops all servers and the gateway; the data of a topology are not needed any more.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        let members = self.stop_members();
        members.and(self.hosts.map_or(Ok(()), Hosts::stop))
    }

    fn stop_members(&mut self) -> io::Result<()> {
        if let [alone] = self.members.as_mut_slice() {
            return alone.stop();
        }
        // SIGKILL, sentinels first: the others would take an orderly end for a failure and begin an
        // election. No data of these servers are needed any more.
        self.members.iter_mut().rev().try_for_each(Server::kill)
    }
}

fn spawn(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    role: Role,
    [port, master]: [u16; 2],
    network: Option<&PathBuf>,
) -> Result<Server, Failure> {
    let prepare = |error: io::Error| Failure::impossible(ServerError::Prepare(error));
    let dir = private_dir().map_err(prepare)?;
    let (path, port) = (dir.path().display().to_string(), port.to_string());
    let topology = cell.load.topology;
    let (endpoint, mut line) = if topology == Topology::Standalone {
        let endpoint = arm.endpoint(&port, &path);
        let line = arm.server(&endpoint, &path, &cell.load);
        (endpoint, line)
    } else {
        let master = master.to_string();
        let lines = configuration::lines(topology, role, &port, &master, &path, &cell.load);
        let text = lines.join("\n") + "\n";
        fs::write(dir.path().join("redis.conf"), text).map_err(prepare)?;
        (Endpoint::Tcp(port), arm.member(role, &path))
    };
    line.cpus.clone_from(&cell.cpus[0]);
    line.network = network.cloned();
    Server::spawn(&line, role, endpoint, dir)
}
