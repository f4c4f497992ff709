//! Labels for workloads and placements.
//!
//! A label has only the parameters that distinguish the workload. A value that more than half of
//! all cells share is left out of the labels; [`Workloads::common`] states it once.

use std::collections::BTreeMap;

use saiga_experiment::result::{Cell, PLACEMENT_BEST};
use serde_json::Value;

use saiga_document::number;

/// Parameters that come first in a label, in this order.
const KEY_ORDER: [&str; 7] = [
    "engine",
    "test",
    "clients",
    "pipeline",
    "value_bytes",
    "client_threads",
    "io_threads",
];
/// Parameters that every label has, even if all cells share their values.
const NEVER_LEFT_OUT: [&str; 2] = ["test", "clients"];

/// Makes the labels of an experiment's workloads.
pub(super) struct Workloads {
    common: BTreeMap<String, Value>,
}

impl Workloads {
    pub(super) fn new(cells: &[Cell]) -> Self {
        let mut counts: BTreeMap<&str, Vec<(&Value, usize)>> = BTreeMap::new();
        for (key, value) in cells.iter().flat_map(|cell| &cell.params.workload) {
            let seen = counts.entry(key).or_default();
            match seen.iter_mut().find(|(other, _)| *other == value) {
                Some((_, count)) => *count += 1,
                None => seen.push((value, 1)),
            }
        }
        let common = counts
            .into_iter()
            .filter(|(key, _)| !NEVER_LEFT_OUT.contains(key))
            .filter_map(|(key, seen)| {
                let (value, count) = seen.into_iter().max_by_key(|(_, count)| *count)?;
                (count * 2 > cells.len()).then(|| (key.to_owned(), value.clone()))
            })
            .collect();
        Self { common }
    }

    /// How the servers of most cells are connected, such as `cluster`; `None` for single servers.
    pub(super) fn topology(&self) -> Option<&str> {
        self.common.get("topology")?.as_str()
    }

    /// The parameters that the labels leave out: `pipeline 1, 3-byte values`.
    pub(super) fn common(&self) -> Option<String> {
        let phrases: Vec<_> = ordered(&self.common)
            .map(|(key, value)| phrase(key, value))
            .collect();
        (!phrases.is_empty()).then(|| phrases.join(", "))
    }

    /// The workload of a cell, without its placement: `set, 50 clients, pipeline 16`.
    pub(super) fn label(&self, cell: &Cell) -> String {
        let mut phrases: Vec<_> = ordered(&cell.params.workload)
            .filter(|(key, value)| self.common.get(*key) != Some(value))
            .map(|(key, value)| phrase(key, value))
            .collect();
        match cell.params.hog.as_str() {
            "none" | "" => {}
            "both" => phrases.push("CPU hogs on both cores".to_owned()),
            core => phrases.push(format!("CPU hog on core {core}")),
        }
        if phrases.is_empty() {
            cell.id.clone()
        } else {
            phrases.join(", ")
        }
    }

    /// The workload of a cell with its placement: `set, 50 clients · two cores`.
    pub(super) fn full_label(&self, cell: &Cell) -> String {
        format!("{} · {}", self.label(cell), cell.params.placement)
    }
}

fn ordered(keys: &BTreeMap<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let rank = |key: &str| {
        KEY_ORDER
            .iter()
            .position(|known| *known == key)
            .unwrap_or(KEY_ORDER.len())
    };
    let mut pairs: Vec<_> = keys.iter().collect();
    pairs.sort_by_key(|(key, _)| rank(key));
    pairs.into_iter()
}

fn phrase(key: &str, value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or(number.to_string(), number::whole),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    match (key, text.as_str()) {
        ("test", _) => text,
        ("engine", "mariadb") => "MariaDB".to_owned(),
        ("engine", "postgres") => "PostgreSQL".to_owned(),
        ("clients", "1") => "1 client".to_owned(),
        ("clients", _) => format!("{text} clients"),
        ("value_bytes", _) => format!("{text}-byte values"),
        ("client_threads", _) => format!("client threads {text}"),
        ("io_threads", _) => format!("I/O threads {text}"),
        ("keys", _) => format!("{text} keys"),
        ("topology", "replica") => "a master with two replicas".to_owned(),
        ("topology", "sentinel") => "a master with two replicas and three sentinels".to_owned(),
        ("topology", "cluster") => "a cluster of three masters with a replica each".to_owned(),
        ("reconnect", "true") => "a new connection per request".to_owned(),
        _ => format!("{} {text}", key.replace('_', " ")),
    }
}

/// Heading for the comparisons of a placement, and a sentence that explains it.
pub(super) fn placement(name: &str) -> (String, String) {
    if name == PLACEMENT_BEST {
        let note = "Each arm in the placement in which it is fastest: the fairest comparison.";
        return ("Best against best".to_owned(), note.to_owned());
    }
    let note = match name {
        "one core" => "Server and client share one core, in both arms.",
        "two cores" => "Server and client each have their own core, in both arms.",
        "unpinned" => "The scheduler chooses the cores, in both arms.",
        _ => "The same placement in both arms.",
    };
    (format!("Same placement: {name}"), note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, workload: Value) -> Cell {
        let params = serde_json::json!({"placement": "one core", "hog": "none"});
        let mut params: saiga_experiment::result::CellParams =
            serde_json::from_value(params).expect("the two fixed parameters");
        params.workload = serde_json::from_value(workload).expect("an object");
        Cell {
            id: id.to_owned(),
            params,
        }
    }

    #[test]
    fn labels_begin_with_the_usual_name_of_the_engine() {
        let select =
            |engine| serde_json::json!({"engine": engine, "test": "select-only", "clients": 1});
        let cells = [cell("a", select("mariadb")), cell("b", select("postgres"))];
        let names = Workloads::new(&cells);
        let labels = cells.each_ref().map(|cell| names.label(cell));
        let expected = [
            "MariaDB, select-only, 1 client",
            "PostgreSQL, select-only, 1 client",
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn a_label_has_the_parameters_that_distinguish_the_workload() {
        let usual = serde_json::json!({"test": "set", "clients": 50, "pipeline": 1});
        let rare = serde_json::json!({
            "test": "set", "clients": 1000, "pipeline": 16, "io_threads": 2, "reconnect": true,
            "think_time_ms": 5
        });
        let joined = serde_json::json!({"test": "get", "clients": 50, "topology": "cluster"});
        let all = Workloads::new(&[cell("a", joined.clone()), cell("b", joined)]);
        assert_eq!(all.topology(), Some("cluster"));
        let topology = "a cluster of three masters with a replica each";
        assert_eq!(all.common().as_deref(), Some(topology));
        let mut cells = [cell("a", usual.clone()), cell("b", usual), cell("c", rare)];
        cells[1].params.hog = "both".to_owned();
        let names = Workloads::new(&cells);
        assert_eq!(names.common().as_deref(), Some("pipeline 1"));
        let labels = cells.each_ref().map(|cell| names.label(cell));
        assert_eq!(
            labels,
            [
                "set, 50 clients",
                "set, 50 clients, CPU hogs on both cores",
                "set, 1,000 clients, pipeline 16, I/O threads 2, a new connection per request, \
                 think time ms 5",
            ]
        );
    }
}
