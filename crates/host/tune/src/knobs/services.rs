//! Services that change what a plan sets.

use saiga_topology::machine::Machine;

use crate::about::Stage;
use crate::knob::{Context, Domain, Knob, Place};
use crate::target::{Aspect, Target};

pub(crate) const IRQBALANCE: &str = "irqbalance.service";
const REASON: &str = "irqbalance moves interrupts that a plan has placed.";
const SOURCE: &str = "procedures 000, 001 and 004";
const EFFECT: &str = "placed interrupts stay; all others are no longer balanced";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "irqbalance.active",
        purpose: "whether irqbalance runs",
        reason: REASON,
        source: SOURCE,
        effect: EFFECT,
        default: "inactive if interrupts are placed",
        domain: Domain::Words(&["active", "inactive"]),
        propose: |context, place| placed(context, place, "inactive"),
        ..Knob::by(|machine| unit(machine, Aspect::Active), Stage::Services)
    },
    Knob {
        id: "irqbalance.enabled",
        purpose: "whether irqbalance starts at boot",
        reason: "A service that is only stopped is back after the next boot or package update.",
        source: SOURCE,
        effect: EFFECT,
        default: "disabled if interrupts are placed for the next boot too",
        domain: Domain::Words(&["enabled", "disabled"]),
        propose: |context, place| {
            let disabled = placed(context, place, "disabled");
            disabled.filter(|_| context.goal.is_persistent)
        },
        ..Knob::by(|machine| unit(machine, Aspect::Enabled), Stage::Services)
    },
];

fn unit(_: &Machine, aspect: Aspect) -> Vec<Place> {
    let unit = IRQBALANCE.to_owned();
    vec![Place {
        instance: None,
        target: Target::Service { unit, aspect },
        coupled: Vec::new(),
    }]
}

/// `word`, if interrupts are placed and the unit is in the opposite state. A masked unit, or one
/// that cannot be enabled, has another word, and does not start at boot by itself.
fn placed(context: &Context, place: &Place, word: &str) -> Option<String> {
    let opposite = match word {
        "inactive" => "active",
        _ => "enabled",
    };
    let is_opposite = context.readings.raw(&place.target)?.trim() == opposite;
    let irqs = &context.goal.placement.irqs;
    (is_opposite && !irqs.is_empty()).then(|| word.to_owned())
}
