//! A real PostgreSQL under the library, with clients on both arms: a process per connection that is
//! forked after accept, and latches beside the socket in one epoll set. The channel must behave
//! like the kernel in every respect.

mod copying;
mod crashes;
mod load;
mod replication;
mod sessions;
mod turns;

use std::fs;

use saiga_trials::{
    parity::Arm::{self, Kernel, Library, Shipped},
    postgres::Server,
    scale::by_scale,
    witness::await_some,
};

/// The arms of a server and its clients.
type Pair = (Arm, Arm);

/// Both ends accelerated, with an upgrade at once and with default evidence, and each end alone.
const PAIRS: [Pair; 4] = [
    (Library, Library),
    (Shipped, Shipped),
    (Library, Kernel),
    (Kernel, Library),
];

/// The pairs for tests that need a server for each and hardly depend on the arms.
fn some_pairs() -> &'static [Pair] {
    by_scale(&PAIRS[..1], &PAIRS)
}

/// PID of the process of `server` whose title starts with "postgres: `title`", or its postmaster.
/// Waits for a process that is about to be started.
fn process(server: &Server, title: &str) -> u32 {
    if title == "postmaster" {
        return server.pid();
    }
    let wanted = format!("postgres: {title}");
    let is_it = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with(&wanted)
    };
    await_some(
        || server.processes().into_iter().find(is_it),
        || format!("no {wanted}\n{}", server.log.tail()),
    )
}

/// The pairs for tests that may differ when a connection is upgraded during its life.
fn joined_pairs() -> &'static [Pair] {
    by_scale(&PAIRS[..2], &PAIRS)
}

/// The arms for long tests with the library on both ends.
fn accelerated() -> &'static [Arm] {
    by_scale(&[Library][..], &[Library, Shipped])
}

/// Whether a connection between these two arms can be upgraded.
fn is_joined((server, client): Pair) -> bool {
    server != Kernel && client != Kernel
}

/// Runs `scene` on the kernel and on `pairs`: the results must be equal.
fn same_story(pairs: &[Pair], scene: impl Fn(Arm, Arm) -> String) {
    let wanted = scene(Kernel, Kernel);
    for &(server, client) in pairs {
        let told = scene(server, client);
        assert_eq!(told, wanted, "server on {server:?}, client on {client:?}");
    }
}
