//! A process: affinities of its threads, and threads, memory and code by node.

use std::collections::{BTreeMap, BTreeSet};

use saiga_document::number;

use crate::draw::lines::Lines;
use crate::machine::Machine;
use crate::process::{ByNode, Process};
use crate::summary::{counted, cpus};

/// Groups of threads, and files, that are listed one by one.
const MOST_GROUPS: usize = 8;
const MOST_FILES: usize = 6;
const MOST_NAMES: usize = 4;

pub(super) fn draw(lines: &mut Lines, machine: &Machine, process: &Process) {
    lines.gap();
    lines.text(0, &title(process));
    for sentence in affinities(process) {
        lines.text(2, &sentence);
    }
    let (heading, rows) = by_node(machine, process);
    lines.table(2, &heading, &rows);
    if process.memory.is_none() {
        lines.text(2, "This kernel does not show memory by node.");
    } else if process.texts.len() > MOST_FILES {
        let more = process.texts.len() - MOST_FILES;
        lines.text(2, &format!("and {} with less code", counted(more, "file")));
    }
}

pub(crate) fn title(process: &Process) -> String {
    format!(
        "Process {} ({}): {}, {} resident",
        process.pid,
        process.name,
        counted(process.threads.len(), "thread"),
        number::bytes(process.resident_bytes)
    )
}

/// One sentence for each set of CPUs on which threads may run, most threads first.
pub(crate) fn affinities(process: &Process) -> Vec<String> {
    let mut groups: BTreeMap<&[u32], Vec<&str>> = BTreeMap::new();
    for thread in &process.threads {
        groups
            .entry(&thread.allowed)
            .or_default()
            .push(&thread.name);
    }
    let mut groups: Vec<(&[u32], Vec<&str>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let left = groups.len().saturating_sub(MOST_GROUPS);
    let sentence = |(allowed, names): (&[u32], Vec<&str>)| {
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        let shown: Vec<&str> = distinct.iter().copied().take(MOST_NAMES).collect();
        let more = if distinct.len() > MOST_NAMES {
            ", ..."
        } else {
            ""
        };
        let verb = if names.len() == 1 { "runs" } else { "run" };
        let threads = counted(names.len(), "thread");
        let allowed = cpus(allowed);
        format!(
            "{threads} {verb} on CPUs {allowed} ({}{more})",
            shown.join(", ")
        )
    };
    let mut sentences: Vec<String> = groups.into_iter().take(MOST_GROUPS).map(sentence).collect();
    if left > 0 {
        sentences.push(format!("and {left} further sets of CPUs"));
    }
    sentences
}

/// A heading with the nodes, and rows of a label and a cell for each node.
pub(crate) fn by_node(machine: &Machine, process: &Process) -> (Vec<String>, Vec<Vec<String>>) {
    let row = |label: &str, cell: &dyn Fn(&crate::machine::Node) -> String| {
        let cells = machine.nodes.iter().map(cell);
        std::iter::once(label.to_owned())
            .chain(cells)
            .collect::<Vec<_>>()
    };
    let heading = row("node", &|node| node.id.to_string());
    let allowed = process.allowed();
    let count = |is: &dyn Fn(&u32) -> bool, cpus: &[u32]| {
        let count = cpus.iter().filter(|cpu| is(cpu)).count();
        if count == 0 {
            "-".to_owned()
        } else {
            count.to_string()
        }
    };
    let mut rows = vec![row("CPUs allowed", &|node| {
        count(&|cpu| allowed.contains(cpu), &node.cpus)
    })];
    let last: Vec<u32> = process
        .threads
        .iter()
        .map(|thread| thread.last_cpu)
        .collect();
    rows.push(row("threads, by last CPU", &|node| {
        count(&|cpu| node.cpus.contains(cpu), &last)
    }));
    let bytes = |by_node: &ByNode, id| match by_node.get(&id) {
        Some(bytes) if *bytes > 0 => number::bytes(*bytes),
        Some(_) | None => "-".to_owned(),
    };
    if let Some(memory) = &process.memory {
        rows.push(row("memory", &|node| bytes(memory, node.id)));
    }
    for text in process.texts.iter().take(MOST_FILES) {
        let name = text.path.rsplit('/').next().unwrap_or(&text.path);
        let name: String = name.chars().take(24).collect();
        rows.push(row(&format!("code of {name}"), &|node| {
            bytes(&text.bytes, node.id)
        }));
    }
    (heading, rows)
}
