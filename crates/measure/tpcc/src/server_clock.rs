//! Measures the offset between the server's clock and this host's.
//!
//! Each load host starts at an agreed time by its own clock. All hosts are connected to the server,
//! so its clock is a common reference. The server reads its clock after a query is sent and before
//! its answer arrives. This gives the offset with an error of at most half of the round trip. The
//! shortest round trip gives the best bound (as in NTP, RFC 5905 §8). Deliberately absent: clock
//! drift during a run.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;

/// Number of queries per measurement.
const QUERIES: u32 = 16;
/// Error of the readings: both clocks count whole microseconds, and PostgreSQL before 14 computes
/// in floating point.
const RESOLUTION_US: u64 = 2;

/// The offset of the server's clock from this host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Microseconds by which the server's clock is ahead; negative where it is behind.
    pub server_ahead_us: i64,
    /// Largest error of `server_ahead_us`.
    pub within_us: u64,
}

/// Bounds on the difference between the start times of workers. Each of them started at the same
/// time by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSpread {
    /// Lower bound, for the two workers that are farthest apart.
    pub least_us: u64,
    /// Upper bound, for the same two workers.
    pub most_us: u64,
}

/// Measures the offset. Returns `None` for SQLite, which has no server, and if no query gave a
/// result.
pub fn measure(session: &mut dyn Session) -> Result<Option<Offset>, SqlError> {
    let query = match session.server().engine {
        Engine::MySql => "select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))",
        Engine::Postgres | Engine::OpenGauss => {
            "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)"
        }
        Engine::Sqlite => return Ok(None),
    };
    let mut rows = Rows::new();
    best_offset(unix_us, || {
        session.run(query, &mut rows)?;
        rows.int(0, 0)
    })
}

/// This host's clock, in microseconds since 1970.
fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}

/// The offset from the shortest round trip. `None` if this host's clock was set back during every
/// query.
fn best_offset<E>(
    own_us: impl Fn() -> i64,
    mut server_us: impl FnMut() -> Result<i64, E>,
) -> Result<Option<Offset>, E> {
    let mut best: Option<Offset> = None;
    for _ in 0..QUERIES {
        let sent_us = own_us();
        let answer_us = server_us()?;
        let Ok(round_trip_us) = u64::try_from(own_us().saturating_sub(sent_us)) else {
            continue;
        };
        let within_us = round_trip_us.div_ceil(2).saturating_add(RESOLUTION_US);
        if best.is_none_or(|best| within_us < best.within_us) {
            let middle_us = sent_us.saturating_add_unsigned(round_trip_us / 2);
            best = Some(Offset {
                server_ahead_us: answer_us.saturating_sub(middle_us),
                within_us,
            });
        }
    }
    Ok(best)
}

/// The start spread of workers with these offsets; `None` for fewer than two.
#[must_use]
pub fn start_spread(offsets: &[Offset]) -> Option<StartSpread> {
    let pairs = offsets.iter().enumerate().flat_map(|(at, one)| {
        let others = offsets.iter().skip(at + 1);
        others.map(move |other| {
            let shift_us = one.server_ahead_us.abs_diff(other.server_ahead_us);
            (shift_us, one.within_us.saturating_add(other.within_us))
        })
    });
    let bounds = pairs.map(|(shift_us, within_us)| StartSpread {
        least_us: shift_us.saturating_sub(within_us),
        most_us: shift_us.saturating_add(within_us),
    });
    bounds.reduce(|a, b| StartSpread {
        least_us: a.least_us.max(b.least_us),
        most_us: a.most_us.max(b.most_us),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    /// Measures a server with a clock that is `ahead_us` ahead of this host's. `ways` are the
    /// microseconds that a query and its answer take, one pair for each round trip in turn.
    fn measured(ahead_us: i64, ways: &[(i64, i64)]) -> Option<Offset> {
        let now_us = Cell::new(1_763_690_459_000_000);
        let mut ways = ways.iter().cycle();
        let server = || {
            let (there, back) = ways.next().unwrap();
            let read_us = now_us.get() + there;
            now_us.set(read_us + back);
            Ok::<i64, Infallible>(read_us + ahead_us)
        };
        best_offset(|| now_us.get(), server).unwrap()
    }

    #[test]
    fn the_shortest_round_trip_bounds_the_offset() {
        let ways = [(900, 100), (40, 60), (20, 5000)];
        let offset = |server_ahead_us, within_us| {
            Some(Offset {
                server_ahead_us,
                within_us,
            })
        };
        assert_eq!(measured(2_500_000, &ways), offset(2_499_990, 52));
        assert_eq!(measured(-2_500_000, &ways), offset(-2_500_010, 52));
        // The true offset is within the bound for every ratio of the two ways.
        for way in [(100, 0), (0, 100), (50, 50), (0, 1)] {
            let found = measured(7000, &[way]).unwrap();
            let off_us = found.server_ahead_us.abs_diff(7000);
            assert!(off_us <= found.within_us, "{way:?}: {found:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_gives_no_result() {
        assert_eq!(measured(0, &[(5, -10)]), None);
        let between = measured(3000, &[(5, -10), (10, 10)]).unwrap();
        assert_eq!((between.server_ahead_us, between.within_us), (3000, 12));
    }

    #[test]
    fn an_error_of_the_server_is_returned() {
        assert_eq!(best_offset(|| 0, || Err("gone")), Err("gone"));
    }

    #[test]
    fn the_start_spread_follows_from_offsets_and_their_errors() {
        let of = |all: &[(i64, u64)]| {
            let offsets = all.iter().map(|(server_ahead_us, within_us)| Offset {
                server_ahead_us: *server_ahead_us,
                within_us: *within_us,
            });
            let spread = start_spread(&offsets.collect::<Vec<_>>());
            spread.map(|spread| (spread.least_us, spread.most_us))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(5, 1)]), None);
        assert_eq!(of(&[(-3000, 10), (2000, 30)]), Some((4960, 5040)));
        assert_eq!(of(&[(100, 50), (90, 50)]), Some((0, 110)));
        // The second worker is certainly apart from the first; the third may be farther away.
        let three = [(0, 10), (1000, 10), (500, 4000)];
        assert_eq!(of(&three), Some((980, 4510)));
        assert_eq!(
            of(&[(i64::MIN, 0), (i64::MAX, u64::MAX)]),
            Some((0, u64::MAX))
        );
    }
}
