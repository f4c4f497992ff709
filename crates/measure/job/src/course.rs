//! What is looked at again and again while a load runs: the servers' CPU time, and whether the
//! client's connections are accelerated.
//!
//! TPC-C looks at its tables before and after the measured interval; what the servers used within it
//! follows from their CPU time at moments around its ends.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe, Moved};
use saiga_experiment::cpu::HostTime;
use saiga_experiment::workload::Failure;

use crate::record::unix_s;
use crate::running::Running;

/// Why nothing is known of a measured interval that was shorter than the pause between two looks.
const TOO_SHORT: &str =
    "no look at its connections fell into the measured interval; measure for longer";
/// The same of a whole load.
const UNSEEN: &str = "the load ended before a look at its connections; let it run for longer";
/// What a process says that has no connections yet.
const NOTHING: Acceleration = Acceleration {
    upgraded_sockets: 0,
    channel_bytes: 0,
    tcp_bytes: 0,
};

/// Looks, in the order of time.
#[derive(Default)]
pub(crate) struct Course {
    /// Seconds since 1970, and CPU seconds of all servers until then.
    used: Vec<(f64, f64)>,
    /// What the whole host was busy with at the same looks.
    host: Vec<HostTime>,
    /// Seconds since 1970, and what the process said of its connections then.
    seen: Vec<(f64, Acceleration)>,
    /// Why the last question without an answer had none.
    silence: Option<String>,
}

/// Which process is asked about the connections of a load.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) probe: &'a dyn AccelerationProbe,
    /// The server that has all of them; `None` where the client is asked.
    pub(crate) server: Option<u32>,
    /// How many there are.
    pub(crate) connections: u32,
    /// Time between two questions to the status pages.
    pub(crate) pause: Duration,
}

impl Course {
    /// Looks once; comes back with the servers' CPU time.
    pub(crate) fn look(&mut self, servers: &[Option<Running>]) -> Result<Duration, Failure> {
        let used = cpu_time(servers).map_err(Failure::impossible)?;
        let host = HostTime::read().map_err(Failure::impossible)?;
        self.used
            .push((unix_s(SystemTime::now()), used.as_secs_f64()));
        self.host.push(host);
        Ok(used)
    }

    /// Asks about the connections of the load, whose process is `client`.
    pub(crate) fn ask(&mut self, asked: Asked<'_>, client: u32) {
        let pid = asked.server.unwrap_or(client);
        match asked.probe.observe(pid, asked.connections) {
            Ok(seen) => self.seen.push((unix_s(SystemTime::now()), seen)),
            Err(why) => self.silence = Some(why),
        }
    }

    /// CPU seconds of the servers within a time.
    pub(crate) fn used_within(&self, time: &Range<f64>) -> Option<f64> {
        Some(self.used_until(time.end)? - self.used_until(time.start)?)
    }

    /// Seconds of interrupts for each second of a process within a time, where the latter does not
    /// contain the former; between the last look before the time and the first one after it.
    pub(crate) fn interrupts_beside(&self, time: &Range<f64>) -> f64 {
        let looks = || self.used.iter().zip(&self.host);
        let before = looks().rev().find(|((at, _), _)| *at <= time.start);
        let after = looks().find(|((at, _), _)| *at >= time.end);
        match (before, after) {
            (Some((_, before)), Some((_, after))) => {
                after.interrupts_beside_processes_since(before)
            }
            _ => 0.0,
        }
    }

    /// Between two looks time is used evenly.
    fn used_until(&self, at: f64) -> Option<f64> {
        let after = self.used.iter().position(|(time, _)| *time >= at)?;
        let (right, used_right) = self.used[after];
        let Some((left, used_left)) = after.checked_sub(1).map(|before| self.used[before]) else {
            return (right <= at).then_some(used_right);
        };
        let share = if right > left {
            (at - left) / (right - left)
        } else {
            1.0
        };
        Some(used_left + share * (used_right - used_left))
    }

    /// Connections that were upgraded, and what all of them moved between the looks within a time.
    /// Where only one look falls into it, what was moved since the look before counts.
    ///
    /// # Errors
    /// Why nothing is known of it, in words for people.
    pub(crate) fn moved_within(&self, time: &Range<f64>) -> Result<(u64, Moved), String> {
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
        let moved = if looks.len() > 1 {
            let pairs = looks.windows(2);
            let moved = pairs.map(|pair| Moved::between(&pair[0].1, &pair[1].1));
            moved.fold(Moved::default(), Moved::and)
        } else {
            let before = first.checked_sub(1).map_or(NOTHING, |at| self.seen[at].1);
            Moved::between(&before, last)
        };
        Ok((last.upgraded_sockets, moved))
    }
}

