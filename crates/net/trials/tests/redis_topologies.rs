//! Redis servers joined together, every process under the library: replication by configuration
//! file and by command, sentinels with a fail-over, and a cluster of six.

use saiga_trials::{
    bounded::Ending,
    parity::Arm::{self, Kernel, Library, Shipped},
    redis::{Client, Server},
    redis_topology::{await_in_step, await_whole, cluster, named_master, sentinels},
    scale::by_scale,
};

/// With an upgrade at once, and with default evidence.
const BOTH: [Arm; 2] = [Library, Shipped];

/// Makes replicas get the data without waiting for others.
const AT_ONCE: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

fn succeeds(server: &Server, arm: Arm, words: &[&str]) {
    let outcome = server.benchmark(arm, words);
    let said = format!("{outcome:?}\n{}", server.log());
    assert_eq!(outcome.ending, Ending::Exited(0), "{words:?}: {said}");
    assert!(!outcome.stdout.contains("rror"), "{words:?}: {said}");
}

/// Waits until `count` connections of `one` to `other` have used channels, while `busy` sends
/// messages on them.
fn await_channels(one: &Server, other: &Server, count: usize, mut busy: impl FnMut()) {
    let what = format!("reach {} by {count} channels", other.port);
    one.until(&what, |one| {
        busy();
        one.channels_to(other.pid()) >= count
    });
}

fn replicaof(replica: &Server, host: &str, master: &Server) {
    let port = master.port.to_string();
    let answer = replica.ask(&["REPLICAOF", host, &port]);
    assert!(answer.starts_with("OK"), "{answer}");
}

/// Converts command-line options to lines of a configuration file.
fn as_lines(options: &[&str]) -> Vec<String> {
    let pairs = options.chunks_exact(2);
    pairs
        .map(|pair| format!("{} {}", pair[0].trim_start_matches("--"), pair[1]))
        .collect()
}

/// A master with data, one replica by its configuration file and one by command.
fn replication(arm: Arm, host: &'static str, options: &[&str]) -> [Server; 3] {
    let options = [&AT_ONCE, options].concat();
    let master = Server::start(arm, host, &options);
    succeeds(
        &master,
        arm,
        &["-q", "-t", "set", "-n", "20000", "-r", "9000", "-d", "500"],
    );
    let port = master.port.to_string();
    let mut file = as_lines(&options);
    file.push(format!("replicaof {host} {port}"));
    let one = Server::configured(arm, host, &file);
    let two = Server::start(arm, host, &options);
    replicaof(&two, host, &master);
    await_in_step(&master, &one);
    await_in_step(&master, &two);
    [master, one, two]
}

#[test]
fn replicas_follow_through_channels_and_resume_after_a_kill() {
    for (arm, host, options) in [
        (Library, "127.0.0.1", &["--repl-diskless-sync", "no"][..]),
        (
            Shipped,
            "::1",
            &["--io-threads", "2", "--io-threads-do-reads", "yes"],
        ),
    ] {
        let [master, one, two] = replication(arm, host, options);
        assert_eq!(master.info("stats", "sync_full"), "2");
        succeeds(
            &master,
            arm,
            &["-q", "-t", "set", "-n", "20000", "-r", "9000"],
        );
        for replica in [&one, &two] {
            await_channels(&master, replica, 1, || ());
            succeeds(
                replica,
                arm,
                &["-q", "-t", "get", "-n", "20000", "-r", "9000"],
            );
        }
        for _ in 0..by_scale(3, 100) {
            resumes(arm, &master, [&one, &two]);
        }
        assert_eq!(master.info("stats", "sync_full"), "2", "{}", master.log());
        let refused = one.ask(&["SET", "key", "value"]);
        assert!(refused.starts_with("READONLY"), "{refused}");
    }
}

