//! CPU time used by this process, and by all processes of the host.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Cumulative CPU seconds at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CpuTimes {
    own_s: f64,
    host_s: Option<f64>,
}

/// Length of a tick of `/proc/stat`: 10 ms on every Linux.
const TICK_S: f64 = 0.01;

impl CpuTimes {
    pub(super) fn now() -> Self {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::try_from(own).unwrap_or_default();
        let stat = fs::read_to_string("/proc/stat").ok();
        Self {
            own_s: own.as_secs_f64(),
            host_s: stat.as_deref().and_then(busy_s),
        }
    }

    /// CPU seconds since `earlier`: of this process, and of all other processes. The second value
    /// is `None` if `/proc/stat` cannot be read.
    pub(super) fn since(self, earlier: Self) -> (f64, Option<f64>) {
        let own_s = self.own_s - earlier.own_s;
        let host_s = self
            .host_s
            .zip(earlier.host_s)
            .map(|(now, then)| now - then);
        (own_s, host_s.map(|host_s| (host_s - own_s).max(0.0)))
    }
}

/// CPU seconds in which a host was neither idle nor waiting for disks. Guest time is part of user
/// time (`man 5 proc_stat`).
fn busy_s(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .take(8)
        .map_while(|t| t.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks.as_slice() else {
        return None;
    };
    Some(TICK_S * (user + nice + system + irq + softirq + steal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let stat = "cpu  100 20 30 9999 888 4 5 6 70 0\ncpu0 1 2 3\n";
        assert!((busy_s(stat).unwrap() - 1.65).abs() < 1e-9);
        assert_eq!(busy_s("intr 1"), None);
    }
}