fn cpu_time(servers: &[Option<Running>]) -> io::Result<Duration> {
    servers
        .iter()
        .flatten()
        .map(|one| one.process.child.tree_cpu_time())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_between_looks_is_shared_out() {
        let course = Course {
            used: vec![(10.0, 1.0), (12.0, 3.0), (14.0, 3.0)],
            ..Course::default()
        };
        assert_eq!(course.used_within(&(11.0..13.0)), Some(1.0));
        assert_eq!(course.used_within(&(10.0..14.0)), Some(2.0));
        assert_eq!(course.used_within(&(9.0..13.0)), None);
        assert_eq!(course.used_within(&(11.0..15.0)), None);
    }

    #[test]
    fn interrupts_are_those_around_the_measured_interval() {
        let host = [(0.0, 0.5), (2.0, 1.0), (6.0, 2.0), (6.5, 9.0)];
        let course = Course {
            used: vec![(10.0, 1.0), (12.0, 3.0), (14.0, 3.0), (16.0, 3.0)],
            host: host
                .map(|(processes_s, soft_interrupts_s)| HostTime {
                    processes_s,
                    hard_interrupts_s: 0.25,
                    soft_interrupts_s,
                    stolen_s: 0.0,
                })
                .to_vec(),
            ..Course::default()
        };
        assert_eq!(course.interrupts_beside(&(12.5..13.0)), 0.25);
        assert_eq!(course.interrupts_beside(&(11.0..14.0)), 0.25);
        assert_eq!(
            course.interrupts_beside(&(12.5..17.0)),
            0.0,
            "the end was not seen"
        );
    }

    /// Looks of one second each, at bytes by channel and by TCP since the client began.
    fn looks(bytes: &[(u64, u64)]) -> Course {
        let look = |(at, (channel_bytes, tcp_bytes)): (u32, &(u64, u64))| {
            let seen = Acceleration {
                upgraded_sockets: 1,
                channel_bytes: *channel_bytes,
                tcp_bytes: *tcp_bytes,
            };
            (f64::from(at), seen)
        };
        Course {
            seen: (10..).zip(bytes).map(look).collect(),
            ..Course::default()
        }
    }

    fn moved(course: &Course, time: Range<f64>) -> (u64, u64) {
        let (upgraded, moved) = course.moved_within(&time).unwrap();
        assert_eq!(upgraded, 1);
        (moved.channel_bytes, moved.tcp_bytes)
    }

    #[test]
    fn bytes_of_the_measured_interval_count_and_no_others() {
        let course = looks(&[(0, 50), (100, 60), (900, 61), (900, 900)]);
        assert_eq!(moved(&course, 11.0..12.0), (800, 1));
        assert_eq!(moved(&course, 10.5..12.9), (800, 1));
        assert_eq!(moved(&course, f64::NEG_INFINITY..f64::INFINITY), (900, 850));
        // Shorter than the pause between two looks.
        assert_eq!(moved(&course, 11.5..12.5), (800, 1));
        assert_eq!(moved(&course, 9.5..10.5), (0, 50));
        let told = course.moved_within(&(12.1..12.9)).unwrap_err();
        assert!(
            told.starts_with("no look at its connections fell into"),
            "{told}"
        );
    }

    #[test]
    fn connections_that_are_made_anew_begin_again() {
        let course = looks(&[(100, 5), (900, 5), (30, 64), (500, 64)]);
        assert_eq!(moved(&course, 10.0..13.0), (800 + 470, 59));
    }

    #[test]
    fn one_upgraded_connection_of_many_is_no_proof() {
        let course = looks(&[(0, 0), (900, 8100)]);
        let (upgraded, moved) = course.moved_within(&(10.0..11.0)).unwrap();
        assert_eq!(
            moved.shortfall(upgraded, 10).unwrap(),
            "900 bytes went by channel and 8100 by TCP, and 1 of the client's 10 connections were \
             upgraded"
        );
    }

    #[test]
    fn a_process_that_says_nothing_proves_nothing() {
        let all = || f64::NEG_INFINITY..f64::INFINITY;
        let never = Course::default().moved_within(&all()).unwrap_err();
        assert!(never.starts_with("the load ended before"), "{never}");
        let mute = Course {
            silence: Some("no page".to_owned()),
            ..Course::default()
        };
        assert_eq!(mute.moved_within(&all()), Err("no page".to_owned()));
    }
}
