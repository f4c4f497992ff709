//! Throughput and response time that fall together: less load arrives.

use saiga_document::number::percent;

use crate::observation::Observation;
use crate::observation::load::{Load, Window};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::{milliseconds, per_second};

/// Windows in a row that must fall. Fewer are noise.
const LEAST_WINDOWS: usize = 3;
/// Fall over these windows, as a share of the value before. Less is noise.
const LEAST_FALL: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    name: "starvation",
    subject: "load that arrives at each hop",
    judge,
};

/// A hop with its first and last window while throughput and response time fell.
struct Fall {
    hop: usize,
    from: Window,
    to: Window,
    /// Response time of the parent at both times.
    above: Option<[f64; 2]>,
}

fn judge(observation: &Observation) -> Judgement {
    let load = &observation.load;
    let rows = load.aligned();
    if rows.len() <= LEAST_WINDOWS {
        return Judgement::Unknown(Needs::Windows);
    }
    // The innermost starved hop is the farthest from the fault, the outermost the nearest to it.
    let falls = (0..load.hops.len()).filter_map(|hop| fall(load, &rows, hop));
    let nearest = falls.min_by_key(|fall| fall.hop);
    match nearest {
        Some(fall) => Judgement::Found(Box::new(finding(load, &fall))),
        None => Judgement::Clear(
            "throughput and response time do not fall together at any hop".to_owned(),
        ),
    }
}

/// The longest run of windows in which both values of the hop fall.
fn fall(load: &Load, rows: &[Vec<Option<Window>>], hop: usize) -> Option<Fall> {
    let column: Vec<(usize, Window)> = rows
        .iter()
        .enumerate()
        .filter_map(|(row, windows)| Some((row, windows[hop]?)))
        .collect();
    let falls = |a: &(usize, Window), b: &(usize, Window)| {
        let is_one_run = a.1.run == b.1.run;
        is_one_run && b.1.throughput < a.1.throughput && b.1.response_ms < a.1.response_ms
    };
    let run = column
        .chunk_by(falls)
        .filter(|run| run.len() > LEAST_WINDOWS)
        .max_by_key(|run| run.len())?;
    let [(first, from), .., (last, to)] = run else {
        return None;
    };
    let fell = |from: f64, to: f64| to < from * (1.0 - LEAST_FALL);
    let parent = load.hops[hop].parent;
    let above = parent.and_then(|parent| {
        Some([
            rows[*first][parent]?.response_ms,
            rows[*last][parent]?.response_ms,
        ])
    });
    (fell(from.throughput, to.throughput) && fell(from.response_ms, to.response_ms)).then_some(
        Fall {
            hop,
            from: *from,
            to: *to,
            above,
        },
    )
}

fn finding(load: &Load, fall: &Fall) -> Finding {
    let Fall {
        hop,
        from,
        to,
        above,
    } = fall;
    let name = &load.hops[*hop].name;
    let parent = load.hops[*hop].parent.map(|parent| &load.hops[parent].name);
    let place = match parent {
        Some(parent) => format!("between {parent} and {name}"),
        None => format!("before {name}"),
    };
    let rises = above.filter(|[from, to]| to > from);
    let evidence = evidence(fall, name, parent);
    Finding {
        bottleneck: format!("the path {place}"),
        kind: Kind::Cause,
        certainty: if rises.is_some() {
            Certainty::Likely
        } else {
            Certainty::Possible
        },
        share: 1.0 - to.throughput / from.throughput,
        summary: [
            format!("Less load arrives at {name}: the fault lies {place}."),
            format!(
                "Throughput and response time of {name} fall together, by {} and {}{}.",
                percent(1.0 - to.throughput / from.throughput),
                percent(1.0 - to.response_ms / from.response_ms),
                match (rises, parent) {
                    (Some(_), Some(parent)) => format!(", while {parent} waits longer"),
                    _ => String::new(),
                }
            ),
            format!("Look at pools, load balancers and the network {place}, not at {name}."),
        ],
        evidence,
        next: vec![Step::Advice(format!(
            "measure a hop {place} and diagnose again"
        ))],
        refuted_by: format!("the clients sent less on purpose while {name} was measured"),
    }
}

fn evidence(fall: &Fall, name: &str, parent: Option<&String>) -> Vec<Evidence> {
    let Fall {
        hop: _,
        from,
        to,
        above,
    } = fall;
    let mut evidence = vec![
        Evidence::new(
            format!("throughput of {name}"),
            format!(
                "{} to {}",
                per_second(from.throughput),
                per_second(to.throughput)
            ),
            format!("falls in at least {LEAST_WINDOWS} windows in a row"),
            format!("hop {name}, {} s to {} s", from.time_s, to.time_s),
        ),
        Evidence::new(
            format!("response time of {name}"),
            format!(
                "{} to {}",
                milliseconds(from.response_ms),
                milliseconds(to.response_ms)
            ),
            "rises when the hop itself is slow",
            format!("hop {name}, {} s to {} s", from.time_s, to.time_s),
        ),
    ];
    if let (Some([from, to]), Some(parent)) = (above, parent) {
        evidence.push(Evidence::new(
            format!("response time of {parent}"),
            format!("{} to {}", milliseconds(*from), milliseconds(*to)),
            format!("rises when the fault lies between {parent} and {name}"),
            format!("hop {parent}"),
        ));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{chain, series};

    #[test]
    fn a_faster_application_behind_a_slower_client_is_starved() {
        // After two minutes at 13,511/s and 380 ms, the application answers faster and gets less.
        let client: Vec<(f64, f64)> = (0..6)
            .map(|i| (13_511.0 - 300.0 * f64::from(i), 380.0 + 20.0 * f64::from(i)))
            .collect();
        let application: Vec<(f64, f64)> = (0..6)
            .map(|i| (13_511.0 - 300.0 * f64::from(i), 300.0 - 15.0 * f64::from(i)))
            .collect();
        let load = chain(&[("PTS", &client), ("MHPT", &application)]);
        let Judgement::Found(finding) = judge(&load) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "the path between PTS and MHPT");
        assert_eq!(finding.certainty, Certainty::Likely);
    }

    #[test]
    fn a_slow_hop_is_not_starved() {
        let slow: Vec<(f64, f64)> = (0..6)
            .map(|i| (1000.0 - 50.0 * f64::from(i), 100.0 + 10.0 * f64::from(i)))
            .collect();
        assert!(matches!(judge(&series(&slow)), Judgement::Clear(_)));
    }

    #[test]
    fn runs_are_not_compared_with_each_other() {
        let values: Vec<(f64, f64)> = (0..6)
            .map(|i| (1000.0 - 50.0 * f64::from(i), 100.0 - 9.0 * f64::from(i)))
            .collect();
        let mut runs = series(&values);
        assert!(matches!(judge(&runs), Judgement::Found(_)));
        for (run, window) in (0..).zip(&mut runs.load.hops[0].windows) {
            window.run = run;
        }
        assert!(matches!(judge(&runs), Judgement::Clear(_)));
    }

    #[test]
    fn two_windows_are_noise() {
        let noise = [
            (1000.0, 100.0),
            (800.0, 80.0),
            (700.0, 70.0),
            (1000.0, 100.0),
            (990.0, 101.0),
        ];
        assert!(matches!(judge(&series(&noise)), Judgement::Clear(_)));
        assert!(matches!(judge(&series(&noise[..2])), Judgement::Unknown(_)));
    }
}
