//! The shell commands of one run, for `--dry-run`.

use std::path::{Path, PathBuf};

use saiga_experiment::plan::Cell;
use saiga_hosts::{Layout, Places, SERVER};
use saiga_process::child::{CommandLine, quoted};

use crate::arm::{Endpoint, RedisArm};
use crate::configuration;
use crate::failover::writer_line;
use crate::idle::holder_lines;
use crate::load::{RedisLoad, Test};
use crate::topology::{Role, Topology};

/// All commands of a run of `arm`, in order.
pub(crate) fn steps(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    port: Option<u16>,
    tool: &Path,
    operations: u64,
) -> Vec<String> {
    let load = &cell.load;
    let layout = arm.layout(tool, &cell.cpus);
    let hosts = layout.as_ref().map(|_| Places::placeholders());
    let places = places(load.topology, arm.own_port().or(port));
    let mut steps = layout.as_ref().map_or_else(Vec::new, Layout::steps);
    steps.extend(servers(arm, cell, &places, hosts.as_ref()));
    let reach = reach(&arm.endpoint(&places[0].0, "{dir}"));
    steps.extend(joining(arm, cell, &places, &reach));
    steps.extend(filling(load, &reach));
    let holders = holder_lines(arm, tool, &places[0].0, &cell.cpus[1]);
    steps.extend(holders.iter().map(|line| format!("{line} &")));
    steps.extend(cell.hog_steps());
    let network = hosts.map(|hosts| hosts.client);
    steps.extend(load_steps(arm, cell, &places, tool, operations, network));
    if load.topology == Topology::Standalone {
        steps.push(format!("{reach} SHUTDOWN NOSAVE"));
    } else {
        steps.push("kill -9 (PID of each process)".to_owned());
    }
    steps.extend(layout.iter().flat_map(Layout::last_steps));
    steps
}

/// The beginning of a command to the first server.
fn reach(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(port) => format!("redis-cli -p {port}"),
        Endpoint::Unix(path) => format!("redis-cli -s {path}"),
        Endpoint::Remote(port) => CommandLine {
            network: Some(Places::placeholders().server),
            ..CommandLine::new("redis-cli", ["-h", SERVER, "-p", port])
        }
        .to_string(),
    }
}

/// Port and folder of each process, or placeholders.
fn places(topology: Topology, port: Option<u16>) -> Vec<(String, String)> {
    if topology == Topology::Standalone {
        let port = port.map_or("{port}".to_owned(), |port| port.to_string());
        return vec![(port, "{dir}".to_owned())];
    }
    let place = |index: u16| {
        let nth = index + 1;
        let free = format!("{{port-{nth}}}");
        let port = port.map_or(free, |first| first.saturating_add(index).to_string());
        (port, format!("{{dir-{nth}}}"))
    };
    (0..).map(place).take(topology.roles().len()).collect()
}

fn servers(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    places: &[(String, String)],
    hosts: Option<&Places>,
) -> Vec<String> {
    let load = &cell.load;
    let mut steps = Vec::new();
    for (role, (port, dir)) in load.topology.roles().iter().zip(places) {
        let mut line = if load.topology == Topology::Standalone {
            let endpoint = arm.endpoint(port, dir);
            arm.server(&endpoint, dir, load)
        } else {
            let master = &places[0].0;
            let lines = configuration::lines(load.topology, *role, port, master, dir, load);
            let words: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
            steps.push(format!(
                "printf '%s\\n' {} > {dir}/redis.conf",
                words.join(" ")
            ));
            arm.member(*role, dir)
        };
        line.cpus.clone_from(&cell.cpus[0]);
        line.network = hosts.map(|hosts| hosts.server.clone());
        steps.push(line.to_string());
    }
    steps
}

/// The commands that join the servers and check the topology.
fn joining(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    places: &[(String, String)],
    reach: &str,
) -> Vec<String> {
    let topology = cell.load.topology;
    let master = &places[0].0;
    let follow = || {
        let replicas = topology.roles().iter().zip(places);
        let replicas = replicas.filter(|(role, _)| **role == Role::ReplicaByCommand);
        let mut steps: Vec<String> = replicas
            .map(|(_, (port, _))| format!("redis-cli -p {port} REPLICAOF 127.0.0.1 {master}"))
            .collect();
        steps.push(format!("{reach} INFO replication"));
        steps
    };
    match topology {
        Topology::Standalone => vec![format!("{reach} PING")],
        Topology::Replica => follow(),
        Topology::Sentinel => {
            let mut steps = follow();
            let watchers = topology.roles().iter().zip(places);
            let watchers = watchers.filter(|(role, _)| **role == Role::Sentinel);
            steps.extend(
                watchers.map(|(_, (port, _))| format!("redis-cli -p {port} SENTINEL MASTERS")),
            );
            steps
        }
        Topology::Cluster => {
            let ports: Vec<String> = places.iter().map(|(port, _)| port.clone()).collect();
            let ask = |port: &String| format!("redis-cli -p {port} CLUSTER INFO");
            let mut join = arm.join(&ports);
            join.cpus.clone_from(&cell.cpus[0]);
            let mut steps = vec![join.to_string()];
            steps.extend(ports.iter().map(ask));
            steps
        }
    }
}

fn filling(load: &RedisLoad, reach: &str) -> Option<String> {
    let bytes = load.value_bytes;
    match (load.test, load.keys) {
        (Test::Set | Test::Ping | Test::Failover, _) => None,
        (Test::Get, _) if load.topology == Topology::Cluster => Some(format!(
            "{reach} -c SET key:{{tag of each master}}:... ({} keys each, {bytes} bytes)",
            load.keys.max(1)
        )),
        (Test::Get, 0) => Some(format!("{reach} SET key:__rand_int__ ({bytes} bytes)")),
        (Test::Get, keys) => Some(format!(
            "{reach} SET key:000000000000 ... ({keys} keys, {bytes} bytes)"
        )),
    }
}

fn load_steps(
    arm: &RedisArm,
    cell: &Cell<RedisLoad>,
    places: &[(String, String)],
    writer: &Path,
    operations: u64,
    network: Option<PathBuf>,
) -> Vec<String> {
    let load = &cell.load;
    let roles = load.topology.roles();
    if load.test == Test::Failover {
        let watchers = roles.iter().zip(places);
        let watchers = watchers.filter(|(role, _)| **role == Role::Sentinel);
        let ports: Vec<String> = watchers.map(|(_, (port, _))| port.clone()).collect();
        let mut line = writer_line(arm, writer, &ports, load);
        line.cpus.clone_from(&cell.cpus[1]);
        return vec![
            line.to_string(),
            "kill -9 (PID of the master, during the writes)".to_owned(),
        ];
    }
    let reads = load.test == Test::Get && load.topology == Topology::Replica;
    let entry = roles.iter().position(|role| reads && role.follows());
    let (port, dir) = &places[entry.unwrap_or(0)];
    let endpoint: Endpoint = arm.endpoint(port, dir);
    let mut line = arm.client(&endpoint, load, &operations.to_string());
    line.cpus.clone_from(&cell.cpus[1]);
    line.network = network;
    vec![line.to_string()]
}
