//! Clients that are outside the measured path for most of their time.

use saiga_document::number::{percent, value};

use crate::law::little;
use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::milliseconds;

/// Share of the clients inside the path below which the path cannot be the limit: at least half of
/// the clients do not wait for it.
const LEAST_INSIDE: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    name: "load-generator",
    subject: "time of the clients outside the measured path",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let levels = observation.load.levels();
    let last = levels
        .iter()
        .rev()
        .find_map(|level| Some((level.clients, level.hops[0]?)));
    let Some((clients, rates)) = last else {
        return Judgement::Unknown(Needs::Load);
    };
    let inside = little::area_ratio(clients, rates.throughput, rates.response_ms);
    let outside_ms = little::outside_ms(clients, rates.throughput, rates.response_ms);
    if inside >= LEAST_INSIDE {
        return Judgement::Clear(format!(
            "{} of the clients are inside the measured path, {} for each request outside",
            percent(inside.min(1.0)),
            milliseconds(outside_ms.max(0.0))
        ));
    }
    let name = &observation.load.hops[0].name;
    Judgement::Found(Box::new(Finding {
        bottleneck: "the load generator or its think time".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: 1.0 - inside,
        summary: [
            "The clients do not send enough load to find a bottleneck of the server.".to_owned(),
            format!(
                "Of {} clients, {} wait for a response at a time; the others spend {} outside for \
                 each request.",
                value(clients),
                value(inside * clients),
                milliseconds(outside_ms)
            ),
            "Remove think time and pauses, use more clients, or move the generator to another host."
                .to_owned(),
        ],
        evidence: vec![Evidence::new(
            "clients inside the measured path (X R / N)",
            percent(inside),
            format!("{}: more than half wait for the path", percent(LEAST_INSIDE)),
            format!("hop {name}"),
        )],
        next: vec![Step::Advice(
            "raise the number of clients, and diagnose again when throughput stays flat".to_owned(),
        )],
        refuted_by: "more clients give no more throughput".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::steps;

    #[test]
    fn clients_that_think_are_the_limit() {
        let Judgement::Found(finding) = judge(&steps(&[(100.0, 90.0, 11.0)])) else {
            panic!("not found");
        };
        // 90/s * 11 ms = 0.99 clients inside; 100 / 90 s - 11 ms = 1.1 s outside.
        assert!((finding.share - 0.9901).abs() < 1e-4);
        assert!(
            finding.summary[1].contains("spend 1.1 s outside"),
            "{finding:?}"
        );
    }

    #[test]
    fn clients_that_wait_for_the_server_are_not() {
        assert!(matches!(
            judge(&steps(&[(5000.0, 5344.0, 904.0)])),
            Judgement::Clear(_)
        ));
        assert!(matches!(judge(&steps(&[])), Judgement::Unknown(_)));
    }
}
