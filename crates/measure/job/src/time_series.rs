//! Samples taken while a load runs: CPU time of the servers, and accelerated connections.
//!
//! TPC-C reports its measured interval only at the end, and its set-up before this interval costs
//! CPU time as well. The CPU time in the interval is therefore interpolated from samples around
//! its ends.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use saiga_experiment::acceleration::{self, AccelerationProbe, ProbeSamples};
use saiga_experiment::workload::Failure;
use saiga_process::cpu::HostTime;

use crate::record::unix_s;
use crate::running::{CpuTimes, Processes};

/// Samples in order of time.
#[derive(Default)]
pub(crate) struct TimeSeries {
    /// Seconds since 1970, and CPU seconds of all servers and the gateway until then.
    used: Vec<(f64, f64)>,
    /// Those of the gateway alone; zero without a gateway.
    gateway: Vec<(f64, f64)>,
    /// Those of the gateway on the client's host; zero without one.
    far_gateway: Vec<(f64, f64)>,
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
    /// Whether the children of the server count, too.
    pub(crate) with_children: bool,
    /// Number of connections of the load.
    pub(crate) connections: u32,
    /// Interval between two probes.
    pub(crate) pause: Duration,
}

impl TimeSeries {
    /// Samples the servers and the host; returns the CPU time of the servers so far.
    pub(crate) fn sample(&mut self, processes: &Processes<'_>) -> Result<Duration, Failure> {
        let CpuTimes {
            used,
            gateway,
            far_gateway,
        } = processes.cpu_times().map_err(Failure::impossible)?;
        let host = HostTime::read().map_err(Failure::impossible)?;
        let at_s = unix_s(SystemTime::now());
        self.used.push((at_s, used.as_secs_f64()));
        self.gateway.push((at_s, gateway.as_secs_f64()));
        self.far_gateway.push((at_s, far_gateway.as_secs_f64()));
        self.host.push(host);
        Ok(used)
    }

    /// Samples the counters of the probed process; `client` is the PID of the load.
    pub(crate) fn probe(&mut self, probed: ProbedProcess<'_>, client: u32) {
        let pid = probed.server.unwrap_or(client);
        let answer = if probed.with_children {
            acceleration::of_server(probed.probe, pid, probed.connections)
        } else {
            probed.probe.observe(pid, probed.connections)
        };
        self.connections.add(unix_s(SystemTime::now()), answer);
    }

    /// CPU seconds of the servers within an interval; `None` if the samples do not cover it.
    pub(crate) fn used_within(&self, time: &Range<f64>) -> Option<f64> {
        within(&self.used, time)
    }

    /// CPU seconds of the gateway within an interval; `None` without a gateway, or if the samples
    /// do not cover it.
    pub(crate) fn gateway_used_within(&self, time: &Range<f64>) -> Option<f64> {
        let has_used = self.gateway.last().is_some_and(|(_, used)| *used > 0.0);
        within(&self.gateway, time).filter(|_| has_used)
    }

    /// CPU seconds of the gateway on the client's host within an interval, 0 without one; `None` if
    /// the samples do not cover it.
    pub(crate) fn far_gateway_used_within(&self, time: &Range<f64>) -> Option<f64> {
        let has_used = self.far_gateway.iter().any(|(_, used)| *used > 0.0);
        if has_used {
            within(&self.far_gateway, time)
        } else {
            Some(0.0)
        }
    }

    /// CPU seconds in which the CPUs of the machine were busy within an interval, without time that
    /// the hypervisor took; `None` if the samples do not cover it.
    pub(crate) fn host_used_within(&self, time: &Range<f64>) -> Option<f64> {
        let busy = |time: &HostTime| time.busy_s() - time.stolen_s;
        let samples = self.used.iter().zip(&self.host);
        let samples: Vec<(f64, f64)> = samples.map(|((at, _), host)| (*at, busy(host))).collect();
        within(&samples, time)
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
}

/// The increase of a counter within an interval; `None` if the samples do not cover it.
fn within(samples: &[(f64, f64)], time: &Range<f64>) -> Option<f64> {
    Some(until(samples, time.end)? - until(samples, time.start)?)
}

/// The counter at the time `at`, interpolated linearly between two samples.
fn until(samples: &[(f64, f64)], at: f64) -> Option<f64> {
    let after = samples.iter().position(|(time, _)| *time >= at)?;
    let (right, used_right) = samples[after];
    let Some((left, used_left)) = after.checked_sub(1).map(|before| samples[before]) else {
        return (right <= at).then_some(used_right);
    };
    let share = if right > left {
        (at - left) / (right - left)
    } else {
        1.0
    };
    Some(used_left + share * (used_right - used_left))
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
    fn the_busy_time_of_the_machine_is_without_stolen_time() {
        let host = [(1.0, 0.5), (5.0, 2.5)];
        let series = TimeSeries {
            used: vec![(10.0, 0.0), (14.0, 0.0)],
            gateway: vec![(10.0, 0.25), (14.0, 1.25)],
            host: host
                .map(|(processes_s, stolen_s)| HostTime {
                    processes_s,
                    stolen_s,
                    ..HostTime::default()
                })
                .to_vec(),
            ..TimeSeries::default()
        };
        assert_eq!(series.host_used_within(&(10.0..12.0)), Some(2.0));
        assert_eq!(series.gateway_used_within(&(10.0..12.0)), Some(0.5));
        assert_eq!(series.far_gateway_used_within(&(10.0..12.0)), Some(0.0));
        assert_eq!(series.gateway_used_within(&(12.0..15.0)), None);
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
