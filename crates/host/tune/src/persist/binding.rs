//! Drop-ins that start the service of a server on its CPUs and NUMA nodes.
//!
//! The server gets its CPUs when systemd starts it again; nothing is restarted here.

use std::collections::BTreeMap;

use crate::about::{Risk, Stage};
use crate::knob::Context;
use crate::own_text::{MARK, is_ours};
use crate::plan::Left;
use crate::readings::Reading;
use crate::step::Step;
use crate::target::{Aspect, Target};

const FOLDER: &str = "/etc/systemd/system/";
const NAME: &str = ".d/99-zz-saiga-cores.conf";

/// Units and the texts of their drop-ins
/// ([`systemd`](crate::cores::binding::systemd)).
pub type Bindings = BTreeMap<String, String>;

/// The values that the bindings of these units read or write.
pub fn targets<'a>(units: impl Iterator<Item = &'a String>) -> impl Iterator<Item = Target> {
    units.flat_map(|unit| [drop_in(unit), service(unit)])
}

fn drop_in(unit: &str) -> Target {
    Target::OwnFile {
        path: format!("{FOLDER}{unit}{NAME}"),
    }
}

fn service(unit: &str) -> Target {
    Target::Service {
        unit: unit.to_owned(),
        aspect: Aspect::Enabled,
    }
}

/// Adds the steps that write the drop-ins.
pub(super) fn add(context: &Context, steps: &mut Vec<Step>, left: &mut Vec<Left>) {
    for (unit, text) in &context.goal.bindings {
        match step(context, unit, text) {
            Ok(step) => steps.extend(step),
            Err(reason) => left.push(Left {
                name: format!("binding@{unit}"),
                reason,
            }),
        }
    }
}

fn step(context: &Context, unit: &str, text: &str) -> Result<Option<Step>, String> {
    if context.readings.raw(&service(unit)).is_none() {
        return Err(format!("systemd has no unit {unit}"));
    }
    let target = drop_in(unit);
    let now = format!("{MARK}\n{text}");
    let was = match context.readings.values.get(&target) {
        Some(Reading::Raw(raw)) if *raw == now => return Ok(None),
        Some(Reading::Raw(raw)) if is_ours(raw) => Some(raw.clone()),
        Some(Reading::Raw(_)) => return Err("a file of this name was not made by Saiga".to_owned()),
        Some(Reading::Unreadable(error)) => return Err(format!("cannot be read: {error}")),
        Some(Reading::Missing) | None => None,
    };
    if !is_possible(&target, &now) {
        return Err(format!("{unit} cannot be the name of a unit"));
    }
    Ok(Some(Step {
        knob: "binding".to_owned(),
        instance: Some(unit.to_owned()),
        stage: Stage::Persist,
        risk: Risk::Restart,
        was,
        now,
        why: "A server whose threads stay on their cores and nodes uses near memory, and does not \
              share cores with interrupts."
            .to_owned(),
        effect: "after the next start of the unit; part of 5344 -> 14742 TPS in procedure 003"
            .to_owned(),
        target,
        coupled: Vec::new(),
    }))
}

/// Whether this is a drop-in of ours with a text that a plan writes: it only binds CPUs and memory.
pub(crate) fn is_possible(target: &Target, text: &str) -> bool {
    let Target::OwnFile { path } = target else {
        return false;
    };
    let unit = path
        .strip_prefix(FOLDER)
        .and_then(|rest| rest.strip_suffix(NAME));
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.@-:\\".contains(c);
    let is_unit = unit.is_some_and(|unit| {
        unit.ends_with(".service") && !unit.contains("..") && unit.chars().all(is_part)
    });
    let body = text
        .strip_prefix(MARK)
        .and_then(|rest| rest.strip_prefix("\n[Service]\n"));
    is_unit && body.is_some_and(|body| !body.is_empty() && body.lines().all(is_binding))
}

fn is_binding(line: &str) -> bool {
    let is_list = |value: &str| {
        value
            .chars()
            .all(|c| c.is_ascii_digit() || " ,-".contains(c))
    };
    match line.split_once('=') {
        Some(("CPUAffinity" | "NUMAMask", value)) => is_list(value),
        Some(("NUMAPolicy", value)) => matches!(value, "default" | "interleave" | "bind"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_bind_are_possible() {
        let text = |lines: &str| format!("{MARK}\n[Service]\n{lines}");
        let target = drop_in("mariadb.service");
        let good = "CPUAffinity=0-27 32-59\nNUMAPolicy=interleave\nNUMAMask=0-1\n";
        assert!(is_possible(&target, &text(good)));
        assert!(is_possible(
            &drop_in("postgresql@15-main.service"),
            &text(good)
        ));
        for lines in [
            "",
            "ExecStartPre=/bin/sh\n",
            "CPUAffinity=0\nUser=root\n",
            "NUMAPolicy=preferred\n",
            "CPUAffinity=0; reboot\n",
        ] {
            assert!(!is_possible(&target, &text(lines)), "{lines}");
        }
        assert!(
            !is_possible(&target, &format!("[Service]\n{good}")),
            "without the mark"
        );
        for unit in ["../../passwd.service", "mariadb", "a b.service"] {
            assert!(!is_possible(&drop_in(unit), &text(good)), "{unit}");
        }
    }
}
