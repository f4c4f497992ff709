//! Two stacks, or a stack and a naive TCP, over a hostile wire, from a seed: every byte arrives
//! once and in order, every connection ends, and every frame is well-formed.
//!
//! `SEED=7 cargo test -p saiga-stack --test simulation` repeats one seed; `SAIGA_SEEDS=100000` asks
//! for more of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod application;
mod naive;
mod wire;
mod world;

use saiga_path::{Chance, Loss, Path, Queue, Reordering};

use world::{Trouble, World};

/// A path with any of the troubles, or none.
fn path(random: &mut fastrand::Rng) -> Path {
    let queue = [20_000, 64_000, 500_000][random.usize(0..3)];
    Path {
        rate: [None, None, Some(2_000_000), Some(100_000_000)][random.usize(0..4)],
        queue: Queue::Bytes(queue),
        mtu: [None, None, None, Some(1_300)][random.usize(0..4)],
        loss: Loss::Random(Chance::per_mille([0, 1, 10, 100][random.usize(0..4)])),
        duplication: Chance::per_mille([0, 0, 10, 100][random.usize(0..4)]),
        reordering: Reordering::Late {
            chance: Chance::per_mille([0, 0, 10, 300][random.usize(0..4)]),
            most_us: [100, 3_000, 30_000][random.usize(0..3)],
        },
        ..Path::ideal([50, 500, 5_000, 50_000][random.usize(0..4)])
    }
}

fn world(seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    let paths = [path(&mut random), path(&mut random)];
    let trouble = Trouble {
        corruption: [0.0, 0.0, 0.01, 0.1][random.usize(0..4)],
        outage: random.u8(0..4) == 0,
        change_of_mtu: random.u8(0..4) == 0,
        aborts: random.u8(0..4) == 0,
    };
    World::new(random, paths, trouble)
}

/// Seeds of `make test`, and those of `make soak`.
fn usual() -> u64 {
    let is_soak = std::env::var("SAIGA_SOAK").is_ok_and(|value| value == "1");
    if is_soak { 100_000 } else { 500 }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_seed_delivers_everything() {
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SAIGA_SEEDS").unwrap_or_else(usual),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| world(seed).run());
        assert!(outcome.is_ok(), "repeat with SEED={seed}");
    }
}

/// Seeds in which a peer sends its SYN twice: a cookie answers the first one, a handshake of the
/// backlog the second one. Data come with the cookie, or behind a lost acknowledgement.
#[test]
fn a_cookie_and_a_handshake_do_not_reset_their_peer() {
    for seed in [1519, 2769] {
        world(seed).run();
    }
}
