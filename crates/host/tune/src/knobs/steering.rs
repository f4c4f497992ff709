//! Which CPUs send and receive packets of a queue: XPS, RPS, RFS.

use std::collections::BTreeMap;

use saiga_topology::machine::{Machine, Nic};

use crate::about::{Risk, Stage};
use crate::form::{Form, cpu_mask};
use crate::goal::Named;
use crate::knob::{Context, Domain, Knob, Place};
use crate::target::Target;

const SCALING: &str = "Linux networking/scaling.rst";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "nic.xps_cpus",
        purpose: "CPUs that send on a transmit queue (nic.xps_cpus@eth0-0)",
        reason: "Each CPU sends on one queue, whose completions arrive near it: fewer CPUs contend \
                 for the lock of a queue.",
        source: SCALING,
        effect: "less contention on many cores; none with one queue; size not published",
        default: "each CPU on one queue of its node, if interrupts are placed and the driver has \
                  set no CPUs",
        domain: Domain::Mask,
        propose: |context, place| {
            proposed(
                context,
                place,
                &context.goal.placement.transmit,
                transmit_mask,
            )
        },
        ..Knob::by(transmit, Stage::Steering)
    },
    Knob {
        id: "nic.rps_cpus",
        purpose: "CPUs that process packets of a receive queue (nic.rps_cpus@eth0-0)",
        reason: "With fewer queues than cores for interrupts, the other cores of the node share \
                 the work.",
        source: SCALING,
        effect: "more packets for each queue; +1 interrupt between CPUs for each batch",
        default: "the interrupt cores of its node that have no queue, if there are fewer receive \
                  queues than interrupt cores",
        domain: Domain::Mask,
        propose: |context, place| {
            proposed(
                context,
                place,
                &context.goal.placement.receive,
                receive_mask,
            )
        },
        ..Knob::by(receive, Stage::Steering)
    },
    Knob {
        id: "nic.rps_flow_cnt",
        purpose: "connections of a receive queue of which the CPU is remembered (RFS)",
        reason: "Packets follow their reader; net.core.rps_sock_flow_entries is needed, too.",
        source: SCALING,
        effect: "sign varies",
        domain: Domain::Number(0, 1 << 29),
        ..Knob::by(flow_counts, Stage::Steering)
    },
    Knob {
        id: "nic.gro_flush_timeout",
        purpose: "nanoseconds for which joined packets are held back",
        reason: "Fewer interrupts under load, with napi_defer_hard_irqs.",
        source: "Linux networking/napi.rst",
        effect: "less CPU; latency up to the timeout",
        domain: Domain::Number(0, 1_000_000_000),
        ..Knob::by(
            |machine| device_files(machine, "gro_flush_timeout"),
            Stage::Nic,
        )
    },
    Knob {
        id: "nic.napi_defer_hard_irqs",
        purpose: "empty polls before the interrupt of a queue is enabled again",
        reason: "Fewer interrupts under load, with gro_flush_timeout.",
        source: "Linux networking/napi.rst",
        effect: "less CPU; latency up to the timeout",
        domain: Domain::Number(0, 10_000),
        ..Knob::by(
            |machine| device_files(machine, "napi_defer_hard_irqs"),
            Stage::Nic,
        )
    },
    Knob {
        id: "nic.mtu",
        purpose: "bytes of the largest packet",
        reason: "Fewer packets for large results, if every device on the way has it.",
        source: "gs_checkos (8192 at 10 Gbit/s and more)",
        effect: "less CPU for large results; connections hang if one device on the way has less",
        risk: Risk::Flap,
        domain: Domain::Number(576, 65_535),
        ..Knob::by(|machine| device_files(machine, "mtu"), Stage::Nic)
    },
];

/// The device and the queue of a place named `DEVICE-QUEUE`.
fn queue(place: &Place) -> Option<(String, u32)> {
    let (nic, queue) = place.instance().rsplit_once('-')?;
    Some((nic.to_owned(), queue.parse().ok()?))
}

/// The mask of a queue, unless a queue of the device has CPUs that the driver or another program
/// chose, or the user names another number of queues: then the placement is for queues that end.
fn proposed(
    context: &Context,
    place: &Place,
    placement: &BTreeMap<(String, u32), Vec<u32>>,
    target: fn(&str, u32) -> Target,
) -> Option<String> {
    let (nic, number) = queue(place)?;
    let mask = |cpus: &[u32]| cpu_mask(&cpus.iter().copied().collect());
    let is_free = |queue: u32, cpus: &[u32]| {
        let raw = context.readings.raw(&target(&nic, queue));
        raw.is_none_or(|raw| {
            [mask(cpus).as_str(), "0"]
                .iter()
                .any(|m| Form::Mask.same(raw, m))
        })
    };
    let mut queues = placement.iter().filter(|((name, _), _)| *name == nic);
    let is_free = queues.all(|((_, queue), cpus)| is_free(*queue, cpus));
    if !is_free || names_other_queues(context, &nic) {
        return None;
    }
    placement.get(&(nic, number)).map(|cpus| mask(cpus))
}

fn names_other_queues(context: &Context, nic: &str) -> bool {
    let mut nics = context.machine.nics.iter();
    let found = nics.find(|other| other.name == nic);
    let now = found.map(|nic| nic.rx_queues.max(nic.tx_queues));
    let is_other = |named: &Named| match named.knob.as_str() {
        "nic.queues" => named.value.parse().ok() != now,
        knob => ["nic.rx_queues", "nic.tx_queues"].contains(&knob),
    };
    let is_here = |named: &&Named| named.instance.as_deref().is_none_or(|name| name == nic);
    let mut named = context.goal.named.iter().filter(is_here);
    named.any(is_other)
}

pub(super) fn transmit_mask(nic: &str, queue: u32) -> Target {
    let path = format!("/sys/class/net/{nic}/queues/tx-{queue}/xps_cpus");
    Target::file(path, Form::Mask)
}

pub(super) fn receive_mask(nic: &str, queue: u32) -> Target {
    let path = format!("/sys/class/net/{nic}/queues/rx-{queue}/rps_cpus");
    Target::file(path, Form::Mask)
}

/// A place for each queue that a device has.
fn each(
    machine: &Machine,
    queues: fn(&Nic) -> u32,
    target: impl Fn(&str, u32) -> Target,
) -> Vec<Place> {
    let mut places = Vec::new();
    for nic in &machine.nics {
        for queue in 0..queues(nic) {
            let name = format!("{}-{queue}", nic.name);
            places.push(Place::new(name, target(&nic.name, queue)));
        }
    }
    places
}

fn transmit(machine: &Machine) -> Vec<Place> {
    each(machine, |nic| nic.tx_queues, transmit_mask)
}

fn receive(machine: &Machine) -> Vec<Place> {
    each(machine, |nic| nic.rx_queues, receive_mask)
}

fn flow_counts(machine: &Machine) -> Vec<Place> {
    each(
        machine,
        |nic| nic.rx_queues,
        |nic, queue| {
            let path = format!("/sys/class/net/{nic}/queues/rx-{queue}/rps_flow_cnt");
            Target::file(path, Form::PowerOfTwo)
        },
    )
}

fn device_files(machine: &Machine, file: &str) -> Vec<Place> {
    let place = |nic: &Nic| {
        let path = format!("/sys/class/net/{}/{file}", nic.name);
        Place::new(&nic.name, Target::file(path, Form::Words))
    };
    machine.nics.iter().map(place).collect()
}
