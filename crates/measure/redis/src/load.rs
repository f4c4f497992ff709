//! [`RedisLoad`]: the parameters of redis-benchmark in one cell.

use std::collections::BTreeMap;

use saiga_experiment::workload::Load;
use serde_json::{Value, json};

use crate::topology::Topology;

/// Default of `maxclients` of redis-server.
pub(crate) const DEFAULT_MAX_CLIENTS: u32 = 10_000;
/// Number of connections from which `maxclients` is set. One connection in sixty-four may need an
/// additional descriptor of the library, whose number redis-server counts as that of a client.
const MANY_CLIENTS: u32 = 9_000;
/// Number of requests within which a connection is upgraded; a pipelined batch counts as one.
const FIRST_REQUESTS: u64 = 64;
/// Threads of redis-benchmark with `--cluster` and without `--threads`: one per master.
const CLUSTER_THREADS: u32 = 3;

/// The kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    Set,
    /// GET of an existing key.
    Get,
    Ping,
    /// SETs during which the master is killed, by the writer of this crate instead of
    /// redis-benchmark.
    Failover,
}

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisLoad {
    /// The kind of requests.
    pub test: Test,
    /// Number of parallel connections (`-c`).
    pub clients: u32,
    /// Requests sent before the first answer is awaited (`-P`).
    pub pipeline: u32,
    /// Size of the value in bytes (`-d`).
    pub value_bytes: u32,
    /// Threads of the client (`--threads`).
    pub client_threads: u32,
    /// `io-threads` of the server, with `io-threads-do-reads`.
    pub io_threads: u32,
    /// Whether a connection is closed after each request (`-k 0`).
    pub reconnect: bool,
    /// Number of random keys (`-r`); 0 is one key.
    pub keys: u32,
    pub topology: Topology,
}

impl Test {
    /// The name for `redis-benchmark -t`; `failover` is a name of Saiga.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
            Self::Ping => "ping_mbulk",
            Self::Failover => "failover",
        }
    }
}

impl RedisLoad {
    /// The largest number of connections that Saiga asks of redis-benchmark. Its event loop has
    /// places for the descriptors below 10,240 (`aeCreateEventLoop(1024*10)` in
    /// `redis-benchmark.c`). It opens further connections and sends nothing on them, also with
    /// `--threads`.
    pub const MAX_CLIENTS: u32 = 10_000;

    /// A load with three-byte values, no pipeline, one thread on each side, and a single key.
    #[must_use]
    pub fn new(test: Test, clients: u32) -> Self {
        Self {
            test,
            clients,
            pipeline: 1,
            value_bytes: 3,
            client_threads: 1,
            io_threads: 1,
            reconnect: false,
            keys: 0,
            topology: Topology::Standalone,
        }
    }
}

impl Load for RedisLoad {
    fn slug(&self) -> String {
        let name = match (self.reconnect, self.test) {
            (true, Test::Ping) => "connect".to_owned(),
            (true, test) => format!("connect-{}", test.name()),
            (false, test) => test.name().to_owned(),
        };
        let mut slug = format!("{name}-c{}", self.clients);
        let mut part = |wanted: bool, text: String| {
            if wanted {
                slug.push('-');
                slug.push_str(&text);
            }
        };
        let size = match self.value_bytes {
            bytes if bytes >= 1000 && bytes % 1000 == 0 => format!("{}k", bytes / 1000),
            bytes => format!("{bytes}b"),
        };
        part(self.pipeline != 1, format!("p{}", self.pipeline));
        part(self.value_bytes != 3, size);
        part(
            self.client_threads != 1,
            format!("threads{}", self.client_threads),
        );
        part(self.io_threads != 1, format!("io{}", self.io_threads));
        part(self.keys != 0, format!("r{}", self.keys));
        part(
            self.topology != Topology::Standalone,
            self.topology.name().to_owned(),
        );
        slug
    }

    fn params(&self) -> BTreeMap<String, Value> {
        let Self {
            test,
            clients,
            pipeline,
            value_bytes,
            client_threads,
            io_threads,
            ..
        } = self;
        let mut params = BTreeMap::from([
            ("test".to_owned(), json!(test.name())),
            ("clients".to_owned(), json!(clients)),
            ("pipeline".to_owned(), json!(pipeline)),
            ("value_bytes".to_owned(), json!(value_bytes)),
        ]);
        let mut unusual = |wanted: bool, name: &str, value: Value| {
            if wanted {
                params.insert(name.to_owned(), value);
            }
        };
        unusual(
            *client_threads != 1,
            "client_threads",
            json!(client_threads),
        );
        unusual(*io_threads != 1, "io_threads", json!(io_threads));
        unusual(self.reconnect, "reconnect", json!(true));
        unusual(self.keys != 0, "keys", json!(self.keys));
        let topology = self.topology;
        unusual(
            topology != Topology::Standalone,
            "topology",
            json!(topology.name()),
        );
        params
    }

