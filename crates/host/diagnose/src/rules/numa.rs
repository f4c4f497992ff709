//! How much of a loss the distance of the memory explains.
//!
//! A program that only waits for memory takes as many times as long as the latencies differ; a
//! larger loss has a second cause.

use saiga_document::number::{percent, ratio};
use saiga_topology::latency::Latency;

use crate::law::groups::{Group, groups};
use crate::law::numa;
use crate::observation::Observation;
use crate::observation::change::{Change, Side};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};

/// Loss of throughput from which it is explained.
const LOSS: f64 = 1.2;

pub(super) const RULE: Rule = Rule {
    name: "numa-loss",
    subject: "loss by the distance of the memory",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let (Some(latency), Some(change)) = (&observation.latency, &observation.change) else {
        return Judgement::Unknown(Needs::Latency);
    };
    let groups = sockets(latency);
    let [near, .., far] = groups.as_slice() else {
        return Judgement::Clear("all latencies of the memory are alike".to_owned());
    };
    let cap = numa::cap(near.min, far.mean);
    let observed = change.ratio.max(1.0 / change.ratio);
    if change.before.binding == change.after.binding || observed < LOSS {
        return Judgement::Clear(format!(
            "the placements differ by {}; remote memory explains up to {}",
            ratio(observed),
            ratio(cap)
        ));
    }
    Judgement::Found(Box::new(finding(change, [near, far], cap, observed)))
}

/// Groups of latencies: those of each CPU to each node, over all CPUs.
fn sockets(latency: &Latency) -> Vec<Group> {
    let cells = latency
        .rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten());
    let all: Vec<f64> = cells.map(saiga_topology::latency::Samples::least).collect();
    groups(&all)
}

fn slower(change: &Change) -> &Side {
    if change.ratio < 1.0 {
        &change.after
    } else {
        &change.before
    }
}

fn finding(change: &Change, [near, far]: [&Group; 2], cap: f64, observed: f64) -> Finding {
    let slow = slower(change);
    let busy = slow.busy.filter(|busy| *busy > 0.0);
    let both = busy.map(|busy| numa::loss(cap, busy));
    let is_more = numa::needs_second_cause(observed, cap);
    let mut evidence = vec![
        Evidence::new(
            "latency of near and far memory",
            format!("{:.0} ns and {:.0} ns", near.min, far.mean),
            format!("explains a loss of up to {}", ratio(cap)),
            "saiga topology --latency",
        ),
        Evidence::new(
            "loss of throughput",
            ratio(observed),
            format!("more than {} has a second cause", ratio(cap * 1.2)),
            format!("arms {} and {}", change.before.name, change.after.name),
        ),
    ];
    if let (Some(busy), Some(both)) = (busy, both) {
        evidence.push(Evidence::new(
            format!("CPUs that work in {}", slow.name),
            percent(busy),
            format!(
                "{} by memory times {} by idle CPUs explain {}",
                ratio(both.memory),
                ratio(both.idle_cpus),
                ratio(both.explained())
            ),
            "CPU time of the server",
        ));
    }
    Finding {
        bottleneck: if is_more {
            "remote memory and a second cause".to_owned()
        } else {
            "remote memory".to_owned()
        },
        kind: Kind::Cause,
        certainty: Certainty::Possible,
        share: 1.0 - 1.0 / observed,
        summary: [
            format!("{} is slower because of where it is placed.", slow.name),
            format!(
                "It loses a factor of {}; the distance of the memory explains up to {}.",
                ratio(observed),
                ratio(cap)
            ),
            if is_more {
                "Look for the second cause: idle CPUs, a small pool, interrupts on other nodes."
                    .to_owned()
            } else {
                "Bind the server's CPUs and memory to the same node, and move its code.".to_owned()
            },
        ],
        evidence,
        next: vec![Step::Command(
            "saiga tune move-pages --pid PID --to-node N".to_owned(),
        )],
        refuted_by: "the loss stays when memory and code are on the node of the CPUs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::change::Binding;
    use saiga_topology::latency::{Row, Samples};

    /// From every eighth core of a machine with 128 cores to node 0, in ns.
    const LATENCIES_NS: [f64; 16] = [
        149.976, 168.805, 191.415, 178.283, 170.814, 185.699, 212.281, 202.479, 426.176, 444.367,
        465.894, 452.245, 448.352, 460.603, 485.989, 490.402,
    ];

    fn observed(ratio: f64, busy: f64) -> Observation {
        let row = |(cpu, ns): (u32, &f64)| Row {
            cpu,
            node: cpu / 64,
            cells: vec![Some(Samples { ns: vec![*ns] })],
        };
        let side = |command: &str, busy| Side {
            name: command.to_owned(),
            binding: Binding::of(command),
            busy: Some(busy),
            load: None,
        };
        Observation {
            latency: Some(Latency {
                bytes: 1 << 28,
                pages: "2 MiB huge pages".to_owned(),
                nodes: vec![0],
                rows: (0..).step_by(8).zip(&LATENCIES_NS).map(row).collect(),
                notes: Vec::new(),
            }),
            change: Some(Change {
                before: side("numactl -N 0 -m 0 x", 0.9),
                after: side("numactl -N 1 -m 0 x", busy),
                ratio,
                interval: None,
                nodes: Some(2),
            }),
            ..Observation::default()
        }
    }

    #[test]
    fn a_tenfold_loss_has_a_second_cause() {
        let Judgement::Found(finding) = judge(&observed(0.1, 0.30)) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "remote memory and a second cause");
        assert_eq!(finding.evidence[0].value, "150 ns and 459 ns");
        assert_eq!(
            finding.evidence[2].threshold,
            "3.06 by memory times 3.33 by idle CPUs explain 10.2"
        );
    }

    #[test]
    fn a_threefold_loss_is_the_distance_alone() {
        let Judgement::Found(finding) = judge(&observed(1.0 / 3.0, 0.9)) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "remote memory");
        assert!(matches!(judge(&observed(0.95, 0.9)), Judgement::Clear(_)));
    }
}
