//! Ports, backlogs and TIME_WAIT. These belong to a network namespace.

use std::collections::BTreeSet;

use crate::about::Scope;
use crate::knob::{Context, Domain, Knob, Place};
use crate::target::Target;

const DOC: &str = "Linux networking/ip-sysctl.rst";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";
/// The range of procedure 003: 50 000 ports.
const RANGE: (u16, u16) = (10_000, 60_000);

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "net.core.somaxconn",
        purpose: "connections that wait for accept on one socket",
        reason: "The kernel cuts a server's own backlog to this number (back_log is 4000 in \
                 procedure 001).",
        source: "procedure 001; Linux networking/ip-sysctl.rst",
        effect: "no refused connections in a burst; otherwise none",
        default: "at least 4096 for a server",
        propose: |context, place| {
            context
                .serves()
                .then(|| context.at_least(place, 4096))
                .flatten()
        },
        ..Knob::network("/proc/sys/net/core/somaxconn")
    },
    Knob {
        id: "net.ipv4.tcp_max_syn_backlog",
        purpose: "connections of which the handshake is not finished",
        reason: "A burst of new connections is not answered with cookies.",
        source: DOC,
        effect: "no delayed connections in a burst; otherwise none",
        default: "at least 8192 for a server",
        propose: |context, place| {
            context
                .serves()
                .then(|| context.at_least(place, 8192))
                .flatten()
        },
        ..Knob::network("/proc/sys/net/ipv4/tcp_max_syn_backlog")
    },
    Knob {
        id: "net.core.netdev_max_backlog",
        purpose: "packets that wait for a CPU when RPS or a slow reader holds them",
        reason: "At 10 Gbit/s and more, 1000 packets are less than a millisecond.",
        source: "Linux admin-guide/sysctl/net.rst; gs_checkos check_list.conf",
        effect: "fewer drops in /proc/net/softnet_stat, column 2, with RPS, containers or a client on \
                 this host; otherwise none",
        default: "at least 16384 with a link of 10 Gbit/s or more",
        scope: Scope::Host,
        propose: |context, place| {
            let mut speeds = context
                .machine
                .nics
                .iter()
                .filter(|nic| nic.is_up)
                .filter_map(|nic| nic.speed_mbit_s);
            let is_fast = speeds.any(|speed| speed >= 10_000);
            let is_used = context.serves() || context.drives();
            (is_fast && is_used)
                .then(|| context.at_least(place, 16_384))
                .flatten()
        },
        ..Knob::network("/proc/sys/net/core/netdev_max_backlog")
    },
    // Before the range, so that no connection takes a port of a server.
    Knob {
        id: "net.ipv4.ip_local_reserved_ports",
        purpose: "ports that the kernel does not give to outgoing connections",
        reason: "A wider range of local ports would include ports on which servers listen.",
        source: DOC,
        effect: "none on speed; servers can start again",
        default: "the listening ports in the new range, for a client",
        domain: Domain::PortList,
        propose: |context, place| {
            context
                .drives()
                .then(|| reserved_with_listening(context, place))
                .flatten()
        },
        ..Knob::network(RESERVED)
    },
    Knob {
        id: "net.ipv4.ip_local_port_range",
        purpose: "ports of outgoing connections",
        reason: "Connections to one address and port are limited to range / 60 s, by TIME_WAIT.",
        source: "procedure 003",
        effect: "short connections per second and destination: 470 -> 833, +77 %",
        default: "10000 60000 for a client with fewer ports",
        domain: Domain::Ports,
        propose: |context, place| {
            let (first, last) = RANGE;
            let is_wider = width(context.readings.raw(&place.target)?) >= last - first;
            (context.drives() && !is_wider).then(|| format!("{first} {last}"))
        },
        check: |context, _, value| {
            let open = unreserved(context, value);
            if open.is_empty() {
                return Ok(());
            }
            Err(format!(
                "processes listen on {} in this range: reserve them with \
                 net.ipv4.ip_local_reserved_ports",
                port_list(&open)
            ))
        },
        ..Knob::network("/proc/sys/net/ipv4/ip_local_port_range")
    },
    Knob {
        id: "net.ipv4.tcp_tw_reuse",
        purpose: "whether an outgoing connection may take a port in TIME_WAIT after 1 s",
        reason: "Otherwise a port is lost for 60 s after each short connection.",
        source: "procedure 003; measured: 100 ports again after 1.2 s",
        effect: "short connections per second and destination: up to 60-fold; resets behind NAT \
                 without timestamps",
        default: "1 for a client",
        domain: Domain::Number(0, 2),
        propose: |context, _| context.drives().then(|| "1".to_owned()),
        ..Knob::network("/proc/sys/net/ipv4/tcp_tw_reuse")
    },
    Knob {
        id: "net.ipv4.tcp_fin_timeout",
        purpose: "seconds for which an orphaned connection waits for the peer's FIN",
        reason: "Peers that vanish hold memory. It does not shorten TIME_WAIT.",
        source: DOC,
        effect: "none on short connections",
        domain: Domain::Number(1, 3600),
        ..Knob::network("/proc/sys/net/ipv4/tcp_fin_timeout")
    },
    Knob {
        id: "net.ipv4.tcp_max_tw_buckets",
        purpose: "connections in TIME_WAIT; the kernel drops more at once",
        reason: "The limit also caps short connections.",
        source: DOC,
        effect: "none until the limit is met",
        ..Knob::network("/proc/sys/net/ipv4/tcp_max_tw_buckets")
    },
];

