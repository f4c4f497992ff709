//! Misses that take longer under one placement than under another.
//!
//! Two placements that run the same program with the same miss rates, but execute different numbers
//! of instructions per cycle, differ in what a miss costs: code or data are on a remote node.

use saiga_document::number::{percent, ratio, value};

use crate::observation::Observation;
use crate::observation::counters::Counters;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};

/// Ratio of the instructions per cycle from which the placements differ.
const LEAST: f64 = 1.2;
/// Relative difference up to which miss rates are equal.
const EQUAL: f64 = 0.1;

pub(super) const RULE: Rule = Rule {
    name: "miss-cost",
    subject: "cost of a cache miss under two placements",
    judge,
};

/// A miss rate under the faster and under the slower placement.
struct Rate<'a> {
    event: &'a str,
    fast: f64,
    slow: f64,
}

impl Rate<'_> {
    fn difference(&self) -> f64 {
        (self.slow - self.fast).abs() / self.fast.max(f64::MIN_POSITIVE)
    }
}

fn judge(observation: &Observation) -> Judgement {
    let [one, other] = observation.counters.as_slice() else {
        return Judgement::Unknown(Needs::Counters);
    };
    let (fast, slow) = if one.ipc() > other.ipc() {
        (one, other)
    } else {
        (other, one)
    };
    let factor = fast.ipc() / slow.ipc();
    let shown = format!(
        "{} executes {} instructions per cycle, {} {}",
        fast.name,
        value(fast.ipc()),
        slow.name,
        value(slow.ipc())
    );
    if factor < LEAST {
        return Judgement::Clear(shown);
    }
    let rates = rates(fast, slow);
    if rates.is_empty() {
        return Judgement::Clear(format!("{shown}; no miss was counted in both"));
    }
    let uneven = rates.iter().find(|rate| rate.difference() > EQUAL);
    if let Some(rate) = uneven {
        return Judgement::Clear(format!(
            "{shown}, but {} differ by {}: more misses, not slower ones",
            rate.event,
            percent(rate.difference())
        ));
    }
    Judgement::Found(Box::new(finding(observation, [fast, slow], factor, &rates)))
}

/// The rates of the misses that were counted under both placements.
fn rates<'a>(fast: &'a Counters, slow: &Counters) -> Vec<Rate<'a>> {
    let pair = |(event, fast): (&'a str, f64)| {
        let (_, slow) = slow.miss_rates().find(|(name, _)| *name == event)?;
        Some(Rate { event, fast, slow })
    };
    fast.miss_rates().filter_map(pair).collect()
}

fn finding(
    observation: &Observation,
    [fast, slow]: [&Counters; 2],
    factor: f64,
    rates: &[Rate<'_>],
) -> Finding {
    let mut evidence = vec![Evidence::new(
        "instructions per cycle",
        format!("{} and {}", value(fast.ipc()), value(slow.ipc())),
        format!("a ratio of {LEAST}; here {}", ratio(factor)),
        format!("perf stat: {}, {}", fast.name, slow.name),
    )];
    evidence.extend(rates.iter().map(|rate| {
        Evidence::new(
            rate.event,
            format!("differ by {}", percent(rate.difference())),
            format!("at most {}: as many misses", percent(EQUAL)),
            "perf stat, per access or per instruction",
        )
    }));
    evidence.extend(observation.change.as_ref().map(|change| {
        Evidence::new(
            "ratio of the throughputs",
            ratio(change.ratio.max(1.0 / change.ratio)),
            "as large as that of the instructions per cycle, or larger",
            format!("arms {} and {}", change.before.name, change.after.name),
        )
    }));
    Finding {
        bottleneck: format!("misses that take longer with {}", slow.name),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: 1.0 - 1.0 / factor,
        summary: [
            format!(
                "With {}, each cache miss takes longer: code or data are on a remote NUMA node.",
                slow.name
            ),
            format!(
                "The miss rates are equal, but {} executes {} times as many instructions per cycle.",
                fast.name,
                value(factor)
            ),
            "Find out whether the code or the memory is remote, and move it to the node of the CPUs."
                .to_owned(),
        ],
        evidence,
        next: vec![
            Step::Command(
                "saiga diagnose --pid PID   # nodes of code and memory, with this placement"
                    .to_owned(),
            ),
            Step::Command("saiga tune move-pages --pid PID --to-node N   # the code".to_owned()),
        ],
        refuted_by: "code and memory are on the nodes of the CPUs with both placements".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counters of a payment system whose code was on the other socket.
    fn placement(name: &str, cycles: f64, events: [(&str, f64); 5]) -> Counters {
        let events = events.map(|(event, count)| (event.to_owned(), count));
        Counters {
            name: name.to_owned(),
            instructions: 1000.0,
            cycles,
            events: events.into(),
        }
    }

    fn observed(itlb_remote: f64) -> Observation {
        let local = [
            ("L1-icache-load-misses", 5.48),
            ("L1-icache-loads", 100.0),
            ("cache-misses", 42.4),
            ("iTLB-load-misses", 4.62),
            ("branch-misses", 12.9),
        ];
        let remote = [
            ("L1-icache-load-misses", 5.66),
            ("L1-icache-loads", 100.0),
            ("cache-misses", 42.2),
            ("iTLB-load-misses", itlb_remote),
            ("branch-misses", 13.5),
        ];
        Observation {
            counters: vec![
                placement("remote", 1000.0 / 0.344, remote),
                placement("local", 1000.0 / 0.532, local),
            ],
            ..Observation::default()
        }
    }

    #[test]
    fn equal_miss_rates_and_fewer_instructions_per_cycle_are_remote_code_or_data() {
        let Judgement::Found(finding) = judge(&observed(4.77)) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "misses that take longer with remote");
        assert_eq!(finding.evidence[0].value, "0.532 and 0.344");
        assert!(
            finding.evidence[0].threshold.contains("1.55"),
            "{:?}",
            finding.evidence[0]
        );
        assert_eq!(finding.evidence.len(), 5);
    }

    #[test]
    fn more_misses_are_another_cause() {
        let Judgement::Clear(text) = judge(&observed(9.0)) else {
            panic!("found");
        };
        assert!(text.contains("iTLB-load-misses differ by 94.8 %"), "{text}");
    }

    #[test]
    fn equal_placements_are_fine() {
        let mut observation = observed(4.77);
        observation.counters[0] = observation.counters[1].clone();
        assert!(matches!(judge(&observation), Judgement::Clear(_)));
        observation.counters.pop();
        let needs = Judgement::Unknown(Needs::Counters);
        assert_eq!(judge(&observation), needs);
    }
}
