//! What iptables-save(8) and ip6tables-save(8) print: the table `filter`.

use std::ops::RangeInclusive;

use super::{Rule, Rules};

/// Targets that end a packet's way or do nothing of interest; others are chains.
const VERDICTS: [&str; 4] = ["ACCEPT", "DROP", "REJECT", "RETURN"];

/// Reads the rules; every text is understood.
pub(super) fn read(text: &str) -> Option<Rules> {
    let mut rules = Rules {
        entries: vec!["INPUT".to_owned()],
        ..Rules::default()
    };
    for line in text.lines() {
        if let Some((chain, rest)) = line
            .strip_prefix("-A ")
            .and_then(|rest| rest.split_once(' '))
        {
            let chain = rules.chains.entry(chain.to_owned()).or_default();
            chain.push(rule(line, rest));
        }
    }
    Some(rules)
}

fn rule(line: &str, rest: &str) -> Rule {
    let mut rule = Rule {
        text: line.to_owned(),
        takes_all_of_lo: true,
        ..Rule::default()
    };
    let mut is_tcp = false;
    let mut words = words(rest).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-j" | "-g" => {
                let target = words.next().unwrap_or_default();
                rule.accepts = target == "ACCEPT";
                rule.jump = Some(target).filter(|target| !VERDICTS.contains(&target.as_str()));
                // What follows belongs to the target.
                break;
            }
            "-i" => rule.takes_all_of_lo &= words.next().is_some_and(|device| device == "lo"),
            "-p" => {
                is_tcp = words.next().is_some_and(|protocol| protocol == "tcp");
                rule.takes_all_of_lo &= is_tcp;
            }
            "--dport" | "--dports" => {
                rule.ports = words.next().map(|list| ports(&list)).unwrap_or_default();
                rule.takes_all_of_lo = false;
            }
            // A comment is not a condition.
            "-m" => {
                let module = words.next().unwrap_or_default();
                rule.takes_all_of_lo &= ["comment", "tcp"].contains(&module.as_str());
            }
            "--comment" => drop(words.next()),
            "!" => {
                // The condition that follows is negated: its words name nothing.
                drop(words.next());
                drop(words.next());
                rule.takes_all_of_lo = false;
            }
            _ => rule.takes_all_of_lo = false,
        }
    }
    if !is_tcp {
        rule.ports.clear();
    }
    rule
}

/// Splits at spaces outside quotation marks.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            letter => word.push(letter),
        }
    }
    words.push(word);
    words
}

/// The ports in `22`, `1000:2000` or `22,80,1000:2000`.
fn ports(list: &str) -> Vec<RangeInclusive<u16>> {
    let range = |item: &str| {
        let (first, last) = item.split_once(':').unwrap_or((item, item));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).collect()
}
