//! The text of a plan: each value from what it is to what it becomes.

use std::fmt::Write;

use crate::about::Stage;
use crate::knobs;
use crate::plan::{Left, Plan};
use crate::step::Step;
use crate::target::Target;

const WIDTH: usize = 100;

/// The plan as a person reads it before applying it.
#[must_use]
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_plan(&mut out, plan);
    out
}

fn write_plan(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let facts = &plan.facts;
    let product = facts.product.as_deref().unwrap_or("an unknown product");
    writeln!(
        out,
        "Plan {} for {product}: {}, Linux {}, CPUs {}, nodes {}",
        plan.id, facts.architecture, facts.kernel, facts.cpus, facts.nodes
    )?;
    let mut stage: Option<Stage> = None;
    let mut groups = plan.steps.chunk_by(is_alike).peekable();
    while let Some(steps) = groups.next() {
        let Some(first) = steps.first() else { continue };
        if stage != Some(first.stage) {
            writeln!(out, "\n{}", first.stage)?;
            stage = Some(first.stage);
        }
        match &first.target {
            Target::OwnFile { path } => write_file(out, path, first)?,
            Target::File { .. } | Target::Service { .. } | Target::Nic { .. } => {
                write_steps(out, first, steps)?;
                // Values of one knob have one reason.
                let next = groups.peek().and_then(|steps| steps.first());
                if next.is_none_or(|next| next.knob != first.knob) {
                    wrapped(out, &format!("why: {}", first.why))?;
                    wrapped(out, &format!("effect: {}", first.effect))?;
                    if let Some(knob) = knobs::knob(&first.knob) {
                        wrapped(out, &format!("source: {}", knob.source))?;
                    }
                }
            }
        }
    }
    if plan.steps.is_empty() {
        writeln!(out, "\nNothing to change.")?;
    }
    let overriders = plan.overriders.iter().map(|over| {
        (
            over.name.clone(),
            format!("{}. To use both: {}.", over.what, over.advice),
        )
    });
    write_list(out, "Will be overridden by", overriders)?;
    write_list(
        out,
        "Not possible here",
        grouped(&plan.not_applicable).into_iter(),
    )?;
    write_list(out, "Refused", grouped(&plan.refused).into_iter())?;
    let advice = plan.advice.iter().map(|advice| {
        let risk = advice.risk;
        let text = format!(
            "{} To check: {} ({risk}; {})",
            advice.text, advice.check, advice.source
        );
        (advice.id.clone(), text)
    });
    write_list(out, "Advice, not applied", advice)
}

/// Whether two steps do the same on two devices.
fn is_alike(one: &Step, other: &Step) -> bool {
    let value = |step: &Step| step.was.as_deref().map(|was| step.target.form().value(was));
    let has_instance = one.instance.is_some();
    has_instance && one.knob == other.knob && one.now == other.now && value(one) == value(other)
}

/// Names with the same reason, together.
fn grouped(left: &[Left]) -> Vec<(String, String)> {
    let groups = left.chunk_by(|one, other| one.reason == other.reason);
    let line = |group: &[Left]| {
        let knob = |left: &Left| left.name.split('@').next().map(str::to_owned);
        let runs = group.chunk_by(|one, other| knob(one) == knob(other));
        let names: Vec<String> = runs.flat_map(names).collect();
        (
            names.join(", "),
            group
                .first()
                .map_or_else(String::new, |left| left.reason.clone()),
        )
    };
    groups.map(line).collect()
}

/// The names of values of one knob; only the first and the last of many.
fn names(run: &[Left]) -> Vec<String> {
    match run {
        [first, .., last] if run.len() > 4 => {
            vec![format!("{} to {} ({})", first.name, last.name, run.len())]
        }
        _ => run.iter().map(|left| left.name.clone()).collect(),
    }
}

fn write_file(out: &mut String, path: &str, step: &Step) -> std::fmt::Result {
    let verb = if step.was.is_some() {
        "replace"
    } else {
        "create"
    };
    writeln!(out, "  {verb} {path}")?;
    let old = step.was.as_deref().unwrap_or_default();
    let changed = |text: &str, other: &str| {
        let lines = text
            .lines()
            .filter(|line| !other.lines().any(|old| old == *line));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for line in changed(old, &step.now) {
        writeln!(out, "    - {line}")?;
    }
    for line in changed(&step.now, old) {
        writeln!(out, "    + {line}")?;
    }
    Ok(())
}

/// Steps of one knob with the same values.
fn write_steps(out: &mut String, first: &Step, steps: &[Step]) -> std::fmt::Result {
    let form = first.target.form();
    let absent = || "absent".to_owned();
    let was = first
        .was
        .as_deref()
        .map_or_else(absent, |was| form.shown(was));
    let now = form.shown(&first.now);
    let name = match steps.last() {
        Some(last) if steps.len() > 2 => {
            format!("{} to {} ({})", first.name(), last.name(), steps.len())
        }
        Some(last) if steps.len() == 2 => format!("{}, {}", first.name(), last.name()),
        Some(_) | None => first.name(),
    };
    writeln!(out, "  {name:<32} {was} -> {now}   [{}]", first.risk)
}

fn write_list(
    out: &mut String,
    title: &str,
    items: impl Iterator<Item = (String, String)>,
) -> std::fmt::Result {
    let mut items = items.peekable();
    if items.peek().is_some() {
        writeln!(out, "\n{title}")?;
    }
    for (name, text) in items {
        wrapped_at(out, 2, &name)?;
        wrapped(out, &text)?;
    }
    Ok(())
}

fn wrapped(out: &mut String, text: &str) -> std::fmt::Result {
    wrapped_at(out, 6, text)
}

/// Writes a text in lines that begin at a column.
fn wrapped_at(out: &mut String, column: usize, text: &str) -> std::fmt::Result {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && column + line.len() + 1 + word.len() > WIDTH {
            writeln!(out, "{:column$}{line}", "")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{:column$}{line}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_of_a_knob_with_one_reason_are_a_range() {
        let left = |name: String| Left {
            name,
            reason: "no".to_owned(),
        };
        let irqs = (101..=105).map(|irq| left(format!("irq.affinity@{irq}")));
        let queues = (0..2).map(|queue| left(format!("nic.rps_cpus@eth0-{queue}")));
        let all: Vec<Left> = irqs.chain(queues).collect();
        assert_eq!(
            grouped(&all),
            [(
                "irq.affinity@101 to irq.affinity@105 (5), nic.rps_cpus@eth0-0, nic.rps_cpus@eth0-1"
                    .to_owned(),
                "no".to_owned()
            )]
        );
    }
}
