//! The server's clock against this host's.
//!
//! Load hosts begin at an instant that each of them reads from its own clock. All of them have a
//! connection to the server, whose clock is thereby common to them; no port is opened for it. The
//! server reads its clock between our sending and our receiving, so an answer bounds the offset to
//! half of its round trip, and the shortest round trip bounds it best (as in NTP, RFC 5905 §8).
//! Deliberately absent: how the clocks drift apart during a run.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::props::Engine;

/// How often the server is asked.
const QUESTIONS: u32 = 16;
/// Both clocks are read in whole microseconds, and PostgreSQL before 14 computes in floating point.
const RESOLUTION_US: u64 = 2;

/// How far the server's clock is from this host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Microseconds by which the server's clock is ahead; negative where it is behind.
    pub server_ahead_us: i64,
    /// Largest error of `server_ahead_us`, in microseconds.
    pub within_us: u64,
}

/// How far the starts of workers were apart that began at the same instant of their own clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    /// Lower bound of the distance of the two that were farthest apart, in microseconds.
    pub least_us: u64,
    /// Upper bound of the distance, in microseconds.
    pub most_us: u64,
}

/// Asks the server for its clock. `None` where there is no server, as with SQLite.
///
/// # Errors
/// [`SqlError`].
pub fn measure(session: &mut dyn Session) -> Result<Option<Offset>, SqlError> {
    let question = match session.server().engine {
        Engine::MySql => "select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))",
        Engine::Postgres | Engine::OpenGauss => {
            "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)"
        }
        Engine::Sqlite => return Ok(None),
    };
    let mut rows = Rows::new();
    nearest(unix_us, || {
        session.run(question, &mut rows)?;
        rows.int(0, 0)
    })
}

/// This host's clock.
fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}

/// The offset that the shortest round trip shows. `None` when this host's clock was set back during
/// every one.
fn nearest<E>(
    own_us: impl Fn() -> i64,
    mut server_us: impl FnMut() -> Result<i64, E>,
) -> Result<Option<Offset>, E> {
    let mut best: Option<Offset> = None;
    for _ in 0..QUESTIONS {
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

/// Of workers with these offsets; `None` of fewer than two.
#[must_use]
pub fn apart(offsets: &[Offset]) -> Option<Apart> {
    let pairs = offsets.iter().enumerate().flat_map(|(at, one)| {
        let others = offsets.iter().skip(at + 1);
        others.map(move |other| {
            let shift_us = one.server_ahead_us.abs_diff(other.server_ahead_us);
            (shift_us, one.within_us.saturating_add(other.within_us))
        })
    });
    let bounds = pairs.map(|(shift_us, within_us)| Apart {
        least_us: shift_us.saturating_sub(within_us),
        most_us: shift_us.saturating_add(within_us),
    });
    bounds.reduce(|a, b| Apart {
        least_us: a.least_us.max(b.least_us),
        most_us: a.most_us.max(b.most_us),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    /// A server whose clock is `ahead_us` ahead of ours, asked on ways there and back that take so
    /// many microseconds, one after the other.
    fn asked(ahead_us: i64, ways: &[(i64, i64)]) -> Option<Offset> {
        let now_us = Cell::new(1_763_690_459_000_000);
        let mut ways = ways.iter().cycle();
        let server = || {
            let (there, back) = ways.next().unwrap();
            let read_us = now_us.get() + there;
            now_us.set(read_us + back);
            Ok::<i64, Infallible>(read_us + ahead_us)
        };
        nearest(|| now_us.get(), server).unwrap()
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
        assert_eq!(asked(2_500_000, &ways), offset(2_499_990, 52));
        assert_eq!(asked(-2_500_000, &ways), offset(-2_500_010, 52));
        // However uneven the ways are, the offset is within its bound.
        for way in [(100, 0), (0, 100), (50, 50), (0, 1)] {
            let found = asked(7000, &[way]).unwrap();
            let off_us = found.server_ahead_us.abs_diff(7000);
            assert!(off_us <= found.within_us, "{way:?}: {found:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_shows_nothing() {
        assert_eq!(asked(0, &[(5, -10)]), None);
        let between = asked(3000, &[(5, -10), (10, 10)]).unwrap();
        assert_eq!((between.server_ahead_us, between.within_us), (3000, 12));
    }

    #[test]
    fn a_server_that_does_not_answer_shows_nothing() {
        assert_eq!(nearest(|| 0, || Err("gone")), Err("gone"));
    }

    #[test]
    fn workers_are_apart_by_their_offsets_and_at_most_by_their_bounds() {
        let of = |all: &[(i64, u64)]| {
            let offsets = all.iter().map(|(server_ahead_us, within_us)| Offset {
                server_ahead_us: *server_ahead_us,
                within_us: *within_us,
            });
            let apart = apart(&offsets.collect::<Vec<_>>());
            apart.map(|apart| (apart.least_us, apart.most_us))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(5, 1)]), None);
        assert_eq!(of(&[(-3000, 10), (2000, 30)]), Some((4960, 5040)));
        assert_eq!(of(&[(100, 50), (90, 50)]), Some((0, 110)));
        // The second is surely apart from the first, and the third may be farther.
        let three = [(0, 10), (1000, 10), (500, 4000)];
        assert_eq!(of(&three), Some((980, 4510)));
        assert_eq!(
            of(&[(i64::MIN, 0), (i64::MAX, u64::MAX)]),
            Some((0, u64::MAX))
        );
    }
}
