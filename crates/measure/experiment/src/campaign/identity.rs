//! [`Identity`]: everything that determines the runs of a plan, as one value.
//!
//! A campaign can be resumed only with the same identity: arms and cells, order, size, limits,
//! versions of programs, hashes of preloaded libraries, the fingerprint of the workload
//! ([`Workload::fingerprint`]), and the machine with its kernel. The values are stored beside their
//! hash, so that messages can name differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::analysis::Until;
use crate::plan::{Plan, RunSize};
use crate::result::Host;
use crate::workload::{Load, Workload};

use super::lines::{PRIME, START, continued};

/// Maximum number of differences in a message.
const NAMED: usize = 3;
/// Bytes per read of a file.
const PIECE_BYTES: usize = 1 << 20;
/// Key of the workload's fingerprint. A value that was null when the campaign began was unknown
/// then; a hook may create it before the first run.
const FACTS: &str = "facts";
const PROGRAMS: &str = "facts.programs";
/// The variable that names preloaded libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// The identity of a plan on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    hash: String,
    facts: Value,
}

impl Identity {
    /// The identity of `plan` with `workload` on `host`; `until` is the stopping rule of a
    /// sequential experiment.
    #[must_use]
    pub fn of<W: Workload>(
        workload: &W,
        plan: &Plan<W::Load>,
        until: Option<&Until>,
        host: &Host,
    ) -> Self {
        let Plan {
            cells,
            pairs,
            seed,
            size,
            max_foreign_cores,
        } = plan;
        let cell = |cell: &crate::plan::Cell<W::Load>| {
            json!({
                "id": cell.id,
                "load": cell.load.params(),
                "placement": cell.placement.name(),
                "hog": cell.hog.name(),
                "cpus": cell.cpus,
                "hogged": cell.hogged,
            })
        };
        let size = match size {
            RunSize::Lasting(length) => json!({"lasting_s": length.as_secs_f64()}),
            RunSize::Operations(operations) => json!({"operations": operations}),
            RunSize::Timed(length) => json!({"timed_s": length.as_secs_f64()}),
        };
        let arms = workload.arms();
        let libraries: Map<String, Value> = arms
            .iter()
            .filter_map(|arm| arm.env.get(PRELOAD))
            .map(|path| (path.clone(), json!(contents(Path::new(path)))))
            .collect();
        let until =
            until.map(|until| json!({"half_width": until.half_width, "cells": until.cells}));
        Self::from_facts(json!({
            "workload": workload.name(),
            "arms": arms,
            "cells": cells.iter().map(cell).collect::<Vec<_>>(),
            "pairs": pairs,
            "seed": seed,
            "size": size,
            // JSON has no infinity; no limit is null.
            "max_foreign_cores": max_foreign_cores.is_finite().then_some(max_foreign_cores),
            "until": until,
            "versions": versions(workload),
            "libraries": libraries,
            FACTS: workload.fingerprint(),
            "host": {"cpu": host.cpu, "cores": host.cores, "kernel": host.kernel},
        }))
    }

    pub(super) fn from_facts(facts: Value) -> Self {
        let text = facts.to_string();
        Self {
            hash: format!("{:016x}", continued(START, text.as_bytes())),
            facts,
        }
    }

    /// The seed of the plan.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.facts.get("seed")?.as_u64()
    }

    /// The fingerprint of the workload.
    pub(super) fn of_workload(&self) -> &Value {
        &self.facts[FACTS]
    }

    /// The values with the fingerprint `facts`, recorded after hooks.
    fn with_fingerprint(&self, facts: &Value) -> Value {
        let mut all = self.facts.clone();
        all[FACTS] = facts.clone();
        all
    }

    /// The differences of `now` as `name: VALUE there, VALUE here`; `None` if there are none.
    /// Values that are as in `made`, the fingerprint after the hooks of an earlier process, do not
    /// differ, because the hooks will create them again.
    pub(super) fn differences(&self, made: Option<&Value>, now: &Self) -> Option<String> {
        if self.hash == now.hash {
            return None;
        }
        let mut found = Vec::new();
        differ("", &self.facts, &now.facts, &mut found);
        if let Some(made) = made {
            let mut others = Vec::new();
            differ("", &self.with_fingerprint(made), &now.facts, &mut others);
            let is_changed = |place: &str| others.iter().any(|(other, _)| other == place);
            found.retain(|(place, _)| is_changed(place));
        }
        if found.is_empty() {
            return None;
        }
        let more = found.len().saturating_sub(NAMED);
        let texts = found.iter().take(NAMED);
        let texts: Vec<String> = texts
            .map(|(place, values)| format!("{place}: {values}"))
            .collect();
        let mut text = texts.join("; ");
        if more > 0 {
            text = format!("{text}; and {more} more");
        }
        Some(text)
    }
}

