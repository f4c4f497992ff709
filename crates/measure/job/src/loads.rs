//! The loads of a file as cells.

use std::collections::BTreeMap;
use std::path::Path;

use saiga_experiment::arm::ArmKind;
use saiga_experiment::file::{Arm, Experiment, Flags, Kind};
use saiga_experiment::secret;
use saiga_experiment::workload::Load;
use saiga_redis::{RedisArm, RedisLoad, Test, Topology};
use saiga_tpcc::props::Props;
use serde_json::{Value, json};

/// Connections that write through a fail-over.
const FAILOVER_WRITERS: u32 = 4;

/// The conditions of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLoad {
    pub(crate) slug: String,
    pub(crate) params: BTreeMap<String, Value>,
    /// What redis-benchmark does.
    pub(crate) test: Option<String>,
    /// The same for the private servers of a topology.
    pub(crate) redis: Option<RedisLoad>,
}

/// How the private servers of `file` are joined; `None` when its servers are its own.
pub(crate) fn topology(file: &Experiment) -> Option<Topology> {
    let Kind::Redis { topology, .. } = &file.workload.kind else {
        return None;
    };
    let name = topology.as_deref()?;
    Topology::ALL
        .into_iter()
        .find(|topology| topology.name() == name)
}

pub(crate) fn private_arm(arm: &Arm, library: &Path) -> RedisArm {
    RedisArm {
        name: arm.name.clone(),
        kind: if arm.client.saiga {
            ArmKind::Saiga(library.to_owned())
        } else {
            ArmKind::Kernel
        },
        idle: 0,
    }
}

pub(crate) fn redis_loads(
    flags: &Flags,
    topology: Option<Topology>,
    failover: bool,
) -> Vec<JobLoad> {
    let topology_of = |load| RedisLoad {
        topology: topology.unwrap_or(Topology::Standalone),
        ..load
    };
    let load_of = |test: Test| match test {
        Test::Failover => topology_of(RedisLoad::new(test, FAILOVER_WRITERS)),
        Test::Set | Test::Get | Test::Ping => topology_of(RedisLoad {
            pipeline: flags.pipeline,
            value_bytes: flags.value_bytes,
            client_threads: flags.threads,
            reconnect: flags.reconnect,
            keys: flags.keys,
            ..RedisLoad::new(test, flags.clients)
        }),
    };
    let of = |test: Test| {
        let load = load_of(test);
        let mut params = load.params();
        if test != Test::Failover {
            params.insert("requests".to_owned(), json!(flags.requests));
        }
        JobLoad {
            slug: load.slug(),
            params,
            test: Some(test.name().to_owned()),
            redis: topology.map(|_| load),
        }
    };
    let tests = flags.tests.iter().map(|test| match test.as_str() {
        "get" => Test::Get,
        _ => Test::Set,
    });
    tests
        .chain(failover.then_some(Test::Failover))
        .map(of)
        .collect()
}

pub(crate) fn tpcc_load(props: &[Props]) -> JobLoad {
    let runs = || props.iter().filter_map(|props| props.run.as_ref());
    let terminals: u32 = runs().map(|run| run.terminals).sum();
    let warehouses: u32 = props.iter().map(|props| props.warehouses).sum();
    let files: Vec<String> = props
        .iter()
        .map(|props| props.path.display().to_string())
        .collect();
    JobLoad {
        slug: format!("tpcc-t{terminals}-w{warehouses}"),
        params: BTreeMap::from([
            ("terminals".to_owned(), json!(terminals)),
            ("warehouses".to_owned(), json!(warehouses)),
            ("props".to_owned(), json!(files)),
        ]),
        test: None,
        redis: None,
    }
}

/// The one load of a program.
pub(crate) fn command_load(name: &str, line: &[String]) -> JobLoad {
    JobLoad {
        slug: name.to_owned(),
        params: BTreeMap::from([("command".to_owned(), json!(secret::words(line).join(" ")))]),
        test: None,
        redis: None,
    }
}

impl Load for JobLoad {
    fn slug(&self) -> String {
        self.slug.clone()
    }

    fn params(&self) -> BTreeMap<String, Value> {
        self.params.clone()
    }

    fn length_factor(&self) -> f64 {
        1.0
    }

    fn calibrates(&self) -> bool {
        false
    }
}
