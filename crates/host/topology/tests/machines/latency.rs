//! A small measurement on this machine. It checks the shape, not the times.

use saiga_process::root::Root;
use saiga_topology::latency::{LatencyError, Options, compare, measure};
use saiga_topology::read::read;

#[test]
fn a_measurement_has_a_cell_for_each_allowed_node() {
    let machine = read(&Root::host()).unwrap();
    let options = Options {
        bytes: 8 << 20,
        repetitions: 2,
        steps: 1000,
    };
    let mut rows = 0;
    // The largest cache of a host may be hundreds of MiB, of which pages would be written.
    let mut small = machine.clone();
    small.caches.retain(|cache| cache.level < 3);
    let latency = measure(&small, options, |_| rows += 1).unwrap();
    assert_eq!(latency.rows.len(), rows);
    assert!(latency.bytes >= 8 << 20 && !latency.pages.is_empty());
    let nodes: Vec<u32> = machine
        .nodes
        .iter()
        .filter(|node| node.memory_bytes > 0)
        .map(|node| node.id)
        .collect();
    assert_eq!(latency.nodes, nodes);
    for row in &latency.rows {
        assert_eq!(row.cells.len(), nodes.len());
        let own = nodes.iter().position(|node| *node == row.node);
        let own = own.and_then(|at| row.cells[at].as_ref()).unwrap();
        assert_eq!(own.ns.len(), 2);
        assert!(own.ns.iter().all(|ns| *ns > 0.0));
    }
    assert_eq!(compare(&machine, &latency).ratios.len(), rows);
}

#[test]
fn too_little_memory_is_an_error() {
    let mut machine = read(&Root::host()).unwrap();
    for node in &mut machine.nodes {
        node.free_bytes = 10 << 20;
    }
    let error = measure(&machine, Options::default(), |_| {}).unwrap_err();
    assert!(
        matches!(
            error,
            LatencyError::NoMemory {
                free: 10_485_760,
                ..
            }
        ),
        "{error}"
    );
    machine.limits.cpus.clear();
    let error = measure(&machine, Options::default(), |_| {}).unwrap_err();
    assert!(matches!(error, LatencyError::NothingAllowed), "{error}");
}
