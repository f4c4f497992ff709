//! Joins the servers of a topology, and waits until all of them report that they are joined.
//!
//! The checks are those of an operator: INFO replication, SENTINEL MASTERS, CLUSTER INFO. Each wait
//! polls them until a timeout; the error names what is missing, with the last lines of the server
//! that missing_condition it.

use std::io;
use std::time::{Duration, Instant};

use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::Failure;
use saiga_process::child::Waited;
use saiga_process::interrupt::Interrupt;

use crate::arm::{Endpoint, RedisArm};
use crate::fleet::Fleet;
use crate::server::{PACKAGE, Server};
use crate::topology::{Role, Topology};

/// Timeout of each wait and of redis-cli.
const LIMIT: Duration = Duration::from_secs(30);
/// Interval between two checks; the end of a process ends the wait at once.
const PAUSE: Duration = Duration::from_millis(10);
/// The fields of CLUSTER INFO of a complete cluster.
const WHOLE: [(&str, &str); 4] = [
    ("cluster_state", "ok"),
    ("cluster_slots_ok", "16384"),
    ("cluster_known_nodes", "6"),
    ("cluster_size", "3"),
];

/// The servers could not be joined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("the {topology} topology was not complete after {} s: {missing}; {log}", LIMIT.as_secs())]
    NotInTime {
        topology: Topology,
        /// The server and the condition that it did not meet.
        missing: String,
        /// The last output of that server.
        log: String,
    },
    /// A server ended before the topology was complete.
    #[error("the {topology} topology is not complete: {exit_report}")]
    Ended {
        topology: Topology,
        exit_report: String,
    },
    #[error("redis-cli --cluster create failed ({status}): {output}; {log}")]
    Create {
        /// Exit status, or the timeout.
        status: String,
        output: String,
        /// The last output of the first node.
        log: String,
    },
}

/// Joins the servers of `fleet`, and waits until the topology is complete.
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

/// Waits until every replica has received all data of its master.
pub(crate) fn await_replication(fleet: &mut Fleet, interrupt: &Interrupt) -> Result<(), Failure> {
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
            return Ok(Some(format!(
                "its master at port {port:?} is not part of the topology"
            )));
        };
        let wanted = master.info("replication")?.count("master_repl_offset");
        let has = info.count("slave_repl_offset");
        Ok((has != wanted).then(|| {
            format!("it has received {has} of {wanted} bytes of its master's replication stream")
        }))
    })
}

fn follow(fleet: &mut Fleet, interrupt: &Interrupt) -> Result<(), Failure> {
    let Endpoint::Tcp(port) = &fleet.master().endpoint else {
        return Ok(());
    };
    let needs_command = |one: &&Server| one.role == Role::ReplicaByCommand;
    for replica in fleet.members.iter().filter(needs_command) {
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

/// Checks that all replicas of a master are `state=online`.
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

/// Checks that a sentinel sees a healthy master, both replicas and both other sentinels.
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

/// Checks that a node sees all slots served and is linked to its master or replica.
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
        Endpoint::Tcp(port) | Endpoint::Remote(port) => port.clone(),
        Endpoint::Unix(path) => path.clone(),
    };
    let nodes: Vec<String> = fleet.members.iter().map(port).collect();
    let mut line = arm.join(&nodes);
    line.cpus = cpus.to_vec();
    let output = fleet.master().dir.path().join("create.log");
    let created = tool::run(&line, PACKAGE, &output, LIMIT, interrupt)?;
    created.map_err(|Unsuccessful { status, output }| {
        let log = fleet.master().last_lines();
        Failure::impossible(JoinError::Create {
            status,
            output,
            log,
        })
    })
}

fn await_all(
    fleet: &mut Fleet,
    interrupt: &Interrupt,
    role: Role,
    missing_condition: &mut dyn FnMut(&Server) -> io::Result<Option<String>>,
) -> Result<(), Failure> {
    await_members(fleet, interrupt, &mut |_, member| {
        if member.role == role {
            missing_condition(member)
        } else {
            Ok(None)
        }
    })
}

/// Returns the condition that a member does not meet, for messages; `None` if it meets all.
type MissingCondition<'a> = dyn FnMut(&Fleet, &Server) -> io::Result<Option<String>> + 'a;

/// Polls until all members meet the condition.
fn await_members(
    fleet: &mut Fleet,
    interrupt: &Interrupt,
    missing_condition: &mut MissingCondition<'_>,
) -> Result<(), Failure> {
    let began = Instant::now();
    let topology = fleet.topology;
    loop {
        let check = |member: &Server| match missing_condition(fleet, member) {
            Ok(missing) => missing,
            Err(error) => Some(error.to_string()),
        };
        let found = fleet.members.iter().map(check).enumerate();
        let Some((index, missing)) = found.filter_map(|(i, missing)| Some((i, missing?))).next()
        else {
            return Ok(());
        };
        if let Some(exit_report) = fleet.exit_report() {
            return Err(Failure::impossible(JoinError::Ended {
                topology,
                exit_report,
            }));
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
