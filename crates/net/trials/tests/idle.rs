//! An idle accelerated process costs nothing: no system calls, no wake-ups, and almost no memory
//! per idle connection, whether it was ever used or not.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use saiga_channel::layout::{HEADER_BYTES, SLOTS};
use saiga_trials::{
    census::Census,
    compile,
    parity::Arm,
    peer::Peer,
    scale::{by_scale, patient},
};

/// Context switches of the threads of `pid` so far.
fn switches(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a running process");
    let of_thread = |thread: fs::DirEntry| -> u64 {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status
            .lines()
            .filter(|line| line.contains("ctxt_switches"))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum()
    };
    threads.flatten().map(of_thread).sum()
}

/// Opens `count` connections, of which `active` exchange messages; the server waits by `how`.
fn crowd(how: &str, count: u64, active: u64, arm: Arm) -> (Peer, Peer) {
    let mut server = Peer::start(compile::tool("crowd"), &["listen", how], arm);
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

/// Repeats the check `holds` for some seconds; returns whether it became true.
#[expect(clippy::disallowed_methods, reason = "the library announces nothing")]
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patient(Duration::from_secs(by_scale(20, 200)));
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// KiB of the server's segments while no ring has memory. A few slots are used by failed attempts.
fn without_rings(server: &Peer) -> u64 {
    Census::empty_segments_kib(server.pid())
}

/// Checks that both processes sleep: no context switch during a time longer than any pause of the
/// library. The sleep is not a synchronisation; it is the observed time.
#[expect(
    clippy::disallowed_methods,
    reason = "the time is observed, not waited for"
)]
fn assert_at_rest(server: &Peer, client: &Peer) {
    let now = || (switches(server.pid()), switches(client.pid()));
    let before = now();
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(
        before,
        now(),
        "woken while idle: context switches of server and client"
    );
}

/// Exchanges messages on `count` connections. Then server and client wait, each in its way, until
/// all rings have released their memory, are not woken, and can exchange messages again.
fn rest_and_go_on(server_waits: &str, client_waits: &str, count: u64) {
    let (server, mut client) = crowd(server_waits, count, count, Arm::Library);
    let upgrades = Census::upgrades(server.pid());
    assert!(upgrades * 2 > count, "most connections are upgraded");
    let used = Census::segments_kib(server.pid());
    client.tell(&format!("wait {client_waits}"));
    let empty = without_rings(&server);
    let given_back = || Census::segments_kib(server.pid()) <= empty;
    let all = eventually(given_back);
    let kept = Census::segments_kib(server.pid());
    println!("{server_waits}/{client_waits}: {used} KiB in use, {kept} KiB idle, headers {empty}");
    assert!(all, "{kept} KiB are kept, {empty} KiB without rings");
    assert_at_rest(&server, &client);
    if client_waits != "recv" {
        client.tell(&format!("active {count} 3"));
        client.expect("done");
        let woken = Census::segments_kib(server.pid());
        assert!(woken > empty, "the rings were used again");
    }
}

#[test]
fn channels_in_epoll_sets_release_their_memory_and_wake_no_thread() {
    rest_and_go_on("epoll", "epoll", 100);
}

#[test]
fn polled_channels_release_their_memory_and_wake_no_thread() {
    rest_and_go_on("poll", "poll", 40);
}

#[test]
fn a_thread_blocked_in_recv_releases_its_channel_s_memory_and_is_not_woken() {
    rest_and_go_on("recv", "recv", 1);
}

#[test]
fn threads_blocked_in_recv_release_their_channels_memory() {
    rest_and_go_on("recv", "epoll", 20);
}

/// The client makes no call that the library sees: its rings keep memory, the server's do not.
#[test]
fn a_process_with_an_inactive_peer_releases_its_own_memory_and_is_never_woken() {
    let (server, client) = crowd("epoll", 100, 100, Arm::Library);
    let upgrades = Census::upgrades(server.pid());
    assert!(upgrades > 50, "most connections are upgraded");
    let empty = without_rings(&server);
    let half = empty + Census::segments_kib(server.pid()).saturating_sub(empty) / 2;
    let all = eventually(|| Census::segments_kib(server.pid()) <= half);
    assert!(all, "the server's rings are kept");
    assert_at_rest(&server, &client);
}

/// Resident KiB of server and client with `count` connections of which `active` were used.
fn held(count: u64, active: u64, arm: Arm) -> (u64, u64) {
    let (server, mut client) = crowd("epoll", count, active, arm);
    client.tell("wait epoll");
    let empty = without_rings(&server);
    let rest = eventually(|| Census::segments_kib(server.pid()) <= empty);
    assert!(rest, "rings are kept");
    (server.census().resident_kib, client.census().resident_kib)
}

/// Cost in bytes of each of `more` further connections beyond the kernel's: the difference of two
/// sizes, in which the library's fixed cost cancels out.
fn bytes_per_connection(more: u64, are_used: bool) -> (u64, u64) {
    let cost = |arm| {
        let active = |count| if are_used { count } else { 1 };
        let few = held(100, active(100), arm);
        let many = held(100 + more, active(100 + more), arm);
        (many.0.saturating_sub(few.0), many.1.saturating_sub(few.1))
    };
    let (kernel, library) = (cost(Arm::Kernel), cost(Arm::Library));
    println!("{more} idle connections: kernel {kernel:?} KiB, library {library:?} KiB");
    let each = |with: u64, without: u64| with.saturating_sub(without) * 1024 / more;
    let costs = (each(library.0, kernel.0), each(library.1, kernel.1));
    println!("used: {are_used}; each costs the server and the client {costs:?} bytes");
    costs
}

#[test]
fn an_idle_connection_costs_less_than_a_kibibyte() {
    let (server, client) = bytes_per_connection(3000, false);
    assert!(server < 1024 && client < 1024);
}

/// A used connection has a slot, a share of its segment's header in whole pages (shared by both
/// sides), and records.
#[test]
fn a_used_and_idle_connection_costs_its_slot_and_a_kibibyte() {
    let (server, client) = bytes_per_connection(1000, true);
    let slot = (HEADER_BYTES.next_multiple_of(rustix::param::page_size()) / SLOTS) as u64;
    assert!(server < slot + 1024 && client < slot + 1024);
}
