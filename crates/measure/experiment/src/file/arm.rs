//! Parses the arms of a file: common options, overridden by the options of each arm.
//!
//! `[[server]]` and `[client]` apply to every arm. `[[arm.server]]` of the same name and
//! `[arm.client]` override them key by key, so that an arm contains only its differences.

use std::collections::BTreeSet;

use super::hook::Hooks;
use super::reader::{Problems, Table};
use super::server::{Launch, Server};
use super::tree::{Entries, overlay};

/// A compared configuration: servers, client and hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    pub name: String,
    /// A sentence for reports.
    pub description: Option<String>,
    /// Whether a gateway serves the connections of the client's host.
    pub gateway: bool,
    /// Servers start in this order and stop in reverse order.
    pub servers: Vec<Server>,
    /// Launch options of the load generator.
    pub client: Launch,
    /// Hooks of this arm, enclosed by those of all arms.
    pub hooks: Hooks,
}

/// Parses all arms of the file `root`.
pub(super) fn read(root: &Table<'_>, problems: &Problems) -> Vec<Arm> {
    let servers = root.tables("server");
    check_names(root, "server", &servers);
    let client = root.table("client");
    let arms = root.tables("arm");
    if arms.len() < 2 {
        root.problem("arm", "must occur at least twice: [[arm]] with a name each");
    }
    check_names(root, "arm", &arms);
    let none = Entries::new();
    let client = client.as_ref().map_or(&none, Table::entries);
    arms.iter()
        .map(|(line, entries)| {
            let name = name_of(entries);
            let path = format!("arm {:?}", name.unwrap_or_default());
            let table = root.inner(path, *line, entries);
            arm(&table, &servers, client, problems)
        })
        .collect()
}

fn arm(
    table: &Table<'_>,
    servers: &[(usize, &Entries)],
    client: &Entries,
    problems: &Problems,
) -> Arm {
    let saiga = table.flag("saiga");
    let own = table.tables("server");
    check_names(table, "server", &own);
    let mut all: Vec<(usize, Entries)> = Vec::new();
    for (line, base) in servers {
        let over = own.iter().find(|(_, own)| name_of(own) == name_of(base));
        all.push(match over {
            Some((line, over)) => (*line, overlay(base, over)),
            None => (*line, (*base).clone()),
        });
    }
    for (line, entries) in &own {
        if !servers
            .iter()
            .any(|(_, base)| name_of(base) == name_of(entries))
        {
            all.push((*line, (*entries).clone()));
        }
    }
    let servers = all.iter().map(|(line, entries)| {
        let path = format!("server {:?}", name_of(entries).unwrap_or_default());
        // The path does not contain the arm, so that a problem in a common option is reported once.
        Server::read(&Table::new(path, *line, entries, problems), saiga)
    });
    let servers = servers.collect();
    let own_client = table.table("client");
    let line = own_client.as_ref().map_or(table.line(), Table::line);
    let none = Entries::new();
    let merged = overlay(client, own_client.as_ref().map_or(&none, Table::entries));
    let client = Table::new("client".to_owned(), line, &merged, problems);
    let launch = Launch::read(&client, saiga);
    client.finish();
    let hooks = table.table("hooks");
    let arm = Arm {
        name: table.required_text("name").unwrap_or_default(),
        description: table.text("description"),
        gateway: table.flag("gateway").unwrap_or(false),
        servers,
        client: launch,
        hooks: Hooks::read(hooks.as_ref(), true, problems),
    };
    table.finish();
    arm
}

fn name_of(entries: &Entries) -> Option<&str> {
    entries.get("name")?.text()
}

/// Reports names that occur twice.
fn check_names(table: &Table<'_>, what: &str, all: &[(usize, &Entries)]) {
    let mut seen = BTreeSet::new();
    for (line, entries) in all {
        if let Some(name) = name_of(entries).filter(|name| !seen.insert(*name)) {
            table.note(
                *line,
                &format!("{what} {name:?} occurs twice; rename one of them"),
            );
        }
    }
}
