//! Redis on two hosts: a replica, a sentinel and half of a cluster on the client's host, whose
//! connections to the server's host go through the gateway; and Redis in protected mode.
//!
//! Only with AF_XDP: connections in the other direction go by the kernel, which a TAP device of the
//! gateway does not lead to.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use saiga_trials::scale::by_scale;
use saiga_trials::witness::await_true;

use crate::support::program::{Ended, start};
use crate::support::text;
use crate::world::{CLIENT, CLUSTER_PORTS, Link, PORT, SERVER, Wire, World, in_world};

/// The sentinel's name of its master.
const MASTER: &str = "trial";
const SENTINEL_PORT: u16 = 26379;
const PATIENCE: Duration = Duration::from_secs(20);
/// The tests compare digests of the data, and do not wait for further replicas.
const OPTIONS: [&str; 4] = [
    "--enable-debug-command",
    "yes",
    "--repl-diskless-sync-delay",
    "0",
];

#[test]
fn redis_works_in_every_topology_across_the_gateway() {
    for topology in [fail_over, form_cluster] {
        in_world(Wire::Xdp, Link::Veth, |world| {
            world.close_kernel_side();
            let gateway = world.gateway();
            topology(world);
            world.stop(gateway);
        });
    }
}

/// In protected mode, Redis serves only clients of its own host, which it knows by their address.
#[test]
fn redis_in_protected_mode_refuses_clients_of_other_hosts() {
    in_world(Wire::Xdp, Link::Veth, |world| {
        let _server = world.redis(PORT, &["--protected-mode", "yes"]);
        world.close_kernel_side();
        let gateway = world.gateway();
        let mut stream = world.connect(PORT, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("-DENIED"), "{said:?}");
        world.stop(gateway);
    });
}

/// A replica on the client's host has the data of its master behind the gateway. When the master
/// is killed, a sentinel on the client's host promotes the replica. With `make soak`, the master
/// comes back, and the sentinel makes it follow, which takes ten seconds.
fn fail_over(world: &World) {
    let (master, replica) = (Node(SERVER, PORT), Node(CLIENT, PORT));
    let mut served = world.redis(PORT, &OPTIONS);
    let from = ["--replicaof", &SERVER.to_string(), &PORT.to_string()];
    let _replica = world.redis_on_client(PORT, &[&OPTIONS[..], &from].concat());
    load(world, master, &[]);
    await_same_data(world, master, replica);
    let _sentinel = sentinel(world);
    served.kill();
    let sentinel = Node(CLIENT, SENTINEL_PORT);
    await_answer(
        world,
        sentinel,
        &["SENTINEL", "get-master-addr-by-name", MASTER],
        &CLIENT.to_string(),
    );
    load(world, replica, &[]);
    if by_scale(false, true) {
        // Without the data of the replica, whose directory it shares.
        let own_data = ["--dbfilename", "returned.rdb"];
        let _returned = world.redis(PORT, &[&OPTIONS[..], &own_data].concat());
        await_same_data(world, replica, master);
    }
}

/// A sentinel on the client's host that knows master and replica.
fn sentinel(world: &World) -> Ended {
    let file = world.saiga.path("sentinel.conf");
    let rules = format!(
        "port {SENTINEL_PORT}\nprotected-mode no\nsentinel monitor {MASTER} {SERVER} {PORT} 1\n\
         sentinel down-after-milliseconds {MASTER} 2000\nsentinel failover-timeout {MASTER} 6000\n"
    );
    fs::write(&file, rules).unwrap();
    let mut command = Command::new("redis-server");
    let sentinel =
        world.within_client(|| start(command.args([text(&file), "--sentinel"]), "+monitor"));
    await_answer(
        world,
        Node(CLIENT, SENTINEL_PORT),
        &["INFO", "sentinel"],
        "slaves=1",
    );
    sentinel
}

/// Nodes on both hosts form a cluster, and each replica gets its master's data.
fn form_cluster(world: &World) {
    let mut running = Vec::new();
    let mut nodes = Vec::new();
    for port in CLUSTER_PORTS {
        let start = |host| start_node(world, host, port);
        running.extend([SERVER, CLIENT].map(start));
        nodes.extend([SERVER, CLIENT].map(|host| Node(host, port)));
    }
    let mut command = Command::new("redis-cli");
    command.args(["--cluster", "create"]);
    command.args(
        nodes
            .iter()
            .map(|Node(host, port)| format!("{host}:{port}")),
    );
    command.args(["--cluster-replicas", "1", "--cluster-yes"]);
    let said = world.run_on_client(&mut command);
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
    for node in &nodes {
        await_answer(world, *node, &["CLUSTER", "INFO"], "cluster_state:ok");
    }
    load(world, nodes[0], &["--cluster"]);
    let replicas = nodes
        .iter()
        .filter(|node| is_replica_in_step(world, **node));
    assert_eq!(replicas.count(), CLUSTER_PORTS.len());
}

/// A node of the cluster on either host.
fn start_node(world: &World, host: Ipv4Addr, port: u16) -> Ended {
    let file = format!("nodes-{host}-{port}.conf");
    let own = ["--cluster-enabled", "yes", "--cluster-config-file", &file];
    let words = [&OPTIONS[..], &own].concat();
    match host {
        SERVER => world.redis(port, &words),
        _ => world.redis_on_client(port, &words),
    }
}

/// Whether a node is a replica; waits until it has its master's data then.
fn is_replica_in_step(world: &World, node: Node) -> bool {
    let info = replication(world, node);
    let is_replica = info["role"] == "slave";
    if is_replica {
        let [host, port] = ["master_host", "master_port"].map(|name| &info[name]);
        let master = Node(host.parse().unwrap(), port.parse().unwrap());
        await_same_data(world, master, node);
    }
    is_replica
}

/// A server's address and port.
#[derive(Debug, Clone, Copy)]
struct Node(Ipv4Addr, u16);

/// Writes some thousand keys from the client's host.
fn load(world: &World, Node(host, port): Node, more: &[&str]) {
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", &host.to_string(), "-p", &port.to_string()])
        .args([
            "-t", "set", "-n", "10000", "-r", "5000", "-d", "100", "-c", "10", "-q",
        ])
        .args(more);
    world.run_on_client(&mut command);
}

/// The output of a command of a node.
fn ask(world: &World, Node(host, port): Node, words: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command
        .args(["-h", &host.to_string(), "-p", &port.to_string()])
        .args(words);
    world.run_on_client(&mut command)
}

fn await_answer(world: &World, node: Node, words: &[&str], wanted: &str) {
    await_true(
        || ask(world, node, words).contains(wanted),
        || {
            format!(
                "{node:?} {words:?}: {}, not {wanted}",
                ask(world, node, words)
            )
        },
    );
}

/// The values of `INFO replication`.
fn replication(world: &World, node: Node) -> BTreeMap<String, String> {
    let text = ask(world, node, &["INFO", "replication"]);
    let pairs = text.lines().filter_map(|line| line.trim().split_once(':'));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Waits until `replica` follows `master` and has all its data.
fn await_same_data(world: &World, master: Node, replica: Node) {
    let digest = |node| ask(world, node, &["DEBUG", "DIGEST"]);
    let is_in_step = || {
        let info = replication(world, replica);
        let follows = info
            .get("master_host")
            .is_some_and(|host| *host == master.0.to_string());
        follows && info["master_link_status"] == "up" && digest(master) == digest(replica)
    };
    await_true(is_in_step, || {
        format!("{replica:?}: {:?}", replication(world, replica))
    });
}
