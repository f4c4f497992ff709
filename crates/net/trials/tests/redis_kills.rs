//! Every process of a replicated, a watched and a sharded Redis is killed in turn, in an order from
//! a printed seed, while clients write: every confirmed write is there afterwards.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use saiga_trials::{
    parity::Arm::{self, Library, Shipped},
    redis::{Client, Server},
    redis_topology::{await_in_step, await_whole, cluster, named_master, sentinels},
    scale::{Rng, by_scale, patient, seed},
};

/// Processes are killed, not the machine: data written to the file are kept.
const DURABLE: [&str; 6] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "no",
    "--repl-diskless-sync-delay",
    "0",
];
const WRITERS: u64 = 2;
/// Writes that must be confirmed after each recovery before the next kill.
const PROGRESS: u64 = 30;
/// Without a confirmed write for this long, the servers count as down.
const PATIENCE: Duration = Duration::from_secs(60);

/// State shared by the writers and the test.
struct Load {
    over: AtomicBool,
    confirmed: AtomicU64,
    /// Number of connections that writers had to give up.
    lost: AtomicU64,
}

/// Writes until the load is over; returns the keys whose writes `copies` replicas confirmed.
///
/// A key is written once, and its answer names it. `connect` returns a client of the present
/// master.
fn write(
    load: &Load,
    name: u64,
    copies: u32,
    connect: impl Fn(u64) -> Option<Client>,
) -> BTreeSet<String> {
    let (mut confirmed, mut number, mut attempt) = (BTreeSet::new(), 0, name);
    while !load.over.load(Ordering::Relaxed) {
        attempt += 1;
        let Some(mut client) = connect(attempt) else {
            continue;
        };
        while !load.over.load(Ordering::Relaxed) {
            number += 1;
            let key = format!("writer:{name}:{number}");
            if !write_one(&mut client, &key, copies) {
                load.lost.fetch_add(1, Ordering::Relaxed);
                break;
            }
            confirmed.insert(key);
            load.confirmed.fetch_add(1, Ordering::Relaxed);
        }
    }
    confirmed
}

/// False if the result of the write is unknown. A cluster may redirect the client first.
fn write_one(client: &mut Client, key: &str, copies: u32) -> bool {
    let write = "EVAL \"redis.call('SET', KEYS[1], ARGV[1]) return KEYS[1]\" 1";
    client.tell(&format!("{write} {key} value"));
    let mut answer = client.line();
    if answer.starts_with("-> Redirected") {
        answer = client.line();
    }
    if answer != key {
        return false;
    }
    client.tell(&format!("WAIT {copies} 500"));
    client
        .line()
        .parse()
        .is_ok_and(|known: u32| known >= copies)
}

/// Runs `kills` beside the writers; returns every confirmed key.
fn under_load(
    copies: u32,
    connect: impl Fn(u64) -> Option<Client> + Sync,
    kills: impl FnOnce(&Load),
) -> BTreeSet<String> {
    let load = Load {
        over: AtomicBool::new(false),
        confirmed: AtomicU64::new(0),
        lost: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        let (load, connect) = (&load, &connect);
        let start = |name| scope.spawn(move || write(load, name, copies, connect));
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        let end = OnDrop(|| load.over.store(true, Ordering::Relaxed));
        load.progress();
        kills(load);
        drop(end);
        let all = writers.into_iter().map(|one| one.join().expect("a writer"));
        let all: BTreeSet<String> = all.flatten().collect();
        let lost = load.lost.load(Ordering::Relaxed);
        println!("{} writes confirmed, {lost} connections lost", all.len());
        all
    })
}

