//! [`RedisWorkload`] and [`RedisTarget`]: the engine's workload for redis-server and
//! redis-benchmark.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::plan::Cell;
use saiga_experiment::result::{Arm, Metric, Warning};
use saiga_experiment::two_hosts;
use saiga_experiment::workload::{Conditions, Failure, Figures, Measured, Target, Workload};
use saiga_hosts::Wire;
use saiga_process::interrupt::Interrupt;
use saiga_process::version::{self, ProgramError};

use crate::acceleration::{ChannelWatch, OtherConnections};
use crate::arm::RedisArm;
use crate::fleet::Fleet;
use crate::idle::IdleConnections;
use crate::load::{RedisLoad, Test};
use crate::remote::Lookups;
use crate::server::{PACKAGE, Server};
use crate::topology::Topology;
use crate::{benchmark, failover, hits, seed, steps};

/// redis-server under test with redis-benchmark as load.
pub struct RedisWorkload {
    arms: Vec<RedisArm>,
    topology: Topology,
    port: Option<u16>,
    /// The path of this program, which is also started as the writer during fail-overs and as the
    /// holder of idle connections.
    tool: PathBuf,
    probe: Option<Rc<dyn AccelerationProbe>>,
    versions: BTreeMap<String, String>,
    /// Whether redis-benchmark has the option `--seed`.
    takes_seed: bool,
}

impl fmt::Debug for RedisWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisWorkload")
            .field("arms", &self.arms)
            .finish_non_exhaustive()
    }
}

impl RedisWorkload {
    /// Finds the programs that `topology` needs. Servers listen on `port` and the ports after it,
    /// or on any free ports if `port` is `None`. `tool` is the path of this program.
    ///
    /// # Errors
    /// Fails if a program is missing or does not print its version.
    pub fn new(
        arms: Vec<RedisArm>,
        topology: Topology,
        port: Option<u16>,
        tool: PathBuf,
        probe: Option<Rc<dyn AccelerationProbe>>,
    ) -> Result<Self, ProgramError> {
        let mut programs = vec!["redis-server", "redis-benchmark"];
        if topology == Topology::Cluster {
            programs.push("redis-cli");
        }
        let versions = programs
            .into_iter()
            .map(|program| Ok((program.to_owned(), version::of(program, PACKAGE)?)))
            .collect::<Result<_, ProgramError>>()?;
        Ok(Self {
            probe,
            versions,
            takes_seed: seed::is_taken(),
            ..Self::without_programs(arms, topology, port, tool)
        })
    }

    /// Creates a workload for dry runs. The programs need not be installed.
    #[must_use]
    pub fn without_programs(
        arms: Vec<RedisArm>,
        topology: Topology,
        port: Option<u16>,
        tool: PathBuf,
    ) -> Self {
        Self {
            arms,
            topology,
            port,
            tool,
            probe: None,
            versions: BTreeMap::new(),
            takes_seed: false,
        }
    }

    /// The wire between the hosts of server and client; `None` if both are on this host.
    fn wire(&self) -> Option<Wire> {
        self.arms.iter().find_map(|arm| arm.wire)
    }
}

impl Workload for RedisWorkload {
    type Load = RedisLoad;
    type Target = RedisTarget;

    fn name(&self) -> &'static str {
        "redis"
    }

    fn arms(&self) -> Vec<Arm> {
        let described = |arm: &RedisArm| arm.described(self.topology);
        self.arms.iter().map(described).collect()
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }

    fn caveats(&self) -> Vec<Warning> {
        if let Some(wire) = self.wire() {
            return wire.caveats();
        }
        let mut caveats = vec![Warning::caveat(
            "redis-benchmark makes five epoll_ctl calls per request, which cost nothing on a channel. \
             The client's share of every ratio is therefore biased in favour of Saiga.",
            "Compare the server's CPU time per operation, which has no such bias.",
        )];
        caveats.extend(
            self.topology
                .caveat()
                .map(|[text, action]| Warning::caveat(text, action)),
        );
        caveats
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = self.wire().map(|_| two_hosts::metric());
        metric.into_iter().collect()
    }

    fn steps(&self, arm: usize, cell: &Cell<RedisLoad>, operations: u64) -> Vec<String> {
        steps::steps(&self.arms[arm], cell, self.port, &self.tool, operations)
    }

    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<RedisLoad>,
        interrupt: &Interrupt,
    ) -> Result<RedisTarget, Failure> {
        let arm = &self.arms[arm];
        let fleet = Fleet::start(arm, cell, self.port, &self.tool, interrupt)?;
        // Connections that end after one request stay on TCP by design.
        let expects = arm.kind.library().is_some() && !cell.load.reconnect;
        let probe = self.probe.clone().filter(|_| expects);
        let idle = if arm.idle > 0 {
            let (server, cpus) = (fleet.master(), &cell.cpus[1]);
            let opened =
                IdleConnections::open(server, arm, &self.tool, cpus, probe.as_deref(), interrupt);
            Some(opened?)
        } else {
            None
        };
        Ok(RedisTarget {
            fleet,
            idle,
            tool: self.tool.clone(),
            arm: arm.clone(),
            load: cell.load.clone(),
            client_cpus: cell.cpus[1].clone(),
            probe,
            takes_seed: self.takes_seed,
        })
    }
}

