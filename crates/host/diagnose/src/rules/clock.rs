//! A wall clock that was set during the observation.

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::milliseconds;

/// Steps below this are the work of a daemon that slews the clock, by at most 0.5 ms per second
/// (`man 2 adjtimex`), or an interruption between the readings of two clocks.
const LEAST_S: f64 = 0.1;

pub(super) const RULE: Rule = Rule {
    name: "clock",
    subject: "steps of the wall clock",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let Some(step_s) = observation.clock_step_s else {
        return Judgement::Unknown(Needs::Clock);
    };
    let size = milliseconds(step_s.abs() * 1000.0);
    if step_s.abs() < LEAST_S {
        return Judgement::Clear(format!("the largest is {size}"));
    }
    let direction = if step_s < 0.0 { "back" } else { "forward" };
    Judgement::Found(Box::new(Finding {
        bottleneck: "the clock: response times across its step are wrong".to_owned(),
        kind: Kind::Sign,
        certainty: Certainty::Measured,
        share: 1.0,
        summary: [
            format!("The wall clock was set {direction} by {size} during the observation."),
            "Programs that measure with it report wrong times, and timeouts may end early or late."
                .to_owned(),
            "Let one daemon (chrony, ntpd) slew the clock, and measure again.".to_owned(),
        ],
        evidence: vec![Evidence::new(
            "largest step of the clock",
            format!("{size} {direction}"),
            milliseconds(LEAST_S * 1000.0),
            "the wall clock beside one that is never set",
        )],
        next: vec![Step::Command(
            "chronyc tracking   # or timedatectl".to_owned(),
        )],
        refuted_by: "the clock runs steadily when the observation is repeated".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_in_both_directions_and_slewing_is_not() {
        let observed = |clock_step_s| Observation {
            clock_step_s,
            ..Observation::default()
        };
        for (step_s, text) in [(-2.0, "set back by 2.0 s"), (0.5, "set forward by 500 ms")] {
            let Judgement::Found(finding) = judge(&observed(Some(step_s))) else {
                panic!("not found");
            };
            assert!(finding.summary[0].contains(text), "{finding:?}");
        }
        assert!(matches!(judge(&observed(Some(0.02))), Judgement::Clear(_)));
        assert!(matches!(judge(&observed(None)), Judgement::Unknown(_)));
    }
}
