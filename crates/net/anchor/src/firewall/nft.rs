//! What `nft -j list ruleset` prints.
//!
//! Spec: libnftables-json(5).

use std::ops::RangeInclusive;

use serde_json::Value;

use super::{Rule, Rules};

/// Reads the rules; `None` if the text is not of this form.
pub(super) fn read(text: &str) -> Option<Rules> {
    let all: Value = serde_json::from_str(text).ok()?;
    let mut rules = Rules::default();
    for object in all.get("nftables")?.as_array()? {
        if let Some(chain) = object.get("chain").filter(|chain| chain["hook"] == "input") {
            rules.entries.push(name(chain, chain["name"].as_str()?)?);
        }
        if let Some(rule) = object.get("rule") {
            let chain = name(rule, rule["chain"].as_str()?)?;
            let parsed = parse(rule, &chain)?;
            rules.chains.entry(chain).or_default().push(parsed);
        }
    }
    Some(rules)
}

/// The name of a chain among those of all tables.
fn name(object: &Value, chain: &str) -> Option<String> {
    let family = object["family"].as_str()?;
    let table = object["table"].as_str()?;
    Some(format!("{family} {table} {chain}"))
}

fn parse(object: &Value, chain: &str) -> Option<Rule> {
    let mut rule = Rule {
        text: format!("rule {chain} handle {}", object["handle"]),
        takes_all_of_lo: true,
        ..Rule::default()
    };
    for statement in object["expr"].as_array()? {
        let (kind, value) = statement.as_object()?.iter().next()?;
        match kind.as_str() {
            "accept" => rule.accepts = true,
            "counter" | "log" | "drop" | "reject" | "return" => {}
            "jump" | "goto" => rule.jump = Some(name(object, value["target"].as_str()?)?),
            "match" => {
                rule.takes_all_of_lo &= is_lo(value);
                rule.ports.extend(ports(value));
            }
            _ => rule.takes_all_of_lo = false,
        }
    }
    Some(rule)
}

fn is_lo(condition: &Value) -> bool {
    let key = &condition["left"]["meta"]["key"];
    (key == "iifname" || key == "iif") && condition["op"] == "==" && condition["right"] == "lo"
}

/// The destination ports of TCP that a condition names.
fn ports(condition: &Value) -> Vec<RangeInclusive<u16>> {
    let field = &condition["left"]["payload"];
    let is_tcp = field["protocol"] == "tcp" || field["protocol"] == "th";
    if !is_tcp || field["field"] != "dport" || condition["op"] == "!=" {
        return Vec::new();
    }
    let right = &condition["right"];
    let one = std::slice::from_ref(right);
    let items = right["set"].as_array().map_or(one, Vec::as_slice);
    items.iter().filter_map(range).collect()
}

fn range(item: &Value) -> Option<RangeInclusive<u16>> {
    let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
    // An element with a comment or a time-out.
    let item = item.get("elem").map_or(item, |element| &element["val"]);
    match item["range"].as_array().map(Vec::as_slice) {
        Some([first, last]) => Some(port(first)?..=port(last)?),
        _ => port(item).map(|port| port..=port),
    }
}
