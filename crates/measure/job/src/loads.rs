//! [`JobLoad`]: the load of a cell, made from the workload of the file.
//!
//! redis-benchmark has a load per test and, on request, one for fail-overs; TPC-C and commands have
//! a single load.

use std::collections::BTreeMap;
use std::path::Path;

use saiga_experiment::arm::ArmKind;
use saiga_experiment::file::{Arm, Experiment, Flags, Kind};
use saiga_experiment::workload::Load;
use saiga_process::secret;
use saiga_redis::{RedisArm, RedisLoad, Test, Topology};
use saiga_tpcc::props::Props;
use serde_json::{Value, json};

/// Connections that write during a fail-over.
const FAILOVER_WRITERS: u32 = 4;

/// The load of a cell: its name in results, its parameters, and the test of redis-benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLoad {
    pub(crate) slug: String,
    pub(crate) params: BTreeMap<String, Value>,
    /// The test of redis-benchmark: `set`, `get` or `failover`.
    pub(crate) test: Option<String>,
    /// The load for the servers of a Redis topology.
    pub(crate) redis: Option<RedisLoad>,
}

/// The Redis topology of `file`; `None` if the file starts its own servers.
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
        wire: None,
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

/// The value of `--rate`, which makes the load an open loop.
fn rate(options: &[String]) -> Option<&str> {
    let separate = options.windows(2).rfind(|pair| pair[0] == "--rate");
    let joined = options
        .iter()
        .rev()
        .find_map(|word| word.strip_prefix("--rate="));
    separate.map(|pair| pair[1].as_str()).or(joined)
}

/// Whether the options ask for think or keying times, which override a rate of the props file.
fn has_pauses(options: &[String]) -> bool {
    let pauses = ["--think", "--keying-multiplier", "--thinking-multiplier"];
    options
        .iter()
        .any(|word| pauses.iter().any(|pause| word.starts_with(pause)))
}

pub(crate) fn tpcc_load(props: &[Props], options: &[String]) -> JobLoad {
    let runs = || props.iter().filter_map(|props| props.run.as_ref());
    let terminals: u32 = runs().map(|run| run.terminals).sum();
    let warehouses: u32 = props.iter().map(|props| props.warehouses).sum();
    let files: Vec<String> = props
        .iter()
        .map(|props| props.path.display().to_string())
        .collect();
    let own = props.iter().find_map(|props| rate(&props.options));
    let rate = rate(options).or(own.filter(|_| !has_pauses(options)));
    let mut params = BTreeMap::from([
        ("terminals".to_owned(), json!(terminals)),
        ("warehouses".to_owned(), json!(warehouses)),
        ("props".to_owned(), json!(files)),
    ]);
    params.extend(rate.map(|rate| ("rate".to_owned(), json!(rate))));
    JobLoad {
        slug: format!("tpcc-t{terminals}-w{warehouses}"),
        params,
        test: None,
        redis: None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_parameter_of_the_load() {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for (options, wanted) in [
            ("--for 2s", None),
            ("--for 2s --rate 600/min", Some("600/min")),
            ("--rate=5/min --for 2s", Some("5/min")),
            ("--rate", None),
        ] {
            let load = tpcc_load(&[], &words(options));
            let rate = load.params.get("rate").and_then(Value::as_str);
            assert_eq!(rate, wanted, "{options}");
        }
    }
}
