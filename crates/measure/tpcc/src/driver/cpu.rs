//! CPU time used by this process, and by all processes of the host.

use saiga_process::child::own_cpu_time;
use saiga_process::cpu::HostTime;

/// Cumulative CPU seconds at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CpuTimes {
    own_s: f64,
    host_s: Option<f64>,
}

impl CpuTimes {
    pub(super) fn now() -> Self {
        Self {
            own_s: own_cpu_time().unwrap_or_default().as_secs_f64(),
            host_s: HostTime::read().ok().map(|host| host.busy_s()),
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
