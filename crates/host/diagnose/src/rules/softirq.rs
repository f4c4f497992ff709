//! One CPU that handles the packets of all and has no time left for more, while others are idle.

use std::collections::BTreeMap;

use saiga_document::number::{percent, value};

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::rules::cpu;

/// Time in softirqs from which a CPU cannot take more packets, in percent.
const BUSY_PERCENT: f64 = 80.0;
/// Mean time in softirqs of all CPUs, in percent. Above it, more interrupt CPUs do not help.
const MEAN_PERCENT: f64 = 30.0;
/// The same as `BUSY_PERCENT` for a CPU without idle time on which other programs run: packets that
/// come faster than an interrupt handles them wait for `ksoftirqd`, which shares the CPU with these
/// programs.
const SHARED_PERCENT: f64 = 25.0;
/// Used share of a CPU without idle time.
const FULL: f64 = 0.95;
/// CPUs that other programs use, from which they matter.
const OTHERS: f64 = 0.25;

pub(super) const RULE: Rule = Rule {
    name: "softirq",
    subject: "CPUs that handle network interrupts",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let mut interrupts = observation.metrics.by_cpu("softirq");
    for (cpu, hard) in observation.metrics.by_cpu("irq") {
        *interrupts.entry(cpu).or_default() += hard;
    }
    let Some((&most, &busy)) = interrupts.iter().max_by(|a, b| a.1.total_cmp(b.1)) else {
        return Judgement::Unknown(Needs::Host);
    };
    let mean = interrupts.values().sum::<f64>() / interrupts.len() as f64;
    let others = others(observation, &interrupts, most);
    let is_full = busy >= BUSY_PERCENT || others.is_some();
    if !is_full || mean > MEAN_PERCENT || interrupts.len() < 2 {
        return Judgement::Clear(format!(
            "CPU {most} spends {} in interrupts, all CPUs {} on average",
            shown(busy),
            shown(mean)
        ));
    }
    let others = others.filter(|_| busy < BUSY_PERCENT);
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("interrupts on CPU {most}"),
        kind: Kind::Cause,
        certainty: Certainty::Measured,
        share: others.map_or(busy / 100.0, |_| 1.0).min(1.0),
        summary: [
            format!("CPU {most} has no time left for more packets."),
            format!(
                "It spends {} in interrupts, and all CPUs {} on average{}.",
                shown(busy),
                shown(mean),
                match others {
                    Some(cpus) => format!("; other programs use {} CPUs", value(cpus)),
                    None if may_run_on(observation, &interrupts) => {
                        "; the server may run on it, too".to_owned()
                    }
                    None => String::new(),
                }
            ),
            if others.is_some() {
                "Keep other programs away from this CPU, or let more CPUs handle the interrupts."
            } else {
                "Spread the interrupts over more CPUs, and keep the server away from these CPUs."
            }
            .to_owned(),
        ],
        evidence: evidence(observation, most, busy, mean, others),
        next: vec![Step::Command(
            "saiga tune plan   # interrupts of network devices".to_owned(),
        )],
        refuted_by: "throughput stays when the interrupts are spread over more CPUs".to_owned(),
    }))
}

/// Whether the server may run on a CPU that is busy with interrupts.
fn may_run_on(observation: &Observation, interrupts: &BTreeMap<usize, f64>) -> bool {
    observation.process.as_ref().is_some_and(|process| {
        let busy = |cpu: &usize| {
            interrupts
                .get(cpu)
                .is_some_and(|busy| *busy >= BUSY_PERCENT)
        };
        process.cpus.iter().any(busy)
    })
}

/// CPUs that other programs use, if they take time on the CPU that handles most packets. A server
/// that is bound to this CPU uses it itself; rule `cpu` judges that.
fn others(
    observation: &Observation,
    interrupts: &BTreeMap<usize, f64>,
    most: usize,
) -> Option<f64> {
    let busy = interrupts[&most];
    let is_main = busy >= SHARED_PERCENT && busy * 2.0 >= interrupts.values().sum();
    let used = cpu::used_of(&observation.metrics, [most]);
    let is_full = used.iter().any(|[used, left]| used / left >= FULL);
    let is_bound_there = observation.process.as_ref().is_some_and(|process| {
        process.cpus.len() < interrupts.len() && process.cpus.contains(&most)
    });
    let others = cpu::others(&observation.metrics)?;
    (is_main && is_full && !is_bound_there && others >= OTHERS).then_some(others)
}

