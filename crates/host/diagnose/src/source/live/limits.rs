//! Limits of this network namespace, and counters of its datagrams and of the receive queues of the
//! CPUs.

use saiga_process::numbers::Numbers;
use saiga_process::root::Root;

use crate::observation::network::Network;

/// Default of `net.ipv4.ip_local_port_range` (`net/ipv4/af_inet.c`).
const PORTS: [u32; 2] = [32768, 60999];

/// The limits, without any socket.
pub(super) fn network() -> Network {
    let root = Root::host();
    let text = |name: &str| root.text(format!("/proc/sys/net/{name}")).ok().flatten();
    let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
    let range = text("ipv4/ip_local_port_range").and_then(|text| range(&text));
    let [first, last] = range.unwrap_or(PORTS);
    let reserved = text("ipv4/ip_local_reserved_ports").and_then(|text| text.parse().ok());
    let reserved = reserved.map_or(0, |Numbers(ports)| {
        let inside = |port: &&usize| (first as usize..=last as usize).contains(*port);
        u32::try_from(ports.iter().filter(inside).count()).unwrap_or(0)
    });
    let timestamps = number("ipv4/tcp_timestamps") != Some(0);
    let tracked = number("netfilter/nf_conntrack_count");
    Network {
        ports: (last + 1 - first).saturating_sub(reserved),
        reuses_time_wait: timestamps && number("ipv4/tcp_tw_reuse") == Some(1),
        tracked: tracked.zip(number("netfilter/nf_conntrack_max")),
        ..Network::default()
    }
}

fn range(text: &str) -> Option<[u32; 2]> {
    let (first, last) = text.split_once(char::is_whitespace)?;
    let range = [first.parse().ok()?, last.trim().parse().ok()?];
    (range[0] <= range[1] && range[1] <= u32::from(u16::MAX)).then_some(range)
}

/// Sums of `/proc/net/softnet_stat` over all CPUs. Columns are hexadecimal
/// (`softnet_seq_show` in `net/core/net-procfs.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Softnet {
    /// Polls that ended before the queue was empty.
    squeezes: u64,
}

impl Softnet {
    pub(super) fn read() -> Self {
        let text = Root::host().text("/proc/net/softnet_stat");
        Self::parse(&text.ok().flatten().unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let cell = |line: &str| {
            let cell = line.split_whitespace().nth(2)?;
            u64::from_str_radix(cell, 16).ok()
        };
        Self {
            squeezes: text.lines().filter_map(cell).sum(),
        }
    }

    /// Rate since the counter was read.
    pub(super) fn squeezes_s(self, seconds: f64) -> f64 {
        Self::read().squeezes.wrapping_sub(self.squeezes) as f64 / seconds
    }
}

/// Datagrams that this network namespace has received (`/proc/net/snmp`, `/proc/net/snmp6`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datagrams(Option<u64>);

impl Datagrams {
    pub(super) fn read() -> Self {
        let text = |name: &str| Root::host().text(name).ok().flatten();
        let old = text("/proc/net/snmp").and_then(|text| received(&text));
        let new = text("/proc/net/snmp6").and_then(|text| received6(&text));
        Self(old.map(|old| old + new.unwrap_or(0)))
    }

    /// Rate since the counter was read.
    pub(super) fn received_s(self, seconds: f64) -> Option<f64> {
        let (before, after) = (self.0?, Self::read().0?);
        Some(after.saturating_sub(before) as f64 / seconds)
    }
}

/// The number below `InDatagrams` in the lines `Udp:` (`snmp_seq_show_tcp_udp` in
/// `net/ipv4/proc.c`).
fn received(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names
        .split_whitespace()
        .position(|name| name == "InDatagrams")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

/// The number behind `Udp6InDatagrams` (`snmp6_seq_show_item` in `net/ipv6/proc.c`).
fn received6(snmp6: &str) -> Option<u64> {
    let mut values = snmp6
        .lines()
        .filter_map(|line| line.strip_prefix("Udp6InDatagrams"));
    values.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_all_cpus_are_added() {
        let text = "0000a1 00000001 0000000f 0 0\n0000b2 00000002 00000010 0 0\n";
        assert_eq!(Softnet::parse(text), Softnet { squeezes: 31 });
    }

    #[test]
    fn datagrams_are_read_by_the_names_of_the_columns() {
        let snmp = "Tcp: A\nTcp: 7\nUdp: NoPorts InDatagrams\nUdp: 1 42\nUdpLite: InDatagrams\n\
                    UdpLite: 9\n";
        assert_eq!(received(snmp), Some(42));
        assert_eq!(received("Udp: NoPorts\nUdp: 1\n"), None);
        let snmp6 = "Udp6NoPorts   \t3\nUdp6InDatagrams                 \t8\n";
        assert_eq!(received6(snmp6), Some(8));
        assert!(Datagrams::read().received_s(1.0).is_some());
    }

    #[test]
    fn a_range_of_ports_has_two_numbers() {
        assert_eq!(range("32768\t60999"), Some([32768, 60999]));
        assert_eq!(range("60999 32768"), None);
        assert_eq!(range("1 70000"), None);
        let network = network();
        assert!((1..=65536).contains(&network.ports));
    }
}