/// Ends the writers also if the test fails: otherwise the test could not end.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Load {
    /// Waits until the servers have confirmed some more writes.
    #[expect(clippy::disallowed_methods, reason = "the writers need the CPU")]
    fn progress(&self) {
        let wanted = self.confirmed.load(Ordering::Relaxed) + PROGRESS;
        let began = Instant::now();
        while self.confirmed.load(Ordering::Relaxed) < wanted {
            assert!(began.elapsed() < patient(PATIENCE), "no write is confirmed");
            thread::sleep(Duration::from_millis(5)); // Leaves CPU time to the writers.
        }
    }
}

/// `0..count` in random order.
fn turns(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).expect("small");
        order.swap(last, other);
    }
    println!("order of kills: {order:?}");
    order
}

fn assert_has(client: &mut Client, keys: &BTreeSet<String>) {
    for key in keys {
        let answer = client.ask(&format!("GET {key}"));
        let value = answer.lines().last().unwrap_or_default();
        assert_eq!(value, "value", "{key} was confirmed");
    }
}

fn replicas_of(master: &Server, arm: Arm) -> [Server; 2] {
    let port = master.port.to_string();
    let words = [&DURABLE[..], &["--replicaof", "127.0.0.1", &port]].concat();
    let replicas = [(); 2].map(|()| Server::start(arm, "127.0.0.1", &words));
    replicas.iter().for_each(|one| await_in_step(master, one));
    replicas
}

/// A master that comes back has all confirmed writes, and its replicas follow it again.
#[test]
fn a_master_and_its_replicas_are_killed_in_turn() {
    let mut rng = Rng::new(seed(51));
    for arm in by_scale(&[Library][..], &[Library, Shipped]) {
        let master = Server::start(*arm, "127.0.0.1", &DURABLE);
        let [one, two] = replicas_of(&master, *arm);
        let set = [master, one, two].map(Mutex::new);
        let connect = |_| Some(lock(&set[0]).client(*arm));
        let keys = under_load(0, connect, |load| {
            for _ in 0..by_scale(1, 12) {
                for turn in turns(&mut rng, set.len()) {
                    let mut victim = lock(&set[turn]);
                    victim.kill();
                    victim.start_again();
                    drop(victim);
                    load.progress();
                }
            }
        });
        let [master, one, two] = set.map(|one| one.into_inner().expect("no holder panicked"));
        for replica in [&one, &two] {
            await_in_step(&master, replica);
            assert_has(&mut replica.client(*arm), &keys);
        }
        assert_has(&mut master.client(*arm), &keys);
    }
}

fn lock(server: &Mutex<Server>) -> std::sync::MutexGuard<'_, Server> {
    server.lock().expect("no holder panicked")
}

/// Six processes: three sentinels, their master and its replicas.
#[test]
fn sentinels_and_their_servers_are_killed_in_turn() {
    let mut rng = Rng::new(seed(52));
    let master = Server::start(Library, "127.0.0.1", &DURABLE);
    let [one, two] = replicas_of(&master, Library);
    let watch = sentinels(Library, "127.0.0.1", &master, 2);
    let all: Vec<Mutex<Server>> = [master, one, two]
        .into_iter()
        .chain(watch)
        .map(Mutex::new)
        .collect();
    let (data, watch) = all.split_at(3);
    let connect = |attempt: u64| {
        let nth = usize::try_from(attempt).expect("small") % watch.len();
        let named = named_master(&lock(&watch[nth]));
        let found = data.iter().find(|one| lock(one).port.to_string() == named);
        found.map(|master| lock(master).client(Library))
    };
    // Writes that both replicas have are on the promoted one.
    let keys = under_load(2, connect, |load| {
        for _ in 0..by_scale(1, 8) {
            for turn in turns(&mut rng, all.len()) {
                kill_watched(&all, turn);
                load.progress();
            }
        }
    });
    await_followed(data, watch);
    let named = named_master(&lock(&watch[0]));
    let data: Vec<_> = data.iter().map(lock).collect();
    let (masters, replicas): (Vec<_>, Vec<_>) =
        data.iter().partition(|one| one.port.to_string() == named);
    assert_has(&mut masters[0].client(Library), &keys);
    for replica in replicas {
        await_in_step(masters[0], replica);
    }
}

