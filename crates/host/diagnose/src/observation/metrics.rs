//! The host's metrics over time, by the names of docs/host-metrics.md.

use std::collections::BTreeMap;

/// Columns of values, each with the interval that it covers.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    columns: BTreeMap<String, Vec<Value>>,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    seconds: f64,
    value: f64,
}

impl Metrics {
    /// Adds a value that holds for `seconds`. Values that are not finite are left out.
    pub fn add(&mut self, name: &str, seconds: f64, value: f64) {
        if !value.is_finite() || seconds <= 0.0 {
            return;
        }
        let value = Value { seconds, value };
        match self.columns.get_mut(name) {
            Some(column) => column.push(value),
            None => {
                self.columns.insert(name.to_owned(), vec![value]);
            }
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Mean of a metric, weighted by time; `None` if the metric was never known.
    #[must_use]
    pub fn mean(&self, name: &str) -> Option<f64> {
        let column = self.columns.get(name)?;
        let seconds: f64 = column.iter().map(|one| one.seconds).sum();
        Some(
            column
                .iter()
                .map(|one| one.seconds * one.value)
                .sum::<f64>()
                / seconds,
        )
    }

    /// Names between `before` and `after`: the devices of `disk_` and `_util_percent`.
    pub fn names<'a>(
        &'a self,
        before: &'a str,
        after: &'a str,
    ) -> impl Iterator<Item = &'a str> + 'a {
        self.columns
            .keys()
            .filter_map(move |name| name.strip_prefix(before)?.strip_suffix(after))
    }

    /// Means of `cpuN_KIND_percent` of all CPUs, by number.
    #[must_use]
    pub fn by_cpu(&self, kind: &str) -> BTreeMap<usize, f64> {
        let after = format!("_{kind}_percent");
        self.names("cpu", &after)
            .filter_map(|cpu| {
                let mean = self.mean(&format!("cpu{cpu}{after}"))?;
                Some((cpu.parse().ok()?, mean))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_by_time() {
        let mut metrics = Metrics::default();
        metrics.add("steal_percent", 1.0, 10.0);
        metrics.add("steal_percent", 3.0, 2.0);
        metrics.add("steal_percent", 1.0, f64::NAN);
        assert_eq!(metrics.mean("steal_percent"), Some(4.0));
        assert_eq!(metrics.mean("other"), None);
    }

    #[test]
    fn devices_and_cpus_come_from_the_names() {
        let mut metrics = Metrics::default();
        for name in [
            "disk_sda_util_percent",
            "disk_nvme0n1_util_percent",
            "disk_sda_reads_s",
        ] {
            metrics.add(name, 1.0, 1.0);
        }
        metrics.add("cpu0_softirq_percent", 1.0, 81.0);
        metrics.add("cpu12_softirq_percent", 1.0, 3.0);
        metrics.add("cpu_softirq_percent", 1.0, 42.0);
        let disks: Vec<&str> = metrics.names("disk_", "_util_percent").collect();
        assert_eq!(disks, ["nvme0n1", "sda"]);
        assert_eq!(metrics.by_cpu("softirq"), [(0, 81.0), (12, 3.0)].into());
    }
}