fn shown(value: f64) -> String {
    percent(value / 100.0)
}

fn evidence(
    observation: &Observation,
    most: usize,
    busy: f64,
    mean: f64,
    others: Option<f64>,
) -> Vec<Evidence> {
    let least = if others.is_some() {
        SHARED_PERCENT
    } else {
        BUSY_PERCENT
    };
    let squeezed = observation.metrics.mean("softnet_squeezes_s");
    let mut evidence = vec![
        Evidence::new(
            format!("CPU {most} in interrupts"),
            shown(busy),
            format!("{}: packets then wait", shown(least)),
            format!("cpu{most}_softirq_percent, cpu{most}_irq_percent"),
        ),
        Evidence::new(
            "all CPUs in interrupts",
            shown(mean),
            format!("at most {}: other CPUs could help", shown(MEAN_PERCENT)),
            "cpuN_softirq_percent",
        ),
    ];
    evidence.extend(others.map(|cpus| {
        Evidence::new(
            "other programs, in CPUs",
            value(cpus),
            format!("{OTHERS}: they take time from the packets"),
            format!("server_cpu_percent, client_cpu_percent, cpu{most}_idle_percent"),
        )
    }));
    if let Some(squeezed) = squeezed {
        evidence.push(Evidence::new(
            "polls that ended before the queue was empty",
            crate::text::per_second(squeezed),
            "0",
            "third column of /proc/net/softnet_stat",
        ));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(softirq: &[f64]) -> Observation {
        let mut observation = Observation::default();
        for (cpu, value) in softirq.iter().enumerate() {
            observation
                .metrics
                .add(&format!("cpu{cpu}_softirq_percent"), 1.0, *value);
        }
        observation
    }

    #[test]
    fn one_busy_cpu_of_eight_is_the_bottleneck() {
        let mut observation = observed(&[2.0, 2.0, 93.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        observation.process = Some(crate::observation::process::Process {
            cpus: vec![0, 1, 2, 3],
            ..Default::default()
        });
        let Judgement::Found(finding) = judge(&observation) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "interrupts on CPU 2");
        assert!(
            finding.summary[1].contains("the server may run on it"),
            "{finding:?}"
        );
    }

    /// CPU 3 of four has no idle time: 40 % of it are softirqs, the rest is another program's.
    fn shared(server: &[usize]) -> Observation {
        let mut observation = observed(&[1.0, 2.0, 2.0, 40.0]);
        for (cpu, idle) in [60.0, 70.0, 80.0, 0.0].into_iter().enumerate() {
            let name = format!("cpu{cpu}_idle_percent");
            observation.metrics.add(&name, 1.0, idle);
        }
        observation.metrics.add("server_cpu_percent", 1.0, 40.0);
        observation.metrics.add("client_cpu_percent", 1.0, 50.0);
        observation.process = Some(crate::observation::process::Process {
            cpus: server.to_vec(),
            ..Default::default()
        });
        observation
    }

    #[test]
    fn a_program_on_the_cpu_of_the_packets_is_found() {
        for cpus in [&[0][..], &[0, 1, 2, 3]] {
            let Judgement::Found(finding) = judge(&shared(cpus)) else {
                panic!("not found for a server on {cpus:?}");
            };
            assert_eq!(finding.bottleneck, "interrupts on CPU 3");
            assert!(
                finding.summary[1].contains("other programs use 1.000 CPUs"),
                "{finding:?}"
            );
        }
        // The server is bound to CPU 3 and fills it itself.
        assert!(matches!(judge(&shared(&[3])), Judgement::Clear(_)));
        // The server and its clients are all that runs.
        let mut alone = shared(&[0]);
        alone.metrics.add("client_cpu_percent", 1.0, 250.0);
        assert!(matches!(judge(&alone), Judgement::Clear(_)));
    }

    #[test]
    fn many_busy_cpus_and_idle_cpus_are_not() {
        for fine in [&[85.0, 80.0, 90.0, 20.0][..], &[20.0, 1.0], &[95.0]] {
            assert!(
                matches!(judge(&observed(fine)), Judgement::Clear(_)),
                "{fine:?}"
            );
        }
        assert!(matches!(judge(&observed(&[])), Judgement::Unknown(_)));
    }
}
