//! Joins servers, and waits until all of them say that they are joined.
//!
//! The questions are an operator's: INFO replication, SENTINEL MASTERS, CLUSTER INFO.
//! Each wait polls their answers and has a limit; what is still missing then is said
//! together with the last lines of the server that lacks it.

use std::io;
use std::time::{Duration, Instant};

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::Waited;
use saiga_experiment::tool::{self, Undone};
use saiga_experiment::workload::Failure;

use crate::arm::{Endpoint, RedisArm};
use crate::fleet::Fleet;
use crate::server::{PACKAGE, Server};
use crate::topology::{Role, Topology};

/// Servers that are not one by then never will be.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two rounds of questions; a death ends the pause at once.
const PAUSE: Duration = Duration::from_millis(10);
/// What a whole cluster of ours says.
const WHOLE: [(&str, &str); 4] = [
    ("cluster_state", "ok"),
    ("cluster_slots_ok", "16384"),
    ("cluster_known_nodes", "6"),
    ("cluster_size", "3"),
];

/// Why servers did not become one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// Something was still missing at the end.
    #[error("the {topology} topology did not come together within {} s: {missing}; {log}", LIMIT.as_secs())]
    NotInTime {
        /// What should have formed.
        topology: Topology,
        /// Which server lacked what.
        missing: String,
        /// The last lines of that server.
        log: String,
    },
    /// A server ended meanwhile.
    #[error("while the {topology} topology came together, {obituary}")]
    Died {
        /// What should have formed.
        topology: Topology,
        /// Its end and last words.
        obituary: String,
    },
    /// redis-cli could not make the cluster.
    #[error("redis-cli --cluster create failed ({how}): {said}; {log}")]
    Create {
        /// Exit status, or that it did not end.
        how: String,
        /// Its last lines.
        said: String,
        /// The last lines of the first node.
        log: String,
    },
}

/// Makes one of `fleet`, and waits until it is.
pub(crate) fn join(
    fleet: &mut Fleet,
    arm: &RedisArm,
    cpus: &[usize],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match fleet.topology {
        Topology::Standalone => Ok(()),
        Topology::Replica => follow(fleet, interrupt),
        Topology::Sentinel => {
            follow(fleet, interrupt)?;
            await_all(fleet, interrupt, Role::Sentinel, &mut watches)
        }
        Topology::Cluster => {
            create(fleet, arm, cpus, interrupt)?;
            await_all(fleet, interrupt, Role::Node, &mut is_whole)
        }
    }
}

/// Waits until every replica has all that its master has.
pub(crate) fn await_in_step(fleet: &mut Fleet, interrupt: &Interrupt) -> Result<(), Failure> {
    if fleet.topology == Topology::Standalone {
        return Ok(());
    }
    await_members(fleet, interrupt, &mut |fleet, member| {
        if member.role == Role::Sentinel {
            return Ok(None);
        }
        let info = member.info("replication")?;
        if info.field("role") == "master" {
            return Ok(None);
        }
        let port = info.field("master_port").to_owned();
        let masters = |one: &&Server| matches!(&one.endpoint, Endpoint::Tcp(own) if *own == port);
        let Some(master) = fleet.members.iter().find(masters) else {
            return Ok(Some(format!("its master is at port {port:?}")));
        };
        let wanted = master.info("replication")?.count("master_repl_offset");
        let has = info.count("slave_repl_offset");
        Ok((has != wanted)
            .then(|| format!("it has {has} of {wanted} bytes of its master's stream")))
    })
}

fn follow(fleet: &mut Fleet, interrupt: &Interrupt) -> Result<(), Failure> {
    let Endpoint::Tcp(port) = &fleet.master().endpoint else {
        return Ok(());
    };
    let told = |one: &&Server| one.role == Role::ReplicaByCommand;
    for replica in fleet.members.iter().filter(told) {
        replica
            .control()
            .and_then(|mut control| control.ask(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]))
            .map_err(|error| {
                Failure::run(format!("{} refuses REPLICAOF: {error}", replica.name()))
            })?;
    }
    let replicas = fleet
        .members
        .iter()
        .filter(|one| one.role.follows())
        .count();
    await_members(fleet, interrupt, &mut |_, member| match member.role {
        Role::Master => leads(member, replicas),
        Role::ReplicaByFile | Role::ReplicaByCommand => is_linked(member),
        Role::Sentinel | Role::Node => Ok(None),
    })
}