/// Kills one of the six processes and waits until the six are complete again.
fn kill_watched(all: &[Mutex<Server>], turn: usize) {
    let (data, watch) = all.split_at(3);
    let mut victim = lock(&all[turn]);
    let old = victim.port.to_string();
    let was_master = {
        let other = if turn == 3 { 4 } else { 3 };
        named_master(&lock(&all[other])) == old
    };
    victim.kill();
    if was_master {
        // Another server takes the port's role; otherwise the returning one would still be master.
        drop(victim);
        for sentinel in watch {
            lock(sentinel).until("name another master", |one| {
                let named = named_master(one);
                !named.is_empty() && named != old
            });
        }
        victim = lock(&all[turn]);
    }
    victim.start_again();
    drop(victim);
    for sentinel in watch {
        lock(sentinel).until("see everybody at work", |one| {
            let known = one.info("sentinel", "master0");
            known.contains("status=ok") && known.contains("slaves=2,sentinels=3")
        });
    }
    await_followed(data, watch);
}

/// Waits until the present master has two replicas.
fn await_followed(data: &[Mutex<Server>], watch: &[Mutex<Server>]) {
    for one in data {
        lock(one).until("be or follow the master that is named", |one| {
            // Two sentinels may replace the killed master, one after the other.
            let named = named_master(&lock(&watch[0]));
            let is = |field, value: &str| one.info("replication", field) == value;
            if one.port.to_string() == named {
                is("role", "master") && is("connected_slaves", "2")
            } else {
                is("master_port", &named) && is("master_link_status", "up")
            }
        });
    }
}

/// Three masters and three replicas; a write that a replica has outlives its master.
#[test]
fn the_nodes_of_a_cluster_are_killed_in_turn() {
    let mut rng = Rng::new(seed(53));
    let nodes: Vec<Mutex<Server>> = cluster(Library, &DURABLE)
        .into_iter()
        .map(Mutex::new)
        .collect();
    let connect = |attempt: u64| {
        let nth = usize::try_from(attempt).expect("small") % nodes.len();
        Some(lock(&nodes[nth]).client_with(Library, "-c"))
    };
    let keys = under_load(1, connect, |load| {
        for _ in 0..by_scale(1, 8) {
            for turn in turns(&mut rng, nodes.len()) {
                kill_node(&nodes, turn);
                load.progress();
            }
        }
    });
    for entry in [0, 5] {
        assert_has(&mut lock(&nodes[entry]).client_with(Library, "-c"), &keys);
    }
}

/// Kills a node, waits until a replica replaces a master, and until the node is back.
fn kill_node(nodes: &[Mutex<Server>], turn: usize) {
    let is_master = |node: &Server| node.info("replication", "role") == "master";
    let masters = |but: usize| {
        let others = nodes.iter().enumerate().filter(|(nth, _)| *nth != but);
        others.filter(|(_, node)| is_master(&lock(node))).count()
    };
    {
        let victim = lock(&nodes[turn]);
        let was_master = is_master(&victim);
        victim.kill();
        drop(victim);
        if was_master {
            let other = lock(&nodes[(turn + 1) % nodes.len()]).port;
            println!("a master is gone; {other} and others elect");
            await_masters(&masters, turn);
        }
    }
    lock(&nodes[turn]).start_again();
    nodes.iter().for_each(|node| await_whole(&lock(node)));
}

#[expect(clippy::disallowed_methods, reason = "servers announce nothing")]
fn await_masters(masters: &dyn Fn(usize) -> usize, but: usize) {
    let began = Instant::now();
    while masters(but) != 3 {
        assert!(
            began.elapsed() < patient(PATIENCE),
            "no replica was promoted"
        );
        thread::sleep(Duration::from_millis(20)); // Every check costs the nodes CPU time.
    }
}