    /// GETs share the calibration of SETs, because both are about equally fast, except with
    /// replicas, which repeat each SET.
    fn calibration_key(&self) -> String {
        let alone = matches!(self.topology, Topology::Standalone);
        let test = if self.test == Test::Get && alone {
            Test::Set
        } else {
            self.test
        };
        Self {
            test,
            ..self.clone()
        }
        .slug()
    }

    /// About the number of requests that takes some hundredths of a second with kernel TCP.
    fn first_guess(&self) -> u64 {
        let each: u64 = match self {
            Self {
                reconnect: true, ..
            } => 1_000,
            Self { value_bytes, .. } if *value_bytes > 10_000 => 1_000,
            Self { clients: 1, .. } => 2_000,
            Self { pipeline, .. } if *pipeline > 1 => 50_000,
            _ => 8_000,
        };
        each.max(u64::from(self.clients) * 20)
    }

    /// With fewer requests the rate is not steady, because connections are upgraded during the run.
    fn least_operations(&self) -> u64 {
        let each = if self.reconnect { 1 } else { 200 };
        u64::from(self.clients) * each * u64::from(self.pipeline)
    }

    fn calibrates(&self) -> bool {
        self.test != Test::Failover
    }

    /// Runs with more clients are longer, for the same reason: one client 0.7, fifty 1, two hundred
    /// 1.9, a thousand 6.7.
    fn length_factor(&self) -> f64 {
        let clients = 0.7 + 0.006 * f64::from(self.clients);
        // Threads notice the end at a tick of 250 ms, so a run must be longer than that.
        if self.threads() > 1 && self.topology == Topology::Cluster {
            3.0 * clients
        } else {
            clients
        }
    }
}

impl RedisLoad {
    /// Number of threads of redis-benchmark, which is that of masters for a cluster without
    /// `--threads`.
    pub(crate) fn threads(&self) -> u32 {
        if self.client_threads == 1 && self.topology == Topology::Cluster {
            CLUSTER_THREADS
        } else {
            self.client_threads
        }
    }

    /// The required `maxclients` with `idle` idle connections; `None` if the default is enough.
    pub(crate) fn max_clients(&self, idle: u32) -> Option<u32> {
        let clients = self.clients.saturating_add(idle);
        (clients > MANY_CLIENTS).then(|| clients.saturating_add(100 + clients / 32))
    }

    /// Minimum bytes of a connection's first requests and their answers.
    pub(crate) fn least_bytes_at_first(&self) -> u64 {
        let request = match self.test {
            Test::Ping => 21,
            Test::Set | Test::Get | Test::Failover => 30 + u64::from(self.value_bytes),
        };
        FIRST_REQUESTS * u64::from(self.pipeline) * request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_contain_only_non_default_values() {
        let plain = RedisLoad::new(Test::Set, 50);
        assert_eq!(plain.slug(), "set-c50");
        let large = RedisLoad {
            value_bytes: 100_000,
            ..plain.clone()
        };
        assert_eq!(large.slug(), "set-c50-100k");
        let odd = RedisLoad {
            pipeline: 16,
            value_bytes: 4096,
            client_threads: 2,
            ..plain.clone()
        };
        assert_eq!(odd.slug(), "set-c50-p16-4096b-threads2");
        let short = RedisLoad {
            test: Test::Ping,
            reconnect: true,
            ..plain.clone()
        };
        assert_eq!(short.slug(), "connect-c50");
        let set = RedisLoad {
            reconnect: true,
            ..plain
        };
        assert_eq!(set.slug(), "connect-set-c50");
    }

    #[test]
    fn params_contain_four_standard_and_all_non_default_values() {
        let load = RedisLoad {
            io_threads: 2,
            ..RedisLoad::new(Test::Get, 50)
        };
        let params = serde_json::to_value(load.params()).unwrap();
        assert_eq!(
            params,
            json!({"test": "get", "clients": 50, "pipeline": 1, "value_bytes": 3, "io_threads": 2})
        );
    }

    #[test]
    fn a_run_is_three_times_as_long_as_upgrades_need() {
        for pipeline in [1, 16] {
            let load = RedisLoad {
                pipeline,
                ..RedisLoad::new(Test::Set, 50)
            };
            assert_eq!(load.least_operations(), 10_000 * u64::from(pipeline));
            assert_eq!(load.least_bytes_at_first(), 64 * 33 * u64::from(pipeline));
        }
    }

    #[test]
    fn get_shares_the_calibration_of_set() {
        let (set, get) = (RedisLoad::new(Test::Set, 50), RedisLoad::new(Test::Get, 50));
        assert_eq!(set.calibration_key(), get.calibration_key());
        assert_ne!(
            set.calibration_key(),
            RedisLoad::new(Test::Get, 200).calibration_key()
        );
    }
}
