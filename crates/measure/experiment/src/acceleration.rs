//! The question whether a process is accelerated, and which answers prove that a run was.
//!
//! A process counts its upgrades for its whole life, but bytes only as long as a connection is
//! open, and load generators close all of them at their end: so it is asked while the load runs.
//! Deliberately absent: how it is answered. Measuring knows no library.

use std::ops::Range;

use crate::workload::Measured;

/// Share of the bytes in a measured time that must have gone by channel.
const LEAST_SHARE: f64 = 0.9;
/// Why nothing is known of a measured interval that was shorter than the pause between two looks.
const TOO_SHORT: &str =
    "no look at its connections fell into the measured interval; measure for longer";
/// The same of a whole load.
const UNSEEN: &str = "the load ended before a look at its connections; let it run for longer";

/// Why nothing is known of a load that moved its bytes before the first of two looks.
const STILL: &str = "nothing moved between looks at its connections; let the load run for longer";

/// What a process says about its accelerated connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acceleration {
    /// Connections that were moved into channels since it started.
    pub upgraded_sockets: u64,
    /// Bytes through the channels of its open connections, both ways.
    pub channel_bytes: u64,
    /// Bytes that its open connections moved by TCP, both ways.
    pub tcp_bytes: u64,
}

/// Asks a running process of an arm under Saiga whether it is accelerated.
pub trait AccelerationProbe {
    /// What process `pid` says, which has at most `clients` connections.
    ///
    /// # Errors
    /// Why it cannot be asked, for people.
    fn observe(&self, pid: u32, clients: u32) -> Result<Acceleration, String>;
}

/// Bytes that the connections of a process moved in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// By channel, both ways.
    pub channel_bytes: u64,
    /// By TCP, both ways.
    pub tcp_bytes: u64,
}

impl Moved {
    /// Between two looks. What moved on connections that closed in between is not seen.
    #[must_use]
    pub fn between(before: &Acceleration, after: &Acceleration) -> Self {
        let since = |of: fn(&Acceleration) -> u64| of(after).saturating_sub(of(before));
        Self {
            channel_bytes: since(|seen| seen.channel_bytes),
            tcp_bytes: since(|seen| seen.tcp_bytes),
        }
    }

    /// In both times together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            channel_bytes: self.channel_bytes + other.channel_bytes,
            tcp_bytes: self.tcp_bytes + other.tcp_bytes,
        }
    }

    /// The share that went by channel; 0 where nothing moved.
    #[must_use]
    pub fn channel_share(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let [channel, tcp] = [self.channel_bytes, self.tcp_bytes].map(|bytes| bytes as f64);
        channel / (channel + tcp).max(1.0)
    }

    /// Why a run under Saiga that moved these bytes does not count, in words for people; `None`
    /// when nearly all of them went by channel, but for those that are `excused`. `upgraded` of the
    /// client's `connections` were moved into channels.
    fn shortfall(self, excused: u64, upgraded: u64, connections: u32) -> Option<String> {
        let Self {
            channel_bytes,
            tcp_bytes,
        } = self;
        let excused = excused.min(channel_bytes / 2).min(tcp_bytes);
        let counted = Self {
            tcp_bytes: tcp_bytes - excused,
            ..self
        };
        (counted.channel_share() < LEAST_SHARE).then(|| {
            let without = match excused {
                0 => String::new(),
                bytes => format!(" ({bytes} of these before connections can be upgraded)"),
            };
            format!(
                "{channel_bytes} bytes went by channel and {tcp_bytes} by TCP{without}, and \
                 {upgraded} of the client's {connections} connections were upgraded"
            )
        })
    }
}

/// What a process said of its connections while a load ran.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    /// What it said before the load, where it is looked at from its beginning.
    before: Option<Acceleration>,
    /// Seconds on any one clock, ascending, and what the process said then.
    seen: Vec<(f64, Acceleration)>,
    /// Why the last question without an answer had none.
    silence: Option<String>,
}

