//! Duration of the long tests (`make test`, or `make soak` with `SAIGA_SOAK=1`), time limits on
//! slow machines (`SAIGA_PATIENCE`), and random seeds.

use std::{env, time::Duration};

/// Returns `soak` if `SAIGA_SOAK=1`, else `quick`.
pub fn by_scale<T>(quick: T, soak: T) -> T {
    if env::var("SAIGA_SOAK").is_ok_and(|value| value == "1") {
        soak
    } else {
        quick
    }
}

/// `limit`, times `SAIGA_PATIENCE` if that is set: an emulated machine needs longer for everything.
pub fn patient(limit: Duration) -> Duration {
    limit * patience()
}

/// How many times as slow as others this machine is.
pub fn patience() -> u32 {
    let times = env::var("SAIGA_PATIENCE").ok();
    times.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The seed of this run: `SAIGA_TRIALS_SEED`, or the test's own fixed seed. Prints it, so that a
/// failure can be repeated.
pub fn seed(own: u64) -> u64 {
    let seed = env::var("SAIGA_TRIALS_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(own);
    println!("seed {seed}");
    seed
}

/// A small deterministic generator (SplitMix64): a seed determines a whole run.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64().checked_rem(limit).unwrap_or(0)
    }
}
