//! Buffers of sockets and polling.

use saiga_topology::machine::Machine;

use crate::about::{Scope, Stage};
use crate::form::Form;
use crate::goal::Engine;
use crate::knob::{Domain, Knob, Place};
use crate::target::Target;

const NET_DOC: &str = "Linux admin-guide/sysctl/net.rst";
const IP_DOC: &str = "Linux networking/ip-sysctl.rst";
const BUFFER_REASON: &str = "Buffers below bandwidth times round-trip time limit one connection.";
const BUFFER_EFFECT: &str = "more for bulk transfers over long links; none for short queries";
const POLL_REASON: &str = "A reader that polls the device's queue saves the interrupt.";
const POLL_EFFECT: &str = "lower latency with few busy connections; a CPU is used up by each";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "net.core.rmem_max",
        purpose: "largest receive buffer that a process may ask for, in bytes",
        reason: BUFFER_REASON,
        source: "gs_checkos check_list.conf; Linux admin-guide/sysctl/net.rst",
        effect: BUFFER_EFFECT,
        default: "at least 21299200 for an openGauss server",
        scope: Scope::Host,
        propose: |context, place| {
            let serves = context.serves_any(&[Engine::OpenGauss]);
            serves
                .then(|| context.at_least(place, 21_299_200))
                .flatten()
        },
        ..Knob::network("/proc/sys/net/core/rmem_max")
    },
    Knob {
        id: "net.core.wmem_max",
        purpose: "largest send buffer that a process may ask for, in bytes",
        reason: BUFFER_REASON,
        source: "gs_checkos check_list.conf; Linux admin-guide/sysctl/net.rst",
        effect: BUFFER_EFFECT,
        default: "at least 21299200 for an openGauss server",
        scope: Scope::Host,
        propose: |context, place| {
            let serves = context.serves_any(&[Engine::OpenGauss]);
            serves
                .then(|| context.at_least(place, 21_299_200))
                .flatten()
        },
        ..Knob::network("/proc/sys/net/core/wmem_max")
    },
    Knob {
        id: "net.ipv4.tcp_rmem",
        purpose: "receive buffer of a TCP connection: smallest, first, largest",
        reason: BUFFER_REASON,
        source: IP_DOC,
        effect: BUFFER_EFFECT,
        domain: Domain::Numbers(3),
        ..Knob::network("/proc/sys/net/ipv4/tcp_rmem")
    },
    Knob {
        id: "net.ipv4.tcp_wmem",
        purpose: "send buffer of a TCP connection: smallest, first, largest",
        reason: BUFFER_REASON,
        source: IP_DOC,
        effect: BUFFER_EFFECT,
        domain: Domain::Numbers(3),
        ..Knob::network("/proc/sys/net/ipv4/tcp_wmem")
    },
    Knob {
        id: "net.core.busy_poll",
        purpose: "microseconds for which poll and select poll the device's queue",
        reason: POLL_REASON,
        source: NET_DOC,
        effect: POLL_EFFECT,
        scope: Scope::Host,
        domain: Domain::Number(0, 1000),
        ..Knob::network("/proc/sys/net/core/busy_poll")
    },
    Knob {
        id: "net.core.busy_read",
        purpose: "microseconds for which a read polls the device's queue",
        reason: POLL_REASON,
        source: NET_DOC,
        effect: POLL_EFFECT,
        scope: Scope::Host,
        domain: Domain::Number(0, 1000),
        ..Knob::network("/proc/sys/net/core/busy_read")
    },
    Knob {
        id: "net.core.default_qdisc",
        purpose: "queueing discipline of devices that come up later",
        reason: "fq paces packets, as BBR expects.",
        source: NET_DOC,
        effect: "none on devices that are up; the module must be loaded",
        scope: Scope::Host,
        domain: Domain::Listed,
        ..Knob::network("/proc/sys/net/core/default_qdisc")
    },
    Knob {
        id: "net.core.rps_sock_flow_entries",
        purpose: "connections of which the kernel remembers the CPU of the reader (RFS)",
        reason: "Packets are processed on the CPU, or near it, on which their reader runs.",
        source: "Linux networking/scaling.rst",
        effect: "sign varies; for fewer queues than cores; nic.rps_flow_cnt is needed, too",
        scope: Scope::Host,
        domain: Domain::Number(0, 1 << 29),
        ..Knob::by(flow_entries, Stage::Network)
    },
];

fn flow_entries(_: &Machine) -> Vec<Place> {
    let path = "/proc/sys/net/core/rps_sock_flow_entries";
    vec![Place {
        instance: None,
        target: Target::file(path, Form::PowerOfTwo),
        coupled: Vec::new(),
    }]
}