/// Both links are killed under load; each replica continues where it was.
fn resumes(arm: Arm, master: &Server, replicas: [&Server; 2]) {
    let before: u32 = master
        .info("stats", "sync_partial_ok")
        .parse()
        .expect("a number");
    let load = master.load(arm, &["-q", "-t", "set", "-n", "20000", "-r", "9000"]);
    assert_eq!(master.ask(&["CLIENT", "KILL", "TYPE", "replica"]), "2");
    let (_, status) = load.finish();
    assert!(status.success(), "redis-benchmark: {status}");
    for replica in replicas {
        await_in_step(master, replica);
    }
    assert_eq!(
        master.info("stats", "sync_partial_ok"),
        (before + 2).to_string()
    );
}

#[test]
fn a_replica_becomes_a_master_and_a_replica_again_while_it_serves() {
    for arm in BOTH {
        let [master, one, two] = replication(arm, "127.0.0.1", &[]);
        let mut client = two.client(arm);
        for round in 0..by_scale(3, 100) {
            assert_eq!(client.ask("REPLICAOF NO ONE"), "OK");
            assert_eq!(client.ask(&format!("SET own:{round} value")), "OK");
            replicaof(&two, "127.0.0.1", &master);
            succeeds(
                &master,
                arm,
                &["-q", "-t", "set", "-n", "5000", "-r", "900"],
            );
            await_in_step(&master, &two);
            assert_eq!(client.ask(&format!("EXISTS own:{round}")), "0");
        }
        await_in_step(&master, &one);
    }
}

#[test]
fn sentinels_replace_a_master_that_is_killed() {
    for (arm, host) in [(Library, "127.0.0.1"), (Shipped, "::1")] {
        for _ in 0..by_scale(1, 20) {
            fail_over(arm, host);
        }
    }
}

fn fail_over(arm: Arm, host: &'static str) {
    let [master, one, two] = replication(arm, host, &[]);
    let watch = sentinels(arm, host, &master, 2);
    assert_linked(&watch, [&master, &one, &two]);
    let mut client = master.client(arm);
    for i in 0..200 {
        assert_eq!(client.ask(&format!("SET key:{i} {i}")), "OK");
    }
    assert_eq!(client.ask("WAIT 2 20000"), "2");
    master.kill();
    for sentinel in &watch {
        sentinel.until("name another master", |one| {
            let named = named_master(one);
            !named.is_empty() && named != master.port.to_string()
        });
    }
    let promoted = named_master(&watch[0]);
    let (new, other) = if promoted == one.port.to_string() {
        (one, two)
    } else {
        (two, one)
    };
    assert_eq!(promoted, new.port.to_string());
    new.until("be a master", |new| {
        new.info("replication", "role") == "master"
    });
    let mut client = new.client(arm);
    for i in 0..200 {
        assert_eq!(client.ask(&format!("GET key:{i}")), i.to_string());
    }
    assert_eq!(client.ask("SET after fail-over"), "OK");
    await_in_step(&new, &other);
}

/// Checks that every sentinel reaches the `watched` servers and the other sentinels by channels.
fn assert_linked(watch: &[Server], watched: [&Server; 3]) {
    // With one ping a second, evidence would take minutes. The period also limits how long a
    // replica may be silent before it can become master, so it is set back.
    let ping_every = |milliseconds: &str| {
        for sentinel in watch {
            let done = sentinel.ask(&["SENTINEL", "DEBUG", "PING-PERIOD", milliseconds]);
            assert_eq!(done, "OK");
        }
    };
    ping_every("10");
    for sentinel in watch {
        let others = watch.iter().filter(|other| other.port != sentinel.port);
        for other in watched.into_iter().chain(others) {
            await_channels(sentinel, other, 1, || ());
        }
    }
    ping_every("1000");
}

