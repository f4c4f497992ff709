//! Alerting rules for Prometheus on the exported metrics.

/// A rule file for `rule_files` in prometheus.yml.
pub const ALERTS: &str = include_str!("alerts.yml");