/// `connected_slaves:2`, each of them `state=online`.
fn leads(master: &Server, replicas: usize) -> io::Result<Option<String>> {
    let info = master.info("replication")?;
    let online = info.0.matches("state=online").count();
    Ok((online != replicas).then(|| format!("{online} of {replicas} replicas are online")))
}

fn is_linked(replica: &Server) -> io::Result<Option<String>> {
    let info = replica.info("replication")?;
    let status = info.field("master_link_status");
    Ok((status != "up").then(|| format!("master_link_status is {status:?}")))
}

/// A sentinel sees the master well, and knows both replicas and both other sentinels.
fn watches(sentinel: &Server) -> io::Result<Option<String>> {
    let words = sentinel.control()?.list(&[b"SENTINEL", b"MASTERS"])?;
    let value = |name: &str| {
        let mut pairs = words.chunks_exact(2);
        let found = pairs.find(|pair| pair[0] == name);
        found.map_or("", |pair| pair[1].as_str()).to_owned()
    };
    let wanted = [
        ("flags", "master"),
        ("num-slaves", "2"),
        ("num-other-sentinels", "2"),
    ];
    let lacking = wanted.iter().find(|(name, wanted)| value(name) != *wanted);
    Ok(lacking.map(|(name, wanted)| format!("{name} is {:?}, not {wanted}", value(name))))
}

/// A node sees every slot served, and follows its master if it has one.
fn is_whole(node: &Server) -> io::Result<Option<String>> {
    let text = node.control()?.ask(&[b"CLUSTER", b"INFO"])?;
    let info = crate::server::Info(text);
    let lacking = WHOLE
        .iter()
        .find(|(name, wanted)| info.field(name) != *wanted);
    if let Some((name, wanted)) = lacking {
        return Ok(Some(format!(
            "{name} is {:?}, not {wanted}",
            info.field(name)
        )));
    }
    let replication = node.info("replication")?;
    if replication.field("role") == "master" {
        leads(node, 1)
    } else {
        is_linked(node)
    }
}

/// Runs `redis-cli --cluster create`.
fn create(
    fleet: &mut Fleet,
    arm: &RedisArm,
    cpus: &[usize],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let port = |node: &Server| match &node.endpoint {
        Endpoint::Tcp(port) => port.clone(),
        Endpoint::Unix(path) => path.clone(),
    };
    let nodes: Vec<String> = fleet.members.iter().map(port).collect();
    let mut line = arm.join(&nodes);
    line.cpus = cpus.to_vec();
    let output = fleet.master().dir.path().join("create.log");
    let created = tool::run(&line, PACKAGE, &output, LIMIT, interrupt)?;
    created.map_err(|Undone { how, said }| {
        let log = fleet.master().last_lines();
        Failure::impossible(JoinError::Create { how, said, log })
    })
}

fn await_all(
    fleet: &mut Fleet,
    interrupt: &Interrupt,
    role: Role,
    lacks: &mut dyn FnMut(&Server) -> io::Result<Option<String>>,
) -> Result<(), Failure> {
    await_members(fleet, interrupt, &mut |_, member| {
        if member.role == role {
            lacks(member)
        } else {
            Ok(None)
        }
    })
}

/// What a member lacks, in words; `None` when it lacks nothing.
type Lack<'a> = dyn FnMut(&Fleet, &Server) -> io::Result<Option<String>> + 'a;

/// Polls until no member lacks anything.
fn await_members(
    fleet: &mut Fleet,
    interrupt: &Interrupt,
    lacks: &mut Lack<'_>,
) -> Result<(), Failure> {
    let began = Instant::now();
    let topology = fleet.topology;
    loop {
        let lack = |member: &Server| match lacks(fleet, member) {
            Ok(lack) => lack,
            Err(error) => Some(error.to_string()),
        };
        let found = fleet.members.iter().map(lack).enumerate();
        let Some((index, missing)) = found.filter_map(|(i, lack)| Some((i, lack?))).next() else {
            return Ok(());
        };
        if let Some(obituary) = fleet.obituary() {
            return Err(Failure::impossible(JoinError::Died { topology, obituary }));
        }
        if began.elapsed() >= LIMIT {
            let member = &fleet.members[index];
            return Err(Failure::impossible(JoinError::NotInTime {
                topology,
                missing: format!("{}: {missing}", member.name()),
                log: member.last_lines(),
            }));
        }
        let pause = fleet.members[0].process.child.wait(PAUSE, interrupt);
        if let Waited::Interrupted = pause.map_err(Failure::impossible)? {
            return Err(Failure::Interrupted);
        }
    }
}
