//! Throughput that no longer grows with the clients (saturation), and the law behind the curve.

use saiga_document::number::{percent, value};

use crate::law::little;
use crate::law::usl::{self, Limit};
use crate::observation::Observation;
use crate::observation::load::{Level, Load, Rates};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::{milliseconds, per_second};

/// Growth of the throughput below which it counts as flat: the noise of a steady minute.
const FLAT: f64 = 0.03;
/// The response time must grow at least with this part of the growth of the clients. At saturation
/// it grows with all of it; a part of the clients may wait outside the measured path.
const GROWTH: f64 = 0.5;
/// Resamples are drawn from this seed, so that a report is the same each time.
const SEED: u64 = 1;

pub(super) const RULE: Rule = Rule {
    name: "saturation",
    subject: "throughput over the number of clients",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let levels = known(&observation.load);
    let Some([(before, low), (last, high)]) = compared(&levels, observation.load.least_step())
    else {
        return Judgement::Unknown(Needs::Steps);
    };
    let clients = last.clients / before.clients - 1.0;
    let throughput = high.throughput / low.throughput - 1.0;
    let response = high.response_ms / low.response_ms - 1.0;
    let is_saturated = throughput < FLAT && response > GROWTH * clients;
    if !is_saturated {
        return Judgement::Clear(format!(
            "throughput changes by {} from {} to {} clients",
            percent(throughput),
            value(before.clients),
            value(last.clients)
        ));
    }
    let ratio = little::area_ratio(last.clients, high.throughput, high.response_ms);
    let mut evidence = evidence(&observation.load, [before, last], [low, high]);
    evidence.extend(curve(&levels, last.clients));
    Judgement::Found(Box::new(Finding {
        bottleneck: "a saturated resource behind the measured load".to_owned(),
        kind: Kind::Sign,
        certainty: Certainty::Measured,
        share: ratio.clamp(0.0, 1.0),
        summary: [
            format!(
                "The system is saturated at {}.",
                per_second(high.throughput)
            ),
            format!(
                "From {} to {} clients, throughput changes by {} and response time by {}.",
                value(before.clients),
                value(last.clients),
                percent(throughput),
                percent(response)
            ),
            "More clients only wait longer: find the saturated resource, or use fewer clients."
                .to_owned(),
        ],
        evidence,
        next: vec![Step::Command("saiga diagnose --pid PID".to_owned())],
        refuted_by: "more clients give more throughput when the step is repeated".to_owned(),
    }))
}

fn evidence(load: &Load, levels: [&Level; 2], rates: [&Rates; 2]) -> Vec<Evidence> {
    let ([before, last], [low, high]) = (levels, rates);
    let ratio = little::area_ratio(last.clients, high.throughput, high.response_ms);
    vec![
        Evidence::new(
            format!(
                "throughput from {} to {} clients",
                value(before.clients),
                value(last.clients)
            ),
            format!(
                "{} to {}",
                per_second(low.throughput),
                per_second(high.throughput)
            ),
            format!("grows by less than {}", percent(FLAT)),
            outer(load),
        ),
        Evidence::new(
            "response time",
            format!(
                "{} to {}",
                milliseconds(low.response_ms),
                milliseconds(high.response_ms)
            ),
            format!(
                "{} at full saturation",
                milliseconds(low.response_ms * last.clients / before.clients)
            ),
            outer(load),
        ),
        Evidence::new(
            "clients inside the measured path (X R / N)",
            percent(ratio),
            "the rest waits in the load generator or the network, or thinks",
            outer(load),
        ),
    ]
}

fn outer(load: &Load) -> String {
    load.outer()
        .map_or(String::new(), |hop| format!("hop {}", hop.name))
}

/// The highest level, and the next one that is lower by a step. A server with less than one request
/// in progress is idle most of the time.
fn compared(levels: &[(Level, Rates)], step: f64) -> Option<[&(Level, Rates); 2]> {
    let last = levels.last()?;
    let is_lower = |level: &Level| (1.0..=last.0.clients / step).contains(&level.clients);
    let before = levels.iter().rfind(|(level, _)| is_lower(level))?;
    Some([before, last])
}

