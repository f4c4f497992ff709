//! The start times of transactions.
//!
//! Closed loop: a transaction starts after the answer to the previous transaction and a wait. The
//! wait is BenchmarkSQL's pause (`limitTxnsPerMin`), or the keying and think times of TPC-C §5.2.5.
//!
//! Open loop: a schedule determines the intended start of each transaction, whether or not earlier
//! transactions have ended. The latency counts from the intended start. A stall therefore shows in
//! the latency of every transaction that it delays (no coordinated omission).

use fastrand::Rng;

use super::clock::{SECOND_US, micros};
use crate::spec::deck::Kind;

/// The pace of all terminals together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Closed loop without pauses.
    Eager,
    /// Closed loop with at most `per_min` transactions per minute of all terminals together
    /// (`limitTxnsPerMin`).
    Limited { per_min: u32 },
    /// Closed loop with keying and think times, multiplied by these factors.
    Human { keying: f64, thinking: f64 },
    /// Open loop with `per_min` transactions per minute of all terminals together.
    Open { per_min: f64, arrivals: Arrivals },
}

/// The distribution of the intended starts of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All intervals between starts are equal.
    Fixed,
    /// Exponentially distributed intervals, as between the requests of many independent users.
    Poisson,
}

impl Arrivals {
    /// The name in options and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Poisson => "poisson",
        }
    }
}

/// The pace of one terminal.
#[derive(Debug, Clone)]
pub(super) enum TerminalPace {
    Eager,
    Limited { period_us: u64 },
    Human { keying: f64, thinking: f64 },
    Open(Schedule),
}

impl Pace {
    /// The pace of terminal number `terminal`, from 0, of `of` terminals.
    pub(super) fn of_terminal(self, terminal: u32, of: u32, seed: u64) -> TerminalPace {
        match self {
            Self::Eager => TerminalPace::Eager,
            Self::Limited { per_min } => TerminalPace::Limited {
                period_us: limit_period_us(per_min, of),
            },
            Self::Human { keying, thinking } => TerminalPace::Human { keying, thinking },
            Self::Open { per_min, arrivals } => {
                TerminalPace::Open(Schedule::new(per_min, arrivals, terminal, of, seed))
            }
        }
    }
}

/// Time from one transaction of a terminal to the next, in whole milliseconds as in BenchmarkSQL,
/// returned in microseconds. Below one transaction per minute and terminal, BenchmarkSQL has no
/// limit; here the limit holds.
fn limit_period_us(per_min: u32, terminals: u32) -> u64 {
    let (per_min, terminals) = (u64::from(per_min.max(1)), u64::from(terminals.max(1)));
    let period_ms = match per_min / terminals {
        0 => 60_000 * terminals / per_min,
        each => 60_000 / each,
    };
    period_ms * 1000
}

impl TerminalPace {
    /// Start of the latency measurement of the next transaction: after the keying time, or at the
    /// intended start. The terminal is ready for the transaction at `ready_us`.
    pub(super) fn due_us(&mut self, kind: Kind, ready_us: u64) -> u64 {
        match self {
            Self::Eager | Self::Limited { .. } => ready_us,
            Self::Human { keying, .. } => ready_us + micros(kind.keying_time().mul_f64(*keying)),
            Self::Open(schedule) => schedule.next_us(),
        }
    }

    /// The time at which the terminal is ready for its next transaction.
    pub(super) fn ready_us(&self, kind: Kind, began_us: u64, ended_us: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Eager | Self::Open(_) => ended_us,
            Self::Limited { period_us } => ended_us.max(began_us + period_us),
            Self::Human { thinking, .. } => {
                ended_us + micros(kind.think_time(rng).mul_f64(*thinking))
            }
        }
    }
}

/// The intended starts of one terminal, in ascending order.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    rng: Rng,
    arrivals: Arrivals,
    mean_us: f64,
    next_us: f64,
}

