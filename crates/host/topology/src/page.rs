//! A machine as a document: the picture of its nodes, and tables of what is behind it.

use std::collections::BTreeMap;

use saiga_document::model::{
    Align, Block, Cell, Column, Document, Figure, Frame, Picture, PictureBox, Row, Section, Table,
    Tone, Verdict, Visibility,
};
use saiga_document::number;

use crate::draw;
use crate::latency::{Latency, Samples, compare};
use crate::machine::{Machine, Node};
use crate::overview;
use crate::process::Process;
use crate::roles::{NAMES, Roles};
use crate::{scrub, summary};

/// Builds the document. `origin` names the command that made it.
#[must_use]
pub fn page(
    machine: &Machine,
    process: Option<&Process>,
    latency: Option<&Latency>,
    origin: &str,
) -> Document {
    let mut sections = vec![picture(machine, process)];
    sections.extend(process.map(|process| process_section(machine, process)));
    sections.extend(latency.map(|latency| latency_section(machine, latency)));
    sections.extend(distances(machine));
    sections.extend(devices(machine));
    sections.push(section(
        "limits",
        "Limits of this process",
        vec![Block::List(draw::limit_sentences(machine))],
    ));
    sections.push(kernel(machine));
    Document {
        title: overview::title(machine),
        subtitle: machine.system.cpu_model.clone().unwrap_or_default(),
        verdict: Verdict {
            tone: Tone::Neutral,
            lead: overview::counts(machine),
            more: overview::remarks(machine),
        },
        figures: figures(machine),
        pointers: vec![],
        sections,
        origin: origin.to_owned(),
    }
}

fn section(id: &'static str, title: &str, blocks: Vec<Block>) -> Section {
    Section {
        id,
        title: title.to_owned(),
        visibility: Visibility::Summary,
        blocks,
    }
}

fn figures(machine: &Machine) -> Vec<Figure> {
    let figure = |label: &str, value: String, detail: String| Figure {
        label: label.to_owned(),
        value,
        detail,
        tone: Tone::Neutral,
    };
    let memory: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
    let free: u64 = machine.nodes.iter().map(|node| node.free_bytes).sum();
    let queues: u32 = machine.nics.iter().map(|nic| nic.rx_queues).sum();
    vec![
        figure("cores", machine.cores().len().to_string(), String::new()),
        figure(
            "memory",
            number::bytes(memory),
            format!("{} free", number::bytes(free)),
        ),
        figure(
            "network devices",
            machine.nics.len().to_string(),
            summary::counted(queues as usize, "queue"),
        ),
        figure("disks", machine.disks.len().to_string(), String::new()),
    ]
}

fn picture(machine: &Machine, process: Option<&Process>) -> Section {
    let roles = Roles::new(machine, process);
    let mut packages: BTreeMap<(bool, Vec<u32>), Vec<PictureBox>> = BTreeMap::new();
    for node in &machine.nodes {
        let key = (node.cpus.is_empty(), draw::packages_of(machine, node));
        packages
            .entry(key)
            .or_default()
            .push(node_box(machine, &roles, node));
    }
    let frame = |((has_no_cpus, packages), boxes): ((bool, Vec<u32>), Vec<PictureBox>)| {
        let title = if has_no_cpus {
            "Memory without CPUs".to_owned()
        } else {
            draw::package_title(&packages)
        };
        Frame { title, boxes }
    };
    let mut frames: Vec<Frame> = packages.into_iter().map(frame).collect();
    let offline = roles.offline(machine);
    if !offline.is_empty() {
        frames.push(Frame {
            title: "Offline CPUs".to_owned(),
            boxes: vec![PictureBox {
                title: summary::counted(offline.len(), "CPU"),
                lines: vec![],
                groups: vec![offline],
                attached: vec![],
            }],
        });
    }
    let attached = attached(machine, None);
    if !attached.is_empty() {
        frames.push(Frame {
            title: "Devices of unknown node".to_owned(),
            boxes: vec![PictureBox {
                title: "unknown node".to_owned(),
                lines: vec![],
                groups: vec![],
                attached,
            }],
        });
    }
    let picture = Picture {
        caption: "NUMA nodes with their CPUs, network devices and disks".to_owned(),
        roles: NAMES.map(str::to_owned).to_vec(),
        frames,
    };
    let explanation = "Each square is a CPU; a smaller square inside it is a second role. Groups \
                       are clusters, or threads of one core.";
    let blocks = vec![Block::Picture(picture), Block::Text(explanation.to_owned())];
    section("nodes", "Nodes", blocks)
}

fn node_box(machine: &Machine, roles: &Roles, node: &Node) -> PictureBox {
    let mut lines = Vec::new();
    if !node.cpus.is_empty() {
        let cpus = summary::cpus(&node.cpus);
        lines.push(format!(
            "CPUs {cpus}: {}",
            summary::cores(machine, &node.cpus)
        ));
        lines.push(summary::caches(machine, &node.cpus));
    }
    lines.push(summary::memory(node));
    lines.retain(|line| !line.is_empty());
    PictureBox {
        title: format!("Node {}", node.id),
        lines,
        groups: roles.groups(machine, node),
        attached: attached(machine, Some(node.id)),
    }
}

/// Network devices and disks of a node, or those of no known node.
fn attached(machine: &Machine, node: Option<u32>) -> Vec<String> {
    let of = |node: Option<u32>| summary::known_node(machine, node);
    let nics = machine.nics.iter().filter(|nic| of(nic.node) == node);
    let nics = nics.map(|nic| format!("{}: {}", nic.name, summary::nic(nic)));
    let disks = machine.disks.iter().filter(|disk| of(disk.node) == node);
    let disks = disks.map(|disk| format!("{}: {}", disk.name, summary::disk(disk)));
    nics.chain(disks).collect()
}

