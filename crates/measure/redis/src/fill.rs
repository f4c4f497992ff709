//! Sets the keys that redis-benchmark reads with GET.
//!
//! With `--cluster` each key contains a tag that redis-benchmark chooses for each master
//! (`key:{06S}:000000000042`). A few SETs by redis-benchmark reveal the tags; the other keys are
//! set directly.

use std::io;
use std::time::Duration;

use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::Failure;
use saiga_process::interrupt::Interrupt;

use crate::arm::RedisArm;
use crate::fleet::Fleet;
use crate::load::{RedisLoad, Test};
use crate::resp::Control;
use crate::server::{PACKAGE, Server};
use crate::topology::Topology;

/// Number of SETs that are sent before their answers are read.
const BATCH: u32 = 500;
/// Number of SETs by redis-benchmark, enough to reach every master.
const SAMPLES: &str = "600";
/// Timeout of all these SETs, which take milliseconds.
const SAMPLE_LIMIT: Duration = Duration::from_secs(20);
/// The key of redis-benchmark without `-r`.
const ONE_KEY: &str = "key:__rand_int__";

/// Sets the keys that `load` reads; does nothing for loads that do not read.
pub(crate) fn fill(
    fleet: &mut Fleet,
    arm: &RedisArm,
    load: &RedisLoad,
    cpus: &[usize],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if load.test != Test::Get {
        return Ok(());
    }
    let failed = |error: io::Error| Failure::run(format!("cannot fill redis-server: {error}"));
    if fleet.topology != Topology::Cluster {
        let mut control = fleet.master().control().map_err(failed)?;
        return fill_one(&mut control, "key:", load.keys, load.value_bytes).map_err(failed);
    }
    sample(fleet, arm, load, cpus, interrupt)?;
    let masters = fleet.serving(Test::Set).map_err(failed)?;
    masters
        .into_iter()
        .try_for_each(|node| fill_tagged(node, load))
        .map_err(failed)
}

/// Runs a few SETs by redis-benchmark, so that each master has a key with its tag.
fn sample(
    fleet: &Fleet,
    arm: &RedisArm,
    load: &RedisLoad,
    cpus: &[usize],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let set = RedisLoad {
        test: Test::Set,
        clients: 30,
        ..load.clone()
    };
    let output = fleet.master().dir.path().join("fill.log");
    let mut line = arm.client(&fleet.master().endpoint, &set, SAMPLES);
    line.cpus = cpus.to_vec();
    let filled = tool::run(&line, PACKAGE, &output, SAMPLE_LIMIT, interrupt)?;
    filled.map_err(|Unsuccessful { status, output }| {
        Failure::run(format!(
            "redis-benchmark could not fill the cluster ({status}): {output}"
        ))
    })
}

/// Sets the keys of one master of a cluster; takes the tag from a key that redis-benchmark has set.
fn fill_tagged(node: &Server, load: &RedisLoad) -> io::Result<()> {
    if load.keys == 0 {
        return Ok(()); // The SETs by redis-benchmark have set the only key.
    }
    let mut control = node.control()?;
    let key = control.ask(&[b"RANDOMKEY"])?;
    match key.rsplit_once(':') {
        Some((prefix, _)) => {
            let prefix = format!("{prefix}:");
            fill_one(&mut control, &prefix, load.keys, load.value_bytes)
        }
        None => Err(io::Error::other(format!("unexpected key {key:?}"))),
    }
}

/// Sets the `keys` keys of `redis-benchmark -r` on one server, or its single key if `keys` is 0.
pub(crate) fn fill_one(
    control: &mut Control,
    prefix: &str,
    keys: u32,
    value_bytes: u32,
) -> io::Result<()> {
    let value = vec![b'x'; usize::try_from(value_bytes).unwrap_or(0)];
    if keys == 0 {
        return control
            .ask(&[b"SET", ONE_KEY.as_bytes(), &value])
            .map(|_| ());
    }
    let mut next = 0;
    while next < keys {
        let end = keys.min(next + BATCH);
        for key in next..end {
            control.send(&[b"SET", format!("{prefix}{key:012}").as_bytes(), &value])?;
        }
        (next..end).try_for_each(|_| control.answer().map(|_| ()))?;
        next = end;
    }
    Ok(())
}
