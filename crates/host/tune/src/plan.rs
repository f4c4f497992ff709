//! From facts and a goal to a plan, without any access to the host.

use saiga_topology::machine::{Machine, Nic};
use serde::{Deserialize, Serialize};

use crate::about::Scope;
use crate::advice::{self, Advice};
use crate::goal::{Goal, Named};
use crate::identity::Identity;
use crate::knob::{Context, Domain, Knob, Place};
use crate::knobs;
use crate::overrider::{self, Overrider};
use crate::persist::{self, grub};
use crate::readings::{Reading, Readings};
use crate::refused;
use crate::step::Step;

mod check;
pub(crate) mod known;
mod template;

pub use check::LoadError;

/// The version of the format of `plan.toml`.
const VERSION: u32 = 1;

/// Changes of one host, and what else was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub version: u32,
    /// A hash of facts and steps: 12 hexadecimal digits.
    pub id: String,
    pub facts: Identity,
    /// In the order in which they are applied.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Settings that the host cannot change itself.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// Values that were asked for or proposed, and cannot be set here.
    #[serde(default)]
    pub not_applicable: Vec<Left>,
    /// What is never done, whatever is asked.
    #[serde(default)]
    pub refused: Vec<Left>,
    #[serde(default)]
    pub overriders: Vec<Overrider>,
}

/// A setting that a plan leaves as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    pub name: String,
    pub reason: String,
}

/// The goal names something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("unknown knob `{name}`{}", hint(*nearest))]
    UnknownKnob {
        name: String,
        nearest: Option<&'static str>,
    },
    #[error("{knob}: `{value}` is not {wanted}")]
    BadValue {
        knob: String,
        value: String,
        wanted: String,
    },
    #[error("{knob} has no `{instance}` here; there is {known}")]
    UnknownInstance {
        knob: String,
        instance: String,
        known: String,
    },
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!("; the nearest is `{nearest}`")
    })
}

/// Proposes changes for a goal. The same arguments give the same plan.
///
/// # Errors
/// The goal names an unknown knob or device, or a value that the knob cannot have.
pub fn plan(machine: &Machine, readings: &Readings, goal: &Goal) -> Result<Plan, PlanError> {
    let context = Context {
        machine,
        readings,
        goal,
    };
    let refused = check_names(&context)?;
    let mut knobs: Vec<&Knob> = knobs::registry().collect();
    knobs.sort_by_key(|knob| knob.stage);
    let (mut steps, mut not_applicable) = (Vec::new(), Vec::new());
    let rewound = readings.rewound();
    let before = Context {
        readings: &rewound,
        ..context
    };
    let mut lasting = Vec::new();
    for knob in knobs {
        let known = steps.len();
        turn(&context, knob, &mut steps, &mut not_applicable)?;
        lasting.extend_from_slice(steps.get(known..).unwrap_or_default());
        if goal.is_persistent {
            lasting.extend(held(&context, &before, knob, &lasting)?);
        }
    }
    not_applicable.extend(unplaced(&context));
    persist::add(&context, &lasting, &mut steps, &mut not_applicable);
    let overriders = overrider::of(readings, &steps);
    let facts = Identity::of(machine);
    Ok(Plan {
        version: VERSION,
        id: id(&facts, &steps),
        facts,
        steps,
        advice: advice::of(&context),
        not_applicable,
        refused,
        overriders,
    })
}

impl Plan {
    /// The same plan with some of its steps, as after an experiment on each of them.
    #[must_use]
    pub fn with_steps(&self, keep: impl Fn(&Step) -> bool) -> Self {
        let mut plan = self.clone();
        plan.steps.retain(|step| keep(step));
        plan.id = id(&plan.facts, &plan.steps);
        plan
    }

    /// Whether a change may cut the connection over which the user works.
    #[must_use]
    pub fn needs_confirmation(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.stage.needs_confirmation())
    }

    /// The text of `plan.toml`.
    ///
    /// # Errors
    /// Never with the fields of today; the library's type has an error.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }
}

