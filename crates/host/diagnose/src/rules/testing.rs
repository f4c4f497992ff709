//! Observations for the tests of the rules.

use crate::observation::Observation;
use crate::observation::load::{Hop, Load, Window};

fn window(time_s: f64, clients: f64, throughput: f64, response_ms: f64) -> Window {
    Window {
        time_s,
        clients,
        throughput,
        response_ms,
        run: 0,
    }
}

fn observed(hops: Vec<Hop>) -> Observation {
    Observation {
        load: Load { hops },
        ..Observation::default()
    }
}

/// Seconds 0, 1, 2 and so on.
fn seconds() -> impl Iterator<Item = f64> {
    (0u32..).map(f64::from)
}

/// One hop; each step of (clients, throughput, response time) is one window.
pub(crate) fn steps(steps: &[(f64, f64, f64)]) -> Observation {
    let windows = seconds()
        .zip(steps)
        .map(|(t, (n, x, r))| window(t, *n, *x, *r));
    observed(vec![Hop::new("client", windows.collect())])
}

/// One hop with 100 clients and windows of (throughput, response time).
pub(crate) fn series(values: &[(f64, f64)]) -> Observation {
    chain(&[("client", values)])
}

/// A chain of hops with 100 clients; windows of (throughput, response time).
pub(crate) fn chain(chain: &[(&str, &[(f64, f64)])]) -> Observation {
    let hops = chain.iter().enumerate().map(|(index, (name, values))| {
        let windows = seconds()
            .zip(*values)
            .map(|(t, (x, r))| window(t, 100.0, *x, *r));
        let mut hop = Hop::new(*name, windows.collect());
        hop.parent = index.checked_sub(1);
        hop
    });
    observed(hops.collect())
}

/// A chain of hops; steps of (clients, throughput, response time of each hop).
pub(crate) fn hops(names: &[&str], steps: &[(f64, f64, &[f64])]) -> Observation {
    let hops = names.iter().enumerate().map(|(index, name)| {
        let windows = seconds()
            .zip(steps)
            .map(|(t, (n, x, r))| window(t, *n, *x, r[index]));
        let mut hop = Hop::new(*name, windows.collect());
        hop.parent = index.checked_sub(1);
        hop
    });
    observed(hops.collect())
}
