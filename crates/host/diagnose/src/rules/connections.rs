//! Connections that live for a request: what opening them costs, and name lookups for each.
//!
//! With short connections, each request waits for a handshake of TCP, often one of TLS, the login,
//! and a thread or process of the server.

use saiga_document::number::value;

use crate::observation::Observation;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::text::{milliseconds, per_second};

/// Connections per second from which they are reported. Pools that renew their connections open a
/// few per second.
const LEAST_OPENED: f64 = 20.0;
/// Mean life of a connection in seconds below which it serves few requests.
const SHORT_S: f64 = 1.0;
/// Received datagrams for each connection from which each is taken to wait for a name.
const DATAGRAMS: f64 = 0.8;

pub(super) const SHORT: Rule = Rule {
    name: "short-connections",
    subject: "life of the connections to the server",
    judge: short,
};

pub(super) const LOOKUPS: Rule = Rule {
    name: "name-lookups",
    subject: "name lookups for each connection",
    judge: lookups,
};

/// Connections that the server accepted: per second, and their mean life in seconds.
struct Accepted {
    opened_s: f64,
    life_s: f64,
}

/// By Little's law, the mean life is the number of connections divided by the rate. `None` without
/// an observed server.
fn accepted(observation: &Observation) -> Option<Accepted> {
    observation.process.as_ref()?;
    let clients = &observation.network.as_ref()?.clients;
    let opened_s = observation.metrics.mean("tcp_passive_opens_s")?;
    let connections: f64 = clients.values().map(|clients| clients.mean).sum();
    Some(Accepted {
        opened_s,
        life_s: if opened_s > 0.0 {
            connections / opened_s
        } else {
            f64::INFINITY
        },
    })
}

fn short(observation: &Observation) -> Judgement {
    let Some(Accepted { opened_s, life_s }) = accepted(observation) else {
        return Judgement::Unknown(Needs::Server);
    };
    if opened_s < LEAST_OPENED || life_s >= SHORT_S {
        return Judgement::Clear(format!("{} are accepted", per_second(opened_s)));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: "connections that live for a moment".to_owned(),
        kind: Kind::Sign,
        certainty: Certainty::Measured,
        share: 1.0 - life_s,
        summary: [
            "The clients open a connection for each request or for a few.".to_owned(),
            format!(
                "{} are accepted, and each is open for {} on average.",
                per_second(opened_s),
                milliseconds(life_s * 1000.0)
            ),
            "Let the clients keep their connections: a pool in the application, or one between."
                .to_owned(),
        ],
        evidence: evidence(opened_s, life_s),
        next: vec![Step::Advice(
            "a pool of the driver (HikariCP, Druid), or PgBouncer, ProxySQL; persistent \
             connections in PHP"
                .to_owned(),
        )],
        refuted_by: "the throughput stays with connections that are kept".to_owned(),
    }))
}

fn evidence(opened_s: f64, life_s: f64) -> Vec<Evidence> {
    vec![
        Evidence::new(
            "accepted connections",
            per_second(opened_s),
            format!("{}: pools renew fewer", per_second(LEAST_OPENED)),
            "tcp_passive_opens_s",
        ),
        Evidence::new(
            "mean life of a connection",
            milliseconds(life_s * 1000.0),
            format!("below {}", milliseconds(SHORT_S * 1000.0)),
            "open connections (INET_DIAG) divided by the rate",
        ),
    ]
}

fn lookups(observation: &Observation) -> Judgement {
    let datagrams_s = observation.metrics.mean("udp_in_datagrams_s");
    let (Some(accepted), Some(datagrams_s)) = (accepted(observation), datagrams_s) else {
        return Judgement::Unknown(Needs::Server);
    };
    let Accepted { opened_s, life_s } = accepted;
    let each = if opened_s > 0.0 {
        datagrams_s / opened_s
    } else {
        0.0
    };
    if opened_s < 1.0 || life_s >= SHORT_S || each < DATAGRAMS {
        return Judgement::Clear(format!(
            "{} datagrams are received, {} connections are accepted",
            per_second(datagrams_s),
            per_second(opened_s)
        ));
    }
    let mut evidence = evidence(opened_s, life_s);
    evidence.insert(
        0,
        Evidence::new(
            "received datagrams for each accepted connection",
            value(each),
            format!("{DATAGRAMS}: an answer of a name server for each"),
            "udp_in_datagrams_s",
        ),
    );
    Judgement::Found(Box::new(Finding {
        bottleneck: "a name lookup for each connection".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: (each / 2.0).min(1.0),
        summary: [
            "Each new connection waits for a name server.".to_owned(),
            format!(
                "{} connections are accepted and {} datagrams received, {} for each connection.",
                per_second(opened_s),
                per_second(datagrams_s),
                value(each)
            ),
            "Switch the lookups off or cache them, and keep connections open.".to_owned(),
        ],
        evidence,
        next: vec![Step::Advice(
            "server: skip_name_resolve=ON (MySQL, MariaDB), log_hostname=off (PostgreSQL); client: \
             an address instead of a name, or a cache such as nscd or systemd-resolved"
                .to_owned(),
        )],
        refuted_by: "tcpdump port 53 shows no lookups while connections are opened".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::network::{Clients, Network};
    use crate::observation::process::Process;

    fn observed(mean: f64, opened_s: f64, datagrams_s: f64) -> Observation {
        let key = (
            "10.0.0.7".parse().unwrap(),
            "10.0.0.1:3306".parse().unwrap(),
        );
        let clients = Clients {
            mean,
            ..Clients::default()
        };
        let mut observation = Observation {
            network: Some(Network {
                clients: [(key, clients)].into(),
                ..Network::default()
            }),
            process: Some(Process::default()),
            ..Observation::default()
        };
        let metrics = &mut observation.metrics;
        metrics.add("tcp_passive_opens_s", 1.0, opened_s);
        metrics.add("udp_in_datagrams_s", 1.0, datagrams_s);
        observation
    }

    #[test]
    fn connections_of_a_tenth_of_a_second_are_short() {
        let Judgement::Found(finding) = short(&observed(20.0, 200.0, 0.0)) else {
            panic!("not found");
        };
        assert_eq!(
            finding.summary[1],
            "200.0/s are accepted, and each is open for 100 ms on average."
        );
        for kept in [observed(20.0, 10.0, 0.0), observed(500.0, 200.0, 0.0)] {
            assert!(matches!(short(&kept), Judgement::Clear(_)));
        }
        assert!(matches!(
            short(&Observation::default()),
            Judgement::Unknown(_)
        ));
    }

    #[test]
    fn an_answer_for_each_connection_is_a_lookup() {
        let Judgement::Found(finding) = lookups(&observed(2.0, 50.0, 100.0)) else {
            panic!("not found");
        };
        assert_eq!(finding.evidence[0].value, "2.000");
        // Other datagrams, or lookups while connections are kept.
        for other in [observed(2.0, 50.0, 10.0), observed(500.0, 50.0, 100.0)] {
            assert!(matches!(lookups(&other), Judgement::Clear(_)));
        }
    }
}
