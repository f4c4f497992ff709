//! Whether the inputs, the mix and the response times of a run are what the specification allows.
//!
//! A share outside its bounds fails where it is more than four standard deviations from what the
//! inputs are drawn with. What is nearer may be chance, as long as four standard deviations of the
//! sample are wider than the bounds: more transactions are wanted then.

use serde::{Deserialize, Serialize};

use super::clocks;
use super::partial::Partial;
use super::record::Record;
use crate::latency::{Phase, TrackName};
use crate::spec::deck::Kind;
use crate::spec::timing::DELIVERY_LIMIT;

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// Where it is demanded.
    pub clause: String,
    /// What was found, with its unit.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
    /// Whether it is.
    pub verdict: Verdict,
}

/// Whether something is as allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Holds,
    /// It is not.
    Fails,
    /// It is not, and the sample is too small to say so.
    TooFew {
        /// How many would say so.
        needed: u64,
    },
    /// There is nothing to check.
    Nothing,
    /// What was found is not exact enough to tell.
    CannotTell,
}

/// Standard deviations within which chance explains everything.
const SIGMAS: f64 = 4.0;

/// All checks, on the measured phase.
#[must_use]
pub fn checks(record: &Record) -> Vec<Check> {
    let mut list: Vec<Check> = record.partial.iter().map(Partial::check).collect();
    list.extend(clocks::check(record));
    list.extend(inputs(record));
    list.extend(mix(record));
    list.push(skipped(record));
    list.extend(responses(record));
    list
}

/// A share that has bounds, in per cent.
struct Share<'a> {
    name: &'a str,
    clause: &'a str,
    count: u64,
    of: u64,
    /// What the inputs are drawn with.
    expected: f64,
    bounds: (f64, f64),
}

impl Share<'_> {
    fn check(&self) -> Check {
        let Self {
            name,
            clause,
            count,
            of,
            expected,
            bounds: (low, high),
        } = *self;
        let percent = 100.0 * count as f64 / (of.max(1)) as f64;
        let half = (high - low) / 200.0;
        let share = expected / 100.0;
        let needed = SIGMAS * SIGMAS * share * (1.0 - share) / (half * half);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of transactions, far below 2^53"
        )]
        let needed = needed.ceil() as u64;
        let verdict = match of {
            0 => Verdict::Nothing,
            _ if (low..=high).contains(&percent) => Verdict::Holds,
            of if of < needed && distance(percent / 100.0, share, of) <= SIGMAS => {
                Verdict::TooFew { needed }
            }
            _ => Verdict::Fails,
        };
        Check {
            name: name.to_owned(),
            clause: clause.to_owned(),
            found: format!("{percent:.2} % of {of}"),
            allowed: format!("{low}–{high} %"),
            verdict,
        }
    }
}

/// How many standard deviations a share of `of` is away from the one with which it was drawn.
///
/// This is the root of the likelihood ratio. The usual quotient would find two of ten, where one in
/// a hundred is drawn, to be six deviations off, although every 233rd sample has so many.
fn distance(seen: f64, drawn: f64, of: u64) -> f64 {
    let part = |seen: f64, drawn: f64| {
        if seen > 0.0 {
            seen * (seen / drawn).ln()
        } else {
            0.0
        }
    };
    let divergence = part(seen, drawn) + part(1.0 - seen, 1.0 - drawn);
    (2.0 * of as f64 * divergence.max(0.0)).sqrt()
}

/// §5.5.1.5.
fn inputs(record: &Record) -> Vec<Check> {
    let tally = &record.tally;
    let lines = tally.lines();
    // With one warehouse there is no other to be supplied from.
    let of_several = |of| {
        if record.conditions.warehouses > 1 {
            of
        } else {
            0
        }
    };
    let shares = [
        (
            "New-Orders rolled back",
            tally.rollbacks,
            tally.orders,
            1.0,
            (0.9, 1.1),
        ),
        (
            "remote order lines",
            tally.remote_lines,
            of_several(lines),
            1.0,
            (0.95, 1.05),
        ),
        (
            "remote Payments",
            tally.remote_payments,
            of_several(tally.payments),
            15.0,
            (14.0, 16.0),
        ),
        (
            "Payments by last name",
            tally.payments_by_name,
            tally.payments,
            60.0,
            (57.0, 63.0),
        ),
        (
            "Order-Status by last name",
            tally.statuses_by_name,
            tally.statuses,
            60.0,
            (57.0, 63.0),
        ),
    ];
    let check = |(name, count, of, expected, bounds)| {
        let clause = "§5.5.1.5";
        Share {
            name,
            clause,
            count,
            of,
            expected,
            bounds,
        }
        .check()
    };
    let mut list: Vec<Check> = shares.into_iter().map(check).collect();
    list.push(mean_lines(lines, tally.orders));
    list.push(even_lines(&tally.by_lines, tally.orders));
    list
}

