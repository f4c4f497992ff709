//! Network devices: queues, offloads, coalescing, rings.
//!
//! A new queue count makes the kernel reset interrupt affinity, XPS, RPS and the indirection
//! table, so a step that changes the count also records and restores these.

use saiga_topology::machine::{Machine, Nic};

use super::interrupts::affinity;
use super::steering::{receive_mask, transmit_mask};
use crate::about::{Risk, Scope, Stage};
use crate::goal::Engine;
use crate::knob::{Context, Domain, Knob, Place, Places};
use crate::target::{NicSetting, Target};

const ON_OFF: Domain = Domain::Words(&["on", "off"]);
const OFFLOAD_REASON: &str = "Large packets are cut and joined by the device, or once in the \
                              stack, instead of packet by packet.";
const OFFLOAD_EFFECT: &str = "less CPU for large results; none for short queries";
const COALESCE: Knob = Knob {
    reason: "Fewer interrupts for the same packets.",
    source: "bind_net_irq.sh of procedure 004 (512 and 512)",
    effect: "less CPU; 0.5 ms more latency at 512, which is too much for Redis",
    default: "512 for openGauss with the driver hinic",
    domain: Domain::Number(0, 8191),
    propose: |context, place| {
        let of = |nic: &&Nic| nic.name == place.instance();
        let nic = context.machine.nics.iter().find(of)?;
        let is_it = nic.driver.as_deref() == Some("hinic");
        (is_it && context.serves_any(&[Engine::OpenGauss])).then(|| "512".to_owned())
    },
    ..BASE
};
const RING: Knob = Knob {
    reason: "Bursts are dropped when descriptors run out (rx_missed, rx_no_buffer).",
    source: "gs_checkos (4096 at 10 Gbit/s and more)",
    effect: "fewer drops in bursts; more cache misses",
    default: "4096 or the device's maximum for openGauss at 10 Gbit/s and more",
    risk: Risk::Flap,
    domain: Domain::Number(1, 65_536),
    propose: ring,
    check: |context, place, value| within_maximum(context, place, value),
    ..BASE
};
const SINGLE: Knob = Knob {
    reason: "Each queue has an interrupt, as with nic.queues.",
    source: "man 8 ethtool (-L)",
    effect: "as with nic.queues",
    risk: Risk::Flap,
    stage: Stage::Queues,
    domain: Domain::Number(1, 1024),
    check: |context, place, value| within_maximum(context, place, value),
    ..BASE
};
const BASE: Knob = Knob {
    scope: Scope::NetworkNamespace,
    ..Knob::by(|_| Vec::new(), Stage::Nic)
};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "nic.queues",
        purpose: "combined queues of a network device",
        reason: "Each queue has an interrupt. With too few queues, one CPU is overloaded; with too many, every CPU is interrupted.",
        source: "procedures 000 (5), 001 (6), 004 (server 16, client 48); Linux \
                 networking/scaling.rst",
        effect: "1.5 M tpmC needs it with the other settings of 004; alone not published",
        default: "as the planner of cores decides",
        risk: Risk::Flap,
        stage: Stage::Queues,
        domain: Domain::Number(1, 1024),
        propose: |context, place| {
            let queues = context.goal.placement.queues.get(place.instance())?;
            Some(queues.to_string())
        },
        check: |context, place, value| within_maximum(context, place, value),
        at: Places::By(|machine| queues(machine, &NicSetting::CombinedQueues)),
        ..BASE
    },
    Knob {
        id: "nic.rx_queues",
        purpose: "receive queues of a device that does not pair them with transmit queues",
        at: Places::By(|machine| queues(machine, &NicSetting::RxQueues)),
        ..SINGLE
    },
    Knob {
        id: "nic.tx_queues",
        purpose: "transmit queues of a device that does not pair them with receive queues",
        at: Places::By(|machine| queues(machine, &NicSetting::TxQueues)),
        ..SINGLE
    },
    Knob {
        id: "nic.tso",
        purpose: "segmentation of TCP by the device",
        reason: OFFLOAD_REASON,
        source: "procedure 004",
        effect: OFFLOAD_EFFECT,
        default: "on for a server or client",
        risk: Risk::Flap,
        domain: ON_OFF,
        propose: on,
        check: not_fixed,
        at: Places::By(|machine| {
            let mut places = features(machine, "tx-tcp-segmentation");
            places.extend(features(machine, "tx-tcp6-segmentation"));
            places
        }),
        ..BASE
    },
    Knob {
        id: "nic.gso",
        purpose: "late segmentation of packets in software",
        reason: OFFLOAD_REASON,
        source: "procedure 004",
        effect: OFFLOAD_EFFECT,
        default: "on for a server or client",
        domain: ON_OFF,
        propose: on,
        check: not_fixed,
        at: Places::By(|machine| features(machine, "tx-generic-segmentation")),
        ..BASE
    },
    Knob {
        id: "nic.gro",
        purpose: "joining of received packets in software",
        reason: OFFLOAD_REASON,
        source: "procedure 004",
        effect: OFFLOAD_EFFECT,
        default: "on for a server or client",
        domain: ON_OFF,
        propose: on,
        check: not_fixed,
        at: Places::By(|machine| features(machine, "rx-gro")),
        ..BASE
    },
    Knob {
        id: "nic.lro",
        purpose: "joining of received packets by the device",
        reason: OFFLOAD_REASON,
        source: "procedure 004",
        effect: "less CPU for large results; breaks bridges and forwarding",
        risk: Risk::Flap,
        domain: ON_OFF,
        check: not_fixed,
        at: Places::By(|machine| features(machine, "rx-lro")),
        ..BASE
    },
    Knob {
        id: "nic.rx_usecs",
        purpose: "microseconds for which a received packet waits for others",
        at: Places::By(|machine| settings(machine, &NicSetting::RxMicroseconds)),
        ..COALESCE
    },
    Knob {
        id: "nic.tx_usecs",
        purpose: "microseconds for which the report of a sent packet waits for others",
        at: Places::By(|machine| settings(machine, &NicSetting::TxMicroseconds)),
        ..COALESCE
    },
    Knob {
        id: "nic.adaptive_rx",
        purpose: "whether the device chooses rx_usecs by load",
        reason: "With it on, nic.rx_usecs has no effect on some drivers.",
        source: "man 8 ethtool",
        effect: "sign varies",
        domain: ON_OFF,
        at: Places::By(|machine| settings(machine, &NicSetting::AdaptiveRx)),
        ..BASE
    },
    Knob {
        id: "nic.adaptive_tx",
        purpose: "whether the device chooses tx_usecs by load",
        reason: "With it on, nic.tx_usecs has no effect on some drivers.",
        source: "man 8 ethtool",
        effect: "sign varies",
        domain: ON_OFF,
        at: Places::By(|machine| settings(machine, &NicSetting::AdaptiveTx)),
        ..BASE
    },
    Knob {
        id: "nic.rx_ring",
        purpose: "descriptors of received packets for each queue",
        at: Places::By(|machine| settings(machine, &NicSetting::RxRing)),
        ..RING
    },
    Knob {
        id: "nic.tx_ring",
        purpose: "descriptors of packets to send for each queue",
        at: Places::By(|machine| settings(machine, &NicSetting::TxRing)),
        ..RING
    },
];

