//! The servers of one run: one, or several that are joined.
//!
//! Started together, verified as an operator would (`converge`), filled (`fill`), and
//! taken down by pid. Whatever fails on the way, nothing stays.

use std::fs;
use std::io;
use std::time::Duration;

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::plan::Cell;
use saiga_experiment::server::{NotReady, insist};
use saiga_experiment::workload::Failure;

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
}

impl Fleet {
    /// Starts the servers of `cell` for `arm`, and waits until they are one and filled.
    pub(crate) fn start(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        port: Option<u16>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut fleet = Self::raise(arm, cell, port, interrupt)?;
        converge::join(&mut fleet, arm, &cell.cpus[0], interrupt)?;
        fill::fill(&mut fleet, arm, &cell.load, &cell.cpus[1], interrupt)?;
        converge::await_in_step(&mut fleet, interrupt)?;
        Ok(fleet)
    }

    /// Every process runs and answers.
    fn raise(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        wanted: Option<u16>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let topology = cell.load.topology;
        let attempt = || {
            let ports = ports::choose(topology, wanted)
                .map_err(|error| Failure::impossible(ServerError::from(error)))?;
            Self::attempt(arm, cell, &ports, interrupt)
        };
        insist(attempt, || {
            wanted.map(|first| Failure::impossible(ports::taken(topology, first)))
        })
    }

    fn attempt(
        arm: &RedisArm,
        cell: &Cell<RedisLoad>,
        ports: &[u16],
        interrupt: &Interrupt,
    ) -> Result<Self, NotReady> {
        let topology = cell.load.topology;
        let mut members = Vec::new();
        let (watchers, servers): (Vec<_>, Vec<_>) = topology
            .roles()
            .iter()
            .zip(ports)
            .partition(|(role, _)| **role == Role::Sentinel);
        // A sentinel must find its master at its first look.
        for group in [servers, watchers] {
            let first = members.len();
            for (role, port) in group {
                members.push(spawn(arm, cell, *role, *port, ports[0])?);
            }
            for member in &mut members[first..] {
                member.await_ready(interrupt)?;
            }
        }
        Ok(Self { topology, members })
    }

    /// The first server: the one that a client of a sentinel or cluster finds first.
    pub(crate) fn master(&self) -> &Server {
        &self.members[0]
    }

    /// Where redis-benchmark connects: replicas answer reads only.
    pub(crate) fn entry(&self, test: Test) -> &Server {
        let reads = test == Test::Get && self.topology == Topology::Replica;
        let found = self.members.iter().find(|one| reads && one.role.follows());
        found.unwrap_or(self.master())
    }

    /// The servers to which redis-benchmark connects in the end.
    ///
    /// # Errors
    /// A node does not say what it is.
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

    /// CPU time of all servers so far.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        self.members.iter().map(Server::cpu_time).sum()
    }

    /// What the first one said last that ended by itself.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        self.members.iter_mut().find_map(Server::obituary)
    }

    /// Ends all of them.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        if let [alone] = self.members.as_mut_slice() {
            return alone.stop();
        }
        // By SIGKILL, watchers first: a polite end would be taken for a failure by the
        // others, who would begin to elect, and nothing that they hold is wanted.
        self.members.iter_mut().rev().try_for_each(Server::kill)
    }
}

fn spawn(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    role: Role,
    port: u16,
    master: u16,
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
    Server::spawn(&line, role, endpoint, dir)
}
