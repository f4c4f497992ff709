//! Checks the inputs, the mix and the response times of a run against the specification.
//!
//! A share outside its bounds fails if its distance from the share with which inputs are drawn is
//! more than four standard deviations. A smaller distance may be chance. If four standard
//! deviations of the sample are also wider than the bounds, the verdict is that the sample is too
//! small.

use serde::{Deserialize, Serialize};

use super::clocks;
use super::partial::Partial;
use super::record::Record;
use crate::latency::{Phase, TrackName};
use crate::spec::deck::Kind;
use crate::spec::timing::DELIVERY_LIMIT;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// The clause of TPC-C that requires it.
    pub clause: String,
    /// The measured value, with its unit.
    pub found: String,
    /// The allowed values.
    pub allowed: String,
    /// The outcome of the check.
    pub verdict: Verdict,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The measured value is allowed.
    Holds,
    /// The measured value is not allowed.
    Fails,
    /// The sample is too small for a verdict.
    TooFew {
        /// Size of a sample that would be large enough.
        needed: u64,
    },
    /// There is nothing to check.
    Nothing,
    /// The measured value is not exact enough for a verdict.
    CannotTell,
}

/// Number of standard deviations up to which a difference may be chance.
const SIGMAS: f64 = 4.0;

/// Makes all checks of the measured phase.
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

/// A measured share with its bounds. `expected` and `bounds` are in per cent.
struct Share<'a> {
    name: &'a str,
    clause: &'a str,
    count: u64,
    of: u64,
    /// The share with which inputs are drawn.
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

/// Distance of the share `seen`, in a sample of `of`, from the share `drawn`, in standard
/// deviations.
///
/// This is the square root of the likelihood ratio statistic. The usual normal approximation is
/// wrong for small samples. For two of ten, where one in a hundred is drawn, it yields six
/// deviations, although one in 233 samples has that many.
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

/// The checks of inputs (§5.5.1.5).
fn inputs(record: &Record) -> Vec<Check> {
    let tally = &record.tally;
    let lines = tally.lines();
    // With one warehouse, no order line and no Payment can be remote.
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
    // A number of lines that is drawn evenly from 5 to 15 has a variance of 10. With 640 orders,
    // four standard deviations of the mean are half a line.
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

/// Checks with Pearson's chi-squared test whether all numbers of lines, 5 to 15, are equally
/// frequent.
fn even_lines(by_lines: &[u64; 16], orders: u64) -> Check {
    // Of the samples of an even distribution, 6.3 in 100,000 are above this limit (ten degrees of
    // freedom). As many lie outside four standard deviations of a normal distribution.
    const LIMIT: f64 = 36.71;
    const NEEDED: u64 = 11 * 10;
    // Small samples spread wider. By the multinomial distribution, at most 6.4 in 100,000 samples
    // of up to 80 orders are above this limit.
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

/// The checks of the mix (§5.2.3).
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

/// The verdict on a type whose share of the mix is too small.
///
/// Each terminal begins and ends the measured interval in the middle of a deck. A difference that
/// these incomplete decks can explain is not a failure, if a complete deck has enough cards of the
/// type.
fn short_of(record: &Record, kind: Kind, least: f64, all: u64, percent: f64) -> Verdict {
    let conditions = &record.conditions;
    let wanted = conditions.mix[kind.index()];
    let share = wanted / 100.0;
    // For a deck that is cut at a random position, the variance of the drawn cards is a sixth of
    // the variance of a binomial distribution.
    let decks = 2.0 * f64::from(conditions.terminals);
    let deviation = (decks * f64::from(conditions.deck) * share * (1.0 - share) / 6.0).sqrt();
    let by_chance = 100.0 * SIGMAS * deviation / all as f64;
    let slack = wanted - least;
    if slack < 0.0 || percent < wanted - by_chance {
        return Verdict::Fails;
    }
    // Without slack, no sample is large enough. The verdict then demands ten times this sample.
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

/// The check of deliveries that found a district without an undelivered order: at most one in a
/// hundred, or a single one (§5.5.1.6).
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

/// The checks of response times: nine of ten must be within the limit (§5.2.5.3).
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

/// The limit on the 90th percentile of the response times of a type.
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

    /// Of samples of 10, one in 233 has 2 or more rollbacks, and one in 500,000 has 4 or more. Of
    /// samples of 2000, one in 540 million has none.
    #[test]
    fn chance_explains_more_in_a_small_sample() {
        let too_few = Verdict::TooFew { needed: 158_400 };
        assert_eq!([0, 1, 2].map(|count| rollbacks(count, 10)), [too_few; 3]);
        assert_eq!(rollbacks(4, 10), Verdict::Fails);
        assert_eq!(rollbacks(10, 10), Verdict::Fails);
        assert_eq!(rollbacks(0, 500), too_few);
        assert_eq!(rollbacks(0, 2000), Verdict::Fails);
    }

    /// All orders have the same number of lines in one of 1331 samples of four orders, and in one
    /// of 161,051 samples of six. One of 800 samples of twenty orders is at least as uneven as the
    /// sample with eight equal orders.
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
        // The mean of 160 orders has a standard deviation of 0.25.
        let too_few = Verdict::TooFew { needed: 640 };
        assert_eq!(mean_lines(1600 - 159, 160).verdict, too_few);
        assert_eq!(mean_lines(1600 + 161, 160).verdict, Verdict::Fails);
        assert_eq!(mean_lines(15 * 6, 6).verdict, too_few);
    }
}
