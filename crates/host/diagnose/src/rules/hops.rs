//! The hop whose own time grows most when the load grows.
//!
//! The own time of a hop is its response time without that of the hops below it. It includes the
//! network up to the hop below. The hop with the longest response time is not to blame for that: it
//! waits for all others.

use saiga_document::number::percent;

use crate::observation::Observation;
use crate::observation::load::{Level, Load};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::milliseconds;

/// Growth of the outermost response time below which no hop is blamed.
const LEAST_GROWTH: f64 = 0.1;
/// Share of the growth that one hop must explain to be the likely cause.
const MOST: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    name: "hops",
    subject: "own time of each hop",
    judge,
};

/// Own time of a hop at the lowest and at the highest level, in milliseconds.
struct Own {
    hop: usize,
    low_ms: f64,
    high_ms: f64,
}

fn judge(observation: &Observation) -> Judgement {
    let load = &observation.load;
    let levels = load.levels();
    let complete: Vec<&Level> = levels
        .iter()
        .filter(|level| level.hops.iter().all(Option::is_some))
        .collect();
    let [low, .., high] = complete.as_slice() else {
        return Judgement::Unknown(Needs::Steps);
    };
    if load.hops.len() < 2 {
        return Judgement::Unknown(Needs::Hops);
    }
    if high.clients < load.least_step() * low.clients {
        return Judgement::Unknown(Needs::Steps);
    }
    let outer = |level: &Level| level.hops[0].map_or(0.0, |rates| rates.response_ms);
    let growth_ms = outer(high) - outer(low);
    if growth_ms < LEAST_GROWTH * outer(low) {
        return Judgement::Clear(format!(
            "the response time of {} changes from {} to {}",
            load.hops[0].name,
            milliseconds(outer(low)),
            milliseconds(outer(high))
        ));
    }
    let own: Vec<Own> = (0..load.hops.len())
        .filter_map(|hop| {
            Some(Own {
                hop,
                low_ms: load.own_ms(&low.hops, hop)?,
                high_ms: load.own_ms(&high.hops, hop)?,
            })
        })
        .collect();
    let growth = |one: &Own| one.high_ms - one.low_ms;
    let Some(most) = own.iter().max_by(|a, b| growth(a).total_cmp(&growth(b))) else {
        return Judgement::Unknown(Needs::Hops);
    };
    Judgement::Found(Box::new(finding(load, &own, most, growth_ms)))
}

fn finding(load: &Load, own: &[Own], most: &Own, growth_ms: f64) -> Finding {
    let share = ((most.high_ms - most.low_ms) / growth_ms).clamp(0.0, 1.0);
    let blamed = load.place(most.hop);
    let evidence = own.iter().map(|one| {
        Evidence::new(
            format!("own time of {}", load.place(one.hop)),
            format!(
                "{} to {}",
                milliseconds(one.low_ms),
                milliseconds(one.high_ms)
            ),
            format!("all hops together: {} more", milliseconds(growth_ms)),
            "difference of the response times",
        )
    });
    Finding {
        bottleneck: blamed.clone(),
        kind: Kind::Cause,
        certainty: if share >= MOST {
            Certainty::Likely
        } else {
            Certainty::Possible
        },
        share,
        summary: [
            format!("Most of the added response time is spent in {blamed}."),
            format!(
                "Its own time grows from {} to {}, {} of the growth that {} sees.",
                milliseconds(most.low_ms),
                milliseconds(most.high_ms),
                percent(share),
                load.hops[0].name
            ),
            format!("Take {blamed} out of the path, or give it more resources, and measure again."),
        ],
        evidence: evidence.collect(),
        next: vec![
            Step::Command("saiga diagnose --pid PID   # on the host of this hop".to_owned()),
            Step::Advice("compare the load with and without this hop (saiga compare)".to_owned()),
        ],
        refuted_by: "the response time stays when the hop is taken out of the path".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::hops;

    #[test]
    fn an_ingress_with_its_network_took_the_added_time() {
        // 3000 clients: 290 ms at the client, 225 ms in the application. 5000 clients: 499, 381
        // and 195 ms. The ingress was measured at 5000 clients only; before, it is on the way.
        let load = hops(
            &["PTS", "ingress", "MHPT"],
            &[
                (3000.0, 10_000.0, &[290.0, 257.5, 225.0]),
                (5000.0, 9856.0, &[499.0, 381.0, 195.0]),
            ],
        );
        let Judgement::Found(finding) = judge(&load) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "ingress up to MHPT");
        let own: Vec<&str> = finding
            .evidence
            .iter()
            .map(|one| one.value.as_str())
            .collect();
        assert_eq!(
            own,
            ["32 ms to 118 ms", "32 ms to 186 ms", "225 ms to 195 ms"]
        );
    }

    #[test]
    fn requests_below_count_as_often_as_they_are_made() {
        // Nine calls of 10 ms and one of 112 ms for each request: 202 ms of 225 ms are below.
        let mut observation = hops(
            &["MHPT", "core", "history"],
            &[(3000.0, 10_000.0, &[225.0, 10.0, 112.0])],
        );
        observation.load.hops[2].parent = Some(0);
        for window in &mut observation.load.hops[1].windows {
            window.throughput *= 9.0;
        }
        let level = &observation.load.levels()[0];
        let own = observation.load.own_ms(&level.hops, 0).unwrap();
        assert!((own - 23.0).abs() < 1e-9, "{own}");
    }

    #[test]
    fn steady_response_times_blame_no_hop() {
        let load = hops(
            &["a", "b"],
            &[(10.0, 100.0, &[100.0, 60.0]), (20.0, 200.0, &[104.0, 62.0])],
        );
        assert!(matches!(judge(&load), Judgement::Clear(_)));
    }
}
