//! Alerting rules for Prometheus, on the metrics that the report exports.

/// A rule file, to be given to `rule_files` in prometheus.yml.
pub const ALERTS: &str = include_str!("alerts.yml");
