//! Words for what an experiment measured: workloads, placements, metrics, verdicts.
//!
//! A workload is named by what sets it apart: the value that most cells share is left out of
//! the labels and said once, in [`Workloads::common`]. Deliberately absent: numbers.

use std::collections::BTreeMap;

use saiga_experiment::result::{Better, Cell, Comparison, PLACEMENT_BEST, Verdict};
use serde_json::Value;

use crate::model::Tone;
use crate::number;

/// Keys that come first in a label, and are never left out of it (the first two).
const KEY_ORDER: [&str; 6] = [
    "test",
    "clients",
    "pipeline",
    "value_bytes",
    "threads",
    "io_threads",
];
const ALWAYS_SAID: [&str; 2] = ["test", "clients"];

/// Names workloads, given all cells of the experiment.
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
            .filter(|(key, _)| !ALWAYS_SAID.contains(key))
            .filter_map(|(key, seen)| {
                let (value, _) = seen.into_iter().rev().max_by_key(|(_, count)| *count)?;
                Some((key.to_owned(), value.clone()))
            })
            .collect();
        Self { common }
    }

    /// What the labels leave out: `pipeline 1, 3-byte values`.
    pub(super) fn common(&self) -> Option<String> {
        let said: Vec<_> = ordered(&self.common)
            .map(|(key, value)| phrase(key, value))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The workload of a cell, without its placement: `set, 50 clients, pipeline 16`.
    pub(super) fn label(&self, cell: &Cell) -> String {
        let mut said: Vec<_> = ordered(&cell.params.workload)
            .filter(|(key, value)| self.common.get(*key) != Some(value))
            .map(|(key, value)| phrase(key, value))
            .collect();
        match cell.params.hog.as_str() {
            "none" | "" => {}
            "both" => said.push("CPU hogs on both cores".to_owned()),
            core => said.push(format!("CPU hog on core {core}")),
        }
        if said.is_empty() {
            cell.id.clone()
        } else {
            said.join(", ")
        }
    }

    /// A cell in full: `set, 50 clients · two cores`.
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
        ("clients", "1") => "1 client".to_owned(),
        ("clients", _) => format!("{text} clients"),
        ("value_bytes", _) => format!("{text}-byte values"),
        ("threads", "1") => "1 client thread".to_owned(),
        ("threads", _) => format!("{text} client threads"),
        ("io_threads", _) => format!("I/O threads {text}"),
        _ => format!("{} {text}", key.replace('_', " ")),
    }
}

/// What a placement means for a comparison: its heading and a sentence.
pub(super) fn placement(name: &str) -> (String, String) {
    if name == PLACEMENT_BEST {
        let note = "Each arm in the placement that suits it best: the fair opponent.";
        return ("Best against best".to_owned(), note.to_owned());
    }
    let note = match name {
        "one core" => "Server and client share one core, in both arms.",
        "two cores" => "Server and client have a core each, in both arms.",
        "unpinned" => "The scheduler chooses the cores, in both arms.",
        _ => "The same placement in both arms.",
    };
    (format!("Same placement: {name}"), note.to_owned())
}

/// A metric as people call it.
pub(super) struct Metric {
    /// `Throughput`, `Server CPU per operation`.
    pub(super) title: String,
    /// What B is when it does better, and worse: `faster`, `slower`.
    pub(super) better: &'static str,
    pub(super) worse: &'static str,
    /// Ends "7.9 times ...": `the throughput`, `less server CPU per operation`.
    pub(super) gain: String,
}

/// Names a metric; the name of an unknown one is taken apart.
pub(super) fn metric(name: &str) -> Metric {
    let known = |title: &str, better, worse, gain: &str| Metric {
        title: title.to_owned(),
        better,
        worse,
        gain: gain.to_owned(),
    };
    match name {
        "throughput_ops_s" => known("Throughput", "faster", "slower", "the throughput"),
        "tpmc_no_think_time" => known("tpmC (no think time)", "faster", "slower", "the throughput"),
        "latency_p50_us" => known(
            "Median latency",
            "shorter",
            "longer",
            "shorter median latency",
        ),
        "latency_p99_us" => known("99 % latency", "shorter", "longer", "shorter 99 % latency"),
        "latency_p999_us" => known(
            "99.9 % latency",
            "shorter",
            "longer",
            "shorter 99.9 % latency",
        ),
        "server_cpu_us_per_op" => known(
            "Server CPU per operation",
            "less CPU",
            "more CPU",
            "less server CPU per operation",
        ),
        "client_cpu_us_per_op" => known(
            "Client CPU per operation",
            "less CPU",
            "more CPU",
            "less client CPU per operation",
        ),
        "total_cpu_us_per_op" => known(
            "Server and client CPU per operation",
            "less CPU",
            "more CPU",
            "less CPU per operation",
        ),
        other => {
            let title = other.replace('_', " ");
            let gain = format!("better {title}");
            Metric {
                title,
                better: "better",
                worse: "worse",
                gain,
            }
        }
    }
}

/// The unit that ends the name of a metric.
pub(super) fn unit(metric: &str) -> &'static str {
    const SUFFIXES: [(&str, &str); 9] = [
        ("_ops_s", "ops/s"),
        ("_us_per_op", "µs/op"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_ns", "ns"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_kib", "KiB"),
        ("_per_op", "per operation"),
    ];
    SUFFIXES
        .iter()
        .find(|(suffix, _)| metric.ends_with(suffix))
        .map_or("", |(_, unit)| unit)
}

/// What a comparison concludes, in words and as a tone.
pub(super) fn verdict(comparison: &Comparison) -> (String, Tone) {
    let words = metric(&comparison.metric);
    if comparison.ratio.ci95.is_none() {
        return ("too few pairs to tell".to_owned(), Tone::Neutral);
    }
    let (word, tone) = match comparison.verdict {
        Verdict::Faster => (words.better, Tone::Better),
        Verdict::Slower => (words.worse, Tone::Worse),
        Verdict::NoDifferenceShown => return ("no difference shown".to_owned(), Tone::Neutral),
    };
    match comparison.holds_corrected {
        Some(false) => (format!("{word} (uncorrected)"), tone),
        Some(true) | None => (word.to_owned(), tone),
    }
}

/// What a ratio below 1 and above 1 means.
pub(super) fn ends(name: &str, better: Better, subject: &str) -> [(String, Tone); 2] {
    let words = metric(name);
    let good = (format!("{subject} {}", words.better), Tone::Better);
    let bad = (format!("{subject} {}", words.worse), Tone::Worse);
    match better {
        Better::Higher => [bad, good],
        Better::Lower => [good, bad],
    }
}

/// How many times better B is: the ratio, turned round where less is better.
pub(super) fn gain(comparison: &Comparison) -> f64 {
    match comparison.better {
        Better::Higher => comparison.ratio.median,
        Better::Lower => 1.0 / comparison.ratio.median,
    }
}

/// `1 run`, `3 runs`.
pub(super) fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A name with underscores as words: `Numa nodes`.
pub(super) fn spaced(name: &str) -> String {
    let mut letters = name.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}", letters.as_str().replace('_', " "))
}
