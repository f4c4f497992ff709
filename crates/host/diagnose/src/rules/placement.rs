//! Code and memory of the server on NUMA nodes other than those of its CPUs.

use std::collections::BTreeMap;

use saiga_document::number::{self, percent};

use crate::observation::Observation;
use crate::observation::process::Process;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};

/// Share of the text pages on other nodes from which the code counts as remote.
const REMOTE_TEXT: f64 = 0.5;
/// Share of the memory on the nodes of the CPUs below which a bound server counts as remote.
const LOCAL_MEMORY: f64 = 0.8;

pub(super) const TEXT: Rule = Rule {
    name: "remote-text",
    subject: "NUMA nodes of the server's code",
    judge: |observation| judge(observation, |process| &process.text_bytes, &CODE),
};

pub(super) const MEMORY: Rule = Rule {
    name: "remote-memory",
    subject: "NUMA nodes of the server's memory",
    judge: |observation| judge(observation, |process| &process.memory_bytes, &DATA),
};

/// What differs between code and memory.
struct About {
    what: &'static str,
    /// Share of remote bytes from which the placement is reported.
    most_remote: f64,
    reason: &'static str,
    advice: &'static str,
    command: &'static str,
}

const CODE: About = About {
    what: "code of the program and its libraries",
    most_remote: REMOTE_TEXT,
    reason: "each miss of the instruction cache then crosses the interconnect",
    advice: "Move the page cache of the program to the node of its CPUs; this works while it runs",
    command: "saiga tune move-pages --pid PID --to-node N",
};

const DATA: About = About {
    what: "memory",
    most_remote: 1.0 - LOCAL_MEMORY,
    reason: "a server that is bound to nodes should have its memory there",
    advice: "Start the server bound to the nodes of its CPUs, or interleave its memory",
    command: "saiga tune plan --unit UNIT",
};

fn judge(
    observation: &Observation,
    bytes: fn(&Process) -> &BTreeMap<u32, u64>,
    about: &About,
) -> Judgement {
    let Some(process) = &observation.process else {
        return Judgement::Unknown(Needs::Server);
    };
    let bytes = bytes(process);
    let Some(local) = process.local_share(bytes) else {
        return Judgement::Clear("this host has one NUMA node".to_owned());
    };
    let remote = 1.0 - local;
    if remote <= about.most_remote {
        return Judgement::Clear(format!(
            "{} of the {} is on the nodes of the server's CPUs",
            percent(local),
            about.what
        ));
    }
    let by_node: Vec<String> = bytes
        .iter()
        .map(|(node, bytes)| format!("node {node}: {}", number::bytes(*bytes)))
        .collect();
    let nodes: Vec<String> = process.nodes.iter().map(ToString::to_string).collect();
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("remote {} of {}", about.what, process.name),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: remote,
        summary: [
            format!(
                "{} of the {} of {} is on other NUMA nodes than its CPUs.",
                percent(remote),
                about.what,
                process.name
            ),
            format!(
                "Its CPUs are on node {}; {}.",
                nodes.join(","),
                by_node.join(", ")
            ),
            format!("{}.", about.advice),
        ],
        evidence: vec![Evidence::new(
            format!("{} on other nodes", about.what),
            percent(remote),
            format!("{}: {}", percent(about.most_remote), about.reason),
            format!("/proc/{}/numa_maps", process.pid),
        )],
        next: vec![Step::Command(about.command.to_owned())],
        refuted_by: "throughput stays after the pages have moved".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(text: &[(u32, u64)], memory: &[(u32, u64)]) -> Observation {
        Observation {
            process: Some(Process {
                pid: 7,
                name: "mysqld".to_owned(),
                cpus: vec![0, 1],
                nodes: vec![0],
                text_bytes: text.iter().copied().collect(),
                memory_bytes: memory.iter().copied().collect(),
                ..Process::default()
            }),
            ..Observation::default()
        }
    }

    #[test]
    fn a_program_that_was_read_on_another_node_is_found() {
        let observation = observed(&[(0, 100), (3, 4900)], &[(0, 1000)]);
        let Judgement::Found(finding) = (TEXT.judge)(&observation) else {
            panic!("not found");
        };
        assert!((finding.share - 0.98).abs() < 1e-9);
        assert!(
            finding.summary[1].contains("node 3: 4.78 KiB"),
            "{finding:?}"
        );
        assert!(matches!((MEMORY.judge)(&observation), Judgement::Clear(_)));
    }

    #[test]
    fn memory_of_a_bound_server_may_be_remote_to_a_fifth() {
        let (fine, remote) = ([(0, 80), (1, 20)], [(0, 79), (1, 21)]);
        assert!(matches!(
            (MEMORY.judge)(&observed(&[], &fine)),
            Judgement::Clear(_)
        ));
        assert!(matches!(
            (MEMORY.judge)(&observed(&[], &remote)),
            Judgement::Found(_)
        ));
        assert!(matches!(
            (TEXT.judge)(&observed(&[], &fine)),
            Judgement::Clear(_)
        ));
    }
}