fn mean_lines(lines: u64, orders: u64) -> Check {
    let mean = lines as f64 / orders.max(1) as f64;
    // The variance of 5 to 15 is 10: 640 orders are enough for a half.
    const NEEDED: u64 = 640;
    let deviation = (10.0 / orders.max(1) as f64).sqrt();
    Check {
        name: "lines of an order".to_owned(),
        clause: "§5.5.1.5".to_owned(),
        found: format!("{mean:.2} in {orders}"),
        allowed: "9.5–10.5".to_owned(),
        verdict: match orders {
            0 => Verdict::Nothing,
            _ if (9.5..=10.5).contains(&mean) => Verdict::Holds,
            orders if orders < NEEDED && (mean - 10.0).abs() <= SIGMAS * deviation => {
                Verdict::TooFew { needed: NEEDED }
            }
            _ => Verdict::Fails,
        },
    }
}

/// Pearson's chi-square over the eleven numbers of lines.
fn even_lines(by_lines: &[u64; 16], orders: u64) -> Check {
    // What four standard deviations leave (6.3 in 100,000) of the samples of an even distribution are
    // above it, with ten degrees of freedom.
    const LIMIT: f64 = 36.71;
    const NEEDED: u64 = 11 * 10;
    // Small samples spread wider: by the multinomial distribution, at most 6.4 in 100,000 of up to 80
    // orders are above this.
    let limit = LIMIT + NEEDED as f64 / orders.max(1) as f64;
    let expected = orders as f64 / 11.0;
    let chi2: f64 = by_lines[5..]
        .iter()
        .map(|count| (*count as f64 - expected).powi(2) / expected.max(f64::MIN_POSITIVE))
        .sum();
    let outside: u64 = by_lines[..5].iter().sum();
    Check {
        name: "numbers of lines evenly spread".to_owned(),
        clause: "§5.5.1.5".to_owned(),
        found: format!("chi² {chi2:.1} in {orders}"),
        allowed: format!("up to {limit:.1}"),
        verdict: match orders {
            0 => Verdict::Nothing,
            _ if outside > 0 || chi2 > limit => Verdict::Fails,
            orders if orders < NEEDED => Verdict::TooFew { needed: NEEDED },
            _ => Verdict::Holds,
        },
    }
}

/// §5.2.3.
fn mix(record: &Record) -> Vec<Check> {
    let taken = |kind: Kind| record.tracks.taken(Phase::Measured, kind);
    let all: u64 = Kind::ALL.into_iter().map(taken).sum();
    let check = |kind: Kind| {
        let least = kind.least_share()?;
        let percent = 100.0 * taken(kind) as f64 / all.max(1) as f64;
        Some(Check {
            name: format!("{} in the mix", kind.name()),
            clause: "§5.2.3".to_owned(),
            found: format!("{percent:.2} % of {all}"),
            allowed: format!("at least {least} %"),
            verdict: match all {
                0 => Verdict::Nothing,
                _ if percent >= least => Verdict::Holds,
                _ => short_of(record, kind, least, all, percent),
            },
        })
    };
    Kind::ALL.into_iter().filter_map(check).collect()
}

/// Every terminal begins and ends in the middle of a deck; what this can explain is not a failure, as
/// long as the deck itself has enough.
fn short_of(record: &Record, kind: Kind, least: f64, all: u64, percent: f64) -> Verdict {
    let conditions = &record.conditions;
    let wanted = conditions.mix[kind.index()];
    let share = wanted / 100.0;
    // The variance of the cards seen of a deck that ends anywhere is a sixth of a binomial's.
    let decks = 2.0 * f64::from(conditions.terminals);
    let deviation = (decks * f64::from(conditions.deck) * share * (1.0 - share) / 6.0).sqrt();
    let by_chance = 100.0 * SIGMAS * deviation / all as f64;
    let slack = wanted - least;
    if slack < 0.0 || percent < wanted - by_chance {
        return Verdict::Fails;
    }
    // Without slack no sample is ever large enough; ten times this one is a way to say so.
    let factor = if slack > 0.0 { by_chance / slack } else { 10.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of transactions, far below 2^53"
    )]
    Verdict::TooFew {
        needed: (all as f64 * factor).ceil() as u64,
    }
}

/// §5.5.1.6: one in a hundred, or a single one.
fn skipped(record: &Record) -> Check {
    let tracks = &record.tracks;
    let both = [TrackName::Of(Kind::Delivery), TrackName::Deferred];
    let of = |name| tracks.of(Phase::Measured, name);
    let done: u64 = both.into_iter().map(|name| of(name).done()).sum();
    let skipping: u64 = both.into_iter().map(|name| of(name).with_skips).sum();
    Check {
        name: "deliveries with an empty district".to_owned(),
        clause: "§5.5.1.6".to_owned(),
        found: format!("{skipping} of {done}"),
        allowed: "1 %, or one".to_owned(),
        verdict: match done {
            0 => Verdict::Nothing,
            _ if skipping <= (done / 100).max(1) => Verdict::Holds,
            _ => Verdict::Fails,
        },
    }
}

