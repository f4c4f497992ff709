//! Samples taken while a load runs: CPU time of the servers, and accelerated connections.
//!
//! TPC-C reports its measured interval only at the end, and its set-up before this interval costs
//! CPU time as well. The CPU time in the interval is therefore interpolated from samples around
//! its ends.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use saiga_experiment::acceleration::{AccelerationProbe, ProbeSamples};
use saiga_experiment::workload::Failure;
use saiga_process::cpu::HostTime;

use crate::record::unix_s;
use crate::running::Running;

/// Samples in order of time.
#[derive(Default)]
pub(crate) struct TimeSeries {
    /// Seconds since 1970, and CPU seconds of all servers until then.
    used: Vec<(f64, f64)>,
    /// CPU time of the whole host at the times of `used`.
    host: Vec<HostTime>,
    /// Counters of the probed process, by seconds since 1970.
    pub(crate) connections: ProbeSamples,
}

/// The process whose counters show whether the connections of a load are accelerated.
#[derive(Clone, Copy)]
pub(crate) struct ProbedProcess<'a> {
    pub(crate) probe: &'a dyn AccelerationProbe,
    /// PID of the server that has all connections; `None` to probe the client.
    pub(crate) server: Option<u32>,
    /// Number of connections of the load.
    pub(crate) connections: u32,
    /// Interval between two probes.
    pub(crate) pause: Duration,
}

impl TimeSeries {
    /// Samples the servers and the host; returns the CPU time of the servers so far.
    pub(crate) fn sample(&mut self, servers: &[Option<Running>]) -> Result<Duration, Failure> {
        let used = cpu_time(servers).map_err(Failure::impossible)?;
        let host = HostTime::read().map_err(Failure::impossible)?;
        self.used
            .push((unix_s(SystemTime::now()), used.as_secs_f64()));
        self.host.push(host);
        Ok(used)
    }

    /// Samples the counters of the probed process; `client` is the PID of the load.
    pub(crate) fn probe(&mut self, probed: ProbedProcess<'_>, client: u32) {
        let pid = probed.server.unwrap_or(client);
        let answer = probed.probe.observe(pid, probed.connections);
        self.connections.add(unix_s(SystemTime::now()), answer);
    }

    /// CPU seconds of the servers within an interval; `None` if the samples do not cover it.
    pub(crate) fn used_within(&self, time: &Range<f64>) -> Option<f64> {
        Some(self.used_until(time.end)? - self.used_until(time.start)?)
    }

    /// Seconds of interrupts per second of CPU time of processes, if the kernel accounts interrupts
    /// separately. Computed from the last sample before `time` to the first sample after it; 0 if
    /// there is no such pair.
    pub(crate) fn interrupts_beside(&self, time: &Range<f64>) -> f64 {
        let samples = || self.used.iter().zip(&self.host);
        let before = samples().rev().find(|((at, _), _)| *at <= time.start);
        let after = samples().find(|((at, _), _)| *at >= time.end);
        match (before, after) {
            (Some((_, before)), Some((_, after))) => {
                after.interrupts_beside_processes_since(before)
            }
            _ => 0.0,
        }
    }

    /// CPU seconds until `at`, interpolated linearly between two samples.
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
    fn cpu_time_between_samples_is_interpolated() {
        let series = TimeSeries {
            used: vec![(10.0, 1.0), (12.0, 3.0), (14.0, 3.0)],
            ..TimeSeries::default()
        };
        assert_eq!(series.used_within(&(11.0..13.0)), Some(1.0));
        assert_eq!(series.used_within(&(10.0..14.0)), Some(2.0));
        assert_eq!(series.used_within(&(9.0..13.0)), None);
        assert_eq!(series.used_within(&(11.0..15.0)), None);
    }

    #[test]
    fn interrupts_are_taken_from_samples_around_the_interval() {
        let host = [(0.0, 0.5), (2.0, 1.0), (6.0, 2.0), (6.5, 9.0)];
        let series = TimeSeries {
            used: vec![(10.0, 1.0), (12.0, 3.0), (14.0, 3.0), (16.0, 3.0)],
            host: host
                .map(|(processes_s, soft_interrupts_s)| HostTime {
                    processes_s,
                    hard_interrupts_s: 0.25,
                    soft_interrupts_s,
                    ..HostTime::default()
                })
                .to_vec(),
            ..TimeSeries::default()
        };
        assert_eq!(series.interrupts_beside(&(12.5..13.0)), 0.25);
        assert_eq!(series.interrupts_beside(&(11.0..14.0)), 0.25);
        assert_eq!(
            series.interrupts_beside(&(12.5..17.0)),
            0.0,
            "no sample after the end"
        );
    }
}
