//! NURand, the non-uniform random numbers of TPC-C §2.1.6, and their constants.

use fastrand::Rng;

/// The distribution of one field: `NURand(A, x, y)` with its constant C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NuRand {
    a: u32,
    x: u32,
    y: u32,
    c: u32,
}

impl NuRand {
    /// The number of a C_LAST, from 0 to 999.
    #[must_use]
    pub fn last_name(c: u32) -> Self {
        Self {
            a: 255,
            x: 0,
            y: 999,
            c,
        }
    }

    /// C_ID, from 1 to 3000.
    #[must_use]
    pub fn customer(c: u32) -> Self {
        Self {
            a: 1023,
            x: 1,
            y: 3000,
            c,
        }
    }

    /// OL_I_ID, from 1 to 100000.
    #[must_use]
    pub fn item(c: u32) -> Self {
        Self {
            a: 8191,
            x: 1,
            y: 100_000,
            c,
        }
    }

    /// Draws a number from x to y.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let Self { a, x, y, c } = *self;
        let mixed = rng.u32(0..=a) | rng.u32(x..=y);
        (mixed + c) % (y - x + 1) + x
    }
}

/// The constants C of the three fields. All terminals of a run use the same constants (§2.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    /// For C_LAST, from 0 to 255.
    pub last_name: u32,
    /// For C_ID, from 0 to 1023.
    pub customer: u32,
    /// For OL_I_ID, from 0 to 8191.
    pub item: u32,
}

impl Constants {
    /// Draws the constants of a load (C-Load); the database stores them for later runs.
    pub fn of_load(rng: &mut Rng) -> Self {
        Self {
            last_name: rng.u32(0..=255),
            customer: rng.u32(0..=1023),
            item: rng.u32(0..=8191),
        }
    }

    /// Draws the constants of a run (C-Run) on a database that was loaded with `self`. The two
    /// constants for C_LAST differ by 65 to 119, but not by 96 or 112 (§2.1.6.1). Such a C-Run
    /// exists for each C-Load.
    #[must_use]
    pub fn of_run(self, rng: &mut Rng) -> Self {
        loop {
            let run = Self::of_load(rng);
            if may_run(self.last_name, run.last_name) {
                return run;
            }
        }
    }
}

/// Whether a run may use C `run` for C_LAST after a load with C `load` (§2.1.6.1).
#[must_use]
pub fn may_run(load: u32, run: u32) -> bool {
    let delta = run.abs_diff(load);
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Rng {
        Rng::with_seed(7)
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut rng = rng();
        for (field, low, high) in [
            (NuRand::last_name(123), 0, 999),
            (NuRand::customer(259), 1, 3000),
            (NuRand::item(7911), 1, 100_000),
        ] {
            let drawn: Vec<u32> = (0..2_000_000).map(|_| field.draw(&mut rng)).collect();
            assert!(drawn.iter().all(|n| (low..=high).contains(n)));
            let span = high - low;
            assert!(drawn.iter().any(|n| n - low < span / 100));
            assert!(drawn.iter().any(|n| high - n < span / 100));
        }
    }

    /// With A = 1 and the range 0 to 3, one random bit is ORed with a number of two bits. The odd
    /// numbers 1 and 3 are three times as likely as 0 and 2.
    #[test]
    fn the_or_makes_some_numbers_more_likely() {
        let mut rng = rng();
        let tiny = NuRand {
            a: 1,
            x: 0,
            y: 3,
            c: 0,
        };
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            counts[tiny.draw(&mut rng) as usize] += 1;
        }
        for (count, wanted) in counts.into_iter().zip([5_000u32, 15_000, 5_000, 15_000]) {
            assert!(count.abs_diff(wanted) < 600, "{counts:?}");
        }
    }

    #[test]
    fn a_constant_shifts_the_numbers_around() {
        let (mut first, mut second) = (rng(), rng());
        let plain = NuRand {
            a: 255,
            x: 0,
            y: 999,
            c: 0,
        };
        let shifted = NuRand::last_name(200);
        for _ in 0..1000 {
            let n = plain.draw(&mut first);
            assert_eq!(shifted.draw(&mut second), (n + 200) % 1000);
        }
    }

    #[test]
    fn the_constants_of_a_run_differ_from_those_of_the_load_by_the_rule() {
        let mut rng = rng();
        for last_name in 0..=255 {
            let load = Constants {
                last_name,
                customer: 1,
                item: 2,
            };
            for _ in 0..50 {
                let run = load.of_run(&mut rng);
                assert!(may_run(last_name, run.last_name));
                assert!(run.last_name <= 255 && run.customer <= 1023 && run.item <= 8191);
            }
        }
        for (delta, fine) in [
            (64, false),
            (65, true),
            (96, false),
            (112, false),
            (119, true),
            (120, false),
        ] {
            assert_eq!(
                (may_run(120, 120 - delta), may_run(100, 100 + delta)),
                (fine, fine),
                "{delta}"
            );
        }
    }
}
