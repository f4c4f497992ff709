//! Connect, exchange a few messages, close: many times in turn, and many at once.

use saiga_trials::{
    census::Census,
    compile,
    parity::Arm,
    peer::Peer,
    port, redis,
    scale::by_scale,
    sys,
    witness::{
        Evidence, Site,
        nginx::{Nginx, Setup},
    },
};

#[test]
fn connect_and_close_leaves_nothing_behind() {
    let (warm, cycles) = (1000, by_scale(10_000, 100_000));
    let mut server = Peer::start(compile::tool("survivor"), &[], Arm::Library);
    let port = server.expect("port");
    let mut client = Peer::start(compile::tool("survivor"), &[], Arm::Library);
    client.expect("port");
    let mut run = |count: u32| {
        server.tell(&format!("serve {count}"));
        client.tell(&format!("cycles {count} {port}"));
        assert_eq!(client.expect("end"), "done");
        assert_eq!(server.expect("end"), "done");
        (server.census(), client.census())
    };
    let before = run(warm);
    let after = run(cycles);
    // Slots of closed connections wait for both sides, so a few segments of 64 remain.
    before
        .0
        .assert_no_growth(&after.0, 4, 512, &format!("{cycles} cycles, server"));
    before
        .1
        .assert_no_growth(&after.1, 4, 512, &format!("{cycles} cycles, client"));
    let upgrades = Census::upgrades(client.pid());
    println!("{upgrades} upgrades");
    assert!(
        upgrades > 0,
        "nothing was upgraded: the cycles prove nothing"
    );
}

/// Opens and closes connections to a server at `port`. Each sends `question`, whose answer ends
/// with `end`. Neither the server's `processes` nor the client may keep resources of them.
fn leaves_nothing(port: u16, [question, end]: [&str; 2], processes: &[u32]) {
    let (warm, visits) = (1000, by_scale(2000, 100_000));
    let words = [&port.to_string(), "20", question, end];
    let mut client = Peer::start(compile::tool("visitor"), &words, Arm::Library);
    let mut run = |count: u32| -> Vec<Census> {
        client.tell(&format!("visit {count}"));
        client.expect("done");
        let pids = processes.iter().copied().chain([client.pid()]);
        pids.map(|pid| Census::of(pid).expect("a running process"))
            .collect()
    };
    let (before, after) = (run(warm), run(visits));
    for (before, after) in before.iter().zip(&after) {
        before.assert_no_growth(after, 4, 256, &format!("{visits} visits for {question:?}"));
    }
    let upgrades = Census::upgrades(client.pid());
    assert_eq!(upgrades, u64::from(warm + visits), "visits by channel");
}

#[test]
fn short_connections_leave_nothing_in_redis() {
    let server = redis::Server::start(Arm::Library, "127.0.0.1", &[]);
    leaves_nothing(
        server.port,
        ["SET key value\r\n", "+OK\r\n"],
        &[server.pid()],
    );
}

#[test]
fn short_connections_leave_nothing_in_memcached() {
    let (site, port) = (Site::new(Evidence::None), port::free());
    let server = site.memcached(port);
    let store = ["set key 0 0 5\r\nvalue\r\n", "STORED\r\n"];
    leaves_nothing(port, store, &[server.pid()]);
    server.end();
}

#[test]
fn short_connections_leave_nothing_in_nginx() {
    let site = Site::new(Evidence::None);
    let setup = Setup {
        reuseport: true,
        by_root: true,
    };
    let nginx = Nginx::start(&site, Arm::Library, setup);
    // For an empty file the answer ends with its header.
    let get = ["GET /f0 HTTP/1.1\r\nHost: here\r\n\r\n", "\r\n\r\n"];
    leaves_nothing(nginx.port, get, &nginx.processes());
    nginx.end();
}

/// Resident KiB of server and client with `count` connections, half of them used.
fn crowd(count: u64, arm: Arm) -> (u64, u64) {
    let mut server = Peer::start(compile::tool("crowd"), &["listen"], arm);
    let port = server.expect("port");
    let mut client = Peer::start(
        compile::tool("crowd"),
        &["connect", &port, &count.to_string()],
        arm,
    );
    let open: u64 = client.expect("open").parse().expect("a number");
    assert_eq!(open, count, "connections that could be opened");
    client.tell(&format!("active {} 40", count / 2));
    client.expect("done");
    if arm == Arm::Library {
        let upgrades = Census::upgrades(client.pid());
        println!("{upgrades} upgrades");
        // At the very limit no descriptor is left for a hand-shake: such connections stay on TCP.
        let room = count + 1024 < sys::descriptor_hard_limit();
        assert!(
            upgrades >= count / 2 || !room,
            "only {upgrades} connections were upgraded"
        );
    }
    let held = (server.census().resident_kib, client.census().resident_kib);
    client.tell(&format!("active {count} 2")); // Idle connections still work.
    client.expect("done");
    println!(
        "{count} connections, {arm:?}: server {} KiB, client {} KiB",
        held.0, held.1
    );
    held
}

#[test]
fn many_connections_are_upgraded() {
    compare_crowds(4000);
}

#[test]
fn as_many_connections_as_descriptors_allow() {
    // Both programs raise their limit to the hard one, and use a few numbers themselves.
    let limit = sys::descriptor_hard_limit().saturating_sub(64).min(28_000);
    compare_crowds(by_scale(limit.min(6000), limit));
}

fn compare_crowds(count: u64) {
    let kernel = crowd(count, Arm::Kernel);
    let library = crowd(count, Arm::Library);
    let extra = |with: u64, without: u64| with.saturating_sub(without) * 1024 / count;
    println!(
        "memory per connection beyond the kernel's: server {} bytes, client {} bytes",
        extra(library.0, kernel.0),
        extra(library.1, kernel.1)
    );
}
