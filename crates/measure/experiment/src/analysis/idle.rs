//! What an idle connection holds, as sentences of the headline.
//!
//! Resident memory, a shared page counted on either side that touches it. No verdict: the
//! library's part is the difference between two arms, and both are said.

use crate::result::Arm;
use crate::stats::median;

use super::{Counted, Side};

/// One sentence for each arm that ran beside idle connections.
pub(super) fn sentences(arms: &[Arm], counted: &Counted<'_>) -> Vec<String> {
    let one = |arm: &Arm| {
        let of = |metric| -> Vec<f64> {
            let places = counted.runs.keys().filter(|(_, name)| *name == arm.name);
            let sides = places.map(|(cell, arm)| Side { cell, arm });
            sides
                .flat_map(|side| counted.counts(side, metric).into_values())
                .collect()
        };
        let connections = median(&of("idle_connections"))?;
        let (server, client) = (
            of("server_rss_per_idle_bytes"),
            of("client_rss_per_idle_bytes"),
        );
        let runs = match server.len() {
            1 => "1 run".to_owned(),
            n => format!("medians of {n} runs"),
        };
        Some(format!(
            "Each of the {connections} idle connections of the {} arm held {:.0} bytes of resident \
             memory in the server and {:.0} in its client ({runs}).",
            arm.name,
            median(&server)?,
            median(&client)?,
        ))
    };
    arms.iter().filter_map(one).collect()
}
