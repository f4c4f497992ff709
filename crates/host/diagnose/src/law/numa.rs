//! The loss that memory on another NUMA node explains.

/// The factors of a loss of throughput between a local and a remote placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// The part that remote memory explains: at most the ratio of the latencies.
    pub memory: f64,
    /// The part that idle CPUs explain: one over the share of the CPUs that work.
    pub idle_cpus: f64,
}

impl Loss {
    /// The loss that both factors explain together.
    #[must_use]
    pub fn explained(self) -> f64 {
        self.memory * self.idle_cpus
    }
}

/// The largest loss that remote memory alone can cause: a program that only waits for memory takes
/// `remote_ns / local_ns` times as long.
#[must_use]
pub fn cap(local_ns: f64, remote_ns: f64) -> f64 {
    remote_ns / local_ns
}

/// Whether a loss needs a second cause beside remote memory. `observed` is the ratio of the
/// throughputs; 20 % above the cap are allowed for errors of measurement.
#[must_use]
pub fn needs_second_cause(observed: f64, cap: f64) -> bool {
    observed > cap * 1.2
}

/// Divides a loss into its factors. `busy` is the share of the CPUs that work in the remote
/// placement, between 0 and 1.
#[must_use]
pub fn loss(cap: f64, busy: f64) -> Loss {
    Loss {
        memory: cap,
        idle_cpus: 1.0 / busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenfold_loss_is_three_by_memory_and_three_by_idle_cpus() {
        let cap = cap(149.976, 459.3);
        assert!((cap - 3.06).abs() < 0.005);
        assert!(needs_second_cause(10.0, cap));
        assert!(!needs_second_cause(3.5, cap));
        let both = loss(3.0, 0.30);
        assert!((both.idle_cpus - 3.33).abs() < 0.01);
        assert!((both.explained() - 10.0).abs() < 1e-9);
    }
}
