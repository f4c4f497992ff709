//! Differences between two experiments in everything that influences their speed.
//!
//! The most important differences come first: programs and host, then workload and run length,
//! then the commands and settings of the arms. The folder and the port of a private server are
//! chosen anew for each experiment and are not a difference.

use std::collections::{BTreeMap, BTreeSet};

use saiga_experiment::result::{Arm, ExperimentResult, Host};
use saiga_experiment::stats::median;
use serde_json::Value;

/// Maximum number of differences in words; further differences are only counted.
const NAMED: usize = 6;
/// Run lengths within this factor count as equal, because calibration never gives equal lengths.
const SAME_LENGTH: f64 = 1.25;
/// Prefix of a private server's folder; a hash of `--out` follows.
const PRIVATE: &str = "/saiga-tpcc-";
/// Name of a private server's props file, which is in the folder of `--out`.
const PRIVATE_PROPS: &str = "/tpcc.props";

/// Properties by name, in groups of falling importance.
type Properties = Vec<BTreeMap<String, String>>;

/// The differences, such as `saiga: innodb_buffer_pool_size: 1G → 4G`.
pub(super) fn between(before: &ExperimentResult, after: &ExperimentResult) -> Vec<String> {
    let mut all = Vec::new();
    for (old, new) in properties(before).iter().zip(&properties(after)) {
        for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            match (old.get(name), new.get(name)) {
                (Some(one), Some(other)) if one != other => {
                    all.push(format!("{name}: {one} → {other}"));
                }
                (Some(one), None) => all.push(format!("{name}: no longer {one}")),
                (None, Some(other)) => all.push(format!("{name}: now {other}")),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        if let Some((old, new)) = lengths(old, before, after) {
            all.push(format!("length of a run: {old:.1} s → {new:.1} s"));
        }
    }
    let rest = all.len().saturating_sub(NAMED);
    if rest > 0 {
        all.truncate(NAMED);
        all.push(format!("and {rest} more"));
    }
    all
}

fn properties(result: &ExperimentResult) -> Properties {
    let mut arms = BTreeMap::new();
    result.arms.iter().for_each(|arm| add_arm(arm, &mut arms));
    vec![programs_and_host(result), plan(result), arms]
}

fn programs_and_host(result: &ExperimentResult) -> BTreeMap<String, String> {
    let Host {
        cpu,
        cores,
        kernel,
        memory,
        virtualisation,
        extra,
    } = &result.host;
    let mut all: BTreeMap<String, String> = [
        ("CPU", cpu.clone()),
        ("cores", cores.to_string()),
        ("kernel", kernel.clone()),
        ("memory", memory.to_string()),
        ("virtualisation", virtualisation.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let extra = extra.iter();
    all.extend(extra.map(|(name, value)| (name.replace('_', " "), value.to_string())));
    all.extend(result.versions.clone());
    // Some servers report their version as one of their settings.
    for arm in &result.arms {
        let versions = arm
            .configuration
            .iter()
            .filter(|(name, _)| is_version(name));
        all.extend(versions.map(|(name, value)| (format!("{}: {name}", arm.name), value.clone())));
    }
    all
}

fn is_version(name: &str) -> bool {
    name.ends_with(".version") || name.ends_with(".server_version")
}

/// The workload, its conditions and the number of pairs.
fn plan(result: &ExperimentResult) -> BTreeMap<String, String> {
    let pairs = result.runs.iter().map(|run| run.pair + 1).max();
    let mut all = BTreeMap::from([
        ("workload".to_owned(), result.experiment.clone()),
        ("pairs".to_owned(), pairs.unwrap_or(0).to_string()),
    ]);
    let mut conditions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for cell in &result.cells {
        let mut add = |key: &str, value: String| {
            conditions.entry(key.to_owned()).or_default().insert(value);
        };
        add("placement", cell.params.placement.clone());
        add("hog", cell.params.hog.clone());
        for (key, value) in &cell.params.workload {
            add(&key.replace('_', " "), plain(value));
        }
    }
    let joined = conditions.into_iter().map(|(key, values)| {
        let values: Vec<String> = values.into_iter().collect();
        (key, values.join(", "))
    });
    all.extend(joined);
    all
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => without_location(text, &BTreeSet::new()),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// The median run lengths of both experiments in seconds, if they differ by more than
/// [`SAME_LENGTH`]. Returned only for the group of the plan, so that they follow its properties.
fn lengths(
    group: &BTreeMap<String, String>,
    before: &ExperimentResult,
    after: &ExperimentResult,
) -> Option<(f64, f64)> {
    group.get("pairs")?;
    let median_length = |result: &ExperimentResult| {
        let accepted = result.runs.iter().filter(|run| run.rejected.is_none());
        median(&accepted.map(|run| run.seconds).collect::<Vec<_>>())
    };
    let (old, new) = (median_length(before)?, median_length(after)?);
    let differ = old.max(new) > SAME_LENGTH * old.min(new);
    differ.then_some((old, new))
}

fn add_arm(arm: &Arm, all: &mut BTreeMap<String, String>) {
    let Arm {
        name,
        server,
        client,
        env,
        description: _,
        varies: _,
        configuration,
    } = arm;
    let is_private = server.contains(PRIVATE);
    let port = |(key, value): (&String, &String)| {
        let is_port = key.rsplit('.').next() == Some("port");
        (is_private && is_port).then(|| value.clone())
    };
    let ports: BTreeSet<String> = configuration.iter().filter_map(port).collect();
    let comparable = |value: &str| without_location(value, &ports);
    all.insert(format!("{name}: server"), comparable(server));
    all.insert(format!("{name}: client"), comparable(client));
    let settings = configuration.iter().filter(|(name, _)| !is_version(name));
    let named = env.iter().chain(settings);
    all.extend(named.map(|(key, value)| (format!("{name}: {key}"), comparable(value))));
}

/// The text without the folder of a private server, the folder of its props file, and its ports.
fn without_location(text: &str, ports: &BTreeSet<String>) -> String {
    let words = text.split(' ').map(|word| {
        if word.ends_with(PRIVATE_PROPS) {
            return PRIVATE_PROPS.trim_start_matches('/').to_owned();
        }
        let mut out = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once(PRIVATE) {
            let hash_end = after.find(|c: char| !c.is_ascii_hexdigit());
            out.push_str(before);
            out.push_str(PRIVATE.trim_end_matches('-'));
            rest = &after[hash_end.unwrap_or(after.len())..];
        }
        out.push_str(rest);
        without_ports(&out, ports)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Replaces each whole number that is one of `ports`: `--port=3401` becomes `--port=PORT`, and
/// `13401` stays.
fn without_ports(word: &str, ports: &BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    let flush = |digits: &mut String, out: &mut String| {
        let known = ports.contains(digits.as_str());
        out.push_str(if known { "PORT" } else { digits });
        digits.clear();
    };
    for letter in word.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
        } else {
            flush(&mut digits, &mut out);
            out.push(letter);
        }
    }
    flush(&mut digits, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../../experiment/tests/data/result-v1.json");

    fn sample() -> ExperimentResult {
        ExperimentResult::from_json(SAMPLE).expect("the sample is readable")
    }

    #[test]
    fn changes_are_named_and_limited_in_number() {
        let before = sample();
        assert_eq!(between(&before, &before), [""; 0]);
        let mut after = before.clone();
        after.host.kernel = "6.12.0".to_owned();
        after.arms[2].env.clear();
        after.arms[0]
            .configuration
            .insert("maxmemory".to_owned(), "1gb".to_owned());
        let changed = between(&before, &after);
        let wanted = [
            "kernel: 6.1.0-27-amd64 → 6.12.0",
            "kernel: maxmemory: now 1gb",
            "saiga: LD_PRELOAD: no longer /usr/lib/saiga/libsaiga.so",
        ];
        assert_eq!(changed, wanted);
        let many = (0..9).map(|n| (format!("key{n}"), "1".to_owned()));
        after.arms[0].configuration.extend(many);
        let changed = between(&before, &after);
        assert_eq!((changed.len(), changed[6].as_str()), (7, "and 6 more"));
    }

    #[test]
    fn the_plan_comes_after_the_host_and_before_the_arms() {
        let before = sample();
        let mut after = before.clone();
        after.arms[0].server.push_str(" --x");
        for cell in &mut after.cells {
            let clients = cell.params.workload.get_mut("clients");
            if let Some(clients) = clients.filter(|clients| **clients == 50) {
                *clients = 800.into();
            }
        }
        after.runs.retain(|run| run.pair < 3);
        after.runs.iter_mut().for_each(|run| run.seconds *= 10.0);
        after
            .versions
            .insert("redis-server".to_owned(), "8".to_owned());
        let changed = between(&before, &after);
        let begins = [
            "redis-server: 7.0.15 → 8",
            "clients: 1, 50 → 1, 800",
            "pairs: 6 → 3",
            "length of a run: ",
            "kernel: server: ",
        ];
        assert_eq!(changed.len(), begins.len(), "{changed:?}");
        for (change, begin) in changed.iter().zip(begins) {
            assert!(change.starts_with(begin), "{begin}: {changed:?}");
        }
    }

    /// The folder of a private server follows from `--out`; its port is a free one.
    #[test]
    fn folder_and_port_of_a_private_server_are_not_a_change() {
        let private = |hash: &str, port: &str, buffer: &str| {
            let mut result = sample();
            for arm in &mut result.arms {
                let folder = format!("/tmp/saiga-tpcc-{hash}/server");
                arm.server = format!("mariadbd --datadir={folder}/data --port={port}");
                arm.client = format!("saiga bench tpcc run --props /out/{hash}/tpcc.props --json");
                arm.configuration = BTreeMap::from(
                    [
                        ("mariadb.port", port),
                        ("mariadb.datadir", &format!("{folder}/data/")),
                        ("mariadb.pid_file", &format!("{folder}/data/host.pid")),
                        ("mariadb.innodb_buffer_pool_size", buffer),
                    ]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
                );
            }
            let props = serde_json::json!([format!("/out/{hash}/tpcc.props")]);
            for cell in &mut result.cells {
                let workload = &mut cell.params.workload;
                workload.insert("props".to_owned(), props.clone());
            }
            result
        };
        let one = private("00a1", "3401", "134217728");
        let other = private("ffb2", "41234", "134217728");
        assert_eq!(between(&one, &other), [""; 0]);
        let larger = private("ffb2", "41234", "268435456");
        let changed = between(&one, &larger);
        assert_eq!(changed.len(), one.arms.len(), "{changed:?}");
        // The port of a server that the user named is part of its configuration.
        assert_eq!(
            without_ports("--port=3401", &BTreeSet::new()),
            "--port=3401"
        );
        let ports = BTreeSet::from(["3401".to_owned()]);
        assert_eq!(without_ports("-P 3401 13401", &ports), "-P PORT 13401");
    }
}
