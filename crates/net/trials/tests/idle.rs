//! An idle accelerated process costs nothing: no system calls, no wake-ups, and
//! next to no memory per idle connection.

use std::{fs, thread, time::Duration};

use saiga_trials::{census::Census, compile, parity::Arm, peer::Peer};

/// How often the threads of `pid` have gone to sleep or lost the CPU so far.
fn switches(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    status
        .lines()
        .filter(|line| line.contains("ctxt_switches"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

/// Opens `count` connections, of which `active` talk; both programs then wait.
fn crowd(count: u64, active: u64, arm: Arm) -> (Peer, Peer) {
    let mut server = Peer::start(compile::tool("crowd"), &["listen"], arm);
    let port = server.expect("port");
    let mut client = Peer::start(
        compile::tool("crowd"),
        &["connect", &port, &count.to_string()],
        arm,
    );
    client.expect("open");
    client.tell(&format!("active {active} 60"));
    client.expect("done");
    (server, client)
}

#[test]
fn a_process_with_idle_channels_is_never_woken() {
    let (server, client) = crowd(100, 100, Arm::Library);
    assert!(
        Census::upgrades(server.pid()) > 50,
        "most connections are upgraded"
    );
    // Both come to rest: no switch between two looks. The time between them is not
    // synchronisation, it is what is observed.
    let mut before = (0, 0);
    for _ in 0..50 {
        let now = (switches(server.pid()), switches(client.pid()));
        if now == before {
            break;
        }
        before = now;
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(500));
    let after = (switches(server.pid()), switches(client.pid()));
    assert_eq!(
        before, after,
        "woken while idle: context switches of server and client"
    );
}

#[test]
fn an_idle_connection_costs_less_than_a_kibibyte() {
    let held = |arm, count| {
        let (server, client) = crowd(count, 1, arm);
        (server.census().resident_kib, client.census().resident_kib)
    };
    // The difference of two sizes, so that what the library costs by itself drops out.
    let per_connection = |arm| {
        let (few, many) = (held(arm, 100), held(arm, 3100));
        (many.0.saturating_sub(few.0), many.1.saturating_sub(few.1))
    };
    let (kernel, library) = (per_connection(Arm::Kernel), per_connection(Arm::Library));
    println!("3000 idle connections: kernel {kernel:?} KiB, library {library:?} KiB");
    assert!(library.0 < kernel.0 + 3000, "server");
    assert!(library.1 < kernel.1 + 3000, "client");
}
