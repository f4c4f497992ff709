//! [`PrivatePlan`]: TPC-C on a private server, whose tables are built once and restored for each
//! run.

use std::path::PathBuf;
use std::time::Duration;

use saiga_database::{Endpoint, Engine, Installation, Programs, Sizes};
use saiga_experiment::two_hosts::Wire;
use saiga_process::child::{CommandLine, quoted};
use saiga_tpcc::props;

use super::arms::{goal, over, with_and_without};
use super::file::{ExperimentFile, Pace, RestorePoint, Server, StartCommand};

/// Ramp-up as a share of a run's length: time to upgrade connections and to fill caches.
const RAMP_UP: f64 = 0.2;
/// Size of a warehouse with its indexes and the rows that a run adds.
const WAREHOUSE_MIB: u32 = 160;

/// Files and sizes of the private server, and the runs on it.
#[derive(Debug)]
pub struct PrivatePlan {
    pub engine: Engine,
    pub port: u16,
    /// The folder of the server and its snapshot.
    pub folder: PathBuf,
    /// The props file, with [`props_text`](Self::props_text).
    pub props: PathBuf,
    pub warehouses: u32,
    pub terminals: u32,
    /// The wire between the hosts of server and client; `None` if both are on this host.
    pub wire: Option<Wire>,
    /// For each arm, whether it runs under Saiga; with a wire, whether a gateway serves the client.
    pub under_saiga: Vec<bool>,
    /// Length of a run.
    pub length: Duration,
    pub pace: Pace,
}

impl PrivatePlan {
    #[must_use]
    pub fn installation(&self, programs: Programs) -> Installation {
        let dir = self.folder.join("server").display().to_string();
        Installation::new(self.engine, dir, programs)
    }

    /// The snapshot that is restored before each run.
    #[must_use]
    pub fn restore_point(&self, private: &Installation) -> RestorePoint {
        RestorePoint {
            parts: vec![private.file("data").into()],
            dir: self.folder.join("snapshot"),
        }
    }

    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let data_mib = self.warehouses.saturating_mul(WAREHOUSE_MIB);
        Sizes::of_data(data_mib, self.terminals)
    }

    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        let port = self.port.to_string();
        match self.wire {
            Some(_) => Endpoint::Remote(port),
            None => Endpoint::Tcp(port),
        }
    }

    /// The text of the props file.
    #[must_use]
    pub fn props_text(&self) -> String {
        let (warehouses, terminals) = (self.warehouses, self.terminals);
        let endpoint = self.endpoint();
        let (host, port) = endpoint.tcp().unwrap_or_default();
        let (conn, user) = match self.engine {
            // Usual settings of BenchmarkSQL: prepared statements and batched inserts.
            Engine::MariaDb => (
                format!(
                    "jdbc:mariadb://{host}:{port}/tpcc\
                     ?useServerPrepStmts=true&rewriteBatchedStatements=true"
                ),
                "tpcc",
            ),
            Engine::Postgres => (
                format!("jdbc:postgresql://{host}:{port}/postgres"),
                "postgres",
            ),
        };
        format!(
            "// The private server of `saiga compare tpcc`; removed when the comparison ends.\n\
             conn={conn}\nuser={user}\npassword=\nwarehouses={warehouses}\nloadWorkers=4\n\
             terminals={terminals}\nrunMins=1\n"
        )
    }

    #[must_use]
    pub fn experiment_file(&self, private: &Installation) -> ExperimentFile {
        let CommandLine { program, args, .. } =
            private.server_line(&self.endpoint(), &self.sizes());
        let words = [program].into_iter().chain(args);
        let words: Vec<String> = words.map(|word| quoted(&word)).collect();
        let line = StartCommand {
            command: words.join(" "),
            saiga: false,
        };
        let arms = match self.wire {
            Some(wire) => over(wire, &line, &self.under_saiga),
            None => with_and_without(&[line], &self.under_saiga),
        };
        let options = [
            "--for".to_owned(),
            milliseconds(self.length),
            "--ramp-up".to_owned(),
            milliseconds(self.length.mul_f64(RAMP_UP)),
        ];
        ExperimentFile {
            goal: format!("{} on a private {}", goal(&arms), self.engine.name()),
            servers: vec![Server {
                name: self.engine.name().to_owned(),
                engine: match self.engine {
                    Engine::MariaDb => props::Engine::MySql,
                    Engine::Postgres => props::Engine::Postgres,
                },
                port: self.port,
                data: Some(private.file("data").into()),
                user: private.account.as_ref().map(|account| account.name.clone()),
            }],
            pace: self.pace,
            wire: self.wire,
            arms,
            props: vec![self.props.clone()],
            options: options.to_vec(),
            restore: Some(self.restore_point(private)),
        }
    }
}

/// A time as an option of `saiga bench tpcc run`.
#[must_use]
pub fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