impl Schedule {
    /// With fixed intervals, the starts of all terminals interleave evenly.
    fn new(per_min: f64, arrivals: Arrivals, terminal: u32, of: u32, seed: u64) -> Self {
        let mean_us = 60.0 * SECOND_US as f64 * f64::from(of.max(1)) / per_min;
        let mut schedule = Self {
            rng: Rng::with_seed(seed),
            arrivals,
            mean_us,
            next_us: mean_us * f64::from(terminal) / f64::from(of.max(1)),
        };
        if arrivals == Arrivals::Poisson {
            schedule.next_us = schedule.distance_us();
        }
        schedule
    }

    /// Removes and returns the next start.
    pub(super) fn next_us(&mut self) -> u64 {
        let next = self.peek_us();
        self.next_us += self.distance_us();
        next
    }

    fn peek_us(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and casts to integers saturate"
        )]
        {
            self.next_us as u64
        }
    }

    /// Removes all starts before `now_us`, and returns their number.
    pub(super) fn pass(&mut self, now_us: u64) -> u64 {
        let mut passed = 0;
        while self.peek_us() < now_us {
            self.next_us();
            passed += 1;
        }
        passed
    }

    fn distance_us(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Fixed => self.mean_us,
            // The argument of `ln` is in (0, 1], because the logarithm of zero is not finite.
            Arrivals::Poisson => -(1.0 - self.rng.f64()).ln() * self.mean_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_divided_as_benchmarksql_divides_them() {
        // 300 per minute on one terminal are one per 200 ms. 1,000 on 3 terminals are 333 per
        // terminal, which is one per 180 ms.
        assert_eq!(limit_period_us(300, 1), 200_000);
        assert_eq!(limit_period_us(1000, 3), 180_000);
        assert_eq!(limit_period_us(1_000_000_000, 300), 0);
        // One per minute on ten terminals: each waits ten minutes.
        assert_eq!(limit_period_us(1, 10), 600_000_000);
    }

    #[test]
    fn a_limited_terminal_waits_for_what_is_left_of_its_period() {
        let pace = Pace::Limited { per_min: 300 }.of_terminal(0, 1, 0);
        let mut rng = Rng::with_seed(1);
        let mut ready = |began, ended| pace.ready_us(Kind::Payment, began, ended, &mut rng);
        assert_eq!(ready(1000, 51_000), 201_000);
        assert_eq!(ready(1000, 301_000), 301_000);
    }

    #[test]
    fn fixed_schedules_of_terminals_interleave() {
        let pace = Pace::Open {
            per_min: 6000.0,
            arrivals: Arrivals::Fixed,
        };
        let starts = |terminal| {
            let TerminalPace::Open(mut schedule) = pace.of_terminal(terminal, 4, 5) else {
                panic!()
            };
            [schedule.next_us(), schedule.next_us(), schedule.next_us()]
        };
        // 100 per second on four terminals are one per 40 ms on each, 10 ms after the previous
        // terminal.
        assert_eq!(starts(0), [0, 40_000, 80_000]);
        assert_eq!(starts(3), [30_000, 70_000, 110_000]);
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_their_spread() {
        let pace = Pace::Open {
            per_min: 60_000.0,
            arrivals: Arrivals::Poisson,
        };
        let TerminalPace::Open(mut schedule) = pace.of_terminal(0, 1, 17) else {
            panic!()
        };
        let mut counts = Vec::new();
        for second in 1..=400 {
            counts.push(schedule.pass(second * SECOND_US) as f64);
        }
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((990.0..1010.0).contains(&mean), "{mean}");
        assert!((800.0..1250.0).contains(&variance), "{variance}");
    }

    #[test]
    fn keying_and_thinking_frame_a_transaction() {
        let mut pace = Pace::Human {
            keying: 0.5,
            thinking: 0.0,
        }
        .of_terminal(0, 1, 0);
        assert_eq!(pace.due_us(Kind::NewOrder, 1_000_000), 10_000_000);
        let ready = pace.ready_us(
            Kind::NewOrder,
            10_000_000,
            10_500_000,
            &mut Rng::with_seed(1),
        );
        assert_eq!(ready, 10_500_000);
    }
}
