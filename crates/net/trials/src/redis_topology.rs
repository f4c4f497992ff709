//! Private Redis servers joined together: replicas, sentinels and a cluster.
//!
//! All programs of a topology run on one arm, including `redis-cli --cluster create`. A topology is
//! complete when its servers report so to the commands that an operator would use.
//!
//! Deliberately absent: load and kills; tests bring them.

use std::{
    net::TcpListener,
    process::{self, Command},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use crate::{
    bounded::{self, Ending},
    parity::{self, Arm},
    redis::Server,
};

/// The sentinels' name for their master.
pub const MASTER: &str = "trial";
/// Redis adds this number to a node's port for the cluster bus.
const BUS: u16 = 10_000;
/// Range of node ports; those of their buses are below the ephemeral ports, too.
const NODE_PORTS: [u16; 2] = [11_000, 21_000];

/// Waits until `replica` follows `master` and has all its data.
///
/// # Panics
/// If it does not within the limit.
pub fn await_in_step(master: &Server, replica: &Server) {
    replica.until("follow its master", |replica| {
        replica.info("replication", "master_port") == master.port.to_string()
    });
    await_same_data(master, replica);
}

/// Waits until both have the same data, when they connect by another port than [`Server::port`].
///
/// # Panics
/// If the replica does not get there within the limit.
pub fn await_same_data(master: &Server, replica: &Server) {
    replica.until("have its master's data", |replica| {
        let wanted = master.info("replication", "master_repl_offset");
        replica.info("replication", "master_link_status") == "up"
            && replica.info("replication", "slave_repl_offset") == wanted
    });
    let digest = ["DEBUG", "DIGEST"];
    assert_eq!(
        replica.ask(&digest),
        master.ask(&digest),
        "{}",
        replica.log()
    );
}

/// Three sentinels that watch `master`, and know each other and its `replicas`.
///
/// # Panics
/// If they do not find each other within the limit.
pub fn sentinels(arm: Arm, host: &'static str, master: &Server, replicas: usize) -> Vec<Server> {
    let rules = [
        format!("sentinel monitor {MASTER} {host} {} 2", master.port),
        format!("sentinel down-after-milliseconds {MASTER} 500"),
        format!("sentinel failover-timeout {MASTER} 2000"),
    ];
    let all: Vec<Server> = (0..3)
        .map(|_| Server::sentinel(arm, host, &rules))
        .collect();
    let wanted = format!("slaves={replicas},sentinels=3");
    for sentinel in &all {
        sentinel.until("know all others", |one| {
            let known = one.info("sentinel", "master0");
            known.contains("status=ok") && known.contains(&wanted)
        });
    }
    all
}

/// The port of the master that `sentinel` reports.
pub fn named_master(sentinel: &Server) -> String {
    let answer = sentinel.ask(&["SENTINEL", "get-master-addr-by-name", MASTER]);
    answer.lines().last().unwrap_or_default().to_owned()
}

/// Six nodes joined to a cluster of three masters with a replica each.
///
/// # Panics
/// If they do not join.
pub fn cluster(arm: Arm, options: &[&str]) -> Vec<Server> {
    let mut words = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    words.extend(options);
    let start = |_| Server::start_on_port(arm, "127.0.0.1", node_port(), &words);
    let nodes: Vec<Server> = (0..6).map(start).collect();
    let mut command = Command::new("redis-cli");
    parity::set_environment(&mut command, arm);
    command.args(["--cluster", "create"]);
    command.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    command.args(["--cluster-replicas", "1", "--cluster-yes"]);
    let outcome = bounded::run(command, Duration::from_secs(60));
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{outcome:?}\n{}",
        nodes[0].log()
    );
    assert!(
        outcome.stdout.contains("[OK] All 16384 slots covered."),
        "{}",
        outcome.stdout
    );
    nodes.iter().for_each(await_whole);
    nodes
}

/// Waits until `node` sees every slot served, and is linked to its master if it is a replica.
///
/// # Panics
/// If it does not within the limit.
pub fn await_whole(node: &Server) {
    node.until("see the whole cluster", |node| {
        let info = node.ask(&["CLUSTER", "INFO"]);
        let has = |wanted: &str| info.lines().any(|line| line.trim() == wanted);
        let link = node.info("replication", "master_link_status");
        has("cluster_state:ok")
            && has("cluster_slots_ok:16384")
            && has("cluster_known_nodes:6")
            && (link.is_empty() || link == "up")
    });
}

/// A free port whose bus port is free as well; never returned twice.
fn node_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let [first, end] = NODE_PORTS;
    let span = end - first;
    // Tests run as several processes at once: each begins at another port.
    let own = u16::try_from(process::id() * 61 % u32::from(span)).expect("it is below the span");
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..span {
        let port = first + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % span;
        if free(port) && free(port + BUS) {
            return port;
        }
    }
    panic!("no port of {NODE_PORTS:?} is free with its bus port");
}
