//! A real PostgreSQL under the library, with clients on both arms: a process per
//! connection that is forked after accept, and latches beside the socket in one
//! epoll set. Whatever the kernel shows, the channel must show.

mod copying;
mod crashes;
mod load;
mod replication;
mod sessions;
mod turns;

use saiga_trials::{
    parity::Arm::{self, Kernel, Library},
    scale::by_scale,
};

/// Server and client: both accelerated, and each alone.
const PAIRS: [(Arm, Arm); 3] = [(Library, Library), (Library, Kernel), (Kernel, Library)];

/// The pairs for what takes a server of its own for each and hardly depends on the arms.
fn some_pairs() -> &'static [(Arm, Arm)] {
    by_scale(&PAIRS[..1], &PAIRS)
}

/// How many connections of the process `pid` are on a channel now.
fn channels(pid: u32) -> u64 {
    let page = saiga_status::reader::Page::open(pid).expect("it runs under the library");
    page.snapshot(0).expect("the page can be read").channels
}

/// Runs `scene` on the kernel and on the pairs: it must tell the same story.
fn same_story(scene: impl Fn(Arm, Arm) -> String) {
    let wanted = scene(Kernel, Kernel);
    for &(server, client) in some_pairs() {
        let told = scene(server, client);
        assert_eq!(told, wanted, "server on {server:?}, client on {client:?}");
    }
}
