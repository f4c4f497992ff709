//! `saiga gateway` under faults and attacks: servers under the library, and a client on another
//! host that checks each byte.
//!
//! `make test` runs a few rounds of each; `make soak` runs a thousand kills and longer attacks.
//! Needs root, /dev/net/tun, ip(8) with bridges, and Redis. Deliberately absent: throughput under
//! attack, and steps of the clock, which belongs to no namespace.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bystander;
mod device;
mod frames;
mod hostile;
mod kernel_side;
mod kills;
mod link;
mod local_user;
#[path = "../support/mod.rs"]
mod support;
mod undo;
mod world;

use fastrand::Rng;
use saiga_trials::scale::{by_scale, seed};

use world::{Link, OTHER_PORT, SERVER, SERVER_V6, Wire, in_world};

/// Answers stay right when the path loses, doubles, reorders and corrupts packets.
#[test]
fn answers_are_right_over_a_faulty_path() {
    let mut rng = Rng::with_seed(seed(64));
    for wire in Wire::ALL {
        in_world(wire, Link::Faulty(rng.u64(..)), |world| {
            let _server = world.redis(OTHER_PORT, &[]);
            let gateway = world.gateway();
            let v4 = world.bystander(SERVER, rng.u64(..));
            let v6 = world.bystander(SERVER_V6, rng.u64(..));
            let exchanges = by_scale(40, 5_000);
            v4.progress(exchanges);
            v6.progress(exchanges);
            let faults = world.faulty.as_ref().unwrap().faults();
            println!("lost, doubled, late, corrupted: {faults:?}");
            assert!(faults.iter().all(|count| *count > 0), "{faults:?}");
            assert_eq!([v4.end(), v6.end()], [0, 0], "lost connections");
            world.stop(gateway);
        });
    }
}
