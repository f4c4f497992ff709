//! What differs between two experiments in all that decides how fast they are.

use std::collections::{BTreeMap, BTreeSet};

use saiga_experiment::result::{Arm, ExperimentResult, Host};

/// So many are named; the rest is counted.
const NAMED: usize = 6;

/// Each in words: `saiga: server innodb_buffer_pool_size 1G → 4G`.
pub(super) fn between(before: &ExperimentResult, after: &ExperimentResult) -> Vec<String> {
    let mut all = Vec::new();
    let (old, new) = (facts(before), facts(after));
    for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        match (old.get(name), new.get(name)) {
            (Some(one), Some(other)) if one != other => {
                all.push(format!("{name}: {one} → {other}"))
            }
            (Some(one), None) => all.push(format!("{name}: no longer {one}")),
            (None, Some(other)) => all.push(format!("{name}: now {other}")),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    let rest = all.len().saturating_sub(NAMED);
    if rest > 0 {
        all.truncate(NAMED);
        all.push(format!("and {rest} more"));
    }
    all
}

fn facts(result: &ExperimentResult) -> BTreeMap<String, String> {
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
        ("workload", result.experiment.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    all.extend(
        extra
            .iter()
            .map(|(name, value)| (name.replace('_', " "), value.to_string())),
    );
    all.extend(
        result
            .versions
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    result.arms.iter().for_each(|arm| add_arm(arm, &mut all));
    all
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
    all.insert(format!("{name}: server"), server.clone());
    all.insert(format!("{name}: client"), client.clone());
    let named = env.iter().chain(configuration);
    all.extend(named.map(|(key, value)| (format!("{name}: {key}"), value.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../../experiment/tests/data/result-v1.json");

    #[test]
    fn what_was_changed_is_named_and_what_was_not_is_not() {
        let before = ExperimentResult::from_json(SAMPLE).expect("the sample is readable");
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
}
