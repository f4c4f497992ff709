//! The report's last section: the command, the method, the host, and the arms.

use saiga_experiment::result::{Arm, ExperimentResult, Host};
use saiga_experiment::stats::Method;
use serde_json::Value;

use super::{View, format};
use saiga_document::model::{Block, Section, Visibility};
use saiga_document::number;

/// The line below the title: goal, CPU, virtualisation, kernel and start, joined by ` · `.
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
    parts.extend(result.started.as_deref().map(format::timestamp));
    parts.join(" · ")
}

pub(super) fn section(view: &View) -> Section {
    let result = view.result;
    let mut section = super::new_section("method", "How this was measured", Visibility::Detail);
    if !result.command.is_empty() {
        section.blocks.push(Block::Text(
            "This command repeats the experiment:".to_owned(),
        ));
        section
            .blocks
            .push(Block::Code(shell_line(&result.command)));
    }
    section.blocks.push(Block::Text(explanation(view)));
    section.blocks.push(Block::Facts(facts(result)));
    section.blocks.extend(result.arms.iter().map(arm_facts));
    section
}

fn explanation(view: &View) -> String {
    let compared = format::count(view.result.comparisons.len(), "comparison", "comparisons");
    let runs = format::count(view.result.runs.len(), "run", "runs");
    let seed = view
        .result
        .seed
        .map_or_else(String::new, |seed| format!(" (seed {seed})"));
    let verdict = match view.method() {
        Method::Fixed => "A verdict needs six pairs and an interval that does not contain 1",
        Method::Sequential => {
            "The number of pairs was not fixed beforehand: the experiment ran pairs until the \
             intervals were narrow enough. Its intervals stay valid if the results are checked \
             after every pair; they are wider than intervals for a fixed number of pairs. A \
             verdict needs eight pairs and an interval that does not contain 1"
        }
    };
    format!(
        "{runs}, {compared}. A pair runs every arm once in the same cell, one after the other. The \
         order of the arms changes from pair to pair{seed}, so that a slow drift of the machine \
         affects all arms alike. A ratio is the median over the pairs. {verdict}. The first \
         sentence of this report is about one comparison that was fixed beforehand; it needs no \
         correction. The sentence about CPU time claims a difference only if the difference is \
         significant by Holm's procedure over these two comparisons. The number of workloads in \
         the summary, and the words better and worse in the charts, are corrected for the number \
         of all comparisons. \
         Best against best compares each arm in the placement in which its throughput is highest; \
         every other comparison uses the same placement for both arms. The raw values of every \
         run are in result.json."
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
            .map(|(name, value)| (format::heading(name), plain(value))),
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
            .map(|when| ("Started".to_owned(), format::timestamp(when))),
    );
    facts.extend(
        result
            .finished
            .iter()
            .map(|when| ("Finished".to_owned(), format::timestamp(when))),
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

/// The arguments as one line, quoted so that a POSIX shell splits it into the same arguments.
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
