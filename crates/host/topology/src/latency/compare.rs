//! Compares measured latencies with the firmware's distances.

use crate::latency::{Latency, Row, Samples};
use crate::machine::Machine;

/// A difference in latency below this share is not called a difference.
const TOLERANCE: f64 = 0.05;

/// Ratios to the local node, measured and by the firmware.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// For each row and node with both: measured ratio, and distance divided by the local distance.
    pub ratios: Vec<Vec<Option<[f64; 2]>>>,
    /// One sentence for each pair of nodes whose order differs.
    pub differences: Vec<String>,
}

/// Compares all rows. A row whose own node was not measured, and a machine without distances, have
/// no ratios.
#[must_use]
pub fn compare(machine: &Machine, latency: &Latency) -> Comparison {
    let mut comparison = Comparison {
        ratios: Vec::new(),
        differences: Vec::new(),
    };
    for row in &latency.rows {
        let distance = |node: u32| {
            let from = machine.nodes.iter().find(|one| one.id == row.node)?;
            let at = machine.nodes.iter().position(|one| one.id == node)?;
            from.distances.get(at).copied()
        };
        let samples = |node: u32| {
            let at = latency.nodes.iter().position(|one| *one == node)?;
            row.cells.get(at)?.as_ref()
        };
        let measured = |node: u32| samples(node).map(Samples::least);
        let ratio = |node: &u32| {
            let distances = f64::from(distance(*node)?) / f64::from(distance(row.node)?);
            Some([measured(*node)? / measured(row.node)?, distances])
        };
        comparison
            .ratios
            .push(latency.nodes.iter().map(ratio).collect());
        let known: Vec<(u32, u32, &Samples)> = latency
            .nodes
            .iter()
            .filter_map(|node| Some((*node, distance(*node)?, samples(*node)?)))
            .collect();
        comparison.differences.extend(differences(row, &known));
    }
    comparison
}

/// Sentences for pairs of nodes of which the more distant one is faster: its median is below the
/// least number of the other one, and its least number is lower by more than the tolerance.
fn differences(row: &Row, known: &[(u32, u32, &Samples)]) -> Vec<String> {
    let mut sentences = Vec::new();
    for (near, near_distance, near_samples) in known {
        for (far, far_distance, far_samples) in known {
            let (near_ns, far_ns) = (near_samples.least(), far_samples.least());
            let is_faster = far_samples.median() < near_ns && far_ns < near_ns * (1.0 - TOLERANCE);
            if near_distance < far_distance && is_faster {
                sentences.push(format!(
                    "From CPU {} on node {}, node {far} (distance {far_distance}) is faster than \
                     node {near} (distance {near_distance}): {far_ns:.0} ns and {near_ns:.0} ns.",
                    row.cpu, row.node
                ));
            }
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Limits, Node, System};

    fn machine(distances: [&[u32]; 3]) -> Machine {
        let node = |(id, distances): (u32, &[u32])| Node {
            id,
            cpus: vec![id],
            memory_bytes: 1,
            free_bytes: 1,
            distances: distances.to_vec(),
            hugepages: vec![],
        };
        Machine {
            system: System {
                architecture: String::new(),
                kernel: String::new(),
                cpu_model: None,
                page_bytes: 4096,
                command_line: String::new(),
                product: None,
                virtualisation: None,
                iommu: false,
                hugepages: vec![],
                transparent_hugepages: None,
            },
            cpus: vec![],
            caches: vec![],
            nodes: (0..).zip(distances).map(node).collect(),
            nics: vec![],
            disks: vec![],
            irqs: vec![],
            limits: Limits {
                cpus: vec![],
                nodes: vec![],
                cpu_quota: None,
                memory_bytes: None,
                cgroup_version: None,
            },
        }
    }

    fn latency(rows: &[[Option<f64>; 3]]) -> Latency {
        let row = |(id, cells): (u32, &[Option<f64>; 3])| Row {
            cpu: id,
            node: id,
            cells: cells
                .map(|ns| {
                    ns.map(|ns| Samples {
                        ns: vec![ns + 9.0, ns],
                    })
                })
                .to_vec(),
        };
        Latency {
            bytes: 1,
            pages: String::new(),
            nodes: vec![0, 1, 2],
            rows: (0..).zip(rows).map(row).collect(),
            notes: vec![],
        }
    }

    #[test]
    fn ratios_are_to_the_own_node() {
        let machine = machine([&[10, 16, 32], &[16, 10, 25], &[32, 25, 10]]);
        let rows = [
            [Some(100.0), Some(150.0), Some(300.0)],
            [None, Some(100.0), None],
        ];
        let comparison = compare(&machine, &latency(&rows));
        let first = [Some([1.0, 1.0]), Some([1.5, 1.6]), Some([3.0, 3.2])];
        assert_eq!(comparison.ratios[0], first);
        assert_eq!(comparison.ratios[1], [None, Some([1.0, 1.0]), None]);
        assert!(comparison.differences.is_empty());
    }

    #[test]
    fn a_different_order_is_said_beyond_the_tolerance() {
        let machine = machine([&[10, 16, 32], &[16, 10, 25], &[32, 25, 10]]);
        let rows = [
            [Some(100.0), Some(200.0), Some(150.0)],
            [Some(100.0), Some(101.0), None],
        ];
        let comparison = compare(&machine, &latency(&rows));
        assert_eq!(
            comparison.differences,
            [
                "From CPU 0 on node 0, node 2 (distance 32) is faster than node 1 (distance 16): 150 ns \
              and 200 ns."
            ]
        );
    }
}
