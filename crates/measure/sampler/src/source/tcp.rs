//! `/proc/net/snmp` and `/proc/net/netstat`: TCP counters of the whole host.
//!
//! Both files have pairs of lines: names, then numbers in the same order. Each kernel version may
//! add names, so numbers are found by name. The crate `procfs` reads only the first file.

use crate::rate::RateMeter;
use crate::table::{Column, Table};

use super::text::Files;

/// File, prefix of the line, name in the line, metric.
const COUNTERS: [(&str, &str, &str, &str); 9] = [
    ("net/snmp", "Tcp:", "InSegs", "tcp_in_segments_s"),
    ("net/snmp", "Tcp:", "OutSegs", "tcp_out_segments_s"),
    ("net/snmp", "Tcp:", "RetransSegs", "tcp_retransmits_s"),
    ("net/snmp", "Tcp:", "OutRsts", "tcp_out_resets_s"),
    ("net/snmp", "Tcp:", "ActiveOpens", "tcp_active_opens_s"),
    ("net/snmp", "Tcp:", "PassiveOpens", "tcp_passive_opens_s"),
    ("net/netstat", "TcpExt:", "TCPTimeouts", "tcp_timeouts_s"),
    (
        "net/netstat",
        "TcpExt:",
        "ListenOverflows",
        "tcp_listen_overflows_s",
    ),
    (
        "net/netstat",
        "TcpExt:",
        "ListenDrops",
        "tcp_listen_drops_s",
    ),
];

/// Reader of both files.
#[derive(Debug)]
pub(crate) struct Tcp {
    counters: [(Column, RateMeter); COUNTERS.len()],
    established: Column,
}

impl Tcp {
    pub(crate) fn new(table: &mut Table) -> Self {
        Self {
            counters: COUNTERS.map(|(_, _, _, name)| (table.column(name), RateMeter::default())),
            established: table.column("tcp_established_connections"),
        }
    }

    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        for file in ["net/snmp", "net/netstat"] {
            let text = files.proc(file).unwrap_or_default();
            for ((of, prefix, name, _), (column, meter)) in COUNTERS.iter().zip(&mut self.counters)
            {
                if *of == file {
                    table.put(*column, meter.rate(at_s, value(text, prefix, name)));
                }
            }
            if file == "net/snmp" {
                let established = value(text, "Tcp:", "CurrEstab");
                table.put(self.established, established.map(|count| count as f64));
            }
        }
    }
}

/// The number for `name` in the pair of lines that begin with `prefix`.
fn value(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut pair = text.lines().filter(|line| line.starts_with(prefix));
    let (names, numbers) = (pair.next()?, pair.next()?);
    let index = names
        .split_ascii_whitespace()
        .position(|word| word == name)?;
    numbers.split_ascii_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    fn write(host: &Host, retransmits: u64, overflows: u64) {
        host.proc(
            "net/snmp",
            &format!(
                "Ip: Forwarding\nIp: 1\nTcp: MaxConn CurrEstab RetransSegs\nTcp: -1 42 {retransmits}\n"
            ),
        );
        host.proc(
            "net/netstat",
            &format!("TcpExt: A ListenOverflows\nTcpExt: 7 {overflows}\nIpExt: B\nIpExt: 1\n"),
        );
    }

    #[test]
    fn counters_are_found_by_name() {
        let host = Host::new();
        let mut table = Table::default();
        let mut tcp = Tcp::new(&mut table);
        let mut files = host.files();
        write(&host, 100, 5);
        tcp.sample(0.0, &mut files, &mut table);
        write(&host, 150, 4);
        tcp.sample(2.0, &mut files, &mut table);
        for (name, value) in [
            ("tcp_retransmits_s", Some(25.0)),
            ("tcp_listen_overflows_s", None), // The counter has decreased.
            ("tcp_established_connections", Some(42.0)),
            ("tcp_in_segments_s", None),
        ] {
            assert_eq!(host.cell(&table, name), value, "{name}");
        }
    }
}
