//! `/proc/net/dev`: rates of network interfaces.
//!
//! Covers the loopback interface, interfaces with a physical device, and the interfaces that the
//! configuration names. If no interface has a device, as in a container, all are covered.

use std::collections::{BTreeMap, HashSet};

use procfs::FromRead;
use procfs::net::{DeviceStatus, InterfaceDeviceStatus};

use crate::rate::per_second;
use crate::table::{Column, Table};

use super::text::{Files, names_in};

const METRICS: [&str; 8] = [
    "rx_packets_s",
    "rx_kb_s",
    "rx_drops_s",
    "rx_errors_s",
    "tx_packets_s",
    "tx_kb_s",
    "tx_drops_s",
    "tx_errors_s",
];

#[derive(Debug)]
struct Interface {
    columns: [Column; METRICS.len()],
    before: Option<(f64, DeviceStatus)>,
}

/// Reads counters of network interfaces from `/proc/net/dev`.
#[derive(Debug)]
pub(crate) struct Networks {
    interfaces: BTreeMap<String, Interface>,
    /// Names in the file that are not sampled.
    others: HashSet<String>,
}

impl Networks {
    /// Adds the columns of the `named` interfaces, even if an interface does not exist.
    pub(crate) fn new(named: &[String], table: &mut Table) -> Self {
        let interfaces = named
            .iter()
            .map(|name| (name.clone(), Interface::new(name, table)));
        Self {
            interfaces: interfaces.collect(),
            others: HashSet::new(),
        }
    }

    /// Fills a row; adds columns for new interfaces.
    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        let bytes = files.proc_bytes("net/dev").unwrap_or_default();
        let parsed = InterfaceDeviceStatus::from_read(bytes).map(|status| status.0);
        let mut present: BTreeMap<String, DeviceStatus> = parsed.into_iter().flatten().collect();
        for name in present.keys() {
            if self.interfaces.contains_key(name) || self.others.contains(name) {
                continue;
            }
            if is_sampled(files, name) {
                let interface = Interface::new(name, table);
                self.interfaces.insert(name.clone(), interface);
            } else {
                self.others.insert(name.clone());
            }
        }
        for (name, interface) in &mut self.interfaces {
            interface.fill(at_s, present.remove(name), table);
        }
    }
}

fn is_sampled(files: &Files, name: &str) -> bool {
    let class = files.sys_path("class/net");
    let has_device = |name: &str| class.join(name).join("device").exists();
    name == "lo" || has_device(name) || !names_in(&class).iter().any(|other| has_device(other))
}

impl Interface {
    fn new(name: &str, table: &mut Table) -> Self {
        Self {
            columns: METRICS.map(|metric| table.column(&format!("net_{name}_{metric}"))),
            before: None,
        }
    }

    fn fill(&mut self, at_s: f64, now: Option<DeviceStatus>, table: &mut Table) {
        let before = self.before.take();
        let values = match (&before, &now) {
            (Some((before_s, before)), Some(now)) => metrics(before, now, at_s - before_s),
            (None, _) | (_, None) => [None; METRICS.len()],
        };
        for (column, value) in self.columns.iter().zip(values) {
            table.put(*column, value);
        }
        self.before = now.map(|now| (at_s, now));
    }
}

/// The values in the order of [`METRICS`].
fn metrics(
    before: &DeviceStatus,
    now: &DeviceStatus,
    seconds: f64,
) -> [Option<f64>; METRICS.len()] {
    let rate = |count: fn(&DeviceStatus) -> u64| per_second(count(before), count(now), seconds);
    let kb = |bytes: Option<f64>| bytes.map(|bytes| bytes / 1024.0);
    [
        rate(|d| d.recv_packets),
        kb(rate(|d| d.recv_bytes)),
        rate(|d| d.recv_drop),
        rate(|d| d.recv_errs),
        rate(|d| d.sent_packets),
        kb(rate(|d| d.sent_bytes)),
        rate(|d| d.sent_drop),
        rate(|d| d.sent_errs),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    const HEAD: &str = "Inter-|   Receive  |  Transmit\n face |bytes packets errs |bytes packets\n";

    fn line(name: &str, rx_bytes: u64, tx_packets: u64) -> String {
        format!("{name}: {rx_bytes} 20 1 2 0 0 0 0 4096 {tx_packets} 3 4 0 0 0 0\n")
    }

    fn row(host: &Host, networks: &mut Networks, at_s: f64, lines: &str, table: &mut Table) {
        host.proc("net/dev", &format!("{HEAD}{lines}"));
        networks.sample(at_s, &mut host.files(), table);
    }

    #[test]
    fn loopback_and_physical_interfaces_are_sampled() {
        let host = Host::new();
        host.sys("class/net/eth0/device/vendor", "");
        host.sys("class/net/veth1/mtu", "");
        let mut table = Table::default();
        let mut networks = Networks::new(&[], &mut table);
        let lines = [
            line("lo", 0, 0),
            line("eth0", 1024, 10),
            line("veth1", 0, 0),
        ];
        row(&host, &mut networks, 0.0, &lines.concat(), &mut table);
        let lines = [line("lo", 0, 0), line("eth0", 5120, 30)];
        row(&host, &mut networks, 2.0, &lines.concat(), &mut table);
        assert_eq!(table.names().len(), 2 * METRICS.len());
        for (name, value) in [
            ("net_eth0_rx_kb_s", 2.0),
            ("net_eth0_tx_packets_s", 10.0),
            ("net_eth0_rx_drops_s", 0.0),
            ("net_lo_rx_packets_s", 0.0),
        ] {
            assert_eq!(host.cell(&table, name), Some(value), "{name}");
        }
    }

    #[test]
    fn in_a_container_all_interfaces_are_sampled() {
        let host = Host::new();
        let mut table = Table::default();
        let mut networks = Networks::new(&[], &mut table);
        row(&host, &mut networks, 0.0, &line("veth1", 0, 0), &mut table);
        assert_eq!(host.cell(&table, "net_veth1_rx_kb_s"), None);
    }

    /// The counters start at zero when a driver is loaded again.
    #[test]
    fn an_interface_that_is_missing_or_was_reset_is_unknown() {
        let host = Host::new();
        let mut table = Table::default();
        let mut networks = Networks::new(&["eth9".into()], &mut table);
        for (at_s, lines, rx) in [
            (0.0, String::new(), None),
            (1.0, line("eth9", 4096, 0), None),
            (2.0, line("eth9", 5120, 0), Some(1.0)),
            (3.0, line("eth9", 0, 0), None),
            (4.0, line("eth9", 1024, 0), Some(1.0)),
            (5.0, "torn line".into(), None),
        ] {
            row(&host, &mut networks, at_s, &lines, &mut table);
            assert_eq!(host.cell(&table, "net_eth9_rx_kb_s"), rx, "{at_s}");
        }
    }
}
