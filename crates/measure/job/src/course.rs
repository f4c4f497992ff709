//! What is looked at again and again while a load runs: the servers' CPU time, and whether the
//! client's connections are accelerated.
//!
//! TPC-C looks at its tables before and after the measured interval; what the servers used within it
//! follows from their CPU time at moments around its ends.

use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use saiga_experiment::acceleration::{Acceleration, AccelerationProbe};
use saiga_experiment::workload::Failure;

use crate::record::unix_s;
use crate::running::Running;

/// Looks, in the order of time.
#[derive(Default)]
pub(crate) struct Course {
    /// Seconds since 1970, and CPU seconds of all servers until then.
    used: Vec<(f64, f64)>,
    /// What the client's process said last.
    seen: Option<Result<Acceleration, String>>,
}

/// Who is asked about the client's connections, and how many there are.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) probe: &'a dyn AccelerationProbe,
    pub(crate) connections: u32,
}

impl Course {
    /// Looks once; comes back with the servers' CPU time.
    pub(crate) fn look(&mut self, servers: &[Option<Running>]) -> Result<Duration, Failure> {
        let used = cpu_time(servers).map_err(Failure::impossible)?;
        self.used
            .push((unix_s(SystemTime::now()), used.as_secs_f64()));
        Ok(used)
    }

    /// Asks the client.
    pub(crate) fn ask(&mut self, asked: Asked<'_>, pid: u32) {
        let seen = asked.probe.observe(pid, asked.connections);
        // One that is about to end has nothing to say any more.
        if seen.is_ok() || !matches!(self.seen, Some(Ok(_))) {
            self.seen = Some(seen);
        }
    }

    /// CPU seconds of the servers within a time.
    pub(crate) fn used_within(&self, time: &Range<f64>) -> Option<f64> {
        Some(self.used_until(time.end)? - self.used_until(time.start)?)
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

    /// Sockets that were accelerated, or why the run is none under Saiga.
    pub(crate) fn accelerated(&self) -> Result<u64, String> {
        match &self.seen {
            None => Err("the client ended before it could be asked".to_owned()),
            Some(Err(why)) => Err(why.clone()),
            Some(Ok(seen)) if seen.upgraded_sockets == 0 => {
                Err("no connection was moved into a channel".to_owned())
            }
            Some(Ok(seen)) => Ok(seen.upgraded_sockets),
        }
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
            seen: None,
        };
        assert_eq!(course.used_within(&(11.0..13.0)), Some(1.0));
        assert_eq!(course.used_within(&(10.0..14.0)), Some(2.0));
        assert_eq!(course.used_within(&(9.0..13.0)), None);
        assert_eq!(course.used_within(&(11.0..15.0)), None);
    }

    #[test]
    fn a_client_that_was_never_accelerated_is_told() {
        let seen = |upgraded_sockets| {
            let seen = Acceleration {
                upgraded_sockets,
                channel_bytes: 1,
                tcp_bytes: 1,
            };
            Course {
                used: vec![],
                seen: Some(Ok(seen)),
            }
            .accelerated()
        };
        assert_eq!(seen(3), Ok(3));
        assert!(seen(0).unwrap_err().contains("no connection"));
        assert!(
            Course::default()
                .accelerated()
                .unwrap_err()
                .contains("before it could")
        );
    }
}
