//! How it was measured, on what, and how to repeat it.

use saiga_experiment::result::{Arm, ExperimentResult, Host};
use saiga_experiment::stats::Method;
use serde_json::Value;

use super::{View, words};
use saiga_document::model::{Block, Reach, Section};
use saiga_document::number;

/// `AMD EPYC 7763, 2 cores, kvm · 2026-11-20 14:02:11 UTC`.
pub(super) fn subtitle(result: &ExperimentResult) -> String {
    let host = &result.host;
    let cores = if host.cores == 1 { "core" } else { "cores" };
    let goal = result.goal.iter().map(|goal| format!("Goal: {goal}"));
    let mut parts: Vec<String> = goal.collect();
    parts.push(format!("{}, {} {cores}", host.cpu, host.cores));
    match host.virtualisation.as_str() {
        "none" | "" => {}
        "virtual machine" => parts.push("virtual machine".to_owned()),
        other => parts.push(format!("virtual machine ({other})")),
    }
    parts.push(format!("Linux {}", host.kernel));
    parts.extend(result.started.as_deref().map(words::moment));
    parts.join(" · ")
}

pub(super) fn section(view: &View) -> Section {
    let result = view.result;
    let mut made = super::section("method", "How this was measured", Reach::Detail);
    if !result.command.is_empty() {
        made.blocks.push(Block::Text(
            "Repeat it with the command that made it:".to_owned(),
        ));
        made.blocks.push(Block::Code(shell_line(&result.command)));
    }
    made.blocks.push(Block::Text(explanation(view)));
    made.blocks.push(Block::Facts(facts(result)));
    made.blocks.extend(result.arms.iter().map(arm_facts));
    made
}

fn explanation(view: &View) -> String {
    let compared = words::count(view.result.comparisons.len(), "comparison", "comparisons");
    let runs = words::count(view.result.runs.len(), "run", "runs");
    let seed = view
        .result
        .seed
        .map_or_else(String::new, |seed| format!(" (seed {seed})"));
    let verdict = match view.method() {
        Method::Fixed => "A verdict needs six pairs and an interval that does not contain 1",
        Method::Sequential => {
            "The results decided how many pairs there are: they went on until the intervals were \
             narrow. The intervals are therefore those that hold at every look, however often \
             one looks, and wider than for a number of pairs decided beforehand. A verdict needs \
             eight pairs and an interval that does not contain 1"
        }
    };
    format!(
        "{runs}, {compared}. A pair runs the arms one after the other in the same cell, in an \
         order that changes from pair to pair{seed}, so that a slow drift of the machine meets \
         all arms alike. A ratio is the median over the pairs. {verdict}. The first sentence at the top is one \
         comparison that was fixed beforehand and needs no correction; the one about CPU time \
         claims a difference only when it holds by Holm's procedure over both; the count of \
         workloads, and what the charts call better or worse, are corrected for all comparisons. Best against best takes for each arm the placement in which its \
         throughput is highest; every other comparison holds the placement fixed. The raw value \
         of every run is in result.json."
    )
}

fn facts(result: &ExperimentResult) -> Vec<(String, String)> {
    let Host {
        cpu,
        cores,
        kernel,
        memory,
        virtualisation,
        extra,
    } = &result.host;
    let mut facts = vec![
        ("CPU".to_owned(), cpu.clone()),
        ("Cores".to_owned(), cores.to_string()),
        ("Memory".to_owned(), number::bytes(*memory)),
        ("Kernel".to_owned(), kernel.clone()),
        ("Virtualisation".to_owned(), virtualisation.clone()),
    ];
    facts.extend(
        extra
            .iter()
            .map(|(name, value)| (words::spaced(name), plain(value))),
    );
    facts.extend(
        result
            .versions
            .iter()
            .map(|(name, version)| (name.clone(), version.clone())),
    );
    facts.extend(
        result
            .started
            .iter()
            .map(|when| ("Started".to_owned(), words::moment(when))),
    );
    facts.extend(
        result
            .finished
            .iter()
            .map(|when| ("Finished".to_owned(), words::moment(when))),
    );
    facts
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn arm_facts(arm: &Arm) -> Block {
    let Arm {
        name,
        server,
        client,
        env,
        description,
        varies: _,
        configuration: _,
    } = arm;
    let mut facts = vec![(
        format!("Arm {name}"),
        description.clone().unwrap_or_default(),
    )];
    facts.push(("Server".to_owned(), server.clone()));
    facts.push(("Client".to_owned(), client.clone()));
    let set: Vec<_> = env
        .iter()
        .map(|(name, value)| format!("{name}={}", quoted(value)))
        .collect();
    if !set.is_empty() {
        facts.push(("Environment".to_owned(), set.join(" ")));
    }
    Block::Facts(facts)
}

/// A command line that a shell reads back as the same arguments.
fn shell_line(arguments: &[String]) -> String {
    arguments
        .iter()
        .map(|argument| quoted(argument))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,+@%".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_survives_a_shell() {
        let arguments =
            ["saiga", "compare", "my plan.toml", "--out", "it's", ""].map(str::to_owned);
        assert_eq!(
            shell_line(&arguments),
            r"saiga compare 'my plan.toml' --out 'it'\''s' ''"
        );
    }
}