/// §5.2.5.3: nine of ten within the limit.
fn responses(record: &Record) -> Vec<Check> {
    let check = |name: TrackName| {
        let latency = &record.tracks.of(Phase::Measured, name).latency;
        let limit = limit(name);
        let p90 = latency.quantile_us(0.9)?;
        let p90_s = p90 as f64 / 1e6;
        Some(Check {
            name: format!("{} p90", name.name()),
            clause: "§5.2.5.3".to_owned(),
            found: format!("{:.2} ms of {}", p90 as f64 / 1e3, latency.count()),
            allowed: format!("below {} s", limit.as_secs()),
            verdict: if p90_s < limit.as_secs_f64() {
                Verdict::Holds
            } else {
                Verdict::Fails
            },
        })
    };
    TrackName::ALL.into_iter().filter_map(check).collect()
}

/// What nine of ten must stay below.
#[must_use]
pub fn limit(name: TrackName) -> std::time::Duration {
    match name {
        TrackName::Of(kind) => kind.response_limit(),
        TrackName::Deferred => DELIVERY_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollbacks(count: u64, of: u64) -> Verdict {
        let (name, clause) = ("", "");
        let (expected, bounds) = (1.0, (0.9, 1.1));
        Share {
            name,
            clause,
            count,
            of,
            expected,
            bounds,
        }
        .check()
        .verdict
    }

    #[test]
    fn a_share_is_judged_by_its_bounds_and_its_sample() {
        assert_eq!(rollbacks(2000, 200_000), Verdict::Holds);
        assert_eq!(rollbacks(1798, 200_000), Verdict::Fails);
        assert_eq!(rollbacks(2202, 200_000), Verdict::Fails);
        // 16 * 0.01 * 0.99 / 0.001²
        let too_few = Verdict::TooFew { needed: 158_400 };
        assert_eq!(rollbacks(800, 80_000), Verdict::Holds);
        assert_eq!(rollbacks(640, 80_000), Verdict::Fails, "5.9 deviations");
        assert_eq!(rollbacks(700, 80_000), too_few, "3.6 deviations");
        assert_eq!(rollbacks(900, 80_000), too_few, "3.5 deviations");
        assert_eq!(rollbacks(960, 80_000), Verdict::Fails, "5.5 deviations");
        assert_eq!(rollbacks(0, 0), Verdict::Nothing);
    }

    /// The odds of 2 or more of 10 are 1 : 233, those of 4 or more 1 : 500,000, and those of none
    /// in 2000 are 1 : 540 million.
    #[test]
    fn chance_explains_more_in_a_small_sample() {
        let too_few = Verdict::TooFew { needed: 158_400 };
        assert_eq!([0, 1, 2].map(|count| rollbacks(count, 10)), [too_few; 3]);
        assert_eq!(rollbacks(4, 10), Verdict::Fails);
        assert_eq!(rollbacks(10, 10), Verdict::Fails);
        assert_eq!(rollbacks(0, 500), too_few);
        assert_eq!(rollbacks(0, 2000), Verdict::Fails);
    }

    /// All orders have the same number of lines in 1 of 1331 samples of four orders and in 1 of 161,051
    /// of six. Eight of twenty orders have one number, or more uneven ones, in 1 of 800 samples.
    #[test]
    fn lines_of_few_orders_are_uneven_beyond_chance_alone() {
        let verdict = |counts: &[u64]| {
            let mut by_lines = [0; 16];
            by_lines[5..5 + counts.len()].copy_from_slice(counts);
            even_lines(&by_lines, counts.iter().sum()).verdict
        };
        let too_few = Verdict::TooFew { needed: 110 };
        assert_eq!(verdict(&[4]), too_few);
        assert_eq!(verdict(&[6]), Verdict::Fails);
        assert_eq!(verdict(&[8, 4, 2, 2, 1, 1, 1, 1]), too_few);
        assert_eq!(verdict(&[10, 10]), Verdict::Fails);
        assert_eq!(verdict(&[50, 50]), Verdict::Fails);
    }

    #[test]
    fn lines_must_be_even() {
        let mut by_lines = [0; 16];
        by_lines[5..].fill(1000);
        assert_eq!(even_lines(&by_lines, 11_000).verdict, Verdict::Holds);
        by_lines[15] = 1300;
        assert_eq!(even_lines(&by_lines, 11_300).verdict, Verdict::Fails);
        by_lines[5..].fill(9);
        let too_few = Verdict::TooFew { needed: 110 };
        assert_eq!(even_lines(&by_lines, 99).verdict, too_few);
        by_lines[4] = 1;
        assert_eq!(even_lines(&by_lines, 100).verdict, Verdict::Fails);
        assert_eq!(mean_lines(94_000, 10_000).verdict, Verdict::Fails);
        assert_eq!(mean_lines(95_000, 10_000).verdict, Verdict::Holds);
        // The mean of 160 has a standard deviation of a quarter.
        let too_few = Verdict::TooFew { needed: 640 };
        assert_eq!(mean_lines(1600 - 159, 160).verdict, too_few);
        assert_eq!(mean_lines(1600 + 161, 160).verdict, Verdict::Fails);
        assert_eq!(mean_lines(15 * 6, 6).verdict, too_few);
    }
}
