//! What is looked at again and again while a load runs: the servers' CPU time, and whether the
//! client's connections are accelerated.
//!
//! TPC-C looks at its tables before and after the measured interval; what the servers used within it
//! follows from their CPU time at moments around its ends.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use saiga_experiment::acceleration::{AccelerationProbe, Looks};
use saiga_experiment::cpu::HostTime;
use saiga_experiment::workload::Failure;

use crate::record::unix_s;
use crate::running::Running;

/// Looks, in the order of time.
#[derive(Default)]
pub(crate) struct Course {
    /// Seconds since 1970, and CPU seconds of all servers until then.
    used: Vec<(f64, f64)>,
    /// What the whole host was busy with at the same looks.
    host: Vec<HostTime>,
    /// What the process said of its connections, by seconds since 1970.
    pub(crate) connections: Looks,
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
        let answer = asked.probe.observe(pid, asked.connections);
        self.connections.add(unix_s(SystemTime::now()), answer);
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
}
