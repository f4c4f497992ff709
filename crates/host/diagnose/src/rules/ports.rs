//! Connections that use up the local ports. After a short connection, the side that closed first
//! keeps its port.

use std::net::SocketAddr;

use saiga_document::number::percent;

use crate::law::ports::ceiling;
use crate::observation::Observation;
use crate::observation::network::{Network, Sockets};
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Knob, Needs, Rule, Step};
use crate::text::per_second;

/// Share of the ports in use from which connect(2) takes long and soon fails: the kernel looks at
/// one port after the other, and gives up when all are taken.
const FULL: f64 = 0.9;
/// Distance to the ceiling below which the rate of connections is taken for the ceiling.
const NEAR: f64 = 0.05;
/// Time for which Linux keeps a closed connection: `TCP_TIMEWAIT_LEN`, `include/net/tcp.h`.
const TIME_WAIT_S: f64 = 60.0;
/// The same with `tcp_tw_reuse`: `tcp_twsk_unique` in `net/ipv4/tcp_ipv4.c`.
const REUSE_S: f64 = 1.0;

pub(super) const RULE: Rule = Rule {
    name: "local-ports",
    subject: "local ports of outgoing connections",
    judge,
};

fn judge(observation: &Observation) -> Judgement {
    let Some(network) = &observation.network else {
        return Judgement::Unknown(Needs::Host);
    };
    let used = |sockets: &Sockets| {
        f64::from(sockets.time_wait + sockets.established + sockets.opening)
            / f64::from(network.ports.max(1))
    };
    let fullest = network
        .outgoing
        .iter()
        .max_by(|a, b| used(a.1).total_cmp(&used(b.1)));
    let Some((peer, sockets)) = fullest else {
        return Judgement::Clear("this host has no outgoing connection".to_owned());
    };
    let share = used(sockets).min(1.0);
    let opened = observation.metrics.mean("tcp_active_opens_s");
    if share < FULL {
        return Judgement::Clear(format!(
            "{} of {} local ports are in use to {peer}, the busiest destination",
            sockets.time_wait + sockets.established + sockets.opening,
            network.ports
        ));
    }
    Judgement::Found(Box::new(finding(network, *peer, *sockets, share, opened)))
}

fn finding(
    network: &Network,
    peer: SocketAddr,
    sockets: Sockets,
    share: f64,
    opened: Option<f64>,
) -> Finding {
    let hold_s = if network.reuses_time_wait {
        REUSE_S
    } else {
        TIME_WAIT_S
    };
    let most = ceiling(1.0, f64::from(network.ports), 1.0, hold_s);
    let is_short = sockets.time_wait > sockets.established;
    let at_ceiling = opened.is_some_and(|opened| opened >= most * (1.0 - NEAR));
    let cause = if is_short {
        format!("closed connections to {peer} hold nearly all local ports for {hold_s} s each")
    } else {
        format!("open connections to {peer} hold nearly all local ports")
    };
    let evidence = evidence(network, peer, sockets, share, opened, most);
    Finding {
        bottleneck: format!("local ports to {peer}"),
        kind: Kind::Error,
        certainty: if at_ceiling {
            Certainty::Measured
        } else {
            Certainty::Likely
        },
        share,
        summary: [
            format!(
                "New connections are limited to {}: {cause}.",
                per_second(most)
            ),
            format!(
                "{} sockets are in TIME_WAIT and {} are established, of {} ports.",
                sockets.time_wait, sockets.established, network.ports
            ),
            if is_short {
                "Keep connections open (a connection pool), or let the other end close first."
                    .to_owned()
            } else {
                "Widen the range of local ports, or connect from or to more addresses.".to_owned()
            },
        ],
        evidence,
        next: vec![
            Step::Advice("use persistent connections or a pool in the client".to_owned()),
            Step::Knob(Knob::LocalPortRange),
            Step::Knob(Knob::TimeWaitReuse),
        ],
        refuted_by: "the rate of connections rises above the ceiling while the ports stay in use"
            .to_owned(),
    }
}

fn evidence(
    network: &Network,
    peer: SocketAddr,
    sockets: Sockets,
    share: f64,
    opened: Option<f64>,
    most: f64,
) -> Vec<Evidence> {
    let mut evidence = vec![
        Evidence::new(
            format!("local ports in use to {peer}"),
            percent(share),
            format!("{}: connect(2) then finds no free port", percent(FULL)),
            "socket states (INET_DIAG), net.ipv4.ip_local_port_range",
        ),
        Evidence::new(
            "sockets in TIME_WAIT",
            sockets.time_wait.to_string(),
            format!("{} established", sockets.established),
            "socket states (INET_DIAG)",
        ),
    ];
    if let Some(opened) = opened {
        evidence.push(Evidence::new(
            "connections opened",
            per_second(opened),
            format!("at most {} with {} ports", per_second(most), network.ports),
            "tcp_active_opens_s",
        ));
    }
    evidence
}
