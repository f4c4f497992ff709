//! [`RedisWorkload`]: redis-server and redis-benchmark as the engine sees them.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::arm::ArmKind;
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::plan::Cell;
use saiga_experiment::result::{Arm, Warning};
use saiga_experiment::version::{self, ProgramError};
use saiga_experiment::workload::{Conditions, Failure, Measured, Target, Workload};
use serde_json::Value;

use crate::acceleration::ChannelWatch;
use crate::arm::RedisArm;
use crate::benchmark;
use crate::load::{RedisLoad, Test};
use crate::server::{PACKAGE, Server};

/// redis-server under test, redis-benchmark as load.
pub struct RedisWorkload {
    arms: Vec<RedisArm>,
    port: Option<u16>,
    probe: Option<Rc<dyn AccelerationProbe>>,
    versions: BTreeMap<String, String>,
}

impl fmt::Debug for RedisWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisWorkload")
            .field("arms", &self.arms)
            .finish_non_exhaustive()
    }
}

impl RedisWorkload {
    /// Finds both programs. Servers listen on `port`, or on any free one.
    ///
    /// # Errors
    /// [`ProgramError`], when a program is missing or broken.
    pub fn new(
        kinds: &[ArmKind],
        port: Option<u16>,
        probe: Option<Rc<dyn AccelerationProbe>>,
    ) -> Result<Self, ProgramError> {
        let versions = ["redis-server", "redis-benchmark"]
            .into_iter()
            .map(|program| Ok((program.to_owned(), version::of(program, PACKAGE)?)))
            .collect::<Result<_, ProgramError>>()?;
        Ok(Self {
            probe,
            versions,
            ..Self::without_programs(kinds, port)
        })
    }

    /// One that can say what it would run; the programs need not be there.
    #[must_use]
    pub fn without_programs(kinds: &[ArmKind], port: Option<u16>) -> Self {
        Self {
            arms: RedisArm::named(kinds),
            port,
            probe: None,
            versions: BTreeMap::new(),
        }
    }
}

impl Workload for RedisWorkload {
    type Load = RedisLoad;
    type Target = RedisTarget;

    fn name(&self) -> &'static str {
        "redis"
    }

    fn arms(&self) -> Vec<Arm> {
        self.arms.iter().map(RedisArm::described).collect()
    }

    fn slug(&self, load: &RedisLoad) -> String {
        load.slug()
    }

    fn params(&self, load: &RedisLoad) -> BTreeMap<String, Value> {
        load.params()
    }

    fn calibration_key(&self, load: &RedisLoad) -> String {
        load.calibration_key()
    }

    fn first_guess(&self, load: &RedisLoad) -> u64 {
        load.first_guess()
    }

    fn least_operations(&self, load: &RedisLoad) -> u64 {
        load.least_requests()
    }

    fn length_factor(&self, load: &RedisLoad) -> f64 {
        load.length_factor()
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }

    fn caveats(&self) -> Vec<Warning> {
        let caveat = |text: &str, action: &str| Warning {
            text: text.to_owned(),
            cause: None,
            action: Some(action.to_owned()),
            cells: Vec::new(),
        };
        vec![caveat(
            "redis-benchmark makes five epoll_ctl calls per request, which cost nothing on a channel: \
             the client's share of every ratio is flattered.",
            "Judge by the server's CPU per operation, which has no such bias.",
        )]
    }

    fn steps(&self, arm: usize, cell: &Cell<RedisLoad>, operations: u64) -> Vec<String> {
        let arm = &self.arms[arm];
        let port = self
            .port
            .map_or("{port}".to_owned(), |port| port.to_string());
        let endpoint = arm.endpoint(&port, "{dir}");
        let mut server = arm.server(&endpoint, "{dir}", &cell.load);
        server.cpus.clone_from(&cell.cpus[0]);
        let mut client = arm.client(&endpoint, &cell.load, &operations.to_string());
        client.cpus.clone_from(&cell.cpus[1]);
        let hogs = cell
            .hogged
            .iter()
            .map(|cpu| format!("taskset -c {cpu} sh -c 'while :; do :; done'"));
        let reach = match arm.kind {
            ArmKind::Kernel | ArmKind::Saiga(_) => format!("redis-cli -p {port}"),
            ArmKind::Unix => "redis-cli -s {dir}/redis.sock".to_owned(),
        };
        let bytes = cell.load.value_bytes;
        let fill = match (cell.load.test, cell.load.keys) {
            (Test::Get, 0) => Some(format!("{reach} SET key:__rand_int__ ({bytes} bytes)")),
            (Test::Get, keys) => Some(format!(
                "{reach} SET key:000000000000 ... ({keys} keys, {bytes} bytes)"
            )),
            (Test::Set | Test::Ping, _) => None,
        };
        let mut steps = vec![server.to_string(), format!("{reach} PING")];
        steps.extend(fill);
        steps.extend(hogs);
        steps.push(client.to_string());
        steps.push(format!("{reach} SHUTDOWN NOSAVE"));
        steps
    }

    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<RedisLoad>,
        interrupt: &Interrupt,
    ) -> Result<RedisTarget, Failure> {
        let arm = &self.arms[arm];
        let server = Server::start(arm, cell, self.port, interrupt)?;
        // Connections that end after one request are meant to stay on TCP.
        let expects = arm.kind.library().is_some() && !cell.load.reconnect;
        Ok(RedisTarget {
            server,
            arm: arm.clone(),
            load: cell.load.clone(),
            client_cpus: cell.cpus[1].clone(),
            probe: self.probe.clone().filter(|_| expects),
        })
    }
}

/// A filled server that waits for its load.
pub struct RedisTarget {
    server: Server,
    arm: RedisArm,
    load: RedisLoad,
    client_cpus: Vec<usize>,
    /// Where the server must prove that it is accelerated.
    probe: Option<Rc<dyn AccelerationProbe>>,
}

impl fmt::Debug for RedisTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTarget")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Target for RedisTarget {
    fn run(&mut self, operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let Self {
            server,
            arm,
            load,
            client_cpus,
            probe,
        } = self;
        let mut line = arm.client(&server.endpoint, load, &operations.to_string());
        line.cpus.clone_from(client_cpus);
        let mut watch = probe
            .as_deref()
            .map(|probe| ChannelWatch::new(probe, server.child.pid(), load.clients));
        let threads = load.client_threads;
        let look = watch.as_mut();
        let mut measured = benchmark::run(server, &line, operations, threads, conditions, look)?;
        if let Some(watch) = watch {
            let least_bytes = operations.saturating_mul(load.least_bytes_per_request());
            watch.judge(&mut measured, least_bytes);
        }
        Ok(measured)
    }

    fn teardown(self) -> Result<(), Failure> {
        self.server.stop().map_err(Failure::impossible)
    }
}
