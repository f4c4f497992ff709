//! When a terminal begins its next transaction.
//!
//! Closed loop: when it has the last answer, after BenchmarkSQL's pause (`limitTxnsPerMin`), or
//! after the keying and think times of TPC-C §5.2.5. Open loop: at instants of a schedule, whatever
//! became of the transactions before; the latency counts from there, so that a stall is seen in
//! full by all who would have come meanwhile (no coordinated omission).

use fastrand::Rng;

use super::clock::{SECOND_US, micros};
use crate::spec::deck::Kind;

/// How transactions of all terminals follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At once.
    Eager,
    /// `limitTxnsPerMin`, of all terminals together.
    Limited {
        /// Transactions per minute.
        per_min: u32,
    },
    /// With keying and think times, times these factors.
    Human {
        /// Of the keying times.
        keying: f64,
        /// Of the think times.
        thinking: f64,
    },
    /// By a schedule.
    Open {
        /// Transactions per minute of all terminals together.
        per_min: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How the intended starts of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Fixed,
    /// At distances that are exponentially distributed, as those of many independent users.
    Poisson,
}

impl Arrivals {
    /// As in options and records.
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
pub(super) enum Stride {
    Eager,
    Limited { period_us: u64 },
    Human { keying: f64, thinking: f64 },
    Open(Schedule),
}

impl Pace {
    /// For one of `of` terminals, numbered from 0.
    pub(super) fn of_terminal(self, terminal: u32, of: u32, seed: u64) -> Stride {
        match self {
            Self::Eager => Stride::Eager,
            Self::Limited { per_min } => Stride::Limited {
                period_us: limit_period_us(per_min, of),
            },
            Self::Human { keying, thinking } => Stride::Human { keying, thinking },
            Self::Open { per_min, arrivals } => {
                Stride::Open(Schedule::new(per_min, arrivals, terminal, of, seed))
            }
        }
    }
}

/// As BenchmarkSQL divides: whole transactions for each terminal, whole milliseconds for each
/// transaction. It knows no limit below one transaction per minute and terminal; here such a limit holds.
fn limit_period_us(per_min: u32, terminals: u32) -> u64 {
    let (per_min, terminals) = (u64::from(per_min.max(1)), u64::from(terminals.max(1)));
    let period_ms = match per_min / terminals {
        0 => 60_000 * terminals / per_min,
        each => 60_000 / each,
    };
    period_ms * 1000
}

impl Stride {
    /// What passes before the terminal can send a transaction for which it is ready at `ready_us`:
    /// the instant from which its latency counts.
    pub(super) fn due_us(&mut self, kind: Kind, ready_us: u64) -> u64 {
        match self {
            Self::Eager | Self::Limited { .. } => ready_us,
            Self::Human { keying, .. } => ready_us + micros(kind.keying_time().mul_f64(*keying)),
            Self::Open(schedule) => schedule.next_us(),
        }
    }

    /// When the terminal is ready for the next one.
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

/// Intended starts of one terminal, in their order.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    rng: Rng,
    arrivals: Arrivals,
    mean_us: f64,
    next_us: f64,
}

impl Schedule {
    /// Terminals with a fixed distance take turns.
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

    /// Takes the next one.
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

    /// Takes all that are due before `now_us` and counts them.
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
            // From (0, 1]: the logarithm of zero is none.
            Arrivals::Poisson => -(1.0 - self.rng.f64()).ln() * self.mean_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_divided_as_benchmarksql_divides_them() {
        // 300 a minute by one terminal: one each 200 ms; 1,000 by 3: 333 each, 180 ms.
        assert_eq!(limit_period_us(300, 1), 200_000);
        assert_eq!(limit_period_us(1000, 3), 180_000);
        assert_eq!(limit_period_us(1_000_000_000, 300), 0);
        // One a minute by ten terminals: each waits ten minutes.
        assert_eq!(limit_period_us(1, 10), 600_000_000);
    }

    #[test]
    fn a_limited_terminal_waits_for_what_is_left_of_its_period() {
        let stride = Pace::Limited { per_min: 300 }.of_terminal(0, 1, 0);
        let mut rng = Rng::with_seed(1);
        let mut ready = |began, ended| stride.ready_us(Kind::Payment, began, ended, &mut rng);
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
            let Stride::Open(mut schedule) = pace.of_terminal(terminal, 4, 5) else {
                panic!()
            };
            [schedule.next_us(), schedule.next_us(), schedule.next_us()]
        };
        // A hundred a second by four: one each 40 ms, 10 ms apart from the next terminal's.
        assert_eq!(starts(0), [0, 40_000, 80_000]);
        assert_eq!(starts(3), [30_000, 70_000, 110_000]);
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_their_spread() {
        let pace = Pace::Open {
            per_min: 60_000.0,
            arrivals: Arrivals::Poisson,
        };
        let Stride::Open(mut schedule) = pace.of_terminal(0, 1, 17) else {
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
        let mut stride = Pace::Human {
            keying: 0.5,
            thinking: 0.0,
        }
        .of_terminal(0, 1, 0);
        assert_eq!(stride.due_us(Kind::NewOrder, 1_000_000), 10_000_000);
        let ready = stride.ready_us(
            Kind::NewOrder,
            10_000_000,
            10_500_000,
            &mut Rng::with_seed(1),
        );
        assert_eq!(ready, 10_500_000);
    }
}