fn versions<W: Workload>(workload: &W) -> BTreeMap<String, String> {
    let mut versions = workload.versions();
    versions.insert("saiga".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    versions
}

/// Hash of the bytes of a file, such as a program or library; `None` if it cannot be read. A
/// rebuilt program has another hash.
#[must_use]
pub fn contents(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut hash = START;
    loop {
        piece.clear();
        let limit = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
        match file.by_ref().take(limit).read_to_end(&mut piece) {
            Ok(0) => return Some(format!("{hash:016x}")),
            Ok(_) => hash = mixed(hash, &piece),
            Err(_) => return None,
        }
    }
}

/// Hashes words of eight bytes instead of single bytes, for speed: programs are large.
fn mixed(before: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(before, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let odd = u64::try_from(chunk.len()).unwrap_or(0);
        (hash.rotate_left(23) ^ u64::from_le_bytes(word))
            .wrapping_mul(PRIME)
            .wrapping_add(odd)
    })
}

/// Whether the value was unknown when the campaign began, because a hook creates programs and
/// snapshots later.
fn was_unknown(place: &str, old: Option<&Value>) -> bool {
    match old {
        Some(old) => place.starts_with(FACTS) && old.is_null(),
        None => place == PROGRAMS,
    }
}

/// Finds all positions at which two values differ, with both values.
fn differ(place: &str, there: &Value, here: &Value, found: &mut Vec<(String, String)>) {
    let inside = |name: &str| match place {
        "" => name.to_owned(),
        _ => format!("{place}.{name}"),
    };
    match (there, here) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                if was_unknown(place, old.get(name)) {
                    continue;
                }
                let [old, new] = [old, new].map(|side| side.get(name).unwrap_or(&Value::Null));
                differ(&inside(name), old, new, found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differ(&format!("{place}[{index}]"), old, new, found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let lengths = format!("{} there, {} here", old.len(), new.len());
            found.push((place.to_owned(), lengths));
        }
        _ if there == here => {}
        _ => found.push((place.to_owned(), format!("{there} there, {here} here"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_a_hook_creates_after_the_beginning_do_not_differ() {
        let facts = |programs: Value, steps: &str| {
            Identity::from_facts(json!({"facts": {"programs": programs, "steps": steps}}))
        };
        let old = facts(json!({"server": null}), "one");
        let new = facts(json!({"server": "12", "/build/tool": "34"}), "one");
        assert_eq!(old.differences(None, &new), None);
        let changed = facts(json!({"server": "13", "/build/tool": "34"}), "one");
        assert!(new.differences(None, &changed).is_some());
        assert!(old.differences(None, &facts(json!({}), "two")).is_some());
    }

    #[test]
    fn a_snapshot_that_a_hook_creates_may_be_as_before_or_after_the_hook() {
        let of = |snapshot: &str, steps: &str| {
            Identity::from_facts(json!({"facts": {"snapshot": snapshot, "steps": steps}}))
        };
        let (old, made) = (of("old", "one"), of("made", "one"));
        let differences = |now: &Identity| old.differences(Some(made.of_workload()), now);
        assert_eq!(differences(&old), None);
        assert_eq!(differences(&made), None);
        let wanted = "facts.snapshot: \"old\" there, \"third\" here";
        assert_eq!(differences(&of("third", "one")).as_deref(), Some(wanted));
        let wanted = "facts.steps: \"one\" there, \"two\" here";
        assert_eq!(differences(&of("made", "two")).as_deref(), Some(wanted));
    }

    #[test]
    fn differences_are_named_by_their_position() {
        let old = Identity::from_facts(json!({
            "seed": 1, "pairs": 6, "cells": [{"id": "a"}], "arms": [{"env": {"X": "1"}}],
        }));
        assert_eq!(old.differences(None, &old.clone()), None);
        let new = Identity::from_facts(json!({
            "seed": 2, "pairs": 6, "cells": [{"id": "a"}, {"id": "b"}], "arms": [{"env": {}}],
        }));
        assert_eq!(
            old.differences(None, &new).unwrap(),
            "arms[0].env.X: \"1\" there, null here; cells: 1 there, 2 here; seed: 1 there, 2 here"
        );
    }

    #[test]
    fn values_unknown_at_the_beginning_do_not_differ() {
        let with = |snapshot: Value| Identity::from_facts(json!({"facts": {"snapshot": snapshot}}));
        let (unknown, one, other) = (with(Value::Null), with(json!("a")), with(json!("b")));
        assert_eq!(unknown.differences(None, &one), None);
        let text = one.differences(None, &other).unwrap();
        assert_eq!(text, "facts.snapshot: \"a\" there, \"b\" here");
        assert!(one.differences(None, &unknown).is_some());
    }

    #[test]
    fn the_hash_of_a_file_depends_on_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        assert_eq!(contents(&path), None);
        let hash = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            contents(&path).unwrap()
        };
        let long = vec![7; PIECE_BYTES + 3];
        let mut other = long.clone();
        other[PIECE_BYTES + 1] = 8;
        let all = [&[][..], &[0], &[0, 0], &long[1..], &long, &other].map(hash);
        let distinct: BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        assert_eq!(hash(&long), all[4]);
    }

    #[test]
    fn many_differences_are_counted() {
        let all = |value: u32| {
            let names = ["a", "b", "c", "d", "e"];
            let facts = names.map(|name| (name.to_owned(), json!(value)));
            Identity::from_facts(Value::Object(facts.into_iter().collect()))
        };
        let text = all(1).differences(None, &all(2)).unwrap();
        assert_eq!(
            text,
            "a: 1 there, 2 here; b: 1 there, 2 here; c: 1 there, 2 here; and 2 more"
        );
    }
}
