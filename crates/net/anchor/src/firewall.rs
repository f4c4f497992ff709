//! Packet filter rules for a served port that anchors bypass.
//!
//! Anchors come by `lo`. Most packet filters accept everything from `lo` first, so that a later
//! rule about the port, such as one that limits its clients, is not applied to them. [`look`] finds
//! such rules for TCP in what nft(8) and iptables-save(8) print. It follows jumps in the order of
//! the rules.
//!
//! Deliberately absent: named sets, verdict maps, BPF, and whether the rule would have decided.

mod iptables;
mod nft;

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::process::Command;

/// Chains of more than this depth are not followed, as in the kernel (`NFT_JUMP_STACK_SIZE`).
const MOST_DEPTH: usize = 16;

/// A program that prints the rules, its arguments, and the function that reads them.
type Source = (&'static str, &'static [&'static str], Reader);
type Reader = fn(&str) -> Option<Rules>;

const SOURCES: [Source; 3] = [
    ("nft", &["-j", "list", "ruleset"], nft::read),
    ("iptables-save", &["-t", "filter"], iptables::read),
    ("ip6tables-save", &["-t", "filter"], iptables::read),
];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Rules that do not apply to anchors.
    pub bypassed: Vec<Bypassed>,
    /// Programs whose rules are unknown. One that is not installed is there, too: other programs
    /// may have set up rules.
    pub not_read: Vec<NotRead>,
}

/// A rule that does not apply to anchors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bypassed {
    /// The served port.
    pub port: u16,
    /// The rule that names the port, as its program prints it or finds it.
    pub rule: String,
    /// The earlier rule that accepts packets from `lo`.
    pub accepted_by: String,
}

impl fmt::Display for Bypassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` does not apply to clients of the gateway at port {}: they come by lo, which `{}` \
             accepts before; limit the clients in the settings of the gateway",
            self.rule, self.port, self.accepted_by
        )
    }
}

/// A program whose rules are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    /// The program.
    pub program: &'static str,
    /// Why its rules are unknown.
    pub reason: String,
}

/// Looks for rules that do not apply to clients of `ports`.
#[must_use]
pub fn look(ports: &[u16]) -> Report {
    let mut report = Report {
        bypassed: Vec::new(),
        not_read: Vec::new(),
    };
    for (program, arguments, read) in SOURCES {
        match print(program, arguments) {
            Err(reason) => report.not_read.push(NotRead { program, reason }),
            Ok(text) => match read(&text) {
                Some(rules) => {
                    let found = ports.iter().flat_map(|&port| rules.bypassed(port));
                    report.bypassed.extend(found);
                }
                None => report.not_read.push(NotRead {
                    program,
                    reason: "its output is not understood".to_owned(),
                }),
            },
        }
    }
    report
}

/// The output of a program, or why there is none.
fn print(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Rules of one program, as far as they matter here.
#[derive(Debug, Default)]
struct Rules {
    /// Names of the chains that received packets enter.
    entries: Vec<String>,
    chains: HashMap<String, Vec<Rule>>,
}

#[derive(Debug, Default)]
struct Rule {
    text: String,
    /// Whether it has no condition, or `lo` alone.
    takes_all_of_lo: bool,
    accepts: bool,
    /// Destination ports of TCP that it names.
    ports: Vec<RangeInclusive<u16>>,
    jump: Option<String>,
}

impl Rules {
    fn bypassed(&self, port: u16) -> Vec<Bypassed> {
        let mut walk = Walk {
            rules: self,
            port,
            accepted_by: None,
            found: Vec::new(),
        };
        for entry in &self.entries {
            walk.accepted_by = None;
            walk.follow(entry, true, 0);
        }
        walk.found
    }
}

/// A walk through the rules in the order in which the kernel applies them.
struct Walk<'a> {
    rules: &'a Rules,
    port: u16,
    accepted_by: Option<&'a str>,
    found: Vec<Bypassed>,
}

impl<'a> Walk<'a> {
    /// `is_certain`: every packet from `lo` that no rule has decided comes to this chain.
    fn follow(&mut self, chain: &str, is_certain: bool, depth: usize) {
        let rules: &'a Rules = self.rules;
        let Some(chain) = rules.chains.get(chain).filter(|_| depth < MOST_DEPTH) else {
            return;
        };
        for rule in chain {
            let names_port = rule.ports.iter().any(|ports| ports.contains(&self.port));
            match self.accepted_by {
                Some(accepted_by) if names_port => self.found.push(Bypassed {
                    port: self.port,
                    rule: rule.text.clone(),
                    accepted_by: accepted_by.to_owned(),
                }),
                None if is_certain && rule.takes_all_of_lo && rule.accepts => {
                    self.accepted_by = Some(&rule.text);
                }
                _ => {}
            }
            if let Some(jump) = &rule.jump {
                self.follow(jump, is_certain && rule.takes_all_of_lo, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