#[test]
fn six_nodes_make_a_cluster_whose_bus_runs_through_channels() {
    for arm in BOTH {
        let nodes = cluster(arm, &AT_ONCE);
        let mut client = follower(&nodes[0], arm);
        let count = by_scale(600, 20_000);
        for i in 0..count {
            assert_eq!(answer(client.ask(&format!("SET key:{i} value-{i}"))), "OK");
        }
        let mut reader = follower(&nodes[5], arm);
        for i in 0..count {
            assert_eq!(
                answer(reader.ask(&format!("GET key:{i}"))),
                format!("value-{i}")
            );
        }
        let load = [
            "-q",
            "--cluster",
            "-t",
            "set,get",
            "-n",
            "20000",
            "-r",
            "9000",
        ];
        succeeds(&nodes[0], arm, &load);
        // Each message goes to every other node on the bus: a link in each direction, and some
        // pairs also replicate.
        for one in &nodes {
            for other in nodes.iter().filter(|other| other.port != one.port) {
                await_channels(one, other, 2, || publish(&[one, other]));
            }
        }
        nodes.iter().for_each(await_whole);
        move_slots(arm, &nodes);
        for i in 0..count {
            assert_eq!(
                answer(reader.ask(&format!("GET key:{i}"))),
                format!("value-{i}")
            );
        }
        let replicas = nodes
            .iter()
            .filter(|node| node.info("replication", "role") == "slave");
        for replica in replicas {
            let port = replica.info("replication", "master_port");
            let master = nodes.iter().find(|node| node.port.to_string() == port);
            await_in_step(master.expect("its master is a node"), replica);
        }
    }
}

/// Sends a hundred messages on the links of these nodes: with their pings alone, one a second,
/// evidence would take a minute.
fn publish(nodes: &[&Server]) {
    for node in nodes {
        node.benchmark(Kernel, &["-q", "-n", "100", "PUBLISH", "news", "item"]);
    }
}

/// Moves slots with their keys from one master to another: MIGRATE waits on a socket inside the
/// server's event loop.
fn move_slots(arm: Arm, nodes: &[Server]) {
    let is_master = |node: &&Server| node.info("replication", "role") == "master";
    let masters: Vec<&Server> = nodes.iter().filter(is_master).collect();
    let before = masters[1].ask(&["DBSIZE"]);
    let [from, to] = [masters[0], masters[1]].map(|node| node.ask(&["CLUSTER", "MYID"]));
    let address = format!("127.0.0.1:{}", nodes[0].port);
    let slots = by_scale("400", "4000");
    let words = [
        "--cluster",
        "reshard",
        &address,
        "--cluster-yes",
        "--cluster-from",
    ];
    let words = [
        &words[..],
        &[&from, "--cluster-to", &to, "--cluster-slots", slots],
    ]
    .concat();
    let outcome = nodes[0].run_cli(arm, &words);
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    assert!(!outcome.stdout.contains("[ERR]"), "{}", outcome.stdout);
    assert_ne!(masters[1].ask(&["DBSIZE"]), before);
    nodes.iter().for_each(await_whole);
}

/// A redis-cli that follows MOVED redirections.
fn follower(node: &Server, arm: Arm) -> Client {
    node.client_with(arm, "-c")
}

/// Removes the lines in which redis-cli reports redirections.
fn answer(reply: String) -> String {
    let lines = reply
        .lines()
        .filter(|line| !line.starts_with("-> Redirected"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_cluster_replaces_a_master_that_is_killed() {
    let nodes = cluster(Library, &AT_ONCE);
    let is_master = |node: &&Server| node.info("replication", "role") == "master";
    let victim = nodes
        .iter()
        .position(|node| is_master(&node))
        .expect("a master");
    nodes[victim].kill();
    let left: Vec<&Server> = (0..6).filter(|i| *i != victim).map(|i| &nodes[i]).collect();
    left[0].until("have three masters again", |_| {
        left.iter().copied().filter(is_master).count() == 3
    });
    left.iter().copied().for_each(await_whole);
    let mut client = follower(left[4], Library);
    for i in 0..200 {
        assert_eq!(answer(client.ask(&format!("SET key:{i} {i}"))), "OK");
    }
}
