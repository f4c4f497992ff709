//! Rules on an experiment that compared a change: what limits the throughput after it, and whether
//! the comparison shows what it seems to show.

use saiga_document::number::{percent, ratio, value};

use crate::law::little;
use crate::observation::Observation;
use crate::observation::change::{Binding, Change, Load};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::{milliseconds, per_second};

/// Growth of the throughput from which a change counts as a fix: the noise of a steady minute.
const GAIN: f64 = 0.03;
/// Share of the clients inside the measured path from which it is saturated: the published stages
/// of a payment system that were saturated have 86 % and more.
const INSIDE: f64 = 0.85;

pub(super) const RULE: Rule = Rule {
    name: "next-bottleneck",
    subject: "requests inside the measured path after a change",
    judge,
};

pub(super) const CONFOUNDED: Rule = Rule {
    name: "confounded",
    subject: "CPUs and memory of the compared servers",
    judge: confounded,
};

fn judge(observation: &Observation) -> Judgement {
    let Some(change) = &observation.change else {
        return Judgement::Unknown(Needs::Change);
    };
    let names = format!("{} to {}", change.before.name, change.after.name);
    let gain = change.ratio - 1.0;
    let is_shown = change
        .interval
        .is_none_or(|[low, high]| low > 1.0 || high < 1.0);
    if !is_shown || gain.abs() < GAIN {
        return Judgement::Clear(format!(
            "from {names}, throughput changes by {}, within the noise: what was changed is not the \
             bottleneck",
            percent(gain)
        ));
    }
    let (Some(before), Some(after)) = (change.before.load, change.after.load) else {
        return Judgement::Unknown(Needs::Requests);
    };
    let share = little::area_ratio(after.clients, after.throughput, after.response_ms);
    let inside = [before, after].map(|load| little::inside(load.throughput, load.response_ms));
    let is_next = gain > 0.0 && after.response_ms > before.response_ms;
    if !is_next || share < INSIDE {
        return Judgement::Clear(format!(
            "from {names}, throughput changes by {} and response time from {} to {}",
            percent(gain),
            milliseconds(before.response_ms),
            milliseconds(after.response_ms)
        ));
    }
    Judgement::Found(Box::new(next(change, [before, after], inside, share)))
}

/// The finding after a change that gave more throughput, and longer response times.
fn next(change: &Change, loads: [Load; 2], inside: [f64; 2], share: f64) -> Finding {
    let [before, after] = loads;
    Finding {
        bottleneck: "the next resource in the measured path".to_owned(),
        kind: Kind::Sign,
        certainty: Certainty::Likely,
        share: share.clamp(0.0, 1.0),
        summary: [
            format!(
                "The change from {} to {} removed a bottleneck, and the next one holds now.",
                change.before.name, change.after.name
            ),
            format!(
                "Throughput grows from {} to {}, and the response time from {} to {}.",
                per_second(before.throughput),
                per_second(after.throughput),
                milliseconds(before.response_ms),
                milliseconds(after.response_ms)
            ),
            "Keep the change, and diagnose the server under the new load.".to_owned(),
        ],
        evidence: vec![
            Evidence::new(
                "requests inside the measured path (X R)",
                format!("{} to {}", value(inside[0]), value(inside[1])),
                "they fall when a change only makes the path faster",
                "runs of both arms",
            ),
            Evidence::new(
                "clients inside the measured path (X R / N)",
                percent(share),
                format!("{}: the path is saturated", percent(INSIDE)),
                format!("arm {}", change.after.name),
            ),
        ],
        next: vec![Step::Command(
            "saiga diagnose --port PORT   # while the load runs".to_owned(),
        )],
        refuted_by: "more clients give more throughput at the same response time".to_owned(),
    }
}

