//! Memory of each NUMA node, on machines with more than one node.
//!
//! `/sys/devices/system/node/nodeN/meminfo` has lines such as `Node 0 MemFree: 123 kB`. `numastat`
//! counts the pages that were allocated on this node for processes on another one.

use std::collections::BTreeMap;

use crate::rate::RateMeter;
use crate::table::{Column, Table};

use super::text::{Files, names_in};

const NODES: &str = "devices/system/node";

#[derive(Debug)]
struct Node {
    free: Column,
    other: Column,
    meter: RateMeter,
}

/// Reader of the files of all nodes that exist at the start.
#[derive(Debug)]
pub(crate) struct Numa {
    nodes: BTreeMap<u32, Node>,
}

impl Numa {
    pub(crate) fn new(files: &Files, table: &mut Table) -> Self {
        let number = |name: &String| name.strip_prefix("node")?.parse::<u32>().ok();
        let names = names_in(&files.sys_path(NODES));
        let numbers: Vec<u32> = names.iter().filter_map(number).collect();
        if numbers.len() < 2 {
            return Self {
                nodes: BTreeMap::new(),
            };
        }
        let mut node = |number| Node {
            free: table.column(&format!("node{number}_free_kb")),
            other: table.column(&format!("node{number}_other_node_pages_s")),
            meter: RateMeter::default(),
        };
        Self {
            nodes: numbers
                .iter()
                .map(|&number| (number, node(number)))
                .collect(),
        }
    }

    pub(crate) fn sample(&mut self, at_s: f64, files: &mut Files, table: &mut Table) {
        for (number, node) in &mut self.nodes {
            let path = format!("{NODES}/node{number}/meminfo");
            let free = files.sys(&path).and_then(|text| after(text, "MemFree:"));
            table.put(node.free, free.map(|kb| kb as f64));
            let path = format!("{NODES}/node{number}/numastat");
            let other = files.sys(&path).and_then(|text| after(text, "other_node"));
            table.put(node.other, node.meter.rate(at_s, other));
        }
    }
}

/// The number after a word.
fn after(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    words.by_ref().find(|found| *found == word)?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    fn node(host: &Host, number: u32, free_kb: u64, other: u64) {
        let file = |name| format!("{NODES}/node{number}/{name}");
        let free = format!("Node {number} MemTotal: 9 kB\nNode {number} MemFree: {free_kb} kB\n");
        host.sys(&file("meminfo"), &free);
        host.sys(
            &file("numastat"),
            &format!("numa_hit 1\nother_node {other}\n"),
        );
    }

    #[test]
    fn two_nodes_have_columns_and_a_single_node_has_none() {
        let host = Host::new();
        node(&host, 0, 100, 7);
        let mut table = Table::default();
        Numa::new(&host.files(), &mut table);
        assert!(table.names().is_empty());

        node(&host, 1, 200, 9);
        let mut files = host.files();
        let mut numa = Numa::new(&files, &mut table);
        numa.sample(0.0, &mut files, &mut table);
        node(&host, 1, 150, 29);
        numa.sample(2.0, &mut files, &mut table);
        for (name, value) in [
            ("node0_free_kb", 100.0),
            ("node0_other_node_pages_s", 0.0),
            ("node1_free_kb", 150.0),
            ("node1_other_node_pages_s", 10.0),
        ] {
            assert_eq!(host.cell(&table, name), Some(value), "{name}");
        }
    }
}