/// Levels at which the outermost hop is known.
fn known(load: &Load) -> Vec<(Level, Rates)> {
    let levels = load.levels().into_iter();
    levels
        .filter_map(|level| Some((level.clone(), level.hops[0]?)))
        .collect()
}

/// The fitted curve as evidence, if there are enough levels.
fn curve(levels: &[(Level, Rates)], clients: f64) -> Option<Evidence> {
    let points: Vec<(f64, f64)> = levels
        .iter()
        .map(|(level, rates)| (level.clients, rates.throughput))
        .collect();
    let fit = usl::fit(&points, SEED)?;
    let limit = match fit.curve.limit_at(clients) {
        Limit::Contention => "serial work (contention) limits it",
        Limit::Crosstalk => "the exchange between clients (crosstalk) limits it",
        Limit::None => "nothing limits it yet",
    };
    let peak = fit
        .curve
        .peak_clients()
        .map_or("no peak".to_owned(), |peak| {
            format!(
                "peak {} at {} clients",
                per_second(fit.curve.at(peak)),
                value(peak)
            )
        });
    let [low, high] = fit.contention;
    Some(Evidence::new(
        "Universal Scalability Law",
        format!("{peak}; {limit}"),
        format!("contention {}–{}", percent(low), percent(high)),
        format!(
            "{} levels, relative error {}",
            points.len(),
            percent(fit.error)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::steps;

    #[test]
    fn five_thousand_clients_saturate_what_three_thousand_filled() {
        let Judgement::Found(finding) = judge(&steps(&[
            (3000.0, 10_000.0, 290.0),
            (5000.0, 9856.0, 499.0),
        ])) else {
            panic!("not found");
        };
        assert_eq!(finding.kind, Kind::Sign);
        assert_eq!(finding.summary[0], "The system is saturated at 9,856/s.");
        assert!((finding.share - 0.984).abs() < 0.001, "{finding:?}");
        // 290 ms * 5000 / 3000.
        assert_eq!(finding.evidence[1].threshold, "483 ms at full saturation");
    }

    #[test]
    fn requests_in_progress_that_vary_by_themselves_are_no_steps() {
        // A steady load whose response time varies: so do the requests in progress.
        let mut steady = steps(&[(4.0, 1000.0, 4.0), (6.0, 1010.0, 6.0), (7.0, 1000.0, 7.0)]);
        assert!(matches!(judge(&steady), Judgement::Found(_)));
        steady.load.hops[0].counts_requests = true;
        assert!(matches!(judge(&steady), Judgement::Unknown(_)));
        let idle = steps(&[(0.05, 80.0, 0.6), (0.08, 80.0, 0.9)]);
        assert!(matches!(judge(&idle), Judgement::Unknown(_)));
    }

    #[test]
    fn growing_throughput_is_not_saturated() {
        let load = steps(&[(3000.0, 8000.0, 290.0), (5000.0, 13_000.0, 310.0)]);
        assert!(matches!(judge(&load), Judgement::Clear(_)));
        assert!(matches!(
            judge(&steps(&[(3000.0, 8000.0, 290.0)])),
            Judgement::Unknown(_)
        ));
    }

    #[test]
    fn the_curve_of_many_steps_names_its_peak() {
        let levels: Vec<(f64, f64, f64)> = [1.0, 4.0, 8.0, 16.0, 32.0, 48.0, 64.0]
            .iter()
            .map(|n: &f64| {
                let x = 1000.0 * n / (1.0 + 0.03 * (n - 1.0) + 0.001 * n * (n - 1.0));
                (*n, x, n / x * 1000.0)
            })
            .collect();
        let Judgement::Found(finding) = judge(&steps(&levels)) else {
            panic!("not found");
        };
        let law = finding.evidence.last().unwrap();
        // sqrt(0.97 / 0.001) = 31.1.
        assert!(
            law.value
                .contains("at 31.14 clients; the exchange between clients"),
            "{law:?}"
        );
    }
}