/// A ranking of CPUs is valid only if the memory is bound as the CPUs are: a server on other CPUs
/// whose memory stays is slow because of the distance.
fn confounded(observation: &Observation) -> Judgement {
    let Some(change) = &observation.change else {
        return Judgement::Unknown(Needs::Change);
    };
    let [one, other] = [&change.before.binding, &change.after.binding];
    if change.nodes == Some(1) {
        return Judgement::Clear("this machine has one NUMA node".to_owned());
    }
    let is_free = |binding: &Binding| binding.cpus.is_some() && binding.memory.is_none();
    if one.cpus == other.cpus || !(is_free(one) || is_free(other)) {
        return Judgement::Clear(format!(
            "{} and {} bind them together, or to the same CPUs",
            change.before.name, change.after.name
        ));
    }
    let shown = |what: &Option<String>| what.clone().unwrap_or_else(|| "not bound".to_owned());
    let evidence = [&change.before, &change.after].map(|side| {
        Evidence::new(
            format!("CPUs and memory of {}", side.name),
            format!(
                "{}; {}",
                shown(&side.binding.cpus),
                shown(&side.binding.memory)
            ),
            "both bound to the same nodes",
            "command line of the server",
        )
    });
    Judgement::Found(Box::new(Finding {
        bottleneck: "a comparison of CPUs without their memory".to_owned(),
        kind: Kind::Sign,
        certainty: Certainty::Measured,
        share: 1.0,
        summary: [
            format!(
                "{} and {} differ in their CPUs, and their memory is not bound.",
                change.before.name, change.after.name
            ),
            format!(
                "The ratio of {} may show the distance of the memory instead of the CPUs.",
                ratio(change.ratio)
            ),
            "Bind the memory with the CPUs in both arms, move the code, and compare again."
                .to_owned(),
        ],
        evidence: evidence.into(),
        next: vec![
            Step::Command("numactl --cpunodebind=N --membind=N SERVER".to_owned()),
            Step::Command("saiga tune move-pages --pid PID --to-node N".to_owned()),
        ],
        refuted_by: "the ratio stays when CPUs, memory and code are bound to the same node"
            .to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::change::Side;

    fn side(name: &str, load: (f64, f64, f64), command: &str) -> Side {
        let (clients, throughput, response_ms) = load;
        Side {
            name: name.to_owned(),
            load: Some(Load {
                clients,
                throughput,
                response_ms,
            }),
            binding: Binding::of(command),
            busy: None,
        }
    }

    fn observed(before: Side, after: Side, interval: Option<[f64; 2]>) -> Observation {
        let x = |side: &Side| side.load.unwrap().throughput;
        Observation {
            change: Some(Change {
                ratio: x(&after) / x(&before),
                before,
                after,
                interval,
                nodes: Some(2),
            }),
            ..Observation::default()
        }
    }

    #[test]
    fn after_the_ingress_the_application_is_the_next_bottleneck() {
        // Without the ingress, the application rises from 287 ms at 10000/s to 373 ms at 13000/s.
        let fixed = observed(
            side("ingress", (5000.0, 10_000.0, 287.0), ""),
            side("direct", (5000.0, 13_000.0, 373.0), ""),
            None,
        );
        let Judgement::Found(finding) = judge(&fixed) else {
            panic!("not found");
        };
        assert_eq!(finding.evidence[0].value, "2,870 to 4,849");
        assert_eq!(finding.evidence[1].value, "97.0 %");
    }

    #[test]
    fn a_change_within_the_noise_is_not_the_cause() {
        let moved = observed(
            side("node 0", (100.0, 1000.0, 90.0), ""),
            side("node 1", (100.0, 1100.0, 95.0), ""),
            Some([0.98, 1.2]),
        );
        let Judgement::Clear(text) = judge(&moved) else {
            panic!("found");
        };
        assert!(text.ends_with("what was changed is not the bottleneck"));
        let faster = observed(
            side("a", (100.0, 1000.0, 90.0), ""),
            side("b", (100.0, 1300.0, 70.0), ""),
            Some([1.2, 1.4]),
        );
        assert!(matches!(judge(&faster), Judgement::Clear(_)));
    }

    #[test]
    fn sockets_are_compared_only_with_their_memory() {
        let load = (100.0, 1000.0, 90.0);
        let compared = |one: &str, other: &str| {
            confounded(&observed(
                side("a", load, one),
                side("b", load, other),
                None,
            ))
        };
        let free = ["numactl -C 0-31 x", "numactl -C 32-63 x"];
        assert!(matches!(compared(free[0], free[1]), Judgement::Found(_)));
        let bound = ["numactl -N 0 -m 0 x", "numactl -N 1 -m 1 x"];
        assert!(matches!(compared(bound[0], bound[1]), Judgement::Clear(_)));
        assert!(matches!(compared("x", "x"), Judgement::Clear(_)));
    }
}