/// The last port minus the first one.
fn width(range: &str) -> u16 {
    let mut bounds = range.split_whitespace().map(|port| port.parse().ok());
    match (bounds.next().flatten(), bounds.next().flatten()) {
        (Some(first), Some(last)) => u16::saturating_sub(last, first),
        _ => 0,
    }
}

fn reserved_with_listening(context: &Context, place: &Place) -> Option<String> {
    let raw = context.readings.raw(&place.target)?;
    let mut ports = ports(raw);
    let (first, last) = RANGE;
    let listening = context.readings.listening.iter().copied();
    let old = ports.len();
    ports.extend(listening.filter(|port| (first..=last).contains(port)));
    (ports.len() > old).then(|| port_list(&ports))
}

/// Listening ports in the range `value` that neither are reserved nor become so by this plan.
fn unreserved(context: &Context, value: &str) -> BTreeSet<u16> {
    let mut bounds = value
        .split_whitespace()
        .filter_map(|port| port.parse::<u16>().ok());
    let (Some(first), Some(last)) = (bounds.next(), bounds.next()) else {
        return BTreeSet::new();
    };
    let target = Target::file(RESERVED, crate::form::Form::Words);
    let mut reserved = ports(context.readings.raw(&target).unwrap_or_default());
    let named = context.goal.named.iter();
    let mut is_named = false;
    for named in named.filter(|named| named.knob == "net.ipv4.ip_local_reserved_ports") {
        reserved = ports(&named.value);
        is_named = true;
    }
    let is_left_out = |id: &String| id == "net.ipv4.ip_local_reserved_ports";
    // A named list replaces the proposal, which adds the listening ports.
    if context.drives() && !is_named && !context.goal.without.iter().any(is_left_out) {
        let (first, last) = RANGE;
        let listening = context.readings.listening.iter().copied();
        reserved.extend(listening.filter(|port| (first..=last).contains(port)));
    }
    let open = context.readings.listening.difference(&reserved).copied();
    open.filter(|port| (first..=last).contains(port)).collect()
}

fn ports(list: &str) -> BTreeSet<u16> {
    let cpus = crate::form::cpus(list).unwrap_or_default();
    let ports = cpus.into_iter().filter_map(|port| u16::try_from(port).ok());
    ports.collect()
}

fn port_list(ports: &BTreeSet<u16>) -> String {
    crate::form::cpu_list(&ports.iter().copied().map(u32::from).collect())
}
