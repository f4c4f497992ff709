//! A connection pool whose connections are all in use while the server has CPU time left.

use std::net::{IpAddr, SocketAddr};

use saiga_document::number::{counted, percent};

use crate::observation::Observation;
use crate::observation::network::Clients;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Needs, Rule, Step};
use crate::rules::database;

/// Samples in which the number of connections must be the same: a pool at its limit is flat.
const FLAT: f64 = 0.95;
/// Share of the connections with a request in progress. When requests come at random, six of ten
/// find a pool of four in use at this share (Erlang's formula C); a larger share is measured badly,
/// because the pool's owner needs some time between two requests.
const ACTIVE: f64 = 0.8;
/// CPU time of the server's CPUs above which the server itself is the limit, in percent.
const BUSY_PERCENT: f64 = 40.0;

pub(super) const RULE: Rule = Rule {
    name: "pool",
    subject: "connections of each client to the server",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let clients = observation
        .network
        .iter()
        .flat_map(|network| &network.clients);
    let Some((key, clients)) = clients.max_by_key(|(_, clients)| clients.most) else {
        return Judgement::Unknown(Needs::Server);
    };
    let clients = &Clients {
        active: in_progress(observation).unwrap_or(clients.active),
        ..*clients
    };
    let busy = server_percent(observation);
    let choked =
        |clients: &Clients| clients.most > 0 && clients.at_most >= FLAT && clients.active >= ACTIVE;
    if !choked(clients) || busy.is_none_or(|busy| busy >= BUSY_PERCENT) {
        return Judgement::Clear(format!(
            "{} holds up to {}, of which {} have a request in progress",
            key.0,
            counted(clients.most, "connection"),
            percent(clients.active)
        ));
    }
    Judgement::Found(Box::new(finding(key, clients, busy.unwrap_or(0.0))))
}

/// Requests in progress for each connection, if the server's packets or its counters were read:
/// the other source misses a request that follows the last response within a tick of the kernel's
/// clock.
fn in_progress(observation: &Observation) -> Option<f64> {
    let clients = &observation.network.as_ref()?.clients;
    let connections: f64 = clients.values().map(|clients| clients.mean).sum();
    let requests = in_packets(observation).or_else(|| database::running(observation))?;
    (connections > 0.0).then(|| (requests / connections).min(1.0))
}

/// Mean number of requests in progress in the packets.
fn in_packets(observation: &Observation) -> Option<f64> {
    let windows = &observation.load.outer()?.windows;
    let requests: f64 = windows.iter().map(|window| window.clients).sum();
    Some(requests / windows.len().max(1) as f64)
}

/// Busy time of the server as a share of its CPUs, in percent.
fn server_percent(observation: &Observation) -> Option<f64> {
    let cpus = match &observation.process {
        Some(process) if !process.cpus.is_empty() => process.cpus.len(),
        _ => observation.metrics.by_cpu("idle").len(),
    };
    let percent = observation.metrics.mean("server_cpu_percent")?;
    (cpus > 0).then(|| percent / cpus as f64)
}

fn finding((client, server): &(IpAddr, SocketAddr), clients: &Clients, busy: f64) -> Finding {
    let Clients {
        most,
        at_most,
        active,
        ..
    } = *clients;
    Finding {
        bottleneck: format!("the connection pool of {client}"),
        kind: Kind::Cause,
        certainty: Certainty::Likely,
        share: active,
        summary: [
            format!("The pool of {client} is too small: requests wait for a connection."),
            format!(
                "All {} to {server} are open {} of the time, {} of them with a request in \
                 progress, while the server uses {} of its CPUs.",
                counted(most, "connection"),
                percent(at_most),
                percent(active),
                percent(busy / 100.0)
            ),
            "Raise the pool's limit step by step until the server's CPUs are busy.".to_owned(),
        ],
        evidence: vec![
            Evidence::new(
                format!("time with {}", counted(most, "connection")),
                percent(at_most),
                format!("{}: the number does not change", percent(FLAT)),
                "socket states (INET_DIAG)",
            ),
            Evidence::new(
                "connections with a request in progress",
                percent(active),
                format!("{}: none is free", percent(ACTIVE)),
                "times of the last data in each direction (tcp_info)",
            ),
            Evidence::new(
                "CPU time of the server",
                percent(busy / 100.0),
                format!("below {}", percent(BUSY_PERCENT / 100.0)),
                "server_cpu_percent",
            ),
        ],
        next: vec![Step::Advice(
            "maximum pool size of the application (maxActive of Druid, maximumPoolSize of \
             HikariCP), then max_connections of the server"
                .to_owned(),
        )],
        refuted_by: "a larger pool gives no more throughput".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::network::Network;

    fn observed(clients: Clients, server_percent: f64) -> Observation {
        let key = (
            "10.0.0.7".parse().unwrap(),
            "10.0.0.1:3306".parse().unwrap(),
        );
        let mut observation = Observation {
            network: Some(Network {
                clients: [(key, clients)].into(),
                ..Network::default()
            }),
            ..Observation::default()
        };
        for cpu in 0..4 {
            observation
                .metrics
                .add(&format!("cpu{cpu}_idle_percent"), 1.0, 70.0);
        }
        observation
            .metrics
            .add("server_cpu_percent", 1.0, server_percent);
        observation
    }

    const FULL: Clients = Clients {
        most: 4,
        at_most: 1.0,
        active: 0.97,
        mean: 4.0,
        renewed: 0.0,
        held_back: 0.0,
        segment_bytes: 1448,
    };

    #[test]
    fn four_connections_that_are_always_in_use_are_a_small_pool() {
        // 120 % of a core is 30 % of four.
        let Judgement::Found(finding) = judge(&observed(FULL, 120.0)) else {
            panic!("not found");
        };
        assert_eq!(finding.bottleneck, "the connection pool of 10.0.0.7");
    }

    #[test]
    fn counters_of_the_database_come_before_the_times_of_the_kernel() {
        let unseen = Clients {
            active: 0.0,
            ..FULL
        };
        let mut observation = observed(unseen, 120.0);
        assert!(matches!(judge(&observation), Judgement::Clear(_)));
        // One of them is the session that reads the counters.
        let metrics = &mut observation.metrics;
        metrics.add("db_mysql_Threads_running", 1.0, 4.3);
        assert!(matches!(judge(&observation), Judgement::Found(_)));
    }

    #[test]
    fn a_busy_server_or_a_free_connection_is_not() {
        assert!(matches!(judge(&observed(FULL, 390.0)), Judgement::Clear(_)));
        let idle = Clients {
            active: 0.4,
            ..FULL
        };
        assert!(matches!(judge(&observed(idle, 120.0)), Judgement::Clear(_)));
        let varies = Clients {
            at_most: 0.2,
            ..FULL
        };
        assert!(matches!(
            judge(&observed(varies, 120.0)),
            Judgement::Clear(_)
        ));
    }
}