fn queues(machine: &Machine, setting: &NicSetting) -> Vec<Place> {
    let place = |nic: &Nic| {
        let mut coupled = vec![of(nic, NicSetting::Rss)];
        coupled.extend(nic.irqs.iter().map(|irq| affinity(*irq)));
        coupled.extend((0..nic.tx_queues).map(|queue| transmit_mask(&nic.name, queue)));
        coupled.extend((0..nic.rx_queues).map(|queue| receive_mask(&nic.name, queue)));
        Place {
            coupled,
            ..Place::new(&nic.name, of(nic, setting.clone()))
        }
    };
    machine.nics.iter().map(place).collect()
}

fn of(nic: &Nic, setting: NicSetting) -> Target {
    let nic = nic.name.clone();
    Target::Nic { nic, setting }
}

fn settings(machine: &Machine, setting: &NicSetting) -> Vec<Place> {
    let place = |nic: &Nic| Place::new(&nic.name, of(nic, setting.clone()));
    machine.nics.iter().map(place).collect()
}

fn features(machine: &Machine, name: &str) -> Vec<Place> {
    settings(machine, &NicSetting::Feature(name.to_owned()))
}

/// Offloads of devices that are in use and have them.
fn on(context: &Context, place: &Place) -> Option<String> {
    let is_used = context.serves() || context.drives();
    let mut nics = context.machine.nics.iter();
    let is_up = nics.any(|nic| nic.is_up && nic.name == place.instance());
    let raw = context.readings.raw(&place.target)?;
    (is_used && is_up && raw == "off").then(|| "on".to_owned())
}

fn not_fixed(context: &Context, place: &Place, value: &str) -> Result<(), String> {
    let raw = context.readings.raw(&place.target).unwrap_or_default();
    if raw.ends_with("[fixed]") && !place.target.form().same(raw, value) {
        return Err("the device does not let it be changed (`[fixed]` in ethtool -k)".to_owned());
    }
    Ok(())
}

/// The maximum in a text such as `16 max 64`.
fn maximum(context: &Context, place: &Place) -> Option<u64> {
    let raw = context.readings.raw(&place.target)?;
    raw.split_once(" max ")?.1.trim().parse().ok()
}

fn within_maximum(context: &Context, place: &Place, value: &str) -> Result<(), String> {
    match (maximum(context, place), value.parse::<u64>()) {
        (Some(maximum), Ok(value)) if value > maximum => {
            Err(format!("the device has at most {maximum}"))
        }
        _ => Ok(()),
    }
}

fn ring(context: &Context, place: &Place) -> Option<String> {
    let mut nics = context.machine.nics.iter();
    let nic = nics.find(|nic| nic.name == place.instance())?;
    let is_fast = nic.speed_mbit_s.is_some_and(|speed| speed >= 10_000);
    let value = maximum(context, place)?.min(4096);
    let is_asked = is_fast && context.serves_any(&[Engine::OpenGauss]);
    is_asked.then(|| context.at_least(place, value)).flatten()
}
