//! Affinity of interrupts, and which interrupts may be moved at all.

use std::collections::BTreeSet;

use saiga_topology::machine::{Irq, Machine};

use crate::about::Stage;
use crate::form::{Form, cpu_list, cpus};
use crate::knob::{Context, Domain, Knob, Place};
use crate::readings::Readings;
use crate::target::Target;

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "irq.affinity",
        purpose: "CPUs to which an interrupt is delivered",
        reason: "Packets are processed where the interrupt arrives: near the device, and not on \
                 CPUs of the database.",
        source: "procedures 000 (91-95), 001 (61-66), 004 (last 4 cores of each node)",
        effect: "part of 5344 -> 14742 TPS in procedure 003; alone not published",
        default: "as the planner of cores decides",
        domain: Domain::CpuList,
        propose: |context, place| {
            let irq = place.target.irq()?;
            let cpus = context.goal.placement.irqs.get(&irq)?;
            Some(cpu_list(&cpus.iter().copied().collect()))
        },
        check: movable,
        ..Knob::by(affinities, Stage::Affinity)
    },
    Knob {
        id: "irq.default_smp_affinity",
        purpose: "CPUs of interrupts that are requested later",
        reason: "A device that is plugged in or reset does not interrupt the database.",
        source: "Linux core-api/irq/irq-affinity.rst",
        effect: "none on interrupts that exist",
        domain: Domain::Mask,
        ..Knob::by(default_affinity, Stage::Affinity)
    },
];

/// What may be done with an interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    Movable,
    /// Its driver let the kernel spread it: a write of the affinity fails.
    Managed,
    /// Handlers of several devices.
    Shared,
}

/// The class of an interrupt, by its handlers and by what it refused since the last boot.
#[must_use]
pub fn class(irq: &Irq, readings: &Readings) -> Class {
    let is_managed = |action: &String| {
        // Queue 0 of NVMe is for administration, and movable.
        let nvme = action
            .strip_prefix("nvme")
            .and_then(|rest| rest.split_once('q'));
        nvme.is_some_and(|(disk, queue)| {
            disk.parse::<u32>().is_ok() && queue.parse::<u32>().is_ok_and(|queue| queue > 0)
        })
    };
    if readings.managed.contains(&irq.number) || irq.actions.iter().any(is_managed) {
        Class::Managed
    } else if irq.actions.len() > 1 {
        Class::Shared
    } else {
        Class::Movable
    }
}

pub(super) fn affinity(irq: u32) -> Target {
    Target::file(format!("/proc/irq/{irq}/smp_affinity_list"), Form::CpuList)
}

fn affinities(machine: &Machine) -> Vec<Place> {
    let place = |irq: &Irq| Place::new(irq.number, affinity(irq.number));
    machine.irqs.iter().map(place).collect()
}

fn default_affinity(_: &Machine) -> Vec<Place> {
    vec![Place {
        instance: None,
        target: Target::file("/proc/irq/default_smp_affinity", Form::Mask),
        coupled: Vec::new(),
    }]
}

fn movable(context: &Context, place: &Place, value: &str) -> Result<(), String> {
    let irq = place.target.irq().and_then(|irq| context.machine.irq(irq));
    let Some(irq) = irq else {
        return Err("there is no such interrupt".to_owned());
    };
    match class(irq, context.readings) {
        Class::Movable => {}
        Class::Managed => {
            return Err("the kernel places this interrupt itself (managed affinity)".to_owned());
        }
        Class::Shared => {
            let devices = irq.actions.join(", ");
            return Err(format!("several devices share it: {devices}"));
        }
    }
    let online = context.machine.cpus.iter().filter(|cpu| cpu.is_online);
    let online: BTreeSet<u32> = online.map(|cpu| cpu.id).collect();
    let asked = cpus(value).unwrap_or_default();
    if asked.is_disjoint(&online) {
        return Err(format!("none of the CPUs {value} is online"));
    }
    Ok(())
}