fn id(facts: &Identity, steps: &[Step]) -> String {
    // Neither has a map or a number that JSON cannot hold.
    let text = serde_json::to_string(&(VERSION, facts, steps)).unwrap_or_default();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash.chars().take(12).collect()
}

/// Takes what is refused out of the names, and fails for what is unknown.
fn check_names(context: &Context) -> Result<Vec<Left>, PlanError> {
    let mut left = Vec::new();
    for named in &context.goal.named {
        if let Some(refused) = refused::find(&named.knob) {
            left.push(Left {
                name: refused.id.to_owned(),
                reason: format!("{}; {}", refused.reason, refused.instead),
            });
        } else if named.instance.is_none()
            && let Some(domain) = grub::domain(&named.knob)
        {
            check_value(domain, named)?;
        } else if knobs::knob(&named.knob).is_none() {
            return Err(unknown(&named.knob));
        }
    }
    for name in &context.goal.without {
        if knobs::knob(name).is_none() {
            return Err(unknown(name));
        }
    }
    Ok(left)
}

fn check_value(domain: Domain, named: &Named) -> Result<(), PlanError> {
    let bad = |wanted| PlanError::BadValue {
        knob: named.knob.clone(),
        value: named.value.clone(),
        wanted,
    };
    domain.check(&named.value).map_err(bad)
}

fn unknown(name: &str) -> PlanError {
    PlanError::UnknownKnob {
        name: name.to_owned(),
        nearest: knobs::nearest(name),
    }
}

/// Entries of the placement for which the machine has no interrupt or queue.
fn unplaced(context: &Context) -> Vec<Left> {
    let (machine, placement) = (context.machine, &context.goal.placement);
    let has = |nic: &str, queue: u32, queues: fn(&Nic) -> u32| {
        let mut nics = machine.nics.iter();
        nics.any(|other| other.name == nic && queue < queues(other))
    };
    let irqs = placement.irqs.keys();
    let irqs = irqs
        .filter(|irq| machine.irq(**irq).is_none())
        .map(|irq| format!("irq.affinity@{irq}"));
    let transmit = placement.transmit.keys();
    let transmit = transmit
        .filter(|(nic, queue)| !has(nic, *queue, |nic| nic.tx_queues))
        .map(|(nic, queue)| format!("nic.xps_cpus@{nic}-{queue}"));
    let receive = placement.receive.keys();
    let receive = receive
        .filter(|(nic, queue)| !has(nic, *queue, |nic| nic.rx_queues))
        .map(|(nic, queue)| format!("nic.rps_cpus@{nic}-{queue}"));
    let left = |name| Left {
        name,
        reason:
            "the host shows no such interrupt or queue; if this plan adds queues, make another \
                 plan after it"
                .to_owned(),
    };
    irqs.chain(transmit).chain(receive).map(left).collect()
}

/// Adds the steps of one knob.
fn turn(
    context: &Context,
    knob: &Knob,
    steps: &mut Vec<Step>,
    left: &mut Vec<Left>,
) -> Result<(), PlanError> {
    let places = existing(context, knob.places(context.machine));
    check_instances(context, knob, &places, left)?;
    for place in &places {
        let Some(value) = value(context, knob, place)? else {
            continue;
        };
        if knob.scope == Scope::Host && context.is_container() {
            left.push(Left {
                name: knob.id.to_owned(),
                reason: "this is a container: the value belongs to its host".to_owned(),
            });
            return Ok(());
        }
        // A value that is right now is set all the same if an earlier step moves it.
        let is_moved = steps
            .iter()
            .any(|step| step.coupled.contains(&place.target));
        match step(context, knob, place, &value, is_moved) {
            Ok(step) => steps.extend(step),
            Err(reason) => left.push(Left {
                name: name(knob, place),
                reason,
            }),
        }
    }
    Ok(())
}

