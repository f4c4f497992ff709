//! What explains a result: recoveries, time-outs and so on, of the engine and of the kernel.

use std::collections::BTreeMap;
use std::fs;

use saiga_tcp::Counters;

/// Sums over all flows of one kind, by the kernel's names.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// The names of the kernel in /proc/net/snmp and /proc/net/netstat.
const NAMES: [&str; 8] = [
    "RetransSegs",
    "TCPSackRecovery",
    "TCPTimeouts",
    "TCPSpuriousRTOs",
    "TCPLossProbes",
    "TCPDSACKRecv",
    "TCPDSACKUndo",
    "TCPFullUndo",
];

/// Counts of the network namespace of the calling thread.
pub(crate) fn of_namespace() -> Counts {
    let files = ["snmp", "netstat"].map(|name| format!("/proc/thread-self/net/{name}"));
    let mut counts = Counts::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        // A line of names, and a line of their values.
        for pair in lines.chunks_exact(2) {
            let (names, values) = (pair[0].split(' '), pair[1].split(' '));
            for (name, value) in names.zip(values) {
                if let Some(known) = NAMES.iter().find(|known| **known == name) {
                    counts.insert(*known, value.parse().unwrap_or(0));
                }
            }
        }
    }
    counts
}

/// Counts of flows of the engine.
pub(crate) fn of_engine<'a>(flows: impl Iterator<Item = &'a Counters>) -> Counts {
    let mut counts = Counts::new();
    for flow in flows {
        for (name, count) in NAMES.into_iter().zip([
            flow.retrans_segs,
            flow.sack_recovery,
            flow.timeouts,
            flow.spurious_rtos,
            flow.loss_probes,
            flow.dsack_recv,
            flow.dsack_undos,
            0,
        ]) {
            *counts.entry(name).or_default() += count;
        }
    }
    counts
}
