//! Huge pages that are reserved. The kernel may reserve fewer than asked: then the step fails.

use saiga_topology::machine::Machine;

use crate::about::{Risk, Stage};
use crate::form::Form;
use crate::knob::{Context, Knob, Place};
use crate::target::Target;

const SOURCE: &str = "procedures 000 and 002; Linux admin-guide/mm/hugetlbpage.rst";
const EFFECT: &str = "fewer TLB misses in a shared buffer; memory is lost to the page cache";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "hugepages.total",
        purpose: "huge pages reserved on all nodes, evenly",
        reason: "Gazelle takes its buffers from huge pages, and a database may put its buffer \
                 pool there (8192 in procedure 000).",
        source: SOURCE,
        effect: EFFECT,
        risk: Risk::Restart,
        check: |context, place, value| {
            if context
                .goal
                .named
                .iter()
                .any(|named| named.knob == "hugepages.node")
            {
                return Err("hugepages.node is named, too: name only one of the two".to_owned());
            }
            let free = context.machine.nodes.iter().map(|node| node.free_bytes);
            fits(context, place, value, free.sum())
        },
        ..Knob::by(total, Stage::Memory)
    },
    Knob {
        id: "hugepages.node",
        purpose: "huge pages reserved on one node (hugepages.node@node0-2048kB)",
        reason: "A process that is bound to a node needs its huge pages on this node (2048 on \
                 node 0 in procedure 002).",
        source: SOURCE,
        effect: EFFECT,
        risk: Risk::Restart,
        check: |context, place, value| {
            let node = place.instance().split('-').next();
            let node = node.and_then(|node| node.strip_prefix("node")?.parse().ok());
            let node = context
                .machine
                .nodes
                .iter()
                .find(|other| Some(other.id) == node);
            fits(
                context,
                place,
                value,
                node.map_or(0, |node| node.free_bytes),
            )
        },
        ..Knob::by(per_node, Stage::Memory)
    },
];

fn file(folder: &str, page_bytes: u64) -> Target {
    let kib = page_bytes / 1024;
    let path = format!("{folder}/hugepages/hugepages-{kib}kB/nr_hugepages");
    Target::file(path, Form::Pages)
}

fn node_file(node: u32, page_bytes: u64) -> Target {
    file(&format!("/sys/devices/system/node/node{node}"), page_bytes)
}

/// The number on each node follows from the total, and is restored after it.
fn total(machine: &Machine) -> Vec<Place> {
    let place = |page_bytes: u64| {
        let target = file("/sys/kernel/mm", page_bytes);
        let nodes = machine.nodes.iter();
        let has_size = |node: &&saiga_topology::machine::Node| {
            node.hugepages
                .iter()
                .any(|size| size.page_bytes == page_bytes)
        };
        let coupled = nodes
            .filter(has_size)
            .map(|node| node_file(node.id, page_bytes));
        Place {
            coupled: coupled.collect(),
            ..Place::new(format!("{}kB", page_bytes / 1024), target)
        }
    };
    let sizes = machine.system.hugepages.iter();
    sizes.map(|size| place(size.page_bytes)).collect()
}

fn per_node(machine: &Machine) -> Vec<Place> {
    let mut places = Vec::new();
    for node in &machine.nodes {
        for size in &node.hugepages {
            let name = format!("node{}-{}kB", node.id, size.page_bytes / 1024);
            places.push(Place::new(name, node_file(node.id, size.page_bytes)));
        }
    }
    places
}

/// Whether the pages beyond the current ones fit in `free` bytes.
fn fits(context: &Context, place: &Place, value: &str, free: u64) -> Result<(), String> {
    let (_, size) = place
        .instance()
        .rsplit_once('-')
        .unwrap_or(("", place.instance()));
    let kib: u64 = size
        .strip_suffix("kB")
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0);
    let now = context.number(place).unwrap_or(0);
    let more = value.parse::<u64>().unwrap_or(0).saturating_sub(now);
    let needed = more.saturating_mul(kib * 1024);
    if needed > free {
        return Err(format!(
            "{more} more pages need {needed} bytes; {free} are free"
        ));
    }
    Ok(())
}