/// Steps that an applied plan has made: the values of this knob that `before` that plan would be
/// proposed, and that hold now. They are not made again, but the files for the next boot have them.
fn held(
    context: &Context,
    before: &Context,
    knob: &Knob,
    known: &[Step],
) -> Result<Vec<Step>, PlanError> {
    let mut held = Vec::new();
    if knob.scope == Scope::Host && context.is_container() {
        return Ok(held);
    }
    for place in existing(context, knob.places(context.machine)) {
        let Some(raw) = context.readings.raw(&place.target) else {
            continue;
        };
        let is_known = known.iter().any(|step| step.target == place.target);
        if let Some(value) = value(before, knob, &place)?
            && !is_known
            && place.target.form().holds(&value, raw)
            && (knob.check)(context, &place, &value).is_ok()
        {
            let was = Some(raw.to_owned());
            held.push(made(knob, &place, was, value));
        }
    }
    Ok(held)
}

fn made(knob: &Knob, place: &Place, was: Option<String>, now: String) -> Step {
    Step {
        knob: knob.id.to_owned(),
        instance: place.instance.clone(),
        stage: knob.stage,
        risk: knob.risk,
        was,
        now,
        why: knob.reason.to_owned(),
        effect: knob.effect.to_owned(),
        target: place.target.clone(),
        coupled: place.coupled.clone(),
    }
}

/// Without files that are missing, if the knob has another one. A policy of frequencies has the
/// number of one of its CPUs only; a feature of the scheduler is in one of two files.
fn existing(context: &Context, mut places: Vec<Place>) -> Vec<Place> {
    let is_there = |place: &Place| {
        let reading = context.readings.values.get(&place.target);
        reading.is_some_and(|reading| *reading != Reading::Missing)
    };
    if places.iter().any(is_there) {
        places.retain(is_there);
    } else {
        places.truncate(1);
    }
    places
}

fn check_instances(
    context: &Context,
    knob: &Knob,
    places: &[Place],
    left: &mut Vec<Left>,
) -> Result<(), PlanError> {
    let named = context
        .goal
        .named
        .iter()
        .filter(|named| named.knob == knob.id);
    for Named { instance, .. } in named {
        if places.is_empty() {
            left.push(Left {
                name: knob.id.to_owned(),
                reason: "this machine has no such device".to_owned(),
            });
        } else if let Some(instance) = instance
            && !places.iter().any(|place| place.instance() == instance)
        {
            let known: Vec<&str> = places.iter().map(Place::instance).take(16).collect();
            return Err(PlanError::UnknownInstance {
                knob: knob.id.to_owned(),
                instance: instance.clone(),
                known: known.join(", "),
            });
        }
    }
    Ok(())
}

/// The value that the user names for a place, or else the one that the rule proposes.
fn value(context: &Context, knob: &Knob, place: &Place) -> Result<Option<String>, PlanError> {
    let goal = context.goal;
    let is_for = |named: &&Named| {
        named.knob == knob.id && (named.instance.is_none() || named.instance == place.instance)
    };
    for named in goal.named.iter().filter(is_for) {
        check_value(knob.domain, named)?;
    }
    // The last one counts, and one for this device before one for all.
    let named = goal.named.iter().filter(is_for);
    if let Some(named) = named.max_by_key(|named| named.instance.is_some()) {
        return Ok(Some(named.value.clone()));
    }
    if !knob.risk.is_automatic() || goal.without.iter().any(|id| id == knob.id) {
        return Ok(None);
    }
    Ok((knob.propose)(context, place))
}

/// The step that sets a place to `value`, unless it has this value already.
fn step(
    context: &Context,
    knob: &Knob,
    place: &Place,
    value: &str,
    is_moved: bool,
) -> Result<Option<Step>, String> {
    let raw = match context.readings.values.get(&place.target) {
        Some(Reading::Raw(raw)) => raw,
        Some(Reading::Unreadable(error)) => return Err(format!("cannot be read: {error}")),
        Some(Reading::Missing) | None => return Err(format!("{} does not exist", place.target)),
    };
    // A value that the kernel rounds is not set again.
    if !is_moved && place.target.form().holds(value, raw) {
        return Ok(None);
    }
    (knob.check)(context, place, value)?;
    Ok(Some(made(knob, place, Some(raw.clone()), value.to_owned())))
}

fn name(knob: &Knob, place: &Place) -> String {
    match &place.instance {
        Some(instance) => format!("{}@{instance}", knob.id),
        None => knob.id.to_owned(),
    }
}
