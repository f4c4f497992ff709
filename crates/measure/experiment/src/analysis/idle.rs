//! Sentences of the headline about the memory of idle connections.
//!
//! The figures are resident memory; a shared page counts for each side that touches it. There is no
//! verdict: readers compare the sentences of two arms to see the library's part.

use crate::result::Arm;
use crate::stats::median;

use super::{AcceptedRuns, Side};

/// A sentence for each arm with idle connections.
pub(super) fn sentences(arms: &[Arm], accepted: &AcceptedRuns<'_>) -> Vec<String> {
    let one = |arm: &Arm| {
        let of = |metric| -> Vec<f64> {
            let places = accepted.runs.keys().filter(|(_, name)| *name == arm.name);
            let sides = places.map(|(cell, arm)| Side { cell, arm });
            sides
                .flat_map(|side| accepted.counts(side, metric).into_values())
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