impl Looks {
    /// For a load that is looked at from its beginning, when the process said `before`: what was
    /// moved until the first look counts as well.
    #[must_use]
    pub fn since(before: Acceleration) -> Self {
        Self {
            before: Some(before),
            ..Self::default()
        }
    }

    /// Adds an answer that was given at `at_s`, no earlier than the one before.
    pub fn add(&mut self, at_s: f64, answer: Result<Acceleration, String>) {
        match answer {
            Ok(seen) => self.seen.push((at_s, seen)),
            Err(why) => self.silence = Some(why),
        }
    }

    /// Connections of the load that were upgraded, and what all connections moved between the
    /// looks within a time. Where only one look falls into it, what was moved since the look before
    /// counts.
    ///
    /// # Errors
    /// Why nothing is known of it, in words for people.
    pub fn moved_within(&self, time: &Range<f64>) -> Result<(u64, Moved), String> {
        let first = self.seen.partition_point(|(at, _)| *at < time.start);
        let end = self.seen.partition_point(|(at, _)| *at <= time.end);
        let looks = self.seen.get(first..end).unwrap_or_default();
        let Some((_, last)) = looks.last() else {
            return Err(match &self.silence {
                _ if !self.seen.is_empty() => TOO_SHORT.to_owned(),
                Some(why) => why.clone(),
                None => UNSEEN.to_owned(),
            });
        };
        let alone = looks.len() == 1;
        let earlier = match first.checked_sub(1) {
            Some(at) => alone.then(|| self.seen[at].1),
            None => self.before.or(alone.then(Acceleration::default)),
        };
        let mut moved = Moved::default();
        let mut from = earlier.as_ref();
        for (_, seen) in looks {
            moved = from.map_or(moved, |from| moved.and(Moved::between(from, seen)));
            from = Some(seen);
        }
        let upgraded = last.upgraded_sockets;
        let before = self.before.map_or(0, |before| before.upgraded_sockets);
        Ok((upgraded.saturating_sub(before), moved))
    }

    /// The same for all looks.
    ///
    /// # Errors
    /// As [`moved_within`](Self::moved_within).
    pub fn moved(&self) -> Result<(u64, Moved), String> {
        self.moved_within(&(f64::NEG_INFINITY..f64::INFINITY))
    }
}

