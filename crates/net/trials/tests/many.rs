//! Tens of thousands of connections on one host: three redis-servers and several client processes,
//! every connection upgraded, idle for a while and used again afterwards.

use std::{
    thread,
    time::{Duration, Instant},
};

use saiga_channel::layout::SLOTS;
use saiga_trials::{
    census::Census,
    compile,
    parity::Arm::{self, Kernel, Library, Shipped},
    peer::Peer,
    redis::Server,
    scale::{by_scale, patient},
    sys,
};

const SERVERS: u64 = 3;
const POOLS_OF_A_SERVER: u64 = 2;
/// Requests on each connection until it has a channel: the default evidence is 64 messages.
const TURNS: u32 = 80;

/// Connections of one client process; in a soak there are 50,000 in total.
fn pool_connections() -> u64 {
    by_scale(60, 50_000_u64.div_ceil(SERVERS * POOLS_OF_A_SERVER))
}

/// One server and its client processes.
struct Site {
    server: Server,
    pools: Vec<Peer>,
}

/// Resources of a site on both sides.
#[derive(Debug, Clone, Copy)]
struct Held {
    server: Census,
    pools_kib: u64,
}

impl Site {
    fn start(arm: Arm) -> Self {
        let clients = pool_connections() * POOLS_OF_A_SERVER;
        // redis-server counts the library's descriptor numbers as clients.
        let most = clients + clients / 32 + 200;
        let limit = sys::descriptor_hard_limit();
        assert!(
            most + 32 <= limit,
            "a server needs {} descriptors, and the hard limit is {limit}",
            most + 32
        );
        let most = most.to_string();
        let options = ["--maxclients", &most, "--tcp-backlog", "4096"];
        let server = Server::start(arm, "127.0.0.1", &options);
        let port = server.port.to_string();
        let pool = |_| {
            let mut pool = Peer::start(compile::tool("pool"), &[&port], arm);
            pool.expect("up");
            pool
        };
        Self {
            pools: (0..POOLS_OF_A_SERVER).map(pool).collect(),
            server,
        }
    }

    fn held(&self) -> Held {
        Held {
            server: Census::of(self.server.pid()).expect("a running process"),
            pools_kib: self
                .pools
                .iter()
                .map(|pool| pool.census().resident_kib)
                .sum(),
        }
    }

    /// Number of the server's connections that use channels now.
    fn channels(&self) -> u64 {
        Census::channels(self.server.pid())
    }

    /// Whether no ring has memory any more.
    fn rests(&self) -> bool {
        let pid = self.server.pid();
        Census::segments_kib(pid) <= Census::empty_segments_kib(pid)
    }
}

/// Sends the same command to every pool of every site, then waits for all answers.
fn order(sites: &mut [Site], command: &str, answer: &str) {
    let pools = sites.iter_mut().flat_map(|site| &mut site.pools);
    let mut pools: Vec<&mut Peer> = pools.collect();
    pools.iter_mut().for_each(|pool| pool.tell(command));
    for pool in pools {
        pool.expect(answer);
    }
}

#[expect(clippy::disallowed_methods, reason = "the library announces nothing")]
fn await_rest(sites: &mut [Site], arm: Arm) {
    let pools = sites.iter_mut().flat_map(|site| &mut site.pools);
    pools.for_each(|pool| pool.tell("rest"));
    let end = Instant::now() + patient(Duration::from_secs(by_scale(30, 300)));
    while arm != Kernel && !sites.iter().all(Site::rests) {
        assert!(
            Instant::now() < end,
            "rings of idle connections keep memory"
        );
        // A check of thousands of descriptors costs the servers time.
        thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that the library needs no mapping or descriptor for each connection.
fn assert_frugal(before: &Census, idle: &Census, connections: u64) {
    let connections = usize::try_from(connections).expect("small");
    // Either end of a connection may make the segment.
    let most = 2 * (connections / SLOTS) + 24;
    let mappings = idle.mappings - before.mappings;
    assert!(mappings <= most, "{mappings} more mappings");
    let hidden = idle.descriptors - before.descriptors - connections;
    assert!(hidden <= most, "{hidden} hidden descriptors");
}

/// Bytes that each connection holds in its server and in its client.
fn crowd(arm: Arm) -> [u64; 2] {
    let each = pool_connections();
    let of_server = each * POOLS_OF_A_SERVER;
    let mut sites: Vec<Site> = (0..SERVERS).map(|_| Site::start(arm)).collect();
    let before: Vec<Held> = sites.iter().map(Site::held).collect();
    order(&mut sites, &format!("open {each}"), &format!("open {each}"));
    order(&mut sites, &format!("ask {TURNS}"), "done");
    await_rest(&mut sites, arm);
    let idle: Vec<Held> = sites.iter().map(Site::held).collect();
    for (site, (before, idle)) in sites.iter().zip(before.iter().zip(&idle)) {
        if arm == Kernel {
            continue;
        }
        assert_eq!(site.channels(), of_server, "of the server's connections");
        assert_frugal(&before.server, &idle.server, of_server);
    }
    order(&mut sites, "ask 3", "done");
    if arm != Kernel {
        assert!(sites.iter().all(|site| site.channels() == of_server));
    }
    let total = of_server * SERVERS;
    let grown = |of: fn(&Held) -> u64| -> u64 {
        let sum = |held: &[Held]| held.iter().map(of).sum::<u64>();
        sum(&idle).saturating_sub(sum(&before)) * 1024 / total
    };
    let held = [
        grown(|held| held.server.resident_kib),
        grown(|held| held.pools_kib),
    ];
    println!(
        "{total} connections, {arm:?}: server {} bytes each, client {} bytes each; server 1 {:?}",
        held[0], held[1], idle[0].server
    );
    leave(sites, &before, arm);
    held
}

/// Ends the clients, and checks that their servers keep only a few spare segments.
fn leave(sites: Vec<Site>, before: &[Held], arm: Arm) {
    for (Site { server, pools }, before) in sites.into_iter().zip(before) {
        for pool in pools {
            let (rest, status) = pool.finish();
            assert!(status.success(), "{status}: {rest}");
        }
        server.until("have no clients", |server| {
            server.info("clients", "connected_clients") == "1"
        });
        if arm != Kernel {
            let after = Census::of(server.pid()).expect("a running process");
            let (was, is) = (before.server.descriptors, after.descriptors);
            assert!(is <= was + 16, "{was} descriptors became {is}");
            assert!(after.mappings <= before.server.mappings + 16, "{after:?}");
        }
    }
}

#[test]
fn every_connection_of_many_has_its_channel_and_costs_little() {
    let kernel = crowd(Kernel);
    for arm in by_scale(&[Library][..], &[Library, Shipped]) {
        let library = crowd(*arm);
        let extra = [0, 1].map(|side| library[side].saturating_sub(kernel[side]));
        println!("{arm:?}: beyond the kernel's, server and client {extra:?} bytes each");
        // A slot and its share of the segment's header, on both sides, and records. With few
        // connections the library's fixed cost is a large part.
        let most = by_scale(64 * 1024, 4096);
        assert!(extra.iter().all(|bytes| *bytes < most));
    }
}
