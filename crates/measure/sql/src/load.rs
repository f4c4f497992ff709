//! [`SqlLoad`]: the parameters of sysbench or pgbench in one cell.

use std::collections::BTreeMap;

use saiga_database::{Engine, Program};
use saiga_experiment::workload::Load;
use serde_json::{Value, json};

/// The kind of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Reads a row by its key: sysbench `oltp_point_select`, pgbench `select-only`.
    Select,
    /// Reads and writes: sysbench `oltp_read_write`, pgbench `tpcb-like`.
    ReadWrite,
}

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlLoad {
    /// The database system, which also determines the load generator.
    pub engine: Engine,
    /// The kind of transactions.
    pub test: Test,
    /// Number of parallel connections.
    pub connections: u32,
    /// Whether each transaction opens a connection.
    pub reconnect: bool,
    /// Transactions per second, started by a schedule from which their latency counts; `None` for
    /// as many as possible. Only pgbench logs such latencies.
    pub rate: Option<u32>,
}

impl SqlLoad {
    /// A load with persistent connections.
    #[must_use]
    pub fn new(engine: Engine, test: Test, connections: u32) -> Self {
        Self {
            engine,
            test,
            connections,
            reconnect: false,
            rate: None,
        }
    }

    /// The name of the test in the load generator.
    pub(crate) fn test_name(&self) -> &'static str {
        match (self.engine, self.test) {
            (Engine::MariaDb, Test::Select) => "oltp_point_select",
            (Engine::MariaDb, Test::ReadWrite) => "oltp_read_write",
            (Engine::Postgres, Test::Select) => "select-only",
            (Engine::Postgres, Test::ReadWrite) => "tpcb-like",
        }
    }
}

/// The load generator of `engine`.
pub(crate) fn generator(engine: Engine) -> Program {
    match engine {
        Engine::MariaDb => ("sysbench", "sysbench"),
        Engine::Postgres => ("pgbench", "postgresql"),
    }
}

impl Load for SqlLoad {
    fn slug(&self) -> String {
        let test = match (self.engine, self.test) {
            _ if self.reconnect => "churn",
            (Engine::MariaDb, Test::Select) => "point-select",
            (Engine::MariaDb, Test::ReadWrite) => "read-write",
            (Engine::Postgres, Test::Select) => "select",
            (Engine::Postgres, Test::ReadWrite) => "tpcb",
        };
        let rate = self.rate.map(|rate| format!("-r{rate}"));
        let rate = rate.unwrap_or_default();
        format!("{}-{test}-c{}{rate}", self.engine.name(), self.connections)
    }

    fn params(&self) -> BTreeMap<String, Value> {
        let mut params = BTreeMap::from([
            ("engine".to_owned(), json!(self.engine.name())),
            ("test".to_owned(), json!(self.test_name())),
            ("clients".to_owned(), json!(self.connections)),
        ]);
        if self.reconnect {
            params.insert("reconnect".to_owned(), json!(true));
        }
        if let Some(rate) = self.rate {
            params.insert("rate".to_owned(), json!(rate));
        }
        params
    }

    /// Runs with many connections are longer, because the connections share two cores and each must
    /// be scheduled often enough. Reconnecting clients need longer runs, because the CPU time of
    /// short-lived backends is measured in ticks of 10 ms.
    fn length_factor(&self) -> f64 {
        let churn = if self.reconnect { 2.0 } else { 1.0 };
        churn * (1.0 + f64::from(self.connections) / 128.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_its_engine_test_and_connections() {
        let select = SqlLoad::new(Engine::MariaDb, Test::Select, 16);
        assert_eq!(select.slug(), "mariadb-point-select-c16");
        let write = SqlLoad::new(Engine::Postgres, Test::ReadWrite, 256);
        assert_eq!(write.slug(), "postgres-tpcb-c256");
        let churn = SqlLoad {
            reconnect: true,
            ..SqlLoad::new(Engine::Postgres, Test::Select, 4)
        };
        assert_eq!(churn.slug(), "postgres-churn-c4");
        let timed = SqlLoad {
            rate: Some(5_000),
            ..SqlLoad::new(Engine::Postgres, Test::Select, 64)
        };
        assert_eq!(timed.slug(), "postgres-select-c64-r5000");
        assert_eq!(timed.params()["rate"], 5_000);
        assert_eq!(
            serde_json::to_value(churn.params()).unwrap(),
            json!({"engine": "postgres", "test": "select-only", "clients": 4, "reconnect": true})
        );
    }
    #[test]
    fn many_connections_are_measured_for_longer() {
        let factor =
            |connections| SqlLoad::new(Engine::Postgres, Test::Select, connections).length_factor();
        assert_eq!([0, 64, 256].map(factor), [1.0, 1.5, 3.0]);
    }
}
