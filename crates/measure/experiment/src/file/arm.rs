//! The arms of a file: what all of them have, and what each has of its own.
//!
//! `[[server]]` and `[client]` hold for every arm. `[[arm.server]]` of the same name and
//! `[arm.client]` are laid over them key by key, so that an arm says what differs.

use std::collections::BTreeSet;

use super::hook::Hooks;
use super::reader::{Problems, Table};
use super::server::{Dress, Server};
use super::tree::{Entries, overlay};

/// One of the things compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// Unique.
    pub name: String,
    /// One sentence for people.
    pub description: Option<String>,
    /// In the order in which they start.
    pub servers: Vec<Server>,
    /// Around the load generator.
    pub client: Dress,
    /// Hooks of this arm alone, inside those of all.
    pub hooks: Hooks,
}

/// Reads every arm of the file `root`.
pub(super) fn read(root: &Table<'_>, problems: &Problems) -> Vec<Arm> {
    let servers = root.tables("server");
    named(root, "server", &servers);
    let client = root.table("client");
    let arms = root.tables("arm");
    if arms.len() < 2 {
        root.problem(
            "arm",
            "must be there twice at least: [[arm]] with a name each",
        );
    }
    named(root, "arm", &arms);
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
    named(table, "server", &own);
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
        // What is shared is told once: its path does not name the arm.
        Server::read(&Table::new(path, *line, entries, problems), saiga)
    });
    let servers = servers.collect();
    let own_client = table.table("client");
    let line = own_client.as_ref().map_or(table.line(), Table::line);
    let none = Entries::new();
    let merged = overlay(client, own_client.as_ref().map_or(&none, Table::entries));
    let client = Table::new("client".to_owned(), line, &merged, problems);
    let dress = Dress::read(&client, saiga);
    client.finish();
    let hooks = table.table("hooks");
    let arm = Arm {
        name: table.needed_text("name").unwrap_or_default(),
        description: table.text("description"),
        servers,
        client: dress,
        hooks: Hooks::read(hooks.as_ref(), true, problems),
    };
    table.finish();
    arm
}

fn name_of(entries: &Entries) -> Option<&str> {
    entries.get("name")?.text()
}

/// Each name may be given once.
fn named(table: &Table<'_>, what: &str, all: &[(usize, &Entries)]) {
    let mut seen = BTreeSet::new();
    for (line, entries) in all {
        if let Some(name) = name_of(entries).filter(|name| !seen.insert(*name)) {
            table.note(
                *line,
                &format!("{what} {name:?} is there twice; give it another name"),
            );
        }
    }
}
