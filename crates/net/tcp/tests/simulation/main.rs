//! Two connections over a hostile path, from a seed: every byte must arrive once and in order,
//! nothing may leave the peer's window, and each connection must end.
//!
//! `SEED=7 cargo test -p saiga-tcp --test simulation` repeats one seed; `SAIGA_SEEDS=100000` asks
//! for more of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod host;
mod link;
mod world;

use saiga_path::{Chance, Loss, Path, Queue, Reordering};
use saiga_tcp::{Algorithm, Config, Micros, Settings};

use host::Task;
use world::World;

/// A path with any of the troubles, or none.
fn path(random: &mut fastrand::Rng, later: &mut fastrand::Rng) -> Path {
    let delay_us = [50, 500, 5000, 50_000][random.usize(0..4)];
    let loss = [0, 1, 10, 50, 200][random.usize(0..5)];
    let duplication = [0, 0, 10, 100][random.usize(0..4)];
    let reordering = [0, 0, 10, 300][random.usize(0..4)];
    let lateness_us = [100, 3000, 30_000][random.usize(0..3)];
    let rate = [None, None, Some(1_000_000), Some(100_000_000)][random.usize(0..4)];
    let queue = [20_000, 64_000, 500_000][random.usize(0..3)];
    let mtu = [None, None, None, Some(1240), Some(640)][later.usize(0..5)];
    Path {
        rate,
        queue: Queue::Bytes(queue),
        mtu,
        loss: Loss::Random(Chance::per_mille(loss)),
        duplication: Chance::per_mille(duplication),
        reordering: Reordering::Late {
            chance: Chance::per_mille(reordering),
            most_us: lateness_us,
        },
        ..Path::ideal(delay_us)
    }
}

/// A world of this seed.
fn world(seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    // Another sequence, so that older seeds keep their meaning.
    let mut later = fastrand::Rng::with_seed(!seed);
    let mut path = |random: &mut fastrand::Rng| path(random, &mut later);
    let task = |random: &mut fastrand::Rng| Task {
        bytes: [0, 1, 1000, 30_000, 300_000][random.usize(0..5)],
        buffer: [2000, 16_000, 65_535, 400_000][random.usize(0..4)],
        laziness: [0, 0, 50, 95][random.usize(0..4)],
        is_chatty: random.bool(),
    };
    let mut pacing = fastrand::Rng::with_seed(seed ^ 1);
    let mut config = |random: &mut fastrand::Rng| Config {
        mss: [536, 1460, 9000][random.usize(0..3)],
        congestion: [Algorithm::Cubic, Algorithm::NewReno][random.usize(0..2)],
        has_window_scale: random.u32(0..4) > 0,
        has_timestamps: random.u32(0..4) > 0,
        has_sack: random.u32(0..4) > 0,
        has_ecn: random.bool(),
        syn_retries: 20,
        syn_ack_retries: 20,
        data_retries: 40,
        paced_from: [Micros::ZERO, Micros::MAX][usize::from(pacing.bool())],
        ..Config::default()
    };
    let settings = Settings {
        is_nodelay: random.bool(),
        ..Settings::default()
    };
    let paths = [path(&mut random), path(&mut random)];
    let mut errors = fastrand::Rng::with_seed(seed ^ 2);
    let has_errors = [errors.bool(), errors.bool()];
    let tasks = [task(&mut random), task(&mut random)];
    let configs = [config(&mut random), config(&mut random)];
    World::new(random, paths, has_errors, tasks, configs, settings)
}

/// Seeds of `make test`, and those of `make soak`.
fn usual() -> u64 {
    let is_soak = std::env::var("SAIGA_SOAK").is_ok_and(|value| value == "1");
    if is_soak { 100_000 } else { 2_000 }
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
        if outcome.is_err() {
            panic!("repeat with SEED={seed}");
        }
    }
}
