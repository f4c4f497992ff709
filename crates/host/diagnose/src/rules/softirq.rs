//! One CPU that is busy with network interrupts while the others are idle.

use saiga_document::number::percent;

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};

/// Time in softirqs from which a CPU cannot take more packets, in percent.
const BUSY_PERCENT: f64 = 80.0;
/// Mean time in softirqs of all CPUs, in percent. Above it, more interrupt CPUs do not help.
const MEAN_PERCENT: f64 = 30.0;

pub(super) const RULE: Rule = Rule {
    name: "softirq",
    subject: "CPUs that handle network interrupts",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let softirq = observation.metrics.by_cpu("softirq");
    let irq = observation.metrics.by_cpu("irq");
    let busy = |cpu: usize| {
        softirq.get(&cpu).copied().unwrap_or(0.0) + irq.get(&cpu).copied().unwrap_or(0.0)
    };
    let Some(most) = softirq
        .keys()
        .copied()
        .max_by(|a, b| busy(*a).total_cmp(&busy(*b)))
    else {
        return Judgement::Unknown(Needs::Host);
    };
    let mean = softirq.keys().map(|cpu| busy(*cpu)).sum::<f64>() / softirq.len() as f64;
    if busy(most) < BUSY_PERCENT || mean > MEAN_PERCENT || softirq.len() < 2 {
        return Judgement::Clear(format!(
            "CPU {most} spends {} in interrupts, all CPUs {} on average",
            shown(busy(most)),
            shown(mean)
        ));
    }
    let full: Vec<usize> = softirq
        .keys()
        .copied()
        .filter(|cpu| busy(*cpu) >= BUSY_PERCENT)
        .collect();
    let shared = observation
        .process
        .as_ref()
        .is_some_and(|process| full.iter().any(|cpu| process.cpus.contains(cpu)));
    let evidence = evidence(observation, most, busy(most), mean);
    Judgement::Found(Box::new(Finding {
        bottleneck: format!("interrupts on CPU {most}"),
        kind: Kind::Cause,
        certainty: Certainty::Measured,
        share: (busy(most) / 100.0).min(1.0),
        summary: [
            format!("CPU {most} has no time left for more packets."),
            format!(
                "It spends {} in interrupts, and all CPUs {} on average{}.",
                shown(busy(most)),
                shown(mean),
                if shared {
                    "; the server may run on it, too"
                } else {
                    ""
                }
            ),
            "Spread the interrupts over more CPUs, and keep the server away from these CPUs."
                .to_owned(),
        ],
        evidence,
        next: vec![Step::Command(
            "saiga tune plan   # interrupts of network devices".to_owned(),
        )],
        refuted_by: "throughput stays when the interrupts are spread over more CPUs".to_owned(),
    }))
}

fn shown(value: f64) -> String {
    percent(value / 100.0)
}

fn evidence(observation: &Observation, most: usize, busy: f64, mean: f64) -> Vec<Evidence> {
    let squeezed = observation.metrics.mean("softnet_squeezes_s");
    let mut evidence = vec![
        Evidence::new(
            format!("CPU {most} in interrupts"),
            shown(busy),
            format!("{}: packets then wait", shown(BUSY_PERCENT)),
            format!("cpu{most}_softirq_percent, cpu{most}_irq_percent"),
        ),
        Evidence::new(
            "all CPUs in interrupts",
            shown(mean),
            format!("at most {}: other CPUs could help", shown(MEAN_PERCENT)),
            "cpuN_softirq_percent",
        ),
    ];
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
