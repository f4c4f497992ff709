//! Proves each group of a plan's changes by an experiment: one arm for each group, one for all.
//!
//! The first arm of the experiment file is the host as it is. Every other arm applies one group
//! before its servers start, and undoes it after they have ended. What gains nothing, or harms, is
//! left out of the proven plan.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

use crate::about::Stage;
use crate::plan::Plan;
use crate::step::Step;

/// The name of the arm with all changes.
pub const ALL: &str = "all";
/// The arm of the host as it is, if the file has none.
const AS_IS: &str = "as-is";

/// Changes that are applied and judged together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The name of its arm.
    pub name: String,
    pub plan: Plan,
}

/// The commands that apply a group and undo it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    pub apply: String,
    pub undo: String,
}

/// Why no experiment can be made.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error("the plan has no change that can be undone between two runs")]
    NothingToProve,
    #[error("the experiment file is not valid TOML: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("{key} of the experiment file must be {wanted}")]
    Shape {
        key: &'static str,
        wanted: &'static str,
    },
    #[error("the experiment cannot be written as TOML: {0}")]
    Write(#[from] toml::ser::Error),
}

/// What the experiment shows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Gain,
    NotShown,
    Harm,
}

impl Effect {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::NotShown => "no effect shown",
            Self::Harm => "harm",
        }
    }
}

/// Divides the changes of a plan into groups, in the order in which they are applied. Knobs that
/// have an effect only together are one group. Files for the next boot are left out: they change
/// nothing while the host runs. With several groups, a last one has all changes.
#[must_use]
pub fn groups(plan: &Plan) -> Vec<Group> {
    let mut names: Vec<String> = Vec::new();
    for step in plan.steps.iter().filter(|step| is_provable(step)) {
        let name = group_of(&step.knob);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let group = |name: String| Group {
        plan: plan.with_steps(|step| is_provable(step) && group_of(&step.knob) == name),
        name,
    };
    let mut groups: Vec<Group> = names.into_iter().map(group).collect();
    if groups.len() > 1 {
        groups.push(Group {
            name: ALL.to_owned(),
            plan: plan.with_steps(is_provable),
        });
    }
    groups
}

fn is_provable(step: &Step) -> bool {
    step.stage != Stage::Persist
}

/// The group of a knob. The kernel couples some knobs; the placement of network traffic is one
/// decision.
fn group_of(knob: &str) -> String {
    const GROUPS: [(&str, &str); 9] = [
        ("irq.", "network-placement"),
        ("irqbalance.", "network-placement"),
        ("nic.queues", "network-placement"),
        ("nic.xps", "network-placement"),
        ("nic.rps", "network-placement"),
        ("thp.", "transparent-huge-pages"),
        ("hugepages.", "huge-pages"),
        ("disk.scheduler", "disk-queue"),
        ("disk.nr_requests", "disk-queue"),
    ];
    let found = GROUPS.iter().find(|(prefix, _)| knob.starts_with(prefix));
    found.map_or_else(|| knob.to_owned(), |(_, group)| (*group).to_owned())
}

/// Makes the experiment from the user's file: its first arm as it is, and one for each group, with
/// the hooks of `hooks`.
///
/// # Errors
/// The file is not an experiment, or the plan has nothing to prove.
pub fn experiment(
    text: &str,
    groups: &[Group],
    hooks: &dyn Fn(&Group) -> Hooks,
) -> Result<String, ProveError> {
    if groups.is_empty() {
        return Err(ProveError::NothingToProve);
    }
    let mut file: Table = text.parse()?;
    let reference = reference(&file)?;
    let mut arms = vec![Value::Table(reference.clone())];
    for group in groups {
        arms.push(Value::Table(arm(&reference, group, &hooks(group))?));
    }
    file.insert("arm".to_owned(), Value::Array(arms));
    // Expectations name the arms of the file.
    file.remove("expect");
    Ok(toml::to_string(&file)?)
}

/// The first arm of the file, without acceleration by default.
fn reference(file: &Table) -> Result<Table, ProveError> {
    let wrong = ProveError::Shape {
        key: "arm",
        wanted: "a list of tables",
    };
    match file.get("arm") {
        None => {
            let name = Value::String(AS_IS.to_owned());
            Ok(Table::from_iter([("name".to_owned(), name)]))
        }
        Some(Value::Array(arms)) => match arms.first() {
            Some(Value::Table(arm)) => Ok(arm.clone()),
            _ => Err(wrong),
        },
        Some(_) => Err(wrong),
    }
}

fn arm(reference: &Table, group: &Group, hooks: &Hooks) -> Result<Table, ProveError> {
    let mut arm = reference.clone();
    let steps = group.plan.steps.iter();
    let changes: Vec<String> = steps
        .map(|step| format!("{} = {}", step.name(), step.target.form().value(&step.now)))
        .collect();
    arm.insert("name".to_owned(), Value::String(group.name.clone()));
    arm.insert("description".to_owned(), Value::String(changes.join("; ")));
    let mut own = match arm.remove("hooks") {
        None => Table::new(),
        Some(Value::Table(own)) => own,
        Some(_) => {
            return Err(ProveError::Shape {
                key: "arm.hooks",
                wanted: "a table",
            });
        }
    };
    // Applied last and undone first, so that the hooks of the arm see the host as it is.
    let mut before = commands(own.remove("before_arm"));
    before.push(Value::String(hooks.apply.clone()));
    let mut after = vec![Value::String(hooks.undo.clone())];
    after.extend(commands(own.remove("after_arm")));
    own.insert("before_arm".to_owned(), Value::Array(before));
    own.insert("after_arm".to_owned(), Value::Array(after));
    arm.insert("hooks".to_owned(), Value::Table(own));
    Ok(arm)
}

/// One hook or a list of them as a list.
fn commands(hooks: Option<Value>) -> Vec<Value> {
    match hooks {
        None => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(one) => vec![one],
    }
}

/// The plan with the groups that gain.
#[must_use]
pub fn proven(plan: &Plan, effects: &BTreeMap<String, Effect>) -> Plan {
    plan.with_steps(|step| {
        let effect = effects.get(&group_of(&step.knob));
        // A file for the next boot follows from steps that may be left out: plan it again.
        is_provable(step) && effect == Some(&Effect::Gain)
    })
}

#[cfg(test)]
mod tests;
