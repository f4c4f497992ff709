//! The live panel of a run: campaign, load, recent throughput, and host.
//!
//! [`Dashboard`] takes updates and draws itself as lines of a given size. It reads no clock, no
//! terminal and no file. Kinds of CPU time differ by pattern and not by colour, so that the panel
//! is readable in a log and without colour vision.
//!
//! Deliberately absent: the terminal, which is part of the command line (`panel`).

mod campaign;
mod cores;
mod database;
mod format;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::snapshot::Snapshot;

pub use campaign::Campaign;
use cores::Core;
use format::{duration, fit, number, sparkline};

/// Length of the throughput history: the width of a very wide terminal.
const HISTORY_MAX: usize = 400;

/// State of the load in the last second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadNow {
    /// Name of the phase: `warm-up`, `measured`, `gap`.
    pub phase: String,
    pub throughput: f64,
    /// Unit of the throughput: `tpmC`, `ops/s`.
    pub unit: String,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Number of errors since the start.
    pub errors: u64,
    /// Time until the end; `None` if it is unknown.
    pub left: Option<Duration>,
}

/// Available space in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// The state of the panel.
#[derive(Debug, Clone, Default)]
pub struct Dashboard {
    campaign: Option<Campaign>,
    load: Option<LoadNow>,
    history: VecDeque<f64>,
    host: Option<Arc<Snapshot>>,
}

impl Dashboard {
    /// Updates the progress of the campaign.
    pub fn on_campaign(&mut self, campaign: Campaign) {
        self.campaign = Some(campaign);
    }

    /// Updates the load and appends its throughput to the history.
    pub fn on_load(&mut self, load: LoadNow) {
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(load.throughput);
        self.load = Some(load);
    }

    /// Ends the load. The history remains and continues with the next load.
    pub fn on_load_end(&mut self) {
        self.load = None;
    }

    /// Updates the metrics of the host.
    pub fn on_snapshot(&mut self, host: Arc<Snapshot>) {
        self.host = Some(host);
    }

    /// Draws the panel: at most `size.rows` lines of at most `size.columns` characters.
    #[must_use]
    pub fn draw(&self, size: Size) -> String {
        let mut lines = self.campaign_lines(size.columns);
        lines.extend(self.load_lines(size.columns));
        if let Some(host) = &self.host {
            let below = host_lines(host, size.columns);
            // The legend of the bars takes one line.
            let taken = lines.len() + below.len() + 1;
            let cores = cores::lines(&Core::all(host), size.columns, size.rows, taken);
            lines.extend(cores);
            lines.push(fit(&cores::LEGEND, size.columns));
            lines.extend(below);
        }
        lines.truncate(size.rows);
        lines.join("\n")
    }

    fn campaign_lines(&self, columns: usize) -> Vec<String> {
        let campaign = self.campaign.as_ref();
        campaign.map_or_else(Vec::new, |campaign| campaign.lines(columns))
    }

    fn load_lines(&self, columns: usize) -> Vec<String> {
        let Some(load) = &self.load else {
            // Some loads of a campaign report nothing before their end.
            return match self.campaign {
                Some(_) => Vec::new(),
                None => vec![fit(&["no load yet".into()], columns)],
            };
        };
        let latency = |name: &str, ms: Option<f64>| {
            let ms = ms.map_or("-".into(), number);
            format!("{name} {ms} ms")
        };
        let left = load.left.map(|left| format!("{} left", duration(left)));
        let head = [
            Some(format!("{} {}", number(load.throughput), load.unit)),
            left,
            Some(format!("errors {}", load.errors)),
            (!load.phase.is_empty()).then(|| load.phase.clone()),
        ];
        let latencies = [
            latency("p50", load.p50_ms),
            latency("p95", load.p95_ms),
            latency("p99", load.p99_ms),
        ];
        let head: Vec<String> = head.into_iter().flatten().collect();
        vec![
            fit(&head, columns),
            fit(&latencies, columns),
            sparkline(self.history.iter().copied(), columns),
            String::new(),
        ]
    }
}

/// The lines below the cores: groups of processes, disks, networks and databases.
fn host_lines(host: &Snapshot, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let groups: Vec<String> = named(host, "", "_cpu_percent")
        .map(|(name, cpu)| format!("{name} {} %", shown(cpu)))
        .collect();
    if !groups.is_empty() {
        let whole = "(100 % is one core)".to_owned();
        let groups: Vec<String> = groups.into_iter().chain([whole]).collect();
        lines.push(fit(&groups, columns));
    }
    for (disk, util) in named(host, "disk_", "_util_percent") {
        let of = |metric: &str| shown(host.get(&format!("disk_{disk}_{metric}")));
        let parts = [
            format!("disk {disk}"),
            format!("read {} kB/s", of("read_kb_s")),
            format!("write {} kB/s", of("write_kb_s")),
            format!("busy {} %", shown(util)),
            format!("wait {} ms", of("write_wait_ms")),
            format!("queue {}", of("queue_requests")),
        ];
        lines.push(fit(&parts, columns));
    }
    for (interface, packets) in named(host, "net_", "_rx_packets_s") {
        let of = |metric: &str| shown(host.get(&format!("net_{interface}_{metric}")));
        let parts = [
            format!("net {interface}"),
            format!("in {} kB/s", of("rx_kb_s")),
            format!("out {} kB/s", of("tx_kb_s")),
            format!("in {} packets/s", shown(packets)),
            format!("out {} packets/s", of("tx_packets_s")),
        ];
        lines.push(fit(&parts, columns));
    }
    lines.extend(database::lines(host, columns));
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// The metrics with this prefix and suffix, each with the part of its name between them.
fn named<'a>(
    host: &'a Snapshot,
    prefix: &'a str,
    suffix: &'a str,
) -> impl Iterator<Item = (&'a str, Option<f64>)> {
    host.metrics().filter_map(move |(name, value)| {
        let name = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        (!name.is_empty() && !name.starts_with("db_")).then_some((name, value))
    })
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".into(), number)
}

#[cfg(test)]
mod tests;
