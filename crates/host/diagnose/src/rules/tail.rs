//! Response times with a second mode: a timeout, a retransmission or a queue.

use saiga_document::number::percent;

use crate::law::tail::{Mode, modes};
use crate::observation::Observation;
use crate::observation::load::Hop;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::milliseconds;

/// Share of the requests that a slow mode must have to be reported.
const LEAST_SHARE: f64 = 0.01;
/// Ratio of the means of two modes. Caches and kinds of statements divide less.
const LEAST_RATIO: f64 = 5.0;
/// Requests without which no shape is judged.
const LEAST_REQUESTS: u64 = 500;

/// Steps at which stacks and clients wait: mean of the slow mode without that of the fast mode.
const STEPS: [(f64, f64, &str); 5] = [
    (
        35.0,
        50.0,
        "a delayed acknowledgement (40 ms) that meets Nagle's algorithm: set TCP_NODELAY",
    ),
    (
        190.0,
        260.0,
        "a retransmission after the least timeout of Linux (200 ms)",
    ),
    (
        950.0,
        1150.0,
        "a lost SYN, which is sent again after 1 s, or a timeout of 1 s",
    ),
    (
        2900.0,
        3300.0,
        "two lost SYNs (1 s and 2 s), or a timeout of 3 s",
    ),
    (
        4900.0,
        5300.0,
        "a timeout of 5 s, such as that of the resolver (resolv.conf(5))",
    ),
];

pub(super) const RULE: Rule = Rule {
    name: "tail",
    subject: "shape of the response times",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let mut is_known = false;
    for hop in &observation.load.hops {
        let Some(times) = hop
            .times_us
            .as_ref()
            .filter(|one| one.len() >= LEAST_REQUESTS)
        else {
            continue;
        };
        is_known = true;
        let modes = modes(times);
        if let Some((fast, slow)) = two(&modes) {
            return Judgement::Found(Box::new(finding(hop, fast, slow)));
        }
    }
    if is_known {
        Judgement::Clear("response times have no second mode".to_owned())
    } else {
        Judgement::Unknown(Needs::Requests)
    }
}

/// The fastest mode and the largest of the slow ones.
fn two(modes: &[Mode]) -> Option<(Mode, Mode)> {
    let (fast, others) = modes.split_first()?;
    let is_slow =
        |mode: &&Mode| mode.share >= LEAST_SHARE && mode.mean_ms >= LEAST_RATIO * fast.mean_ms;
    let slow = others
        .iter()
        .filter(is_slow)
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    Some((*fast, *slow))
}

fn finding(hop: &Hop, fast: Mode, slow: Mode) -> Finding {
    let added_ms = slow.mean_ms - fast.mean_ms;
    let step = STEPS
        .iter()
        .find(|(from, to, _)| (*from..*to).contains(&added_ms));
    let cause = step.map_or("a timeout, a retransmission or a queue", |(_, _, cause)| {
        *cause
    });
    let total = fast.share * fast.mean_ms + slow.share * slow.mean_ms;
    Finding {
        bottleneck: format!("slow responses of {}", hop.name),
        kind: if step.is_some() {
            Kind::Cause
        } else {
            Kind::Sign
        },
        certainty: Certainty::Likely,
        share: slow.share * slow.mean_ms / total,
        summary: [
            format!("Some responses of {} wait for {cause}.", hop.name),
            format!(
                "{} take {} to {}, the others {} to {}, with nothing between.",
                percent(slow.share),
                milliseconds(slow.from_ms),
                milliseconds(slow.to_ms),
                milliseconds(fast.from_ms),
                milliseconds(fast.to_ms)
            ),
            "Find out what the slow requests wait for; a mean or a percentile does not show them."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            "time that the slow mode adds",
            milliseconds(added_ms),
            "40 ms, 200 ms, 1 s, 3 s and 5 s are steps of stacks and clients",
            format!(
                "{} requests of hop {}",
                hop.times_us.as_ref().map_or(0, |t| t.len()),
                hop.name
            ),
        )],
        next: vec![Step::Command("saiga diagnose FILE.pcap".to_owned())],
        refuted_by: "the slow requests are another kind of statement".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::rules::testing::series;

    fn observed(values: &[(u64, u64)]) -> Observation {
        let mut times = Histogram::new(3).unwrap();
        for (value, count) in values {
            times.record_n(*value, *count).unwrap();
        }
        let mut observation = series(&[]);
        observation.load.hops[0].times_us = Some(times);
        observation
    }

    #[test]
    fn a_tenth_between_five_and_ten_seconds_is_not_normal() {
        let times = observed(&[
            (200_000, 900),
            (5_000_000, 30),
            (7_000_000, 40),
            (9_900_000, 30),
        ]);
        let Judgement::Found(finding) = judge(&times) else {
            panic!("not found");
        };
        assert_eq!(finding.kind, Kind::Sign);
        assert!(finding.summary[1].starts_with("10.0 % take"), "{finding:?}");
    }

    #[test]
    fn a_step_of_200_ms_is_a_retransmission() {
        let Judgement::Found(finding) = judge(&observed(&[(1000, 980), (205_000, 20)])) else {
            panic!("not found");
        };
        assert_eq!(finding.kind, Kind::Cause);
        assert!(finding.summary[0].contains("retransmission"), "{finding:?}");
    }

    #[test]
    fn few_slow_or_few_requests_are_no_mode() {
        assert!(matches!(
            judge(&observed(&[(1000, 9950), (205_000, 50)])),
            Judgement::Clear(_)
        ));
        assert!(matches!(
            judge(&observed(&[(1000, 90), (205_000, 10)])),
            Judgement::Unknown(_)
        ));
    }
}