fn distances(machine: &Machine) -> Option<Section> {
    if machine.nodes.len() < 2 {
        return None;
    }
    let ids = machine.nodes.iter().map(|node| format!("node {}", node.id));
    let heading: Vec<String> = std::iter::once("from".to_owned()).chain(ids).collect();
    let row = |node: &Node| {
        let distances = node.distances.iter().map(u32::to_string);
        std::iter::once(format!("node {}", node.id))
            .chain(distances)
            .collect()
    };
    let rows: Vec<Vec<String>> = machine.nodes.iter().map(row).collect();
    let caption = "Distances of the firmware; 10 is local";
    Some(section(
        "distances",
        "Distances",
        vec![table(caption, &heading, rows)],
    ))
}

/// A table whose first column is text and whose other columns are numbers.
fn table(caption: &str, heading: &[String], rows: Vec<Vec<String>>) -> Block {
    Block::Table(table_of(caption, heading, rows))
}

fn table_of(caption: &str, heading: &[String], rows: Vec<Vec<String>>) -> Table {
    let column = |(index, title): (usize, &String)| Column {
        title: title.clone(),
        align: if index == 0 {
            Align::Left
        } else {
            Align::Right
        },
    };
    let row = |cells: Vec<String>| Row::Cells(cells.into_iter().map(Cell::new).collect());
    Table {
        caption: caption.to_owned(),
        columns: heading.iter().enumerate().map(column).collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn devices(machine: &Machine) -> Option<Section> {
    let mut rows = Vec::new();
    let mut add = |name: &str, node: Option<u32>, text: String, irqs: &[u32], mounts: &[String]| {
        let interrupts = summary::interrupts(machine, irqs, node).unwrap_or_default();
        let node = summary::known_node(machine, node).map(|node| node.to_string());
        let node = node.unwrap_or_else(|| "unknown".to_owned());
        rows.push([name.to_owned(), node, text, interrupts, mounts.join(", ")]);
    };
    for nic in &machine.nics {
        add(&nic.name, nic.node, summary::nic(nic), &nic.irqs, &[]);
    }
    for disk in &machine.disks {
        add(
            &disk.name,
            disk.node,
            summary::disk(disk),
            &disk.irqs,
            &disk.mounts,
        );
    }
    let is_empty = rows.is_empty();
    let column = |title: &str| Column {
        title: title.to_owned(),
        align: Align::Left,
    };
    let row = |cells: [String; 5]| Row::Cells(cells.into_iter().map(Cell::new).collect());
    let table = Table {
        caption: "Network devices and disks".to_owned(),
        columns: ["name", "node", "device", "interrupts", "mounted at"]
            .map(column)
            .to_vec(),
        rows: rows.into_iter().map(row).collect(),
    };
    let blocks = vec![Block::Table(table)];
    (!is_empty).then(|| section("devices", "Devices", blocks))
}

fn kernel(machine: &Machine) -> Section {
    let system = &machine.system;
    let mut facts = vec![
        ("kernel".to_owned(), system.kernel.clone()),
        ("architecture".to_owned(), system.architecture.clone()),
        ("page size".to_owned(), summary::size(system.page_bytes)),
        (
            "command line".to_owned(),
            scrub::command_line(&system.command_line),
        ),
        (
            "IOMMU".to_owned(),
            if system.iommu { "in use" } else { "not in use" }.to_owned(),
        ),
    ];
    let mut add = |name: &str, value: &Option<String>| {
        facts.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
    };
    add("transparent huge pages", &system.transparent_hugepages);
    add("huge pages", &summary::hugepages(&system.hugepages));
    add("virtualisation", &system.virtualisation);
    section("kernel", "Kernel", vec![Block::Facts(facts)])
}

fn process_section(machine: &Machine, process: &Process) -> Section {
    let (heading, rows) = draw::process::by_node(machine, process);
    let blocks = vec![
        Block::List(draw::process::affinities(process)),
        table("Threads, memory and code by node", &heading, rows),
    ];
    section("process", &draw::process::title(process), blocks)
}

/// The latencies from CPUs (rows) to nodes (columns) in ns, as a heat map: the darker, the slower.
#[must_use]
pub fn latency_table(latency: &Latency) -> Table {
    let (heading, rows) = draw::latency::table(latency);
    let mut table = table_of(&draw::latency::title(latency), &heading, rows);
    let all = latency.rows.iter().flat_map(|row| &row.cells);
    let least: Vec<f64> = all.flatten().map(Samples::least).collect();
    let low = least.iter().copied().fold(f64::INFINITY, f64::min);
    let high = least.iter().copied().fold(0.0, f64::max);
    for (row, measured) in table.rows.iter_mut().zip(&latency.rows) {
        let Row::Cells(cells) = row else { continue };
        for (cell, samples) in cells.iter_mut().skip(1).zip(&measured.cells) {
            let shade = |samples: &Samples| (samples.least() - low) / (high - low).max(1.0);
            cell.shade = samples.as_ref().map(shade);
        }
    }
    table
}

fn latency_section(machine: &Machine, latency: &Latency) -> Section {
    let comparison = compare(machine, latency);
    let mut blocks = vec![Block::Table(latency_table(latency))];
    if latency.nodes.len() > 1 {
        let (heading, rows) = draw::latency::ratios(latency, &comparison);
        blocks.push(table(draw::latency::RATIOS, &heading, rows));
    }
    let sentences = draw::latency::sentences(latency, &comparison);
    blocks.extend(sentences.into_iter().map(Block::Text));
    section("latency", "Memory latency", blocks)
}
