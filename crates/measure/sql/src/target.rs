//! [`SqlTarget`]: the server of one run, ready for the load.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use saiga_database::{Installation, Server};
use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::workload::{Conditions, Failure, Figures, Measured, Target};
use saiga_hosts::Hosts;
use saiga_process::child::CommandLine;

use crate::load::SqlLoad;
use crate::run::PreparedRun;
use crate::workload::seed_line;

/// A running server with its data, ready for the load.
pub struct SqlTarget {
    pub(crate) server: Server,
    /// The hosts of server and client; `None` if both are on this host. Dropped after the server.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) installation: Rc<Installation>,
    pub(crate) client: CommandLine,
    pub(crate) load: SqlLoad,
    pub(crate) window: Duration,
    pub(crate) probe: Option<Rc<dyn AccelerationProbe>>,
}

impl fmt::Debug for SqlTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlTarget")
            .field("server", &self.server)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl SqlTarget {
    /// The exit report of the server or the gateway, if one has ended by itself.
    fn exit_report(&mut self) -> Option<String> {
        let of_server = self.server.process.exit_report();
        of_server.or_else(|| self.hosts.as_mut()?.exit_report())
    }
}

impl Target for SqlTarget {
    fn run(&mut self, _operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure> {
        let mut line = self.client.clone();
        if conditions.seed != 0 {
            let seed = conditions.seed.to_string();
            seed_line(self.installation.engine, &mut line, &seed);
        }
        let prepared = PreparedRun {
            installation: &self.installation,
            server: &self.server,
            load: &self.load,
            line: &line,
            window: self.window,
            probe: self.probe.as_deref(),
            hosts: self.hosts.as_ref(),
        };
        let measured = prepared.run(conditions);
        match (measured, self.exit_report()) {
            (_, Some(exit_report)) => Err(Failure::run(exit_report)),
            (measured, None) => measured,
        }
    }

    fn servers(&self) -> Vec<u32> {
        let gateway = self.hosts.as_ref().and_then(Hosts::gateway_pid);
        let server = self.server.process.child.pid();
        std::iter::once(server).chain(gateway).collect()
    }

    fn teardown(self) -> (Figures, Result<(), Failure>) {
        let stopped = self.server.stop();
        let stopped = stopped.and(self.hosts.map_or(Ok(()), Hosts::stop));
        (Figures::default(), stopped.map_err(Failure::impossible))
    }
}