/// Adds to a run under Saiga how many of its client's `connections` were upgraded and which share
/// of all bytes went by channel. The run does not count where that is not known, or less than
/// nearly all of them. Of the bytes by TCP `excused` do not count against it, but no more than half
/// of what went by channel: a run of which little else was seen proves nothing.
pub fn judge(
    measured: &mut Measured,
    moved: Result<(u64, Moved), String>,
    excused: u64,
    connections: u32,
) {
    let shortfall = match moved {
        Ok((_, moved)) if moved == Moved::default() => Some(STILL.to_owned()),
        Ok((upgraded, moved)) => {
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            let sockets = upgraded as f64;
            let share = moved.channel_share();
            let metrics = [("upgraded_sockets", sockets), ("channel_share", share)];
            let named = metrics.map(|(name, value)| (name.to_owned(), value));
            measured.metrics.extend(named);
            moved.shortfall(excused, upgraded, connections)
        }
        Err(why) => Some(why),
    };
    if let Some(why) = shortfall {
        let told = || format!("not accelerated: {why}");
        measured.invalid.get_or_insert_with(told);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Looks of one second each, at bytes by channel and by TCP since the client began.
    fn looks(bytes: &[(u64, u64)]) -> Looks {
        let mut looks = Looks::default();
        for (at_s, &(channel_bytes, tcp_bytes)) in (10_u32..).zip(bytes) {
            let seen = Acceleration {
                upgraded_sockets: 1,
                channel_bytes,
                tcp_bytes,
            };
            looks.add(f64::from(at_s), Ok(seen));
        }
        looks
    }

    fn moved(looks: &Looks, time: Range<f64>) -> (u64, u64) {
        let (upgraded, moved) = looks.moved_within(&time).unwrap();
        assert_eq!(upgraded, 1);
        (moved.channel_bytes, moved.tcp_bytes)
    }

    #[test]
    fn bytes_of_the_measured_interval_count_and_no_others() {
        let looks = looks(&[(0, 50), (100, 60), (900, 61), (900, 900)]);
        assert_eq!(moved(&looks, 11.0..12.0), (800, 1));
        assert_eq!(moved(&looks, 10.5..12.9), (800, 1));
        assert_eq!(moved(&looks, f64::NEG_INFINITY..f64::INFINITY), (900, 850));
        // Shorter than the pause between two looks.
        assert_eq!(moved(&looks, 11.5..12.5), (800, 1));
        assert_eq!(moved(&looks, 9.5..10.5), (0, 50));
        let told = looks.moved_within(&(12.1..12.9)).unwrap_err();
        assert!(
            told.starts_with("no look at its connections fell into"),
            "{told}"
        );
    }

    #[test]
    fn connections_that_are_made_anew_begin_again() {
        let looks = looks(&[(100, 5), (900, 5), (30, 64), (500, 64)]);
        assert_eq!(moved(&looks, 10.0..13.0), (800 + 470, 59));
    }

    #[test]
    fn a_load_that_is_looked_at_from_its_beginning_counts_from_there() {
        let mut looks = Looks::since(Acceleration::default());
        looks.seen = self::looks(&[(0, 50), (100, 60), (900, 61)]).seen;
        assert_eq!(moved(&looks, 0.0..12.0), (900, 61));
        assert_eq!(moved(&looks, 10.5..12.0), (800, 1));
    }

    #[test]
    fn connections_of_before_the_load_are_not_those_of_the_load() {
        let of = |upgraded_sockets, channel_bytes| Acceleration {
            upgraded_sockets,
            channel_bytes,
            tcp_bytes: 700,
        };
        let mut looks = Looks::since(of(1000, 5000));
        looks.add(1.0, Ok(of(1050, 5900)));
        let (upgraded, moved) = looks.moved().unwrap();
        assert_eq!(upgraded, 50);
        assert_eq!((moved.channel_bytes, moved.tcp_bytes), (900, 0));
    }

    /// What the run is told, and which share it is given.
    fn judged(moved: Result<(u64, Moved), String>) -> (Option<String>, Option<f64>) {
        let mut measured = Measured {
            seconds: 1.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            window_s: 1.0,
            invalid: None,
            detail: None,
        };
        judge(&mut measured, moved, 0, 10);
        (measured.invalid, measured.metrics.remove("channel_share"))
    }

    #[test]
    fn nine_tenths_of_the_bytes_are_the_proof() {
        let told = |upgraded, channel_bytes, tcp_bytes| {
            let moved = Moved {
                channel_bytes,
                tcp_bytes,
            };
            judged(Ok((upgraded, moved)))
        };
        assert_eq!(told(10, 900, 100), (None, Some(0.9)));
        // A connection of many, or all of them so late that most bytes went by TCP.
        for (upgraded, channel_bytes) in [(1, 100), (10, 899), (10, 1)] {
            let (why, _) = told(upgraded, channel_bytes, 1000 - channel_bytes);
            let wanted = format!(
                "not accelerated: {channel_bytes} bytes went by channel and {} by TCP, and \
                 {upgraded} of the client's 10 connections were upgraded",
                1000 - channel_bytes
            );
            assert_eq!(why, Some(wanted));
        }
        let (why, share) = told(10, 0, 0);
        let still = "not accelerated: nothing moved between looks";
        assert!(why.is_some_and(|why| why.starts_with(still)));
        assert_eq!(share, None);
    }

    #[test]
    fn a_process_that_says_nothing_proves_nothing() {
        let (never, share) = judged(Looks::default().moved());
        let never = never.unwrap();
        assert!(
            never.starts_with("not accelerated: the load ended before"),
            "{never}"
        );
        assert_eq!(share, None);
        let mut mute = Looks::default();
        mute.add(1.0, Err("no page".to_owned()));
        let told = "not accelerated: no page".to_owned();
        assert_eq!(judged(mute.moved()), (Some(told), None));
    }
}