/// Running servers with their data, ready for the load.
pub struct RedisTarget {
    fleet: Fleet,
    /// Stopped after the servers.
    idle: Option<IdleConnections>,
    tool: PathBuf,
    arm: RedisArm,
    load: RedisLoad,
    client_cpus: Vec<usize>,
    /// Present if the run must prove that it is accelerated.
    probe: Option<Rc<dyn AccelerationProbe>>,
    takes_seed: bool,
}

impl fmt::Debug for RedisTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTarget")
            .field("fleet", &self.fleet)
            .finish_non_exhaustive()
    }
}

impl Target for RedisTarget {
    fn run(&mut self, operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let Self {
            fleet,
            idle,
            tool,
            arm,
            load,
            client_cpus,
            probe,
            takes_seed,
        } = self;
        if load.test == Test::Failover {
            let probe = probe.as_deref();
            return failover::run(fleet, arm, tool, load, client_cpus, conditions, probe);
        }
        let mut line = arm.client(
            &fleet.entry(load.test).endpoint,
            load,
            &operations.to_string(),
        );
        if *takes_seed && conditions.seed != 0 {
            let seed = conditions.seed.to_string();
            line.args.extend([seed::OPTION.to_owned(), seed]);
        }
        line.cpus.clone_from(client_cpus);
        line.network = fleet.client_network();
        let serving = fleet.serving(load.test).map_err(Failure::impossible)?;
        let pids: Vec<u32> = serving
            .iter()
            .map(|server| server.process.child.pid())
            .collect();
        let before = hits_before(load.test, &serving)?;
        let joined = load.topology != Topology::Standalone;
        let other = OtherConnections {
            joined,
            idle: arm.idle,
        };
        let mut watch = probe
            .as_deref()
            .map(|probe| ChannelWatch::new(probe, &pids, load.clients, other));
        let (threads, channels) = (load.threads(), watch.as_mut());
        let mut measured = benchmark::run(fleet, &line, operations, threads, conditions, channels)?;
        if let Some(before) = before {
            let serving = fleet.serving(load.test).map_err(Failure::impossible)?;
            let after = hits::count(&serving).map_err(Failure::impossible)?;
            if let Some(share) = after.share_since(before) {
                measured.metrics.insert("hit_share".to_owned(), share);
            }
        }
        if let Some(watch) = watch {
            watch.judge(&mut measured, load);
        }
        if let Some(idle) = idle {
            measured.metrics.extend(idle.metrics());
            if let Some(exit_report) = idle.exit_report() {
                return Err(Failure::run(exit_report));
            }
        }
        Ok(measured)
    }

    fn servers(&self) -> Vec<u32> {
        self.fleet.pids()
    }

    fn teardown(self) -> (Figures, Result<(), Failure>) {
        let stopped = self.fleet.stop().map_err(Failure::impossible);
        let idle = self.idle.map_or(Ok(()), IdleConnections::stop);
        (
            Figures::default(),
            stopped.and(idle.map_err(Failure::impossible)),
        )
    }
}

/// Reads the counters of key look-ups before a run of GETs; `None` for other tests.
fn hits_before(test: Test, serving: &[&Server]) -> Result<Option<Lookups>, Failure> {
    if test != Test::Get {
        return Ok(None);
    }
    hits::count(serving).map(Some).map_err(Failure::impossible)
}
