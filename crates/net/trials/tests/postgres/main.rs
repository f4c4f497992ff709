//! A real PostgreSQL under the library, with clients on both arms: a process per
//! connection that is forked after accept, and latches beside the socket in one
//! epoll set. Whatever the kernel shows, the channel must show.

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

/// On what the server and its clients run.
type Pair = (Arm, Arm);

/// Both accelerated, at once and with the evidence that users have, and each alone.
const PAIRS: [Pair; 4] = [
    (Library, Library),
    (Shipped, Shipped),
    (Library, Kernel),
    (Kernel, Library),
];

/// The pairs for what takes a server of its own for each and hardly depends on the arms.
fn some_pairs() -> &'static [Pair] {
    by_scale(&PAIRS[..1], &PAIRS)
}

/// The process of `server` whose title starts with "postgres: `title`", or its postmaster; one
/// that is about to be started is waited for.
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

/// The pairs for what may differ when a connection moves in the middle of its life.
fn joined_pairs() -> &'static [Pair] {
    by_scale(&PAIRS[..2], &PAIRS)
}

/// The arms of what is accelerated throughout and takes long.
fn accelerated() -> &'static [Arm] {
    by_scale(&[Library][..], &[Library, Shipped])
}

/// Whether the two ends of a connection between these can leave TCP.
fn is_joined((server, client): Pair) -> bool {
    server != Kernel && client != Kernel
}

/// Runs `scene` on the kernel and on `pairs`: it must tell the same story.
fn same_story(pairs: &[Pair], scene: impl Fn(Arm, Arm) -> String) {
    let wanted = scene(Kernel, Kernel);
    for &(server, client) in pairs {
        let told = scene(server, client);
        assert_eq!(told, wanted, "server on {server:?}, client on {client:?}");
    }
}
