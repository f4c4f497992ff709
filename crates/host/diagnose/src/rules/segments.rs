//! Segments of TCP: data that Nagle's algorithm holds back, and segments that are too small.

use saiga_document::number::percent;

use crate::observation::Observation;
use crate::observation::network::Clients;
use crate::rule::{Certainty, Evidence, Finding, Judgement, Kind, Knob, Needs, Rule, Step};

/// Share of the connections with data that is held back, from which it is reported. Without a
/// delayed acknowledgement, data waits for a round trip, which a look once a second rarely meets.
const HELD_BACK: f64 = 0.1;
/// Smallest usual segment: IPv6 requires an MTU of 1280 (RFC 8200 §5), minus 60 bytes of headers
/// and 12 of timestamps.
const SMALLEST: u32 = 1208;

pub(super) const NAGLE: Rule = Rule {
    name: "delayed-acknowledgement",
    subject: "data that waits for an acknowledgement",
    judge: nagle,
};

pub(super) const SMALL: Rule = Rule {
    name: "small-segments",
    subject: "size of the segments to the clients",
    judge: small,
};

fn all(observation: &Observation) -> impl Iterator<Item = &Clients> {
    let network = observation.network.iter();
    network.flat_map(|network| network.clients.values())
}

fn nagle(observation: &Observation) -> Judgement {
    let most = all(observation).map(|clients| clients.held_back);
    let Some(most) = most.max_by(f64::total_cmp) else {
        return Judgement::Unknown(Needs::Server);
    };
    if most < HELD_BACK {
        return Judgement::Clear(format!(
            "{} of the connections hold data back",
            percent(most)
        ));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: "delayed acknowledgements: requests are sent in two parts".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Measured,
        share: most.min(1.0),
        summary: [
            "The second part of a message waits until the first is acknowledged, for 40 ms."
                .to_owned(),
            format!(
                "At any time, {} of the connections hold less than a segment back.",
                percent(most)
            ),
            "Set TCP_NODELAY on the connections, or send each message with one call.".to_owned(),
        ],
        evidence: vec![Evidence::new(
            "connections that hold back less than a segment while data is in flight",
            percent(most),
            format!(
                "{}: Nagle's algorithm (RFC 896) and delayed acknowledgements (RFC 1122 §4.2.3.2) \
                 wait for each other",
                percent(HELD_BACK)
            ),
            "tcpi_notsent_bytes and tcpi_unacked (INET_DIAG)",
        )],
        next: vec![Step::Advice(
            "TCP_NODELAY in the driver or the proxy (tcpNoDelay of JDBC drivers is on by default)"
                .to_owned(),
        )],
        refuted_by: "the response times stay with TCP_NODELAY".to_owned(),
    }))
}

fn small(observation: &Observation) -> Judgement {
    let sizes = all(observation).map(|clients| clients.segment_bytes);
    let Some(bytes) = sizes.filter(|bytes| *bytes > 0).min() else {
        return Judgement::Unknown(Needs::Server);
    };
    if bytes >= SMALLEST {
        return Judgement::Clear(format!("the smallest segments have {bytes} bytes"));
    }
    Judgement::Found(Box::new(Finding {
        bottleneck: "small packets on the way to a client".to_owned(),
        kind: Kind::Cause,
        certainty: Certainty::Possible,
        share: 1.0 - f64::from(bytes) / f64::from(SMALLEST),
        summary: [
            "A device on the way to a client allows small packets only.".to_owned(),
            format!("Segments to this client have {bytes} bytes; 1448 are usual."),
            "Raise the MTU of that device; large results then take fewer packets.".to_owned(),
        ],
        evidence: vec![Evidence::new(
            "smallest segment size",
            format!("{bytes} bytes"),
            format!("{SMALLEST} bytes: an MTU of 1280, the smallest of IPv6"),
            "tcpi_snd_mss (INET_DIAG)",
        )],
        next: vec![
            Step::Knob(Knob::Mtu),
            Step::Command("tracepath -n CLIENT   # shows where the MTU falls".to_owned()),
        ],
        refuted_by: "the throughput stays with a usual MTU, as for small results".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::network::Network;

    fn observed(held_back: f64, segment_bytes: u32) -> Observation {
        let key = (
            "10.0.0.7".parse().unwrap(),
            "10.0.0.1:3306".parse().unwrap(),
        );
        let clients = Clients {
            held_back,
            segment_bytes,
            ..Clients::default()
        };
        Observation {
            network: Some(Network {
                clients: [(key, clients)].into(),
                ..Network::default()
            }),
            ..Observation::default()
        }
    }

    #[test]
    fn data_that_is_held_back_is_found() {
        assert!(matches!(nagle(&observed(0.8, 1448)), Judgement::Found(_)));
        assert!(matches!(nagle(&observed(0.02, 1448)), Judgement::Clear(_)));
        assert!(matches!(
            nagle(&Observation::default()),
            Judgement::Unknown(_)
        ));
    }

    #[test]
    fn an_mtu_of_576_is_found_and_that_of_a_tunnel_is_not() {
        let Judgement::Found(finding) = small(&observed(0.0, 524)) else {
            panic!("not found");
        };
        assert!(finding.summary[1].contains("524 bytes"), "{finding:?}");
        assert!(matches!(small(&observed(0.0, 1388)), Judgement::Clear(_)));
        assert!(matches!(small(&observed(0.0, 0)), Judgement::Unknown(_)));
    }
}
